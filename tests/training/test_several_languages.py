"""Several languages in one model: trained by tags, scored pair by pair, asked for by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file
from toy import Said, toy_settings, write_toy

from transduce.data.formats.pair import Pair
from transduce.decoding.translator import Translator
from transduce.errors import ConfigError, UsageError
from transduce.evaluation.evaluate import evaluate
from transduce.evaluation.scores import score
from transduce.training.run import train
from transduce.training.validation import first_of_each, scores_by_languages

BOTH_WAYS = {"languages": ["en:de", "de:en"], "valid_pairs": 24}


def _call(folder: Path, **training: Any) -> dict[str, Any]:
    english, german = write_toy(folder, 300, longest=4, reverse=False)
    settings = toy_settings(**{"rate": 1e-2, "warmup": 30, "batch_tokens": 400, **training})
    settings["data"] |= {"vocabulary": 330, **BOTH_WAYS}
    settings["model"]["dropout"] = 0.0
    return {
        "source": [english, german], "target": [german, english], "settings": settings, "stream": Said(),
    }  # fmt: skip


def test_one_model_learns_both_directions(tmp_path: Path) -> None:
    call = _call(tmp_path, max_steps=350, valid_every=350)
    result = train(tmp_path / "run", **call)
    by_languages = result.scores["languages"]
    assert set(by_languages) == {"en:de", "de:en"}
    assert all(found["bleu"] > 40 for found in by_languages.values())
    assert sum(found["lines"] for found in by_languages.values()) == 24
    translator = Translator.load(result.folder)
    assert translator.languages == ("de", "en")
    # Words that are the same in both are few: the tag decides, not the text.
    english, german = "one two", "eins zwei"
    assert translator.translate([english], to="de") == [german]
    assert translator.translate([german], to="en") == [english]
    with pytest.raises(UsageError, match="translates into de, en"):
        translator.translate([english], to="fr")
    events = [json.loads(line) for line in (result.folder / "log.jsonl").read_bytes().splitlines()]
    validations = [event for event in events if event["event"] == "validation"]
    assert set(validations[-1]["languages"]) == {"en:de", "de:en"}
    assert "    de:en: BLEU " in call["stream"].getvalue()
    recipe = json.loads((result.folder / "training.json").read_bytes())["recipe"]
    assert recipe["data"]["languages"] == ["en:de", "de:en"]
    with pytest.raises(UsageError, match="say into which"):
        evaluate(translator, tmp_path / "toy.en", tmp_path / "toy.de")
    found = evaluate(translator, tmp_path / "toy.en", tmp_path / "toy.de", to="de")
    assert "--to de" in found.recipe
    assert found.scores.bleu > 40


def test_a_run_that_was_stopped_goes_on_and_other_labels_are_another_run(tmp_path: Path) -> None:
    how = {"save_every": 3, "valid_every": 100, "schedule": "constant"}
    whole = train(tmp_path / "whole", **_call(tmp_path, max_steps=6, **how))
    train(tmp_path / "parts", **_call(tmp_path, max_steps=3, **how))
    parts = train(tmp_path / "parts", resume=True, **_call(tmp_path, max_steps=6, **how))
    one, other = (load_file(r.folder / "model.safetensors") for r in (whole, parts))
    assert all((one[name] == other[name]).all() for name in one)
    tuned = _call(tmp_path, max_steps=8, **how)
    del (
        tuned["settings"]["data"]["languages"],
        tuned["settings"]["data"]["vocabulary"],
        tuned["settings"]["model"],
    )
    with pytest.raises(ConfigError, match="told its target language"):
        train(tmp_path / "tuned", start=whole.folder, **tuned)


def _pairs(*languages: str) -> list[Pair]:
    return [Pair(f"s{i}", f"t{i} a b c", "f", i, languages=one) for i, one in enumerate(languages)]


def test_each_pair_of_languages_is_translated_in_validation() -> None:
    pairs = _pairs(*["en:de"] * 5, *["de:en"] * 3)
    assert first_of_each(pairs, 4) == [*pairs[:2], *pairs[5:7]]
    assert first_of_each(pairs, 7) == [*pairs[:4], *pairs[5:8]]
    assert first_of_each(pairs, 100) == pairs
    assert first_of_each(pairs[:5], 4) == pairs[:4]


def test_scores_of_a_pair_of_languages_are_those_of_its_lines_alone() -> None:
    pairs = _pairs("en:de", "de:en", "en:de")
    outputs = ["t0 a b c", "x a b c", "t2 a b d"]
    found = scores_by_languages(outputs, pairs)
    expected = score(["t0 a b c", "t2 a b d"], ["t0 a b c", "t2 a b c"], ter=False)
    assert found["en:de"] == {"lines": 2, "bleu": expected.bleu, "chrf": expected.chrf}
    assert found["de:en"]["lines"] == 1
    assert scores_by_languages(outputs[:1], pairs[:1]) == {}
