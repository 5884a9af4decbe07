"""One file with a pair per line: source, TAB, target."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from transduce.data.formats.pair import Pair
from transduce.data.lines import read_lines
from transduce.errors import DataError


def read_tsv(path: str | Path, corpus: int = 0) -> Iterator[Pair]:
    """The first two columns of every line; how many more there were stands in ``Pair.extra_columns``.

    ``corpus`` is noted in each.
    Raises DataError, naming file and line, for a line without a TAB.
    """
    for line, text in enumerate(read_lines(path), 1):
        columns = text.split("\t")
        if len(columns) < 2:
            raise DataError(f"{path}:{line}: 1 column, expected source and target with a TAB between them")
        yield Pair(columns[0], columns[1], str(path), line, len(columns) - 2, corpus)
