from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tiny_translator import sentences, tiny_bundle
from transduce.bundle import load_bundle, save_bundle
from transduce.cli import translate as command
from transduce.cli.main import main
from transduce.decoding.translator import Translator

LINES = [*sentences(3, seed=1, words=(1, 4)), "", *sentences(2, seed=2, words=(1, 4))]
FAST = ["--beam", "2", "--max-extra", "3"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("translate") / "model"
    bundle = tiny_bundle(max_length=40)
    save_bundle(folder, bundle.model, bundle.model.config, bundle.tokenizer, {})
    return str(folder)


@pytest.fixture(scope="module")
def expected(model: str) -> list[str]:
    return Translator(load_bundle(model)).translate(LINES, beam=2, max_extra=3)


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # These act on the whole process.
    monkeypatch.setattr("transduce.machine.tune_allocator", lambda: "")
    monkeypatch.setattr("transduce.machine.set_threads", lambda threads: 1)


def feed(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="ascii"))


def test_lines_from_stdin_give_as_many_lines_on_stdout(
    model: str, expected: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    feed(monkeypatch, "\n".join(LINES).encode())
    assert main(["translate", model, *FAST]) == 0
    captured = capsys.readouterr()
    assert captured.out == "".join(f"{line}\n" for line in expected)
    assert captured.err == ""
    assert expected[3] == ""
    assert captured.out.count("\n") == 6


def test_files_are_read_and_written_also_compressed(model: str, expected: list[str]) -> None:
    Path("in.gz").write_bytes(gzip.compress("".join(f"{line}\r\n" for line in LINES).encode()))
    for output in ("out.txt", "out.gz"):
        assert main(["translate", model, "--input", "in.gz", "--output", output, *FAST]) == 0
    whole = Path("out.txt").read_bytes()
    assert whole.decode().split("\n") == [*expected, ""]
    assert gzip.decompress(Path("out.gz").read_bytes()) == whole
    assert sorted(os.listdir()) == ["in.gz", "out.gz", "out.txt"]


def test_a_large_file_is_held_in_pieces_and_lines_keep_their_numbers(
    model: str, expected: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    sizes = []
    whole = Translator.translate_detailed
    monkeypatch.setattr(command, "CHUNK", 4)
    monkeypatch.setattr(
        Translator,
        "translate_detailed",
        lambda s, texts, **o: (sizes.append(len(texts)), whole(s, texts, **o))[1],
    )
    long = " ".join(["ab"] * 30)
    Path("in").write_text("\n".join([*LINES, long]))
    assert main(["translate", model, "--input", "in", *FAST]) == 0
    captured = capsys.readouterr()
    assert sizes == [4, 3]
    assert captured.out.split("\n")[:6] == expected
    assert captured.err.startswith("transduce: warning: line 7 has ")
    assert captured.err.count("\n") == 1


def test_json_lines_hold_all_outputs_with_their_scores(model: str, capsys: Any) -> None:
    Path("in").write_text("\n".join(LINES))
    assert main(["translate", model, "--input", "in", "--json", "--n-best", "2", *FAST]) == 0
    values = [json.loads(line) for line in capsys.readouterr().out.split("\n")[:-1]]
    assert [value["line"] for value in values] == [1, 2, 3, 4, 5, 6]
    assert [value["source"] for value in values] == LINES
    for value in values:
        assert {"text", "score", "log_probability", "length", "truncated"} == set(value["translations"][0])
        scores = [output["score"] for output in value["translations"]]
        assert scores == sorted(scores, reverse=True)
    assert values[3]["translations"][0]["text"] == ""
    assert max(len(value["translations"]) for value in values) == 2


def test_samples_of_a_line_are_those_of_the_library(model: str, capsys: Any) -> None:
    Path("in").write_text("".join(f"{line}\n" for line in [*LINES, LINES[0]]))
    flags = ["--samples", "2", "--temperature", "2", "--top-k", "50", "--top-p", "0.9", "--seed", "7"]
    assert main(["translate", model, "--input", "in", "--json", "--max-extra", "3", *flags]) == 0
    values = [json.loads(line) for line in capsys.readouterr().out.split("\n")[:-1]]
    options: dict[str, Any] = {"temperature": 2.0, "top_k": 50, "top_p": 0.9, "seed": 7, "max_extra": 3}
    found = Translator(load_bundle(model)).translate_detailed(LINES, samples=2, **options)
    given = [[output["text"] for output in value["translations"]] for value in values]
    assert given[:-1] == [[a.text for a in translation.alternatives] for translation in found]
    assert given[-1] == given[0]


def test_one_of_many_samples_is_written_and_all_are_told_in_json(model: str, capsys: Any) -> None:
    Path("in").write_text("".join(f"{line}\n" for line in LINES))
    flags = ["--samples", "6", "--mbr", "chrf", "--max-extra", "3"]
    assert main(["translate", model, "--input", "in", *flags]) == 0
    lines = capsys.readouterr().out.split("\n")[:-1]
    assert lines == Translator(load_bundle(model)).translate(LINES, samples=6, mbr="chrf", max_extra=3)
    assert main(["translate", model, "--input", "in", *flags, "--json"]) == 0
    values = [json.loads(line)["translations"] for line in capsys.readouterr().out.split("\n")[:-1]]
    assert [outputs[0]["text"] for outputs in values] == lines
    assert [len(outputs) for outputs in values] == [6, 6, 6, 1, 6, 6]
    for outputs in values[:3]:
        expected = [output["expected"] for output in outputs]
        assert expected == sorted(expected, reverse=True)


def test_alignments_are_written_a_line_each_and_into_json(model: str, capsys: Any) -> None:
    Path("in").write_text("\n".join(LINES))
    call = ["translate", model, "--input", "in", *FAST]
    assert main([*call, "--alignments", "links"]) == 0
    text = capsys.readouterr().out.split("\n")[:-1]
    links = Path("links").read_text().split("\n")
    assert len(links) == 7
    assert links[3] == links[6] == ""
    for source, output, row in zip(LINES, text, links, strict=False):
        for pair in row.split():
            i, j = map(int, pair.split("-"))
            assert i < len(source.split())
            assert j < len(output.split())
    assert main([*call, "--json", "--align"]) == 0
    values = [json.loads(line) for line in capsys.readouterr().out.split("\n")[:-1]]
    rows = [" ".join(f"{i}-{j}" for i, j in value["translations"][0]["alignment"]) for value in values]
    assert rows == links[:-1]


def test_tags_and_white_space_come_through_or_a_warning_says_so(model: str, capsys: Any) -> None:
    Path("in").write_text("  <b>ab</b> de. Ab {x}!\n\n<i>Ab</i>\n")
    flags = ["--protect", "tags,placeholders", "--document", *FAST]
    assert main(["translate", model, "--input", "in", *flags]) == 0
    captured = capsys.readouterr()
    first, blank, last = captured.out.split("\n")[:-1]
    assert first.startswith("  ")
    assert [first.count(item) for item in ("<b>", "</b>", "{x}")] == [1, 1, 1]
    assert blank == ""
    assert [last.count(item) for item in ("<i>", "</i>")] == [1, 1]
    assert captured.err == ""


@pytest.mark.parametrize("by", ["mean", "log"])
def test_a_model_asked_twice_says_the_same(model: str, expected: list[str], by: str, capsys: Any) -> None:
    Path("in").write_text("".join(f"{line}\n" for line in LINES))
    call = ["translate", model, "--ensemble", model, "--ensemble", model, "--ensemble-by", by]
    assert main([*call, "--input", "in", *FAST]) == 0
    assert capsys.readouterr().out.split("\n")[:-1] == expected


def test_scores_stand_before_a_tab_and_are_explained_on_stderr(
    model: str, expected: list[str], capsys: Any
) -> None:
    Path("in").write_text("".join(f"{line}\n" for line in LINES[:4]))
    assert main(["translate", model, "--input", "in", "--scores", "--explain", *FAST]) == 0
    captured = capsys.readouterr()
    rows = captured.out.split("\n")
    assert [row.partition("\t")[2] for row in rows[:3]] == expected[:3]
    assert rows[3:] == ["\t", ""]  # no score, but columns stay columns
    explained = captured.err.split("\n")
    assert len(explained) == 4
    assert explained[0].startswith("line 1, output 1, rank 1: score ")
    assert "= log P " in explained[0]
    assert f"score {float(rows[0].partition(chr(9))[0]):.3f}"[:10] in explained[0]


def test_every_output_is_explained_with_its_rank(model: str, capsys: Any) -> None:
    Path("in").write_text(f"{LINES[0]}\n\n{LINES[1]}\n")
    flags = ["--json", "--samples", "3", "--explain", "--max-extra", "3", "--alpha", "1"]
    assert main(["translate", model, "--input", "in", *flags]) == 0
    captured = capsys.readouterr()
    values = [json.loads(line)["translations"] for line in captured.out.split("\n")[:-1]]
    told = captured.err.split("\n")[:-1]
    assert len(told) == 6
    for number, at in ((1, 0), (3, 3)):
        outputs = values[number - 1]
        for i, output in enumerate(outputs):
            rank = 1 + sum(other["score"] > output["score"] for other in outputs)
            penalty = (5 + output["length"]) / 6
            assert output["score"] == pytest.approx(output["log_probability"] / penalty)
            assert told[at + i].startswith(f"line {number}, output {i + 1}, rank {rank}: score ")
            assert f"log P {output['log_probability']:.6f} / penalty {penalty:.6f};" in told[at + i]
            assert f"{output['length']} tokens with the end" in told[at + i]


def test_confidence_stands_in_json_on_request(model: str, capsys: Any) -> None:
    Path("in").write_text("\n".join(LINES))
    assert main(["translate", model, "--input", "in", "--json", "--confidence", *FAST]) == 0
    for line in capsys.readouterr().out.split("\n")[:-1]:
        (output,) = json.loads(line)["translations"]
        assert [word["text"] for word in output["words"]] == output["text"].split()
        assert all(0 < word["confidence"] <= 1 for word in output["words"])
        assert 0 < output["confidence"] <= 1


def test_confidence_and_protected_items_go_together(model: str, capsys: Any) -> None:
    Path("in").write_text("<b>ab</b> de {x}\nab <i>gh</i>\n")
    call = ["translate", model, "--input", "in", "--json", "--confidence", "--protect", "all", *FAST]
    assert main(call) == 0
    for line in capsys.readouterr().out.split("\n")[:-1]:
        (output,) = json.loads(line)["translations"]
        assert [word["text"] for word in output["words"]] == output["text"].split()
        values = [word["confidence"] for word in output["words"]]
        assert all(value is None or 0 < value <= 1 for value in values)
    assert any(values)  # the second line has nothing but tags, which stand beside its words


def test_a_line_that_is_too_long_ends_the_run_where_it_is_to_be_an_error(model: str, capsys: Any) -> None:
    Path("in").write_text("ab\n" + "ab " * 60)
    call = ["translate", model, "--input", "in", "--output", "out", "--long-lines", "error", *FAST]
    assert main(call) == 1
    assert "transduce: error: line 2 has " in capsys.readouterr().err
    assert os.listdir() == ["in"]


@pytest.mark.parametrize(
    ("call", "code", "message"),
    [
        (["nowhere"], 1, "nowhere: no such model folder; check the path, or make one with `transduce train`"),
        (["MODEL", "--input", "missing"], 1, "missing: no such file; check the path"),
        (["MODEL", "--input", "latin"], 1, "latin:2: not valid UTF-8"),
        (["MODEL", "--n-best", "2"], 2, "--n-best 2 gives several outputs a line; add --json"),
        (["MODEL", "--samples", "2"], 2, "--samples 2 gives several outputs a line; add --json"),
        (["MODEL", "--mbr", "chrf"], 2, "mbr is chrf, but there is one output to choose from; set samples"),
        (["MODEL", "--mbr", "ter", "--samples", "4"], 2, "mbr is 'ter'; choose one of chrf, bleu"),
        (["MODEL", "--ensemble-by", "log"], 2, "--ensemble-by log is for several models; name them with"),
        (["MODEL", "--ensemble", "MODEL", "--ensemble-by", "max"], 2, "ensemble_by is 'max'; choose one of"),
        (["MODEL", "--ensemble", "nowhere"], 1, "nowhere: no such model folder"),
        (["MODEL", "--confidence"], 2, "--confidence stands in JSON lines: add --json"),
        (["MODEL", "--top-k", "2"], 2, "top_k is 2, but nothing is sampled; set samples to 1 or more"),
        (["MODEL", "--beam", "0"], 2, "beam is 0; it must be at least 1"),
        (["MODEL", "--long-lines", "drop"], 2, "long_lines is 'drop'; choose one of split, truncate, error"),
        (["MODEL", "--align"], 2, "--align puts word alignments into JSON lines: add --json"),
        (["MODEL", "--alignments", "in"], 2, "in: is the input as well"),
        (["MODEL", "--alignments", "out"], 2, "out: is named twice"),
        (
            ["MODEL", "--alignments", "x", "--alignment-layer", "9"],
            2,
            "alignment_layer is 9, but the decoder",
        ),
        (["MODEL", "--output", "no/out"], 2, "no/out: there is no folder no; make it first"),
        (["MODEL", "--output", "."], 2, ".: is a folder; name a file in it"),
        (["MODEL", "--output", "x.zst"], 2, "x.zst: .zst is read but not written"),
        (["MODEL", "--device", "abacus"], 2, "unknown device 'abacus'"),
    ],
)
def test_mistakes_cost_one_line_and_leave_no_file(
    model: str, call: list[str], code: int, message: str, capsys: Any
) -> None:
    Path("latin").write_bytes(b"ab\ncaf\xe9\n")
    Path("in").write_text("ab\n")
    call = [model if word == "MODEL" else word for word in call]
    if "--input" not in call:
        call += ["--input", "in"]
    if "--output" not in call:
        call += ["--output", "out"]
    assert main(["translate", *call]) == code
    captured = capsys.readouterr()
    assert captured.err.startswith(f"transduce: error: {message}")
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert sorted(os.listdir()) == ["in", "latin"]


def test_an_interrupt_is_one_line_and_leaves_what_was_there(
    model: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Translator, "translate_detailed", interrupted)
    Path("in").write_text("ab\n")
    Path("out").write_text("old\n")
    assert main(["translate", model, "--input", "in", "--output", "out"]) == 130
    assert capsys.readouterr().err == "transduce: interrupted\n"
    assert Path("out").read_text() == "old\n"
    assert sorted(os.listdir()) == ["in", "out"]


def test_a_long_run_says_how_far_it_is(model: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr("transduce.cli.progress.REPORT_EVERY", 0.0)
    Path("in").write_text("ab\n" * 3)
    assert main(["translate", model, "--input", "in", "--beam", "1", "--max-extra", "1"]) == 0
    assert "3 lines translated" in capsys.readouterr().err


def test_a_terminal_shows_a_bar_and_the_warnings_above_it(
    model: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    Path("in").write_text("ab\n" + "ab " * 60)
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert main(["translate", model, "--input", "in", *FAST]) == 0
    shown = sys.stderr.getvalue()
    assert "transduce: warning: line 2 has " in shown
    assert "translated" in shown
    assert "/2" in shown
    assert capsys.readouterr().out.count("\n") == 2


def test_text_is_utf8_whatever_the_locale(model: str) -> None:
    environment = {
        **os.environ,
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONIOENCODING": "",
        "OMP_NUM_THREADS": "1",
    }
    program = "import sys; from transduce.cli.main import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", program, "translate", model, "--json", *FAST],
        input="caf\u00e9 \U0001f600 \u05e9\n".encode(),
        capture_output=True,
        env=environment,
        check=True,
    )
    assert done.stderr == b""
    assert json.loads(done.stdout.decode())["source"] == "caf\u00e9 \U0001f600 \u05e9"


def test_a_reader_that_leaves_ends_the_run_quietly(
    model: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    Path("in").write_text("ab\n")
    with open(writer, "w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        assert main(["translate", model, "--input", "in", *FAST]) == 141
        monkeypatch.undo()
    assert capsys.readouterr().err == ""
