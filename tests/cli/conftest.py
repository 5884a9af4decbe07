"""A saved model, and a folder to call the commands in."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a tiny model that takes lines of 40 tokens; nothing is written to it."""
    from tiny_translator import save_tiny

    return save_tiny(tmp_path_factory.mktemp("cli") / "model", max_length=40)


@pytest.fixture(scope="session")
def expected(model: str) -> list[str]:
    """What the library makes of LINES as FAST asks for it."""
    from few_lines import LINES

    from transduce.bundle import load_bundle
    from transduce.decoding.translator import Translator

    return Translator(load_bundle(model)).translate(LINES, beam=2, max_extra=3)


@pytest.fixture
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test runs in an empty folder, and leaves allocator and threads alone."""
    monkeypatch.chdir(tmp_path)
    # These act on the whole process.
    monkeypatch.setattr("transduce.machine.tune_allocator", lambda: "")
    monkeypatch.setattr("transduce.machine.set_threads", lambda threads: 1)
