"""Two aligned text files: line i of one translates line i of the other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from transduce.counts import counted
from transduce.data.formats.pair import Pair
from transduce.data.lines import read_lines
from transduce.errors import DataError


def read_text_pair(source_path: str | Path, target_path: str | Path, corpus: int = 0) -> Iterator[Pair]:
    """The pairs of two files, in order, empty lines included; ``corpus`` is noted in each.

    Raises DataError with both counts as soon as one file turns out to be longer than the other.
    """
    file = str(source_path)
    targets = read_lines(target_path)
    line = 0
    for line, source in enumerate(sources := read_lines(source_path), 1):
        target = next(targets, None)
        if target is None:
            raise unequal(source_path, line + sum(1 for _ in sources), target_path, line - 1)
        yield Pair(source, target, file, line, corpus=corpus)
    if rest := sum(1 for _ in targets):
        raise unequal(source_path, line, target_path, line + rest)


def unequal(source_path: str | Path, sources: int, target_path: str | Path, targets: int) -> DataError:
    """The error that names two files and their different line counts."""
    return DataError(
        f"{source_path} has {counted(sources, 'line')} but {target_path} has {targets}: they are not "
        "aligned; line i of one must translate line i of the other"
    )
