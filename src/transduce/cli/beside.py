"""A file that has one line for each line of the input, read in step with it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from transduce.counts import counted
from transduce.errors import DataError, UsageError


class Beside:
    """The lines of ``path``; none at all where ``path`` is None.

    Another number of lines than the input's is refused with both numbers: at once where both are files, else
    as soon as it shows.
    """

    def __init__(self, path: str | None, input_file: str, option: str) -> None:
        self._path, self._input = path, input_file
        self._lines: Iterator[str] = iter(())
        self._taken = 0
        if path is None:
            return
        if path == "-" and input_file == "-":
            raise UsageError(f"{option} - and the input are both standard input; name a file for one of them")
        from transduce.data.lines import count_lines, read_lines

        if "-" not in (path, input_file):
            wanted, there = count_lines(input_file), count_lines(path)
            if wanted != there:
                raise self._unequal(wanted, there)
        self._lines = read_lines(path)

    def take(self, count: int, rest: Iterator[str]) -> list[str] | None:
        """The next ``count`` lines; ``rest``, the input's own, are counted where there are too few."""
        if self._path is None:
            return None
        lines = list(itertools.islice(self._lines, count))
        if len(lines) < count:
            raise self._unequal(self._taken + count + sum(1 for _ in rest), self._taken + len(lines))
        self._taken += count
        return lines

    def finish(self) -> None:
        """Nothing; DataError where lines are left that the input has no counterpart for."""
        if more := sum(1 for _ in self._lines):
            raise self._unequal(self._taken, self._taken + more)

    def _unequal(self, wanted: int, there: int) -> DataError:
        names = ["standard input" if name == "-" else name for name in (self._path, self._input)]
        return DataError(
            f"{names[0]} has {counted(there, 'line')} but {names[1]} has {wanted}; give one line for each "
            "line of the input, empty where there is none"
        )
