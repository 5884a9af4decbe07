"""``transduce corpus info``, ``convert``, ``split``; training and evaluating on files of other formats."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from transduce.cli.main import main
from transduce.data.lines import read_lines


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    lines = [f"number {n}\tZahl {n}" for n in range(40)]
    Path("p.tsv").write_text("".join(f"{line}\n" for line in [*lines, "same\tsame", "number 3\tdrei"]))
    assert (
        main(["corpus", "convert", "p.tsv", "m.tmx", "--source-language", "en", "--target-language", "de"])
        == 0
    )
    return "m.tmx"


def test_converting_there_and_back(memory: str, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (
        [memory, "a.po"],
        ["a.po", "b.xlf", "--source-language", "en", "--target-language", "de"],
        ["b.xlf", "c.jsonl.gz"],
        ["c.jsonl.gz", "d", "--source-language", "en", "--target-language", "de"],
        ["d", "e.tsv", "--source-language", "en", "--target-language", "de"],
    ):
        assert main(["corpus", "convert", *arguments]) == 0
    assert Path("e.tsv").read_bytes() == Path("p.tsv").read_bytes()
    assert "e.tsv: 42 pairs\n" in capsys.readouterr().err
    swapped = ["--source-language", "de", "--target-language", "en"]
    assert main(["corpus", "convert", memory, "f.tsv", *swapped]) == 0
    assert next(read_lines("f.tsv")) == "Zahl 0\tnumber 0"


def test_standard_input_and_output(
    memory: str, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(Path(memory).read_bytes())))
    assert main(["corpus", "convert", "-", "-", "--format", "tmx", "--to", "tsv"]) == 0
    assert capfdbinary.readouterr().out == Path("p.tsv").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["m.tmx", "m.tmx"], 2, "m.tmx: is read as well; name another output"),
        (["m.tmx", "x.srt"], 2, "x.srt: the ending .srt tells no format that can be written; known are .tsv"),
        (["m.tmx", "x.txt.gz"], 2, "x.txt.gz: the ending .txt tells no format that can be written"),
        (["m.tmx", "x.docx"], 2, "or --to text for two text files that begin so"),
        (["m.tmx", "there"], 2, "there: is a folder; name a file in it, such as there/pairs.tsv"),
        (["m.tmx", "there", "--to", "text"], 2, "there: is a folder; name a file in it"),
        (["m.tmx", "there", "--to", "tsv"], 2, "there: is a folder; name a file in it"),
        (["m.tmx", "new/"], 2, "new/: is a folder; name a file in it, such as new/pairs.tsv"),
        (["m.tmx", ""], 2, ": is a folder; name a file in it"),
        (["m.tmx", "-"], 2, "standard output takes one file, not two of text; say its format with --to"),
        (["m.tmx", "-", "--to", "text"], 2, "standard output takes one file, not two of text"),
        (["p.tsv", "x.tmx", "--source-language", "de", "--target-language", "deu"], 2, "are both 'deu'"),
        (["m.tmx", "x.mo"], 2, "x.mo: mo cannot be written; there are text, tsv"),
        (["m.tmx", "no/x.tsv"], 2, "no/x.tsv: there is no folder no; make it first"),
        (["none.tmx", "x.tsv"], 1, "none.tmx: no such file or folder"),
        (["p.tsv", "x.tmx"], 2, "TMX names its languages; say them with --source-language"),
        (["x.tsv"], 2, "nothing to read is named"),
        (["--source", "p.tsv", "x.tsv"], 2, "1 source and 0 target files"),
        (["m.tmx", "x.tsv", "--source-language", "fr"], 1, "m.tmx: has no text in 'fr'"),
    ],
)  # fmt: skip
def test_wrong_calls_are_one_line_and_leave_nothing(
    memory: str, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str
) -> None:
    Path("there").mkdir()
    there = sorted(Path().rglob("*"))
    capsys.readouterr()
    assert main(["corpus", "convert", *arguments]) == code
    said = capsys.readouterr().err
    assert said.startswith("transduce: error: ")
    assert message in said
    assert said.count("\n") == 1
    assert sorted(Path().rglob("*")) == there


def test_columns_that_are_not_read_are_told_by_every_command(
    memory: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("more.tsv").write_text("a\tb\nc\td\te\nf\tg\n", encoding="utf-8")
    told = "more.tsv: 1 line with more than two columns, the others not used (first at 2)\n"
    for call in (
        ["info", "more.tsv"],
        ["convert", "more.tsv", "two.jsonl"],
        ["split", "more.tsv", "--valid", "1", "--test", "1", "--to", "tsv", "--output", "parts"],
        ["clean", "more.tsv", "--output", "clean.tsv", "--workers", "1", "--set", "cleaning.mojibake=false"],
    ):
        capsys.readouterr()
        assert main(["corpus", *call]) == 0
        assert capsys.readouterr().err.count(told) == 1


def test_a_split_that_cannot_be_written_leaves_no_folder(
    memory: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(Path().iterdir())
    call = ["corpus", "split", "p.tsv", "--valid", "2", "--test", "2", "--output", "new/er", "--to"]
    for kind in ("tmx", "text", "mo", "docx"):
        assert main([*call, kind]) == 2
    assert sorted(Path().iterdir()) == before


def test_an_ending_that_tells_no_format_may_be_part_of_the_name_of_two_texts(memory: str) -> None:
    assert main(["corpus", "convert", memory, "news.2014", "--to", "text"]) == 0
    assert Path("news.2014.en").exists()
    assert Path("news.2014.de").exists()


def test_a_pair_that_a_catalog_cannot_hold_is_told_and_not_counted(
    memory: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    Path("in.tsv").write_text("a\tb\n\tc\nd\te\n\tf\n")
    assert main(["corpus", "convert", "in.tsv", "out.po"]) == 0
    assert capsys.readouterr().err == (
        "in.tsv: 2 left out: 2 without a source text, which a catalog cannot hold (first at 2)\n"
        "out.po: 2 pairs\n"
    )
    assert (
        main(["corpus", "split", "in.tsv", "--valid", "0", "--test", "1", "--to", "po", "--output", "s"]) == 0
    )
    assert "train.po: 1 pair\n" in capsys.readouterr().err


def test_info(memory: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["corpus", "info", memory, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["pairs"] == 42
    assert found["languages"] == ["en", "de"]
    assert (found["identical"], found["repeated_pairs"], found["repeated_sources"]) == (1, 0, 1)
    assert found["source"]["scripts"] == {"Latin": 1.0}
    assert found["source"]["words"] == {
        "total": 83, "mean": 1.98, "median": 2, "p99": 2, "longest": 2, "longest_at": "m.tmx:5"
    }  # fmt: skip
    assert "tokens" not in found["source"]
    assert main(["corpus", "info", memory]) == 0
    shown = capsys.readouterr()
    assert "42 pairs, en to de" in shown.out
    assert "1 (2.4%) with the source of an earlier one" in shown.out
    assert "m.tmx: source en, target de: it holds no others" in shown.err


def test_info_counts_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "p.tsv"
    path.write_text("a b\tдом\n\tx\na b\tдом\n  \t犬\x07\n")
    assert main(["corpus", "info", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["repeated_pairs"], found["repeated_sources"]) == (1, 1)
    assert (found["source"]["empty"], found["target"]["empty"]) == (2, 0)
    assert found["target"]["scripts"] == {"Cyrillic": 0.75, "Latin": 0.125, "Cjk": 0.125}
    assert found["target"]["control_characters"] == 1
    assert found["target"]["distinct_characters"] == 6
    assert found["target"]["characters"]["total"] == 9


def test_info_counts_tokens_and_draws(memory: str, capsys: pytest.CaptureFixture[str]) -> None:
    from transduce.data.tokenizer import Tokenizer

    tokenizer = Tokenizer.train([f"number Zahl {n}" for n in range(300)], 320, strict=False)
    tokenizer.save("t.model")
    Path("q.tsv").write_text("number 1\tZahl 2\n犬\t3\n")
    assert main(["corpus", "info", "q.tsv", "--tokenizer", "t.model", "--plot", "l.svg", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    counted = len(tokenizer.encode("number 1")) + len(tokenizer.encode("犬"))
    assert found["source"]["tokens"]["total"] == counted
    assert found["source"]["byte_tokens"] == 3
    first = Path("l.svg").read_bytes()
    assert main(["corpus", "info", "q.tsv", "--plot", "l.svg"]) == 0
    assert Path("l.svg").read_bytes() == first
    assert main(["corpus", "info", "q.tsv", "--plot", "l.gif"]) == 2


def test_a_split_shares_no_source_and_repeats(memory: str, capsys: pytest.CaptureFixture[str]) -> None:
    def split(folder: str, *more: str) -> dict[str, list[str]]:
        arguments = [memory, "--valid", "5", "--test", "6", "--output", folder, "--to", "tsv", *more]
        assert main(["corpus", "split", *arguments]) == 0
        return {part: list(read_lines(f"{folder}/{part}.tsv")) for part in ("train", "valid", "test")}

    parts = split("a")
    assert [len(parts[part]) for part in ("valid", "test")] == [5, 6]
    sources = {part: {line.split("\t")[0] for line in lines} for part, lines in parts.items()}
    assert not (
        sources["train"] & sources["valid"]
        | sources["train"] & sources["test"]
        | sources["valid"] & sources["test"]
    )
    lost = 42 - sum(len(lines) for lines in parts.values())
    assert lost == sum(
        line in ("number 3\tZahl 3", "number 3\tdrei") for line in parts["valid"] + parts["test"]
    )
    assert split("b") == parts
    assert split("c", "--seed", "2") != parts
    lines = Path("p.tsv").read_text().split("\n")[:-1]
    Path("r.tsv").write_text("".join(f"{line}\n" for line in reversed(lines)))
    assert (
        main(["corpus", "split", "r.tsv", "--valid", "5", "--test", "6", "--output", "d", "--to", "tsv"]) == 0
    )
    assert sources["test"] == {line.split("\t")[0] for line in read_lines("d/test.tsv")}
    capsys.readouterr()
    assert main(["corpus", "split", memory, "--valid", "40", "--test", "6", "--output", "e"]) == 1
    assert (
        "41 different source texts, but 40 validation and 6 test pairs are wanted" in capsys.readouterr().err
    )
    assert not Path("e").exists()


def test_training_and_evaluating_on_other_formats(memory: str, capfd: pytest.CaptureFixture[str]) -> None:
    settings = [
        "model.d_model=32",
        "model.d_ff=64",
        "model.encoder_layers=1",
        "model.decoder_layers=1",
        "data.vocabulary=320",
        "training.max_steps=2",
        "training.device=cpu",
        "training.threads=1",
    ]
    assert (
        main(["corpus", "split", memory, "--valid", "4", "--test", "4", "--output", "s", "--to", "csv"]) == 0
    )
    Path("more.po").write_text(
        'msgid ""\nmsgstr "Language: de_DE\\n"\n\nmsgid "line one\\n"\n"line two\\n"\n'
        'msgstr "Zeile eins\\nZeile zwei\\n"\n\n'
        '#, fuzzy\nmsgid "x"\nmsgstr "y"\n'
    )
    languages = ["--source-language", "en", "--target-language", "de"]
    assert main(
        ["train", "--pairs", "s/train.csv", "--pairs", "more.po", "--weight", "3", "--weight", "1",
         "--validation", "s/valid.csv", *languages, "--output", "run", "--preset", "tiny",
         *(word for one in settings for word in ("--set", one))]
    ) == 0  # fmt: skip
    said = capfd.readouterr().err
    assert "more.po: 1 left out: 1 fuzzy (first at " in said
    assert said.count("1 fuzzy") == 1
    prepared = json.loads(Path("run/data/prepared.json").read_bytes())
    assert [[file["name"] for file in group] for group in prepared["train"]] == [
        [],
        [],
        [],
        ["train.csv"],
        ["more.po"],
    ]
    assert prepared["languages"] == ["en", "de"]
    assert main(["evaluate", "run", "--pairs", "s/test.csv", *languages, "--beam", "1", "--json"]) == 0
    scores = json.loads(capfd.readouterr().out)
    assert scores["sentences"] == 4
    assert (
        "evaluate run --pairs s/test.csv --source-language en --target-language de --beam 1"
        in scores["recipe"]
    )
    Path("s.en").write_text("".join(f"{line.split(',')[0]}\n" for line in list(read_lines("s/test.csv"))[1:]))
    Path("s.de").write_text("".join(f"{line.split(',')[1]}\n" for line in list(read_lines("s/test.csv"))[1:]))
    assert main(["evaluate", "run", "--source", "s.en", "--reference", "s.de", "--beam", "1", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["chrf"] == scores["chrf"]
    assert main(["evaluate", "run", "--pairs", "s/test.csv", "--source", "s.en"]) == 2
    Path("more.po").write_text("")
    capfd.readouterr()
    assert main(["train", "--resume", "--output", "run"]) == 1
    assert "train changed (more.po)" in capfd.readouterr().err


def test_line_breaks_are_spaces_in_training(memory: str) -> None:
    from transduce.data.corpora import count_pairs, read_corpora
    from transduce.data.formats.sides import Wanted

    Path("x.jsonl").write_text('{"en": "a\\n  b\\n", "de": "c\\r\\nd"}\n')
    found = list(read_corpora(pairs=["x.jsonl"], wanted=Wanted("en", "de")))
    assert [(p.source, p.target, p.corpus) for p in found] == [("a b", "c d", 0)]
    assert [p.corpus for p in read_corpora(tsv=["p.tsv"], pairs=["x.jsonl", memory])][-3:] == [2, 2, 2]
    assert count_pairs((), (), ["p.tsv"], ["x.jsonl", memory]) == 85
