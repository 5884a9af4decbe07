"""Several corpora as one stream of pairs, and what tells them from others."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from heapq import heappush, heapreplace
from pathlib import Path
from typing import Any

from transduce.data.formats.folders import files_of, read_pairs
from transduce.data.formats.inline import one_line
from transduce.data.formats.pair import Pair
from transduce.data.formats.sides import Wanted
from transduce.data.formats.tally import Tally
from transduce.data.formats.text_pair import unequal
from transduce.data.formats.tsv import read_tsv
from transduce.data.formats.two_files import is_plain, read_two_files
from transduce.data.lines import count_lines
from transduce.data.seen import Seen
from transduce.errors import DataError

ANY = Wanted()


def read_corpora(
    source: Sequence[str] = (),
    target: Sequence[str] = (),
    tsv: Sequence[str] = (),
    pairs: Sequence[str] = (),
    wanted: Wanted | Sequence[Wanted] = ANY,
    tally: Tally | None = None,
) -> Iterator[Pair]:
    """All pairs of the files of two sides, then of the TSV files, then of ``pairs``: corpus 0, 1, ...

    ``pairs`` are files or folders of any format that holds both sides, here in the languages ``wanted``, of
    all of them or of each; a line break in a text of theirs becomes a space. What readers leave out is
    counted in ``tally``.
    """
    tally = tally or Tally()
    for corpus, (one, other) in enumerate(zip(source, target, strict=True)):
        yield from read_two_files(one, other, tally, corpus)
    for corpus, path in enumerate(tsv, len(source)):
        yield from read_tsv(path, corpus)
    for corpus, (path, languages) in enumerate(_with_languages(pairs, wanted), len(source) + len(tsv)):
        yield from map(on_one_line, read_pairs(path, languages, tally, corpus))


def on_one_line(pair: Pair) -> Pair:
    """The pair with its line breaks as spaces: what is translated is a line."""
    if "\n" not in pair.source and "\n" not in pair.target:
        return pair
    return pair._replace(source=one_line(pair.source), target=one_line(pair.target))


def count_pairs(
    source: Sequence[str] = (),
    target: Sequence[str] = (),
    tsv: Sequence[str] = (),
    pairs: Sequence[str] = (),
    wanted: Wanted | Sequence[Wanted] = ANY,
    tally: Tally | None = None,
    seen: Seen | None = None,
) -> int:
    """The number of pairs; DataError with both names and counts where two files are not aligned.

    What ``seen`` knows is not counted again; but ``pairs`` are where there is a ``tally`` to be filled.
    """
    seen = seen or Seen()

    def lines(path: str) -> int:
        count = int(seen.get(path, "lines", lambda: count_lines(path)))
        if not count and tally is not None:
            tally.leave_empty(path)
        return count

    def units(path: str, languages: Wanted) -> int:
        files = [file for files in files_of(path, languages) for file in files]
        if tally is not None or len(files) != 1:
            return sum(1 for _ in read_corpora((), (), (), [path], languages, tally))
        return int(seen.get(files[0], f"pairs {languages}", partial(_units, path, languages)))

    total = 0
    for one, other in zip(source, target, strict=True):
        if not (is_plain(one) and is_plain(other)):
            total += sum(1 for _ in read_two_files(one, other, tally or Tally()))
            continue
        sources, targets = lines(one), lines(other)
        if sources != targets:
            raise unequal(one, sources, other, targets)
        total += sources
    return total + sum(map(lines, tsv)) + sum(units(*both) for both in _with_languages(pairs, wanted))


def _units(path: str, wanted: Wanted) -> int:
    return sum(1 for _ in read_corpora(pairs=[path], wanted=wanted))


def _with_languages(pairs: Sequence[str], wanted: Wanted | Sequence[Wanted]) -> Iterator[tuple[str, Wanted]]:
    return zip(pairs, [wanted] * len(pairs) if isinstance(wanted, Wanted) else wanted, strict=True)


def files_in(pairs: Sequence[str], wanted: Wanted | Sequence[Wanted] = ANY) -> list[list[str]]:
    """The files that each of ``pairs`` stands for."""
    both = _with_languages(pairs, wanted)
    return [[file for files in files_of(path, languages) for file in files] for path, languages in both]


def identity(*groups: Sequence[str], seen: Seen | None = None) -> list[list[dict[str, Any]]]:
    """Name, size and sha256 of each file, group by group; the folder that a file lies in is no part of it.

    What ``seen`` knows is not read again.
    """
    seen = seen or Seen()
    return [[seen.get(path, "identity", partial(_identity, path)) for path in paths] for paths in groups]


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


class HeldOut:
    """Pairs that are not trained on, since their source text stands in a pair that is held out.

    Where the pairs are labelled, corpora may hold the same text in both directions: then the target text must
    be no held-out source either.
    """

    def __init__(self, pairs: Sequence[Pair] = ()) -> None:
        self._texts = frozenset(pair.source.strip() for pair in pairs)
        self._both = any(pair.languages for pair in pairs)

    def __contains__(self, pair: Pair) -> bool:
        if pair.source.strip() in self._texts:
            return True
        return self._both and pair.target.strip() in self._texts


def without(pairs: Iterable[Pair], held_out: Sequence[Pair]) -> Iterator[Pair]:
    """The pairs that may be trained on while ``held_out`` are held out."""
    texts = HeldOut(held_out)
    return (pair for pair in pairs if pair not in texts)
