"""CSV with or without a row of names: two of the columns are source and target."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from transduce.data.formats.columns import Columns, is_header
from transduce.data.formats.pair import Pair
from transduce.data.formats.sides import Wanted
from transduce.data.formats.tally import Tally
from transduce.data.lines import read_lines
from transduce.data.streams import named
from transduce.errors import DataError

_DELIMITERS = (",", ";", "\t")
_LONGEST = 1 << 24
"""Characters of a cell: a quote that is never closed would swallow the rest of the file."""


def read_csv(path: str | Path, wanted: Wanted, tally: Tally, corpus: int = 0) -> Iterator[Pair]:
    """The pairs of a table, by the names of its columns, or of its two columns where it has no names.

    The delimiter (comma, semicolon or tab) is told by the first line. A cell may hold line breaks; a row with
    another number of cells than the first is an error that names the line.
    """
    file = named(path)
    lines = read_lines(path, ends=True)
    first = next(lines, None)
    if first is None:
        return
    csv.field_size_limit(_LONGEST)
    rows = csv.reader(chain([first], lines), delimiter=_delimiter(first), strict=True)
    columns = Columns(file, wanted, tally)
    places: tuple[int, int] | None = None
    width = line = 0
    while (row := _next(rows, file)) is not None:
        began, line = line + 1, rows.line_num
        if places is None:
            places, width, header = _places(row, columns, tally, file)
            if header:
                continue
        if len(row) != width:
            raise DataError(
                f"{file}:{began}: {len(row)} cells, where the first row has {width}; put a text with the "
                "delimiter or a quote in it in double quotes"
            )
        yield Pair(row[places[0]], row[places[1]], file, began, corpus=corpus)
    columns.finish()


def _next(rows: Iterator[list[str]], file: str) -> list[str] | None:
    try:
        return next(rows, None)
    except csv.Error as error:
        line = getattr(rows, "line_num", 0)
        raise DataError(f"{file}:{line}: is not valid CSV ({error}); see to the double quotes") from None


def _delimiter(first: str) -> str:
    """The delimiter that makes the most columns of the first line; a comma where none makes two."""
    counts = {}
    for delimiter in _DELIMITERS:
        try:
            counts[delimiter] = len(next(csv.reader([first], delimiter=delimiter)))
        except csv.Error:
            counts[delimiter] = 1
    return max(_DELIMITERS, key=lambda delimiter: counts[delimiter])


def _places(
    row: Sequence[str], columns: Columns, tally: Tally, file: str
) -> tuple[tuple[int, int], int, bool]:
    """The columns of source and target, how many there are, and whether this row named them."""
    if len(row) == 2 and not is_header(row):
        tally.choose(file, "its first row names no columns: source is the first, target the second")
        return (0, 1), 2, False
    return columns.of(row), len(row), True
