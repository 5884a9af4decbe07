"""Token shards: the ids of a corpus on disk, memory-mapped, so that its size is no matter for the memory.

A folder holds ``source.tokens`` and ``target.tokens`` (little-endian uint16, uint32 for vocabularies above
65,536), one after another with the EOS at the end of each side; ``source.offsets`` and ``target.offsets``
(int64, one more than there are pairs); and ``meta.json``, which is written last: without it the folder is
incomplete and is never read. Several corpora lie one after another; ``meta.json`` counts the pairs of each.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from transduce.data.formats.pair import Pair
from transduce.data.report import Report
from transduce.data.tokenizer import EOS_ID, Tokenizer
from transduce.errors import DataError
from transduce.files import write_json

FORMAT = 2
_CHUNK = 8192
_SIDES = ("source", "target")

Tokens = npt.NDArray[np.uint16] | npt.NDArray[np.uint32]
Lengths = npt.NDArray[np.int32]


class TokenShards:
    """The pairs of one corpus as ids; pickled as the name of its folder, never as its content."""

    def __init__(self, folder: Path, meta: dict[str, Any]) -> None:
        self.folder = folder
        self.meta = meta
        self._tokens = {side: _mapped(folder / f"{side}.tokens", meta["dtype"]) for side in _SIDES}
        self._offsets = {side: _mapped(folder / f"{side}.offsets", "<i8") for side in _SIDES}
        self.source_lengths: Lengths = np.diff(self._offsets["source"]).astype(np.int32)
        self.target_lengths: Lengths = np.diff(self._offsets["target"]).astype(np.int32)
        self.corpora: list[int] = meta["corpora"]

    @classmethod
    def open(cls, folder: str | Path) -> TokenShards:
        """The shards that ``write_shards`` completed in ``folder``; DataError where they are not complete."""
        folder = Path(folder)
        try:
            meta = json.loads((folder / "meta.json").read_bytes())
            if meta["format"] != FORMAT:
                raise DataError(
                    f"{folder}: token shards of format {meta['format']}, expected {FORMAT}; "
                    "prepare the data again"
                )
            for name, size in meta["sizes"].items():
                if (folder / name).stat().st_size != size:
                    raise DataError(f"{folder / name}: is not {size} bytes long; prepare the data again")
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise DataError(f"{folder}: holds no complete token shards; prepare the data again") from None
        return cls(folder, meta)

    def __len__(self) -> int:
        return len(self.source_lengths)

    def source(self, index: SupportsIndex) -> Tokens:
        """The ids of one source, EOS included: a view of the mapped file."""
        return self._side("source", index)

    def target(self, index: SupportsIndex) -> Tokens:
        """The ids of one target, EOS included: a view of the mapped file."""
        return self._side("target", index)

    def padded(self, side: str, ids: npt.NDArray[np.int64], pad_id: int) -> npt.NDArray[np.int64]:
        """The ids of many pairs on one side as a rectangle, filled up on the right; EOS included."""
        offsets = self._offsets[side]
        starts = np.asarray(offsets[ids])
        lengths = np.asarray(offsets[ids + 1]) - starts
        rows = np.full((len(ids), int(lengths.max(initial=0))), pad_id, dtype=np.int64)
        ends = np.cumsum(lengths)
        places = np.arange(int(lengths.sum())) + np.repeat(starts - (ends - lengths), lengths)
        rows[np.arange(rows.shape[1]) < lengths[:, None]] = self._tokens[side][places]
        return rows

    def _side(self, side: str, index: SupportsIndex) -> Tokens:
        index = index.__index__()
        if not 0 <= index < len(self):
            raise IndexError(f"pair {index} of {len(self)}")
        offsets = self._offsets[side]
        view: Tokens = self._tokens[side][int(offsets[index]) : int(offsets[index + 1])]
        return view

    def __reduce__(self) -> tuple[Any, tuple[Path]]:
        return (TokenShards.open, (self.folder,))


def write_shards(
    pairs: Iterable[Pair], tokenizer: Tokenizer, folder: str | Path, report: Report, *, corpus: Any = None
) -> TokenShards:
    """The shards of the pairs that can be used; ``report`` is filled with what became of all of them.

    Dropped, each as a pair: an empty side (white space only), a side of more than ``report.limit`` tokens
    with its EOS. ``corpus`` is kept in ``meta.json`` to tell from what the shards were made. A few thousand
    pairs at a time are in memory. Raises DataError where nothing is left or the disk is full.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "meta.json").unlink(missing_ok=True)
        with _Writer(folder, tokenizer) as writer:
            rest = iter(pairs)
            while chunk := list(islice(rest, _CHUNK)):
                _add(chunk, writer, report)
        if not report.kept:
            why = "; ".join(report.lines()[1:]) or "the files are empty"
            raise DataError(f"none of {report.pairs:,} pairs for {folder.name} can be used: {why}")
        meta = {
            "format": FORMAT,
            "pairs": report.kept,
            "corpora": [writer.corpora[corpus] for corpus in range(max(writer.corpora) + 1)],
            "dtype": writer.dtype.str,
            "tokenizer": tokenizer.sha256,
            "vocabulary": tokenizer.vocabulary,
            "max_length": report.limit,
            "corpus": corpus,
            "sizes": {name: (folder / name).stat().st_size for name in writer.names},
            "report": report.to_dict(),
        }
        write_json(folder / "meta.json", meta)
    except OSError as error:
        raise DataError(f"{folder}: token shards cannot be written: {error.strerror or error}") from None
    return TokenShards.open(folder)


class _Writer:
    """The four files of a folder while they grow."""

    def __init__(self, folder: Path, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.dtype = np.dtype("<u2" if tokenizer.vocabulary <= 1 << 16 else "<u4")
        self.names = [f"{side}.{kind}" for side in _SIDES for kind in ("tokens", "offsets")]
        self._files: dict[str, IO[bytes]] = {name: (folder / name).open("wb") for name in self.names}
        self.corpora: Counter[int] = Counter()
        self._written = dict.fromkeys(_SIDES, 0)
        for side in _SIDES:
            self._files[f"{side}.offsets"].write(np.zeros(1, "<i8").tobytes())

    def add(self, side: str, encoded: Sequence[Sequence[int]]) -> npt.NDArray[Any]:
        """The ids that were appended, with an EOS after each sequence."""
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded)) + 1
        ends = np.cumsum(lengths)
        flat = np.full(int(lengths.sum()), EOS_ID, dtype=self.dtype)
        inside = np.ones(len(flat), dtype=np.bool_)
        inside[ends - 1] = False
        flat[inside] = np.fromiter(chain.from_iterable(encoded), self.dtype, len(flat) - len(encoded))
        self._files[f"{side}.tokens"].write(flat.tobytes())
        self._files[f"{side}.offsets"].write((ends + self._written[side]).astype("<i8").tobytes())
        self._written[side] += len(flat)
        return flat

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                for file in self._files.values():
                    file.flush()
                    os.fsync(file.fileno())
        finally:
            for file in self._files.values():
                file.close()


def _add(chunk: list[Pair], writer: _Writer, report: Report) -> None:
    report.pairs += len(chunk)
    report.extra_columns += sum(pair.extra_columns > 0 for pair in chunk)
    full = [pair for pair in chunk if pair.source.strip() and pair.target.strip()]
    report.empty += len(chunk) - len(full)
    sources = writer.tokenizer.encode_batch([pair.source for pair in full])
    targets = writer.tokenizer.encode_batch([pair.target for pair in full])
    report.longest_source = max(report.longest_source, 1 + max(map(len, sources), default=0))
    report.longest_target = max(report.longest_target, 1 + max(map(len, targets), default=0))
    fits = [max(len(s), len(t)) < report.limit for s, t in zip(sources, targets, strict=True)]
    report.too_long += len(fits) - sum(fits)
    report.kept += sum(fits)
    writer.corpora.update(pair.corpus for pair, fit in zip(full, fits, strict=True) if fit)
    spelled = writer.tokenizer.byte_pieces
    source = writer.add("source", [ids for ids, fit in zip(sources, fits, strict=True) if fit])
    target = writer.add("target", [ids for ids, fit in zip(targets, fits, strict=True) if fit])
    report.source_tokens += len(source)
    report.target_tokens += len(target)
    report.source_bytes += int(spelled[source].sum())
    report.target_bytes += int(spelled[target].sum())


def _mapped(path: Path, dtype: str) -> npt.NDArray[Any]:
    if path.stat().st_size == 0:
        return np.empty(0, dtype=dtype)
    return np.memmap(path, dtype=dtype, mode="r")
