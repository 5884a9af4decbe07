"""Several corpora as one stream of pairs, and what tells them from others."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappush, heapreplace
from pathlib import Path
from typing import Any

from transduce.data.formats.pair import Pair
from transduce.data.formats.text_pair import read_text_pair, unequal
from transduce.data.formats.tsv import read_tsv
from transduce.data.lines import count_lines
from transduce.data.report import Report
from transduce.errors import DataError


def read_corpora(
    source: Sequence[str] = (), target: Sequence[str] = (), tsv: Sequence[str] = ()
) -> Iterator[Pair]:
    """All pairs of the aligned text files, then of the TSV files, in the order given: corpus 0, 1, ..."""
    for corpus, (one, other) in enumerate(zip(source, target, strict=True)):
        yield from read_text_pair(one, other, corpus)
    for corpus, path in enumerate(tsv, len(source)):
        yield from read_tsv(path, corpus)


def count_pairs(source: Sequence[str] = (), target: Sequence[str] = (), tsv: Sequence[str] = ()) -> int:
    """The number of pairs; DataError with both names and counts where two files are not aligned."""
    total = 0
    for one, other in zip(source, target, strict=True):
        sources, targets = count_lines(one), count_lines(other)
        if sources != targets:
            raise unequal(one, sources, other, targets)
        total += sources
    return total + sum(count_lines(path) for path in tsv)


def identity(*groups: Sequence[str]) -> list[list[dict[str, Any]]]:
    """Name, size and sha256 of each file, group by group; the folder that a file lies in is no part of it."""
    return [[_identity(path) for path in paths] for paths in groups]


def _identity(path: str) -> dict[str, Any]:
    try:
        with Path(path).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return {"name": Path(path).name, "size": file.tell(), "sha256": digest}
    except IsADirectoryError:
        raise DataError(f"{path}: is a folder, expected a text file; name a file in it") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}; check the path") from None


def choose_held_out(pairs: Iterable[Pair], count: int, seed: int) -> list[Pair]:
    """``count`` (1 or more) pairs with different source texts, drawn at random by the seed, in corpus order.

    A source text is drawn by its keyed hash: each text is as likely as any other, however often it occurs,
    and the draw does not depend on the order of the corpus. One pass; the chosen pairs are all that is kept.
    """
    key = seed.to_bytes(16, "little", signed=True)
    heap: list[tuple[int, int]] = []
    chosen: dict[int, tuple[int, Pair]] = {}
    for order, pair in enumerate(pairs):
        source = pair.source.strip()
        if not source or not pair.target.strip():
            continue
        drawn = -int.from_bytes(hashlib.blake2b(source.encode(), digest_size=8, key=key).digest())
        if drawn in chosen or (len(heap) == count and drawn < heap[0][0]):
            continue
        if len(heap) < count:
            heappush(heap, (drawn, order))
        else:
            del chosen[heapreplace(heap, (drawn, order))[0]]
        chosen[drawn] = (order, pair)
    return [pair for _, pair in sorted(chosen.values(), key=lambda item: item[0])]


def without(pairs: Iterable[Pair], held_out: Sequence[Pair], report: Report | None = None) -> Iterator[Pair]:
    """The pairs whose source text is in no held-out pair; the others are counted in ``report``."""
    texts = {pair.source.strip() for pair in held_out}
    met = 0
    for pair in pairs:
        if pair.source.strip() not in texts:
            yield pair
            continue
        met += 1
        if report is not None:
            report.pairs += 1
            report.repeats_held_out = max(0, met - len(held_out))
