"""Translating by CTranslate2: the same model, its own search, and nothing that it cannot do is ignored."""

from __future__ import annotations

import importlib.util
import itertools
import json
import math
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from tiny_translator import save_tiny, sentences, tiny_bundle, tokenizer
from transduce import TransduceError, export_model
from transduce.bundle import Bundle, save_bundle
from transduce.cli.main import main
from transduce.data.tokenizer import Tokenizer
from transduce.decoding import opening
from transduce.decoding.hypothesis import length_penalty
from transduce.decoding.translator import Translator
from transduce.errors import UsageError
from transduce.evaluation.evaluate import evaluate
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("ctranslate2") is None,
    reason="needs ctranslate2: pip install 'transduce[export]'",
)
# Its outputs are of ordinary lengths.
SEED = 5
LINES = [*sentences(7, seed=4), "", sentences(1, words=(20, 20))[0], "x"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(save_tiny(tmp_path_factory.mktemp("models") / "model", seed=SEED))


@pytest.fixture(scope="module")
def exported(folder: Path) -> Path:
    return export_model(folder, folder.with_name("exported"), to="ctranslate2").path


@pytest.fixture(scope="module")
def theirs() -> Translator:
    return Translator(tiny_bundle(seed=SEED), engine="ctranslate2")


@pytest.fixture(scope="module")
def ours() -> Translator:
    return Translator(tiny_bundle(seed=SEED))


def test_greedy_search_is_ours(ours: Translator, theirs: Translator) -> None:
    assert theirs.translate(LINES, beam=1, stop="full") == ours.translate(LINES, beam=1)


def test_each_output_has_our_log_probability_and_the_best_of_the_beam_leads(
    ours: Translator, theirs: Translator
) -> None:
    for found in theirs.translate_detailed(LINES, n_best=4, stop="full"):
        scores = [one.score for one in found.alternatives]
        assert scores == sorted(scores, reverse=True)
        for one in found.alternatives:
            if not found.source:
                continue
            (known,) = ours.score([(found.source, one.tokens)])
            if not one.truncated:
                assert one.log_probability == pytest.approx(known.log_probability, abs=1e-4)
                assert one.tokens == known.tokens
            assert one.score == pytest.approx(one.log_probability / length_penalty(one.length, 0.6))


def test_the_beam_finds_what_our_search_finds(ours: Translator, theirs: Translator) -> None:
    found = [t.translate_detailed(LINES, stop="full") for t in (ours, theirs)]
    same = sum(a.text == b.text for a, b in zip(*found, strict=True))
    assert same >= len(LINES) - 3


def test_lines_do_not_depend_on_their_batch_and_stay_in_order(theirs: Translator) -> None:
    alone = [theirs.translate([line], stop="full")[0] for line in LINES]
    assert theirs.translate(LINES, stop="full") == alone
    assert theirs.translate(LINES[::-1], stop="full") == alone[::-1]
    assert theirs.translate(LINES, stop="full", batch_tokens=1) == alone
    assert alone[7] == ""


def test_a_long_neighbour_does_not_lengthen_an_output() -> None:
    endless = Translator(tiny_bundle(seed=SEED, ends=-40.0), engine="ctranslate2")
    lines = ["ab", LINES[8], "ab de"]
    limits = [len(tokenizer().encode(line)) + 5 for line in lines]
    found = endless.translate_detailed(lines, stop="full", max_extra=5)
    assert [one.alternatives[0].length for one in found] == limits
    assert all(one.alternatives[0].truncated for one in found)
    alone = [endless.translate([line], stop="full", max_extra=5)[0] for line in lines]
    assert [one.text for one in found] == alone


def test_a_target_that_is_cut_off_has_no_end(ours: Translator, theirs: Translator) -> None:
    pair = LINES[0], " ".join(sentences(60, seed=8))
    known, found = (t.score([pair], long_lines="truncate")[0] for t in (ours, theirs))
    assert known.tokens == found.tokens
    assert found.tokens[-1] != theirs.searcher.config.eos_id
    assert found.token_log_probabilities == pytest.approx(known.token_log_probabilities, abs=1e-4)


def test_lengths_and_repetition_are_kept(theirs: Translator) -> None:
    found = theirs.translate_detailed(LINES[:3], stop="full", min_length=9)
    assert all(one.alternatives[0].length >= 10 for one in found)
    for one in theirs.translate_detailed(LINES[:3], stop="full", min_length=9, no_repeat_ngram=2):
        tokens = one.alternatives[0].tokens
        assert len({*itertools.pairwise(tokens)}) == len(tokens) - 1


def test_confidence_is_that_of_the_tokens(ours: Translator, theirs: Translator) -> None:
    (found,) = theirs.translate_detailed(LINES[:1], stop="full", confidence=True)
    best = found.alternatives[0]
    assert sum(best.token_log_probabilities) == pytest.approx(best.log_probability, abs=1e-4)
    assert best.word_confidences is not None
    assert len(best.word_confidences) == len(best.text.split())


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"samples": 2, "temperature": 0.7}, "samples = 2"),
        ({"repetition_penalty": 1.2}, r"repetition_penalty = 1\.2"),
        ({"prefix_factor": 5.0}, r"prefix_factor = 5\.0"),
        ({"shortlist": True}, "shortlist = True"),
        ({"prefixes": ["de"]}, "prefixes"),
        ({"terms": [["de"]]}, "terms"),
    ],
)
def test_what_it_cannot_do_is_refused_by_name(
    theirs: Translator, options: dict[str, Any], named: str
) -> None:
    with pytest.raises(UsageError, match=f"the engine ctranslate2 cannot do this: .*{named}"):
        theirs.translate_detailed(LINES[:1], stop="full", **options)


def test_other_calls_are_refused_by_name(theirs: Translator) -> None:
    with pytest.raises(UsageError, match="streaming"):
        list(theirs.stream("ab", stop="full"))
    with pytest.raises(UsageError, match="alternatives at a place"):
        theirs.alternatives("ab", stop="full")
    with pytest.raises(UsageError, match="an ensemble of several models"):
        Translator([tiny_bundle(seed=SEED), tiny_bundle(seed=SEED)], engine="ctranslate2")


def test_that_it_stops_otherwise_is_said_once() -> None:
    translator = Translator(tiny_bundle(seed=SEED), engine="ctranslate2")
    with pytest.warns(UserWarning, match="stop is full, not exact"):
        translator.translate(["ab"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        translator.translate(["ab"])


def test_attention_is_shown_where_the_weights_are(
    ours: Translator, theirs: Translator, exported: Path
) -> None:
    (found,) = theirs.translate_detailed(LINES[:1], stop="full", alignments=True)
    (expected,) = ours.aligner().align(theirs.translate_detailed(LINES[:1], stop="full"))
    assert found.alternatives[0].alignment == expected.alternatives[0].alignment
    without = Translator.load(exported)
    for options in ({"alignments": True}, {"protect": "all"}):
        with pytest.raises(UsageError, match="which an exported model does not show"):
            without.translate(LINES[:1], stop="full", **options)


def test_an_exported_folder_is_a_translator(theirs: Translator, exported: Path) -> None:
    loaded = Translator.load(exported)
    assert (loaded.precision, loaded.searcher.engine_name) == ("fp32", "ctranslate2")
    assert loaded.translate(LINES, stop="full") == theirs.translate(LINES, stop="full")
    pair = LINES[0], theirs.translate(LINES[:1], stop="full")[0]
    assert loaded.score([pair])[0].log_probability == pytest.approx(
        Translator(tiny_bundle(seed=SEED)).score([pair])[0].log_probability, abs=1e-4
    )
    with pytest.raises(UsageError, match="is a model for CTranslate2; use the engine ctranslate2"):
        Translator.load(exported, engine="torch")


def test_the_precision_that_is_stored_is_computed_with(folder: Path, tmp_path: Path) -> None:
    flat = Transformer(
        ModelConfig(vocabulary=320, d_model=64, d_ff=64, heads=2, encoder_layers=1, decoder_layers=1)
    )

    save_bundle(tmp_path / "flat", flat, flat.config, tokenizer(), {})
    small = export_model(tmp_path / "flat", tmp_path / "small", to="ctranslate2", precision="int8").path
    assert Translator.load(small).precision == "int8"
    assert Translator.load(small, precision="fp32").precision == "fp32"
    assert Translator.load(folder, engine="ctranslate2", precision="int8").translate(["ab"], stop="full")


def test_tags_say_the_language(tmp_path: Path) -> None:
    several = Tokenizer.train(sentences(300), 330, tags=("<2de>", "<2fr>"))
    torch.manual_seed(1)
    shape = {"d_model": 32, "d_ff": 48, "heads": 4, "encoder_layers": 2, "decoder_layers": 2}
    model = Transformer(ModelConfig(vocabulary=several.vocabulary, **shape)).eval()
    bundle = Bundle(model=model, tokenizer=several, training={})
    both = [Translator(bundle, engine=engine) for engine in ("torch", "ctranslate2")]
    pairs = [(LINES[0], "ab de.")]
    for language in ("de", "fr"):
        known, found = (t.score(pairs, to=language)[0].log_probability for t in both)
        assert found == pytest.approx(known, abs=1e-4)
    (found_de,), (found_fr,) = (
        both[1].translate_detailed(LINES[:1], stop="full", to=to) for to in ("de", "fr")
    )
    assert found_de.alternatives[0].log_probability != found_fr.alternatives[0].log_probability


def test_what_it_cannot_compute_with_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="computes on the CPU here, and the device is mps"):
        Translator.load(folder, engine="ctranslate2", device="mps")
    monkeypatch.setattr(opening, "_computed", lambda: ["fp32"])
    with pytest.raises(UsageError, match="cannot compute with int8 on this machine"):
        Translator.load(folder, engine="ctranslate2", precision="int8")
    monkeypatch.setattr(opening.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"not installed: .*'transduce\[export\]'"):
        Translator.load(folder, engine="ctranslate2")


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    return {name: str(tmp_path / name) for name in ("in", "out")}


def test_the_commands_take_the_engine(
    folder: Path,
    exported: Path,
    ours: Translator,
    theirs: Translator,
    files: dict[str, str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = ["translate", str(folder), "--engine", "ctranslate2", "--stop", "full", "--threads", "1"]
    assert main([*command, "--input", files["in"], "--output", files["out"]]) == 0
    assert capsys.readouterr().err == ""
    expected = theirs.translate(LINES, stop="full")
    assert Path(files["out"]).read_text(encoding="utf-8") == "".join(f"{line}\n" for line in expected)
    assert main([*command, "--input", files["in"], "--samples", "1"]) == 2
    assert "the engine ctranslate2 cannot do this: samples = 1" in capsys.readouterr().err
    scoring = ["score", str(exported), "--source", files["in"], "--target", files["out"], "--json"]
    assert main(scoring) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    known = ours.score(list(zip(LINES, expected, strict=True)))
    for row, score in zip(rows, known, strict=True):
        assert row["log_probability"] == pytest.approx(score.log_probability, rel=1e-5, abs=1e-4)
    assert math.isfinite(sum(row["log_probability"] for row in rows))
    assert (
        main(["score", str(exported), "--source", files["in"], "--target", files["out"], "--engine", "torch"])
        == 2
    )


def test_evaluating_names_the_engine(exported: Path, files: dict[str, str]) -> None:
    Path(files["out"]).write_text("".join(f"{line or 'x'}\n" for line in LINES), encoding="utf-8")
    with pytest.warns(UserWarning, match="stop is full, not exact"):
        found = evaluate(exported, files["in"], files["out"])
    assert " cpu fp32 ctranslate2 " in found.recipe
    with pytest.raises(TransduceError, match="is a model for CTranslate2"):
        Translator.load([exported], engine="openvino")
