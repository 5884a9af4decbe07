"""Token shards: the ids of a corpus on disk, memory-mapped, so that its size is no matter for the memory.

A folder holds ``source.tokens`` and ``target.tokens`` (little-endian uint16, uint32 for vocabularies above
65,536), one after another with the EOS at the end of each side; ``source.offsets`` and ``target.offsets``
(int64, one more than there are pairs); ``source.lengths`` and ``target.lengths`` (int32, EOS included); and
``meta.json``, which is written last: without it the folder is incomplete and is never read. Several corpora
lie one after another; ``meta.json`` counts the pairs of each. `transduce.data.shard_writer` writes them.
"""

from __future__ import annotations

import json
import mmap
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from transduce.data.encoding import LINKS, SIDES, Lengths, Tokens
from transduce.errors import DataError

FORMAT = 2
# Pairs that are read before the pages which they brought into this process are given back to the system.
_GIVEN_BACK_EVERY = 512
_SMALL = 1 << 26  # bytes: a file of so many may stay


class TokenShards:
    """The pairs of one corpus as ids; pickled as the name of its folder, never as its content."""

    def __init__(self, folder: Path, meta: dict[str, Any]) -> None:
        self.folder = folder
        self.meta = meta
        self._tokens = {side: _mapped(folder / f"{side}.tokens", meta["dtype"]) for side in SIDES}
        self._offsets = {side: _mapped(folder / f"{side}.offsets", "<i8") for side in SIDES}
        self.source_lengths: Lengths = self._lengths("source")
        self.target_lengths: Lengths = self._lengths("target")
        self.corpora: list[int] = meta["corpora"]
        self.aligned = bool(meta.get("aligned"))
        if self.aligned:
            self._tokens[LINKS] = _mapped(folder / f"{LINKS}.tokens", "<u2")
            self._offsets[LINKS] = _mapped(folder / f"{LINKS}.offsets", "<i8")
        self._read = 0

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

    def links(self, index: SupportsIndex) -> Tokens:
        """Which words of a pair belong together: source word, target word, and so on (see `data.links`)."""
        return self._side(LINKS, index)

    def padded(self, side: str, ids: npt.NDArray[np.int64], pad_id: int) -> npt.NDArray[np.int64]:
        """The ids of many pairs on one side as a rectangle, filled up on the right; EOS included."""
        offsets = self._offsets[side]
        self._give_back(len(ids))
        starts = np.asarray(offsets[ids])
        lengths = np.asarray(offsets[ids + 1]) - starts
        rows = np.full((len(ids), int(lengths.max(initial=0))), pad_id, dtype=np.int64)
        ends = np.cumsum(lengths)
        places = np.arange(int(lengths.sum())) + np.repeat(starts - (ends - lengths), lengths)
        rows[np.arange(rows.shape[1]) < lengths[:, None]] = self._tokens[side][places]
        return rows

    def _lengths(self, side: str) -> Lengths:
        """Mapped as well; shards of earlier versions lack the file, and theirs are held in memory."""
        name = f"{side}.lengths"
        if name in self.meta["sizes"]:
            return _mapped(self.folder / name, "<i4")
        return np.diff(self._offsets[side]).astype(np.int32)

    def _give_back(self, pairs: int) -> None:
        """Nothing; after so many pairs more, no pages of large files are counted as this process's memory.

        They stay in the cache of the system, which may need the room for others: the files are read at random
        places, so all of them would be ours sooner or later.
        """
        self._read += pairs
        if self._read >= _GIVEN_BACK_EVERY and hasattr(mmap, "MADV_DONTNEED"):
            self._read = 0
            for array in (*self._tokens.values(), *self._offsets.values()):
                give_back(array)

    def _side(self, side: str, index: SupportsIndex) -> Tokens:
        index = index.__index__()
        if not 0 <= index < len(self):
            raise IndexError(f"pair {index} of {len(self)}")
        offsets = self._offsets[side]
        view: Tokens = self._tokens[side][int(offsets[index]) : int(offsets[index + 1])]
        return view

    def __reduce__(self) -> tuple[Any, tuple[Path]]:
        return (TokenShards.open, (self.folder,))


def _mapped(path: Path, dtype: str) -> npt.NDArray[Any]:
    if path.stat().st_size == 0:
        return np.empty(0, dtype=dtype)
    return np.memmap(path, dtype=dtype, mode="r")


def give_back(array: npt.NDArray[Any]) -> None:
    """Nothing; where ``array`` is a large file that is mapped, its pages are no longer in our memory."""
    mapped = getattr(array, "_mmap", None) or getattr(array.base, "_mmap", None)
    if mapped is not None and array.nbytes > _SMALL and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)
