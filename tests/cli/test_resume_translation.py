"""Runs that are stopped: what is left of them, and that they go on as if nothing had been."""

from __future__ import annotations

import functools
import gzip
import io
import json
import os
import signal
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jaxtyping
import pytest

from transduce.cli import partial
from transduce.cli import translate as command
from transduce.cli.main import main
from transduce.cli.rendering import Rendering
from transduce.decoding.translation import Alternative, Translation
from transduce.decoding.translator import Translator
from transduce.errors import DataError

LINES = [f"Line {i} é" if i % 5 else "" for i in range(1, 12)]


@pytest.fixture
def unchecked() -> Iterator[None]:
    """No shape is checked meanwhile."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


class Upper:
    """A translator without a model: it shouts."""

    device = "cpu"
    bundle = SimpleNamespace(tokenizer=None)

    def translate_detailed(self, texts: list[str], **_: Any) -> list[Translation]:
        return [
            Translation(t, (Alternative(t.upper(), -1.0, -1.0, 1, False, (), alignment=((0, 0),)),))
            for t in texts
        ]


@pytest.fixture(autouse=True)
def _shouting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("transduce.machine.tune_allocator", lambda: "")
    monkeypatch.setattr(Translator, "load", lambda *_, **__: Upper())
    monkeypatch.setattr(command, "CHUNK", 4)
    monkeypatch.setattr(partial, "NOTE_EVERY", 0.0)
    Path("model").mkdir()
    Path("model/config.json").write_text("{}")
    Path("in").write_text("".join(f"{line}\n" for line in LINES))


CALL = ["translate", "model", "--input", "in", "--output", "out", "--alignments", "links"]


def in_a_child(work: Callable[[], object]) -> int:
    """How a process ended that did ``work``: 0, or minus the signal that killed it."""
    child = os.fork()
    if child == 0:  # pragma: no cover - another process
        try:
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def killed_at(instant: int) -> None:
    """Runs the command and kills itself at the ``instant``-th of the steps that write something."""
    count = 0

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal count
            count += 1
            if count == instant:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **options)

        return call

    Rendering.line = counted(Rendering.line)  # type: ignore[method-assign]
    for where, name in ((os, "fsync"), (Path, "replace"), (Path, "unlink")):
        setattr(where, name, counted(getattr(where, name)))
    main(CALL)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_run_that_is_killed_anywhere_goes_on_to_the_same_bytes(capsys: Any) -> None:
    assert main(CALL) == 0
    whole = Path("out").read_bytes(), Path("links").read_bytes()
    assert whole[0].decode().split("\n")[:-1] == [line.upper() for line in LINES]
    instant, kills = 0, 0
    while True:
        for name in ("out", "links"):
            Path(name).unlink(missing_ok=True)
        instant += 1
        ended = in_a_child(functools.partial(killed_at, instant))
        assert ended in (0, -signal.SIGKILL)
        kills += ended != 0
        assert main([*CALL, "--resume"]) == 0
        assert (Path("out").read_bytes(), Path("links").read_bytes()) == whole, instant
        assert sorted(os.listdir()) == ["in", "links", "model", "out"]
        if ended == 0:
            break
    assert kills > 15


def stopped_after(chunks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of the command that is interrupted in a later chunk."""
    seen = 0

    def translate(self: Upper, texts: list[str], **options: Any) -> list[Translation]:
        nonlocal seen
        seen += 1
        if seen > chunks:
            raise KeyboardInterrupt
        return whole(self, texts, **options)

    whole = Upper.translate_detailed
    with monkeypatch.context() as patch:
        patch.setattr(Upper, "translate_detailed", translate)
        assert main(CALL) == 130


def test_an_interrupted_run_says_how_to_go_on_and_translates_no_line_twice(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    stopped_after(2, monkeypatch)
    told = capsys.readouterr().err
    assert "8 lines are in " in told
    assert "out.partial; the same call with --resume goes on\ntransduce: interrupted\n" in told
    assert sorted(os.listdir()) == ["in", "links.partial", "model", "out.partial", "out.partial.json"]
    texts: list[str] = []
    whole = Upper.translate_detailed
    monkeypatch.setattr(Upper, "translate_detailed", lambda s, t, **o: (texts.extend(t), whole(s, t, **o))[1])
    assert main([*CALL, "--resume"]) == 0
    assert texts == LINES[8:]
    assert Path("out").read_text() == "".join(f"{line.upper()}\n" for line in LINES)


def test_what_is_not_the_same_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    stopped_after(2, monkeypatch)
    capsys.readouterr()
    kept = Path("out.partial").read_bytes()

    def refused(call: list[str], code: int, *words: str) -> None:
        assert main(call) == code
        told = capsys.readouterr().err
        assert told.count("\n") == 1
        for word in words:
            assert word in told
        assert Path("out.partial").read_bytes() == kept

    refused(CALL, 2, "out.partial: holds 8 lines of a run that was stopped; add --resume")
    refused([*CALL, "--resume", "--beam", "7"], 2, "was written with beam 4, now it is 7")
    Path("model/config.json").write_text("{1}")
    refused([*CALL, "--resume"], 2, "was written with model ['")
    Path("model/config.json").write_text("{}")
    Path("in").write_text("".join(f"{line}\n" for line in ["changed", *LINES[1:]]))
    refused([*CALL, "--resume"], 1, "the first 8 lines of the input are not those")
    Path("in").write_text("".join(f"{line}\n" for line in [*LINES[:8], "other", "end"]))
    assert main([*CALL, "--resume"]) == 0
    assert Path("out").read_text().split("\n")[7:] == [LINES[7].upper(), "OTHER", "END", ""]


def test_damaged_notes_are_said_and_standard_output_cannot_be_resumed(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    assert main(["translate", "model", "--input", "in", "--resume"]) == 2
    assert "--resume goes on with a file: name one with --output" in capsys.readouterr().err
    stopped_after(2, monkeypatch)
    Path("out.partial").write_bytes(b"short")
    assert main([*CALL, "--resume"]) == 1
    assert "out.partial: has 5 bytes, but" in capsys.readouterr().err
    Path("out.partial.json").write_text("{}")
    assert main([*CALL, "--resume"]) == 1
    assert "out.partial.json: is damaged; delete it" in capsys.readouterr().err


def test_resuming_what_was_never_begun_begins_it_also_compressed(capsys: Any) -> None:
    call = ["translate", "model", "--input", "in", "--output", "out.gz", "--resume"]
    assert main(call) == 0
    first = Path("out.gz").read_bytes()
    assert gzip.decompress(first).decode().split("\n")[:-1] == [line.upper() for line in LINES]
    assert main(call) == 0
    assert Path("out.gz").read_bytes() == first


def test_two_runs_never_write_one_file(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    pytest.importorskip("fcntl")
    whole = Upper.translate_detailed

    def translate(self: Upper, texts: list[str], **options: Any) -> list[Translation]:
        monkeypatch.setattr(Upper, "translate_detailed", whole)
        assert main(CALL) == 2
        assert "out.partial: another run is writing it" in capsys.readouterr().err
        return whole(self, texts, **options)

    monkeypatch.setattr(Upper, "translate_detailed", translate)
    assert main(CALL) == 0
    assert Path("out").read_text() == "".join(f"{line.upper()}\n" for line in LINES)


@pytest.mark.usefixtures("unchecked")
def test_100_000_lines_are_100_000_lines_in_constant_memory(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(command, "CHUNK", 500)
    monkeypatch.setattr("transduce.data.lines._CHUNK", 1 << 12)
    monkeypatch.setattr(partial, "NOTE_EVERY", 1.0)
    peaks = []
    for count in (1_000, 8_000, 100_000):
        with open("in", "w") as file:
            file.writelines(f"line {i}\n" for i in range(count))
        if count < 100_000:  # which would take long to watch
            tracemalloc.start()
        assert main(["translate", "model", "--input", "in", "--output", "out"]) == 0
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        with open("out") as file:
            assert all(line == f"LINE {i}\n" for i, line in enumerate(file))
        with open("out") as file:
            assert sum(1 for _ in file) == count
    assert peaks[1] < 1.5 * peaks[0]


def test_a_pipe_that_delivers_slowly_gets_its_translations_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(command, "CHUNK", 10_000)
    reader, writer = os.pipe()
    back, out = os.pipe()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(open(reader, "rb")))  # noqa: SIM115
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(open(out, "wb")))  # noqa: SIM115
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(main(["translate", "model"])))
    thread.start()
    answers = open(back, "rb")  # noqa: SIM115 - closed below
    for line in (b"one", b"two", b"three"):
        os.write(writer, line + b"\n")
        # The answer comes while the pipe is still open; without it this would wait for ever.
        assert answers.readline() == line.upper() + b"\n"
    os.write(writer, b"".join(b"%d\n" % i for i in range(500)) + b"no end")
    os.close(writer)
    thread.join(60)
    sys.stdout.close()
    sys.stdin.close()
    assert codes == [0]
    assert answers.read().split(b"\n") == [*(b"%d" % i for i in range(500)), b"NO END", b""]
    answers.close()


def test_a_line_that_is_wrong_keeps_what_was_done(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    whole = Upper.translate_detailed

    def translate(self: Upper, texts: list[str], **options: Any) -> list[Translation]:
        if LINES[10] in texts:
            raise DataError("line 11 is odd")
        return whole(self, texts, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Upper, "translate_detailed", translate)
        assert main(CALL) == 1
    assert json.loads(Path("out.partial.json").read_text())["lines"] == 8
    assert main([*CALL, "--resume"]) == 0
