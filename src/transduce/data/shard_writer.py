"""Writing token shards: chunk by chunk, by as many processes as wanted, going on where a kill left them.

From time to time the files are brought to the disk and a *mark* is told: how long they are then, and what was
counted until then. Whoever begins again at a mark cuts the files there, and gets the same bytes in the end.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from transduce.counts import counted
from transduce.data.crew import ALONE, Crew
from transduce.data.encoding import LINKS, SIDES, Encoded, Encoder, token_type
from transduce.data.formats.pair import Pair
from transduce.data.report import Report
from transduce.data.shards import FORMAT, TokenShards
from transduce.data.tokenizer import Tokenizer
from transduce.errors import DataError
from transduce.files import write_json

_CHUNK = 8192
_CHUNKS_BETWEEN_MARKS = 32
KINDS = ("tokens", "offsets", "lengths")

Mark = dict[str, Any]


def write_shards(
    pairs: Iterable[Pair],
    tokenizer: Tokenizer,
    folder: str | Path,
    report: Report,
    *,
    held_out: Sequence[Pair] = (),
    crew: Crew = ALONE,
    mark: Mark | None = None,
    marked: Callable[[Mark], None] | None = None,
    **kept: Any,
) -> TokenShards:
    """The shards of ``pairs``, complete in ``folder``; ``report`` is added up on the way.

    Dropped, each as a pair: an empty side (white space only), a side of more than ``report.limit`` tokens
    with its EOS, a source text that one of ``held_out`` has. What is ``kept`` (the ``corpus``) goes into
    ``meta.json``, to tell from what the shards were made; ``aligned`` writes links as well. A few
    thousand pairs for each of the ``crew`` are in memory; the bytes are the same for any crew.

    ``marked`` is told how far it came; with one of these marks, writing goes on there, from pairs that are
    given from the first again. Raises DataError where nothing is left or the disk is full.
    """
    folder = Path(folder)
    aligned = bool(kept.get("aligned"))
    encoder = Encoder(tokenizer, report.limit, held_out, threads=int(not crew.alone), aligned=aligned)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "meta.json").unlink(missing_ok=True)
        sides = (*SIDES, LINKS) if aligned else SIDES
        with _Writer(folder, tokenizer, report, mark, sides) as writer:
            chunks = _chunks(islice(iter(pairs), report.pairs, None))
            with closing(crew.in_order(encoder, chunks)) as results:
                for number, encoded in enumerate(results, 1):
                    writer.add(encoded)
                    if marked is not None and number % _CHUNKS_BETWEEN_MARKS == 0:
                        marked(writer.mark())
        _complete(folder, tokenizer, writer, kept)
    except OSError as error:
        raise DataError(f"{folder}: token shards cannot be written: {error.strerror or error}") from None
    return TokenShards.open(folder)


def usable(folder: str | Path, mark: Mark | None) -> Mark | None:
    """The mark, if the files in ``folder`` reach as far as it says; None where they do not."""
    try:
        if mark is not None and all(
            (Path(folder) / name).stat().st_size >= size for name, size in mark["sizes"].items()
        ):
            return mark
    except OSError:
        pass
    return None


def _complete(folder: Path, tokenizer: Tokenizer, writer: _Writer, kept: dict[str, Any]) -> None:
    report = writer.report
    report.repeats_held_out = max(0, report.repeats_held_out - report.held_out)
    if not report.kept:
        why = "; ".join(report.lines()[1:]) or "the files are empty"
        raise DataError(f"none of {counted(report.pairs, 'pair')} for {folder.name} can be used: {why}")
    meta = {
        "format": FORMAT,
        "pairs": report.kept,
        "corpora": [writer.corpora[corpus] for corpus in range(max(writer.corpora) + 1)],
        "dtype": writer.dtype.str,
        "tokenizer": tokenizer.sha256,
        "vocabulary": tokenizer.vocabulary,
        "max_length": report.limit,
        "corpus": None,
        **kept,
        "sizes": {name: (folder / name).stat().st_size for name in writer.files},
        "report": report.to_dict(),
    }
    write_json(folder / "meta.json", meta)


class _Writer:
    """The files of a folder while they grow, from nothing or from a mark."""

    def __init__(
        self,
        folder: Path,
        tokenizer: Tokenizer,
        report: Report,
        mark: Mark | None,
        sides: Sequence[str] = SIDES,
    ) -> None:
        self.dtype = token_type(tokenizer.vocabulary)
        self.report, self.sides = report, sides
        names = [f"{side}.{kind}" for side in sides for kind in KINDS]
        self.corpora: Counter[int] = Counter()
        if mark is not None:
            self.corpora.update({int(corpus): count for corpus, count in mark["corpora"].items()})
            report.add(Report(**mark["report"]))
        self.files: dict[str, IO[bytes]] = {
            name: (folder / name).open("wb" if mark is None else "r+b") for name in names
        }
        for name, file in self.files.items():
            if mark is not None:
                file.truncate(mark["sizes"][name])
                file.seek(0, os.SEEK_END)
            elif name.endswith(".offsets"):
                file.write(np.zeros(1, "<i8").tobytes())
        self._written = {
            side: 0 if mark is None else self.files[f"{side}.tokens"].tell() // self._size(side)
            for side in sides
        }

    def _size(self, side: str) -> int:
        """Bytes of a number in the file of tokens; a link's are always two."""
        return 2 if side == LINKS else self.dtype.itemsize

    def add(self, encoded: Encoded) -> None:
        """Nothing; the files hold these pairs too."""
        for side in self.sides:
            tokens, lengths = encoded.tokens[side], encoded.lengths[side]
            ends = np.cumsum(lengths, dtype=np.int64) + self._written[side]
            self.files[f"{side}.tokens"].write(tokens.tobytes())
            self.files[f"{side}.offsets"].write(ends.astype("<i8").tobytes())
            self.files[f"{side}.lengths"].write(lengths.astype("<i4").tobytes())
            self._written[side] += len(tokens)
        self.corpora.update(encoded.corpora)
        self.report.add(encoded.report)

    def mark(self) -> Mark:
        """How far the files are, all of it on the disk."""
        self._sync()
        return {
            "sizes": {name: file.tell() for name, file in self.files.items()},
            "corpora": dict(self.corpora),
            "report": self.report.to_dict() | {"held_out": 0},
        }

    def _sync(self) -> None:
        for file in self.files.values():
            file.flush()
            os.fsync(file.fileno())

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._sync()
        finally:
            for file in self.files.values():
                file.close()


def _chunks(pairs: Iterator[Pair]) -> Iterator[list[Pair]]:
    while chunk := list(islice(pairs, _CHUNK)):
        yield chunk
