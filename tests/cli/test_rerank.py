from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
from few_lines import LINES

from tiny_translator import tiny_bundle
from transduce.bundle import load_bundle, save_bundle
from transduce.cli import rerank as command
from transduce.cli.main import main
from transduce.decoding.minimum_risk import least_risk
from transduce.decoding.reranking import Weights, rerank
from transduce.decoding.translation import Translation
from transduce.decoding.translator import Translator


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folders = []
    for seed in (1, 2):
        folders.append(str(tmp_path_factory.mktemp("rerank") / "model"))
        bundle = tiny_bundle(seed=seed, max_length=40)
        save_bundle(folders[-1], bundle.model, bundle.model.config, bundle.tokenizer, {})
    return folders


@pytest.fixture(scope="module")
def given(models: list[str]) -> list[Translation]:
    return Translator(load_bundle(models[0])).translate_detailed(LINES, n_best=3, max_extra=4)


@pytest.fixture(autouse=True)
def _files(in_a_folder: None, models: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(command, "CHUNK", 4)
    Path("in").write_text("".join(f"{line}\n" for line in LINES))
    call = ["translate", models[0], "--input", "in", "--output", "nbest.jsonl", "--json", "--n-best", "3"]
    flags = ["--max-extra", "4", "--engine", "torch", "--precision", "fp32", "--confidence"]
    assert main([*call, *flags]) == 0
    capsys.readouterr()


def test_outputs_are_reranked_as_the_library_does(
    models: list[str], given: list[Translation], capsys: Any
) -> None:
    flags = ["--weight", "2", "--weight", "0.5", "--own-weight", "0.5", "--alpha", "1"]
    call = ["rerank", *models, "--input", "nbest.jsonl", *flags, "--precision", "fp32"]
    translators = [Translator(load_bundle(folder)) for folder in models]
    expected = rerank(given, translators, weights=Weights(models=(2.0, 0.5), own=0.5, alpha=1.0))
    assert main(call) == 0
    assert capsys.readouterr().out == "".join(f"{t.text}\n" for t in expected)
    assert main([*call, "--json", "--output", "new.gz"]) == 0
    before = [json.loads(line) for line in Path("nbest.jsonl").read_text().split("\n")[:-1]]
    after = [json.loads(line) for line in gzip.decompress(Path("new.gz").read_bytes()).split(b"\n")[:-1]]
    for old, new, wanted in zip(before, after, expected, strict=True):
        assert (new["line"], new["source"]) == (old["line"], old["source"])
        assert [o["text"] for o in new["translations"]] == [a.text for a in wanted.alternatives]
        for output, alternative in zip(new["translations"], wanted.alternatives, strict=True):
            assert output.pop("total") == pytest.approx(alternative.total, abs=1e-4)
            assert output.pop("model_scores") == pytest.approx(list(alternative.model_scores or ()), abs=1e-4)
            assert output in old["translations"]


def test_outputs_are_ordered_by_risk(given: list[Translation], capsys: Any) -> None:
    assert main(["rerank", "--mbr", "chrf", "--input", "nbest.jsonl"]) == 0
    expected = [least_risk(t, "chrf") for t in given]
    assert capsys.readouterr().out == "".join(f"{t.text}\n" for t in expected)
    assert main(["rerank", "--mbr", "chrf", "--input", "nbest.jsonl", "--json"]) == 0
    values = [json.loads(line)["translations"] for line in capsys.readouterr().out.split("\n")[:-1]]
    assert [[o.get("expected") for o in outputs] for outputs in values] == [
        [a.expected for a in t.alternatives] for t in expected
    ]


def test_warnings_name_the_line_and_stand_in_json(models: list[str], capsys: Any) -> None:
    Path("x").write_text('{"source": "ab", "translations": [{"text": "de"}]}\n' * 5)
    with Path("x").open("a") as file:
        file.write('{"source": "", "translations": [{"text": "de", "own": 1}], "warnings": ["w"]}\n')
    assert main(["rerank", models[0], "--input", "x", "--own-weight", "0", "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err.startswith("transduce: warning: line 6: an empty source has no translation")
    last = json.loads(captured.out.split("\n")[5])
    assert last["warnings"][0] == "w"
    assert last["warnings"][1].startswith("line 6: ")
    assert last["translations"] == [{"text": "de", "own": 1, "total": None, "model_scores": [None]}]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "x:2: is not JSON; give what `transduce translate --json` writes"),
        ("[1]", "x:2: has no source with translations"),
        ('{"source": "a", "translations": []}', "x:2: has no source with translations"),
        ('{"source": "a", "translations": ["b"]}', "x:2: translation 1 has no text of one line"),
        ('{"source": "a", "translations": [{"text": "b\\n"}]}', "x:2: translation 1 has no text of one line"),
        ('{"source": "a", "translations": [{"text": "b"}]}', "x:2: translation 1 has the score None, which"),
        (
            '{"source": "a", "translations": [{"text": "b", "score": NaN}]}',
            "x:2: translation 1 has the score",
        ),
    ],
)
def test_lines_that_cannot_be_used_are_named(line: str, message: str, capsys: Any) -> None:
    Path("x").write_text('{"source": "a", "translations": [{"text": "b", "score": -1}]}\n' + line + "\n")
    assert main(["rerank", "--mbr", "bleu", "--input", "x", "--output", "new"]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith(f"transduce: error: {message}")
    assert captured.err.count("\n") == 1
    assert sorted(os.listdir()) == ["in", "nbest.jsonl", "x"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "nothing to rerank by: name model folders, or --mbr chrf"),
        (["--mbr", "ter"], "mbr is 'ter'; choose one of chrf, bleu"),
        (["m", "--mbr", "chrf"], "--mbr chooses by the outputs alone; leave out models"),
        (["m", "--weight", "1", "--weight", "2"], "2 --weight for 1 model; give one for each, or none"),
        (["m", "--own-weight", "nan"], "the own weight is nan; it must be a finite number"),
        (["m", "--long-lines", "x"], "long_lines is 'x'; choose one of"),
        (["m", "--output", "nbest.jsonl"], "nbest.jsonl: is the input as well"),
    ],
)
def test_wrong_calls_are_refused(flags: list[str], message: str, capsys: Any) -> None:
    assert main(["rerank", "--input", "nbest.jsonl", *flags]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
