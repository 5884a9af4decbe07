"""``transduce corpus clean``, and the same from Python."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tiny_translator import sentences, tiny_bundle
from transduce import CleaningConfig, PairScorer, Translator, clean_corpus
from transduce.bundle import save_bundle
from transduce.cli.main import main
from transduce.data.cleaning.clean import clean as clean_files
from transduce.data.cleaning.filters import Filters
from transduce.data.cleaning.scores import ByScore
from transduce.data.conversion import Inputs
from transduce.data.formats.pair import Pair
from transduce.errors import UsageError

ROWS = [
    "A dog runs.\tEin Hund rennt.",
    "A cat &amp; a dog.\tEine Katze und ein Hund.",
    "Nothing here.\t",
    "A dog runs.\tEin Hund rennt.",
    "It was 1990.\tEs war 1991.",
    "This stays in English here.\tThis stays in English here.",
    "The end.\tDas Ende.",
]
KEPT = [ROWS[0], "A cat & a dog.\tEine Katze und ein Hund.", ROWS[6]]
WHY = [("empty", 3), ("duplicate", 4), ("numbers", 5), ("identical", 6)]


@pytest.fixture(autouse=True)
def _files(in_a_folder: None) -> None:
    Path("in.tsv").write_text("".join(f"{row}\n" for row in ROWS), encoding="utf-8")


def clean(*flags: str) -> int:
    return main(["corpus", "clean", *flags, "--workers", "1"])


def lines(path: str) -> list[str]:
    raw = Path(path).read_bytes()
    return (gzip.decompress(raw) if path.endswith(".gz") else raw).decode().split("\n")[:-1]


def test_good_pairs_go_to_the_output_and_the_others_to_the_side_file(capsys: Any) -> None:
    assert clean("in.tsv", "--output", "out.tsv", "--report", "report.json") == 0
    assert lines("out.tsv") == KEPT
    dropped = [json.loads(line) for line in lines("out.tsv.dropped.jsonl")]
    assert [(value["filter"], value["line"]) for value in dropped] == WHY
    assert {value["file"] for value in dropped} == {"in.tsv"}
    assert [f"{value['source']}\t{value['target']}" for value in dropped] == [ROWS[n - 1] for _, n in WHY]
    said = capsys.readouterr()
    assert said.out == ""
    assert "7 pairs cleaned: 3 kept, 4 dropped (57.1 %), 1 of those kept mended\n" in said.err
    assert "    in.tsv:5: 1990 in source but 1991 in target: It was 1990. | Es war 1991.\n" in said.err
    assert "    in.tsv:2: A cat &amp; a dog. -> A cat & a dog.\n" in said.err
    assert "script and language of the source not checked: its language is not named\n" in said.err
    report = json.loads(Path("report.json").read_text(encoding="utf-8"))
    assert report["dropped"]["numbers"]["count"] == 1
    assert report["kept"] == 3


def test_formats_names_and_compression_are_those_of_the_other_commands() -> None:
    flags = [
        "--output",
        "text",
        "--dropped",
        "why.tsv.gz",
        "--source-language",
        "en",
        "--target-language",
        "de",
    ]
    assert clean("in.tsv", *flags) == 0
    assert lines("text.en") == [row.split("\t")[0] for row in KEPT]
    assert lines("text.de") == [row.split("\t")[1] for row in KEPT]
    assert [line.split("\t")[0] for line in lines("why.tsv.gz")] == [name for name, _ in WHY]
    source, target = (Path(f"side.{side}") for side in ("en", "de"))
    source.write_text("".join(row.split("\t")[0] + "\n" for row in ROWS), encoding="utf-8")
    target.write_text("".join(row.split("\t")[1] + "\n" for row in ROWS), encoding="utf-8")
    assert clean("--source", "side.en", "--target", "side.de", "--output", "again.tsv") == 0
    assert lines("again.tsv") == KEPT


def test_settings_by_name() -> None:
    off = ("empty=false", "duplicates=false", "near_duplicates=false", "identical_words=0", "number_digits=0")
    flags = [flag for value in (*off, "entities=false") for flag in ("--set", f"cleaning.{value}")]
    assert clean("in.tsv", "--output", "all.tsv", *flags, "--set", "cleaning.max_ratio=0") == 0
    assert lines("all.tsv") == ROWS
    assert lines("all.tsv.dropped.jsonl") == []


def test_named_languages_are_checked() -> None:
    rows = [
        "The children were playing in the garden of the house.\tDie Kinder spielten im Garten des Hauses.",
        "Die Kinder spielten im Garten hinter dem Haus.\tThe children sang behind the house all day.",
        "The weather was very nice yesterday afternoon.\tВчера днём была очень хорошая погода.",
        "Tom!\tOK!",
    ]
    Path("in.tsv").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    assert (
        clean("in.tsv", "--output", "out.tsv", "--source-language", "en", "--target-language", "de_DE") == 0
    )
    assert lines("out.tsv") == [rows[0], rows[3]]
    dropped = [json.loads(line) for line in lines("out.tsv.dropped.jsonl")]
    assert [value["filter"] for value in dropped] == ["language", "script"]
    assert dropped[0]["reason"].startswith("source is de (")
    assert dropped[0]["reason"].endswith("), not en")


def test_a_file_that_tells_its_languages_has_them_checked(capsys: Any) -> None:
    Path("in.tsv").write_text(
        "Good morning to you all.\tСегодня вечером мы дома.\nYes.\tJa.\n", encoding="utf-8"
    )
    assert main(["corpus", "convert", "in.tsv", "in.jsonl"]) == 0
    text = Path("in.jsonl").read_text(encoding="utf-8")
    Path("in.jsonl").write_text(
        text.replace('"source"', '"en"').replace('"target"', '"de"'), encoding="utf-8"
    )
    assert clean("in.jsonl", "--output", "out.tsv") == 0
    assert lines("out.tsv") == ["Yes.\tJa."]
    assert json.loads(lines("out.tsv.dropped.jsonl")[0])["filter"] == "script"


def test_processes_do_not_change_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transduce.data.cleaning.cleaner.CHUNK", 100)
    rows = [f"{ROWS[n % 7]} {n % 150}" for n in range(300)]
    Path("in.tsv").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    assert clean("in.tsv", "--output", "one.tsv") == 0
    assert main(["corpus", "clean", "in.tsv", "--output", "two.tsv", "--workers", "2"]) == 0
    assert Path("one.tsv").read_bytes() == Path("two.tsv").read_bytes()
    assert Path("one.tsv.dropped.jsonl").read_bytes() == Path("two.tsv.dropped.jsonl").read_bytes()
    assert 0 < len(lines("one.tsv")) < 300


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    names = []
    for seed in (1, 2):
        folder = tmp_path_factory.mktemp("scores") / "model"
        bundle = tiny_bundle(seed=seed, max_length=40)
        save_bundle(folder, bundle.model, bundle.model.config, bundle.tokenizer, {})
        names.append(str(folder))
    return names[0], names[1]


def scored(models: tuple[str, str]) -> tuple[list[str], list[float]]:
    rows = [f"{one}\t{two}" for one, two in zip(sentences(12, seed=1), sentences(12, seed=2), strict=True)]
    Path("in.tsv").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    pairs = [Pair(*row.split("\t"), "f", 1) for row in rows]
    return rows, PairScorer(*(Translator.load(name) for name in models))(pairs)


LOOSE = ("--set", "cleaning.max_ratio=0", "--set", "cleaning.near_duplicates=false")


def test_models_of_both_directions_decide(models: tuple[str, str], capsys: Any) -> None:
    rows, scores = scored(models)
    limit = (sorted(scores)[4] + sorted(scores)[5]) / 2
    both = ("--score", models[0], "--score-back", models[1])
    assert clean("in.tsv", "--output", "out.tsv", *LOOSE, *both, "--max-score", str(limit)) == 0
    assert lines("out.tsv") == [row for row, score in zip(rows, scores, strict=True) if score <= limit]
    dropped = [json.loads(line) for line in lines("out.tsv.dropped.jsonl")]
    assert {value["filter"] for value in dropped} == {"score"}
    assert len(dropped) == 7
    assert "dropped by score: 7 (58.3 %)" in capsys.readouterr().err
    assert clean("in.tsv", "--output", "best.tsv", *LOOSE, *both, "--best-share", "0.5") == 0
    best = sorted(scores)[5]
    assert lines("best.tsv") == [row for row, score in zip(rows, scores, strict=True) if score <= best]


def test_the_same_from_python(models: tuple[str, str]) -> None:
    scored(models)
    config = CleaningConfig(max_ratio=0.0, near_duplicates=False)
    scorer = PairScorer(*(Translator.load(name) for name in models))
    report = clean_corpus("in.tsv", "out.jsonl", config=config, by_score=ByScore(scorer, share=0.5))
    assert (report.pairs, report.kept) == (12, 6)
    assert len(lines("out.jsonl")) == len(lines("out.jsonl.dropped.jsonl")) == 6


def test_standard_input_is_not_read_twice() -> None:
    inputs = Inputs(pairs=("-",), kind="tsv")
    best = ByScore(lambda pairs: [0.0] * len(pairs), share=0.5)
    with pytest.raises(UsageError, match="standard input can be read once only, and the best share"):
        clean_files(inputs, "out.tsv", Filters(CleaningConfig()), by_score=best)
    assert [path.name for path in Path().iterdir()] == ["in.tsv"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["in.tsv", "--output", "in.tsv"], "in.tsv: is read as well; name another output"),
        (["in.tsv", "--output", "-"], "name a file for the dropped pairs with --dropped"),
        (["in.tsv", "--output", "o.tsv", "--dropped", "in.tsv"], "in.tsv: is read or written as well"),
        (
            ["in.tsv", "--output", "o.tsv", "--dropped", "d.csv"],
            "d.csv: dropped pairs are written as .jsonl or",
        ),
        (
            ["in.tsv", "--output", "o.tsv", "--set", "cleaning.max_ration=2"],
            "did you mean 'cleaning.max_ratio'?",
        ),
        (["in.tsv", "--output", "o.tsv", "--set", "data.clean=true"], "there is no section 'data'"),
        (
            ["in.tsv", "--output", "o.tsv", "--set", "cleaning=true"],
            "cleaning is True; set one of its settings",
        ),
        (["in.tsv", "--output", "o.tsv", "--max-score", "2"], "--max-score is about scores"),
        (["in.tsv", "--output", "o.tsv", "--device", "cuda"], "--device is about scores"),
        (["in.tsv", "--output", "o.tsv", "--score", "m"], "--score needs either --max-score or --best-share"),
        (
            ["-", "--format", "tsv", "--output", "o.tsv", "--score", "m", "--best-share", "0.5"],
            "m: ",
        ),
        (["--output", "o.tsv"], "nothing to read is named"),
        (["in.tsv", "--output", "o.docx"], "o.docx: the ending .docx tells no format that can be written"),
        (["in.tsv", "--output", "o/", "--dropped", "d.tsv"], "o/: is a folder; name a file in it"),
        (["in.tsv", "--output", ".", "--dropped", "d.tsv"], ".: is a folder; name a file in it"),
        (
            ["in.tsv", "--output", "o.tsv", "--source-language", "en", "--target-language", "en"],
            "source and target language are both 'en'; name two languages",
        ),
    ],
)
def test_calls_that_cannot_be_carried_out(flags: list[str], message: str, capsys: Any) -> None:
    assert clean(*flags) in (1, 2)
    assert message in capsys.readouterr().err
    assert sorted(path.name for path in Path().iterdir()) == ["in.tsv"]


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "ftfy", None)
    assert clean("in.tsv", "--output", "out.tsv") == 2
    assert "needs ftfy; install it with `pip install 'transduce[cleaning]'`" in capsys.readouterr().err
    assert clean("in.tsv", "--output", "out.tsv", "--set", "cleaning.mojibake=false") == 0
    monkeypatch.setitem(sys.modules, "py3langid", None)
    languages = ("--source-language", "en", "--set", "cleaning.mojibake=false")
    assert clean("in.tsv", "--output", "out.tsv", *languages) == 2
    assert "telling languages needs py3langid" in capsys.readouterr().err
    assert clean("in.tsv", "--output", "out.tsv", *languages, "--set", "cleaning.language=0") == 0


def test_a_side_file_on_its_own_when_the_output_is_a_pipe(capfd: Any) -> None:
    assert clean("in.tsv", "--output", "-", "--to", "tsv", "--dropped", "why.jsonl.zst") == 0
    assert capfd.readouterr().out == "".join(f"{row}\n" for row in KEPT)
    assert Path("why.jsonl.zst").read_bytes().startswith(b"\x28\xb5\x2f\xfd")


@pytest.mark.parametrize(
    "report", ["in.tsv", "out.tsv", "out.tsv.dropped.jsonl", "./out.tsv", "nowhere/r.json", "."]
)
def test_a_report_replaces_nothing(report: str, capsys: Any) -> None:
    before = Path("in.tsv").read_bytes()
    assert clean("in.tsv", "--output", "out.tsv", "--report", report) == 2
    said = capsys.readouterr().err
    assert report.removeprefix("./") in said
    assert said.count("\n") == 1
    assert Path("in.tsv").read_bytes() == before
    assert [path.name for path in Path().iterdir()] == ["in.tsv"]


def test_a_report_does_not_replace_one_side_of_a_text(capsys: Any) -> None:
    languages = ("--source-language", "en", "--target-language", "de")
    assert clean("in.tsv", "--output", "out", "--report", "out.de", *languages) == 2
    assert "out.de: is read or written as well" in capsys.readouterr().err
    assert clean("in.tsv", "--output", "out", "--dropped", "out.en", *languages) == 2


def test_fewer_than_no_processes(capsys: Any) -> None:
    assert main(["corpus", "clean", "in.tsv", "--output", "out.tsv", "--workers", "-1"]) == 2
    assert "--workers is -1" in capsys.readouterr().err
