"""Files appear whole or not at all; links and pipes are written through."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from transduce.cli.main import main
from transduce.files import atomic_writer


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("old", encoding="utf-8")

    def fail() -> None:
        with atomic_writer(path) as file:
            file.write(b"new")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert path.read_text("utf-8") == "old"
    assert os.listdir(tmp_path) == ["out"]


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old", encoding="utf-8")
    (tmp_path / "link").symlink_to("real")
    with atomic_writer(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text("utf-8") == "new"


def test_a_pipe_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    with atomic_writer(pipe) as file:
        file.write(b"through")
    reader.join(10)
    assert read == [b"through"]
    assert pipe.is_fifo()


def test_what_is_read_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "a.en"
    text.write_text("one\n", encoding="utf-8")
    assert main(["translate", "model", "--input", str(text), "--output", str(text)]) == 2
    assert "is the input as well" in capsys.readouterr().err
    call = ["evaluate", "model", "--source", str(text), "--reference", str(text), "--output", str(text)]
    assert main(call) == 2
    assert "is read as well" in capsys.readouterr().err
    assert text.read_text("utf-8") == "one\n"
