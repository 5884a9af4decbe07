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
from few_lines import FAST, LINES

from transduce.cli import translate as command
from transduce.cli.main import main
from transduce.decoding.translator import Translator

pytestmark = pytest.mark.usefixtures("in_a_folder")


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
