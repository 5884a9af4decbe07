"""Word alignments of the training text, in Pharaoh format, and what they mean for subwords.

``0-0 1-2`` links source word 0 with target word 0 and source word 1 with target word 2. Words are what stands
between white space, as aligners split lines. They are kept by word, so that they hold for any subwords.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from transduce.counts import counted
from transduce.data.formats.pair import Pair
from transduce.data.lines import count_lines, read_lines
from transduce.data.tokenizer import Tokenizer
from transduce.errors import DataError

Links = npt.NDArray[np.uint16]
"""Source word, target word, source word, ...: words between spaces, counted from 0."""
Rows = Sequence[npt.NDArray[Any]]
_SPACE = "\u2581"
_MOST = 1 << 16


class TokenLinks(NamedTuple):
    """Which source tokens each target token of a batch comes from, and what share each of them has."""

    rows: npt.NDArray[np.int64]
    targets: npt.NDArray[np.int64]
    sources: npt.NDArray[np.int64]
    shares: npt.NDArray[np.float32]
    """The shares of a target token add up to 1."""


def with_alignments(pairs: Iterable[Pair], files: Sequence[str]) -> Iterator[Pair]:
    """The pairs, each with its line of its corpus's file; a corpus without one ("") has no links.

    Raises DataError with both counts where a file has another number of lines than the corpus.
    """
    rest: Iterator[str] = iter(())
    corpus, lines, last = -1, 0, ""
    for pair in pairs:
        if pair.corpus != corpus:
            _check_over(rest, last, lines)
            corpus, lines = pair.corpus, 0
            last = files[corpus] if corpus < len(files) else ""
            rest = read_lines(last) if last else iter(())
        if last:
            lines += 1
            line = next(rest, None)
            if line is None:
                raise DataError(
                    f"{last} has {counted(count_lines(last), 'line')}, fewer than {pair.file}: they are not "
                    "aligned; line i of it must link the words of pair i"
                )
            pair = pair._replace(alignment=line.strip(), alignment_file=last)
        yield pair
    _check_over(rest, last, lines)


def _check_over(rest: Iterator[str], file: str, lines: int) -> None:
    if more := sum(1 for _ in rest):
        raise DataError(
            f"{file} has {counted(lines + more, 'line')}, but its corpus has {counted(lines, 'pair')}: they "
            "are not aligned; line i of it must link the words of pair i"
        )


def read_link(item: str, where: str) -> tuple[int, int]:
    """Source and target word of ``0-0``; DataError, naming ``where``, for what is no link."""
    one, dash, other = item.partition("-")
    if not (dash and one.isdecimal() and other.isdecimal()):
        raise DataError(f"{where}: {item!r} is no link; write source-target, e.g. 0-0 1-2")
    return int(one), int(other)


def links_of(pair: Pair) -> Links:
    """The links of the pair's words, each once; DataError, with file and line, for what is none."""
    where = f"{pair.alignment_file}:{pair.line}"
    source, target = _places(pair.source), _places(pair.target)
    found: set[tuple[int, int]] = set()
    for item in pair.alignment.split():
        i, j = read_link(item, where)
        if i >= len(source) or j >= len(target):
            raise DataError(
                f"{where}: links word {i} with word {j}, but the pair has {len(source)} and "
                f"{counted(len(target), 'word')}, counted from 0; align the text as it is here, words "
                "between white space"
            )
        found.add((source[i], target[j]))
    if any(max(link) >= _MOST for link in found):
        raise DataError(f"{where}: has more than {_MOST:,} words on a side; leave the pair out")
    return np.array(sorted(found), dtype=np.uint16).reshape(-1)


def _places(text: str) -> list[int]:
    """For each word between white space of any kind, its number among the words between spaces."""
    return [
        number for number, word in enumerate(word for word in text.split(" ") if word) for _ in word.split()
    ]


class WordsOfTokens:
    """Numbers the words between spaces that tokens spell, for one tokenizer."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        pieces = [tokenizer.piece(index) for index in range(tokenizer.vocabulary)]
        self._opens = np.array([piece.startswith(_SPACE) for piece in pieces])
        self._silent = np.zeros(tokenizer.vocabulary, dtype=np.bool_)
        self._silent[list(tokenizer.silent)] = True
        self._blank = np.array([piece == _SPACE for piece in pieces]) | self._silent

    def spans(self, rows: Rows) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Where each row's words are in ``spans``; the first token of each word in its row, and how many."""
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        flat = np.concatenate(rows).astype(np.int64)
        row_of = np.repeat(np.arange(len(rows)), lengths)
        begins = np.cumsum(lengths) - lengths
        opens = self._opens[flat] | self._silent[flat]
        opens[begins] = True
        group = np.cumsum(opens) - 1
        filled = np.bincount(group, ~self._blank[flat]) > 0
        first = np.flatnonzero(opens)
        size = np.diff(np.append(first, len(flat)))
        words = np.flatnonzero(filled)
        of_row = row_of[first[words]]
        bases = np.searchsorted(of_row, np.arange(len(rows)))
        return bases, first[words] - begins[of_row], size[words]

    def token_links(self, sources: Rows, targets: Rows, links: Rows) -> TokenLinks:
        """Every token of a linked target word comes from every token of the source words, in equal shares."""
        counts = np.fromiter((len(one) // 2 for one in links), np.int64, len(links))
        row = np.repeat(np.arange(len(links)), counts)
        flat = np.concatenate(links).astype(np.int64).reshape(-1, 2)
        ends = []
        for rows, words in ((sources, flat[:, 0]), (targets, flat[:, 1])):
            bases, first, size = self.spans(rows)
            place = bases[row] + words
            ends.append((first[place], size[place]))
        (source, sources_each), (target, targets_each) = ends
        each = sources_each * targets_each
        link = np.repeat(np.arange(len(row)), each)
        number = np.arange(int(each.sum())) - np.repeat(np.cumsum(each) - each, each)
        t = target[link] + number // sources_each[link]
        s = source[link] + number % sources_each[link]
        rows_of = row[link]
        longest = max(map(len, targets))
        key = rows_of * longest + t
        shares = 1.0 / np.bincount(key, minlength=1)[key] if len(key) else np.zeros(0)
        return TokenLinks(rows_of, t, s, shares.astype(np.float32))
