"""A way to read a file of pairs as its name says."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from transduce.data.formats.folders import read_pairs
from transduce.data.formats.pair import Pair
from transduce.data.formats.sides import Wanted
from transduce.data.formats.tally import Tally

Read = Callable[..., tuple[list[Pair], Tally]]


@pytest.fixture
def read() -> Read:
    """A function of a path and languages that returns the pairs, and what was told of them."""

    def read_file(path: str, source: str = "", target: str = "") -> tuple[list[Pair], Tally]:
        tally = Tally()
        return list(read_pairs(path, Wanted(source, target), tally)), tally

    return read_file
