"""Servers of tiny models that several tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from running_server import Running, running
from tiny_translator import Echo, save_tiny
from transduce.decoding.translator import Translator


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a model that says German nonsense."""
    return Path(save_tiny(tmp_path_factory.mktemp("models") / "tiny"))


@pytest.fixture(scope="session")
def translator(folder: Path) -> Translator:
    """The same model, asked directly."""
    return Translator.load(folder, device="cpu", engine="torch")


@pytest.fixture(scope="module")
def echo() -> Iterator[Running]:
    """A server whose model says again what it is told, at once."""
    with running(["en-de=echo"], lambda _: Echo()) as found:
        yield found


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Running]:
    """A server of that model, with the settings that it has by default."""
    with running([f"en-de={folder}"]) as found:
        yield found
