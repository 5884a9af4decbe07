"""A corpus that is cleaned once and read again and again: a bit for each pair says whether it is used.

What is mended is mended anew at each reading: that is cheap, and no second copy of the corpus is on the disk.
The folder then holds ``kept.bits``, the report ``cleaning.json``, and ``dropped.jsonl.gz``, the side file.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from transduce.counts import counted
from transduce.data.cleaning.cleaner import judged
from transduce.data.cleaning.dropped import as_json
from transduce.data.cleaning.filters import Filters
from transduce.data.cleaning.repairs import mended, repairs
from transduce.data.cleaning.report import CleaningReport
from transduce.data.crew import ALONE, Crew
from transduce.data.formats.pair import Pair
from transduce.errors import DataError
from transduce.files import atomic_writer, write_json

BITS, REPORT, DROPPED = "kept.bits", "cleaning.json", "dropped.jsonl.gz"
FILES = (BITS, REPORT, DROPPED)
_AT_ONCE = 4096


class Kept:
    """Which pairs of a corpus are used; ``count`` of them are."""

    def __init__(self, filters: Filters, bits: npt.NDArray[np.uint8], pairs: int) -> None:
        self.filters, self._bits, self.pairs = filters, bits, pairs
        self.count = int(np.unpackbits(bits, count=pairs).sum(dtype=np.int64))

    @classmethod
    def open(cls, filters: Filters, folder: str | Path) -> Kept:
        """What `clean_once` found; DataError where it is not there or not whole."""
        try:
            pairs = json.loads((Path(folder) / REPORT).read_bytes())["pairs"]
            bits = np.frombuffer((Path(folder) / BITS).read_bytes(), np.uint8)
        except (OSError, ValueError, KeyError, TypeError):
            raise DataError(f"{folder}: holds no complete cleaning; prepare the data again") from None
        if len(bits) != (pairs + 7) // 8:
            raise DataError(f"{Path(folder) / BITS}: is damaged; prepare the data again")
        return cls(filters, bits, pairs)

    def of(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Those of the corpus's pairs that are used, mended; DataError where there are more or fewer."""
        mend = repairs(self.filters.config)
        flags = self._flags()
        for pair in pairs:
            flag = next(flags, None)
            if flag is None:
                raise DataError(f"{pair.file}: has grown since it was cleaned; prepare the data again")
            if flag:
                yield mended(pair, mend)[0]
        if next(flags, None) is not None:
            raise DataError(
                f"the corpus has fewer than {counted(self.pairs, 'pair')} now; prepare the data again"
            )

    def _flags(self) -> Iterator[int]:
        left = self.pairs
        for begin in range(0, len(self._bits), _AT_ONCE):
            flags = np.unpackbits(self._bits[begin : begin + _AT_ONCE], count=min(left, 8 * _AT_ONCE))
            left -= len(flags)
            yield from flags.tolist()


def cleaning_lines(folder: str | Path) -> list[str]:
    """What `clean_once` did, for a log; nothing where the folder holds no cleaning."""
    try:
        return [str(line) for line in json.loads((Path(folder) / REPORT).read_bytes())["lines"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def clean_once(
    pairs: Iterable[Pair], filters: Filters, folder: str | Path, *, crew: Crew = ALONE
) -> CleaningReport:
    """What became of the pairs; the folder holds the three files of it afterwards."""
    folder = Path(folder)
    report = CleaningReport.of(filters.names(), filters.repair_names(), filters.idle())
    flags: list[npt.NDArray[np.bool_]] = []
    with atomic_writer(folder / DROPPED) as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file:
        for chunk in judged(pairs, filters, crew=crew):
            for verdict in chunk:
                report.add(verdict)
                if not verdict.kept:
                    file.write(as_json(verdict).encode())
            flags.append(np.fromiter((verdict.kept for verdict in chunk), np.bool_, len(chunk)))
    with atomic_writer(folder / BITS) as file_of_bits:
        file_of_bits.write(np.packbits(np.concatenate(flags) if flags else np.empty(0, np.bool_)).tobytes())
    write_json(folder / REPORT, {**report.to_dict(), "lines": report.counts() + report.notes})
    return report
