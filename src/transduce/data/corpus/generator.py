"""The embedded corpus: any number of English-German sentence pairs from a seed, and its files.

Pairs come in blocks. A block is a pure function of (seed, stream, block number), made from
``random.Random(integer).random()`` alone, whose sequence Python guarantees for every version and platform;
so the same seed gives the same bytes everywhere, and memory stays flat however many pairs are asked for.

The split is decided by the German sentence itself: a hash puts it into training, validation or test, for any
seed and any number of pairs. The English sentence determines the German one, so two pairs that share either
side share the German side and lie in the same split: no sentence of one split ever occurs in another.
"""

from __future__ import annotations

import hashlib
import random
import zlib
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from transduce.data.corpus.sentences import KINDS
from transduce.errors import UsageError
from transduce.files import atomic_writer

SPLITS = ("train", "valid", "test")
_BLOCK = 1000
_HELD_OUT = 5  # percent of all sentences for each of validation and test
_REPORT_EVERY = 10_000


def generate(pairs: int, seed: int) -> Iterator[tuple[str, str]]:
    """``pairs`` sentence pairs (English, German) of all splits; a longer run begins with the shorter one.

    Pairs may repeat (short sentences do, sooner or later): nothing that was made is remembered.
    """
    return islice(_stream(seed, "all"), pairs)


def split_of(german: str) -> str:
    """The split that a pair belongs to, whatever seed made it: ``train``, ``valid`` or ``test``."""
    bucket = zlib.crc32(german.encode()) % 100
    if bucket < _HELD_OUT:
        return "valid"
    return "test" if bucket < 2 * _HELD_OUT else "train"


def generate_split(split: str, pairs: int, seed: int) -> Iterator[tuple[str, str]]:
    """``pairs`` pairs of one split. Those of ``valid`` and ``test`` are distinct, those of ``train`` may repeat."""
    found = (pair for pair in _stream(seed, split) if split_of(pair[1]) == split)
    return islice(found if split == "train" else _distinct(found), pairs)


def write_corpus(
    folder: str | Path,
    pairs: int,
    seed: int,
    valid: int = 1000,
    test: int = 1000,
    progress: Callable[[str, int], None] | None = None,
) -> list[Path]:
    """The six files written: ``{train,valid,test}.{en,de}`` in ``folder``, one sentence a line, UTF-8.

    ``progress`` is called with the split and the pairs written so far, every 10,000 pairs and at the end of
    each split. The validation and test sentences depend on the seed alone, not on ``pairs``.
    """
    counts = {"train": pairs, "valid": valid, "test": test}
    for split, count in counts.items():
        least = 1 if split == "train" else 0
        if count < least:
            raise UsageError(f"{split} pairs: {count} is too few; ask for {least} or more")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for split in reversed(SPLITS):
        paths = folder / f"{split}.en", folder / f"{split}.de"
        _write_split(paths, split, counts[split], seed, progress)
        written.extend(paths)
    return written


def _write_split(
    paths: tuple[Path, Path], split: str, pairs: int, seed: int, progress: Callable[[str, int], None] | None
) -> None:
    with atomic_writer(paths[0]) as english_file, atomic_writer(paths[1]) as german_file:
        found = generate_split(split, pairs, seed)
        done = 0
        while chunk := list(islice(found, _REPORT_EVERY)):
            english_file.write("".join([f"{english}\n" for english, _ in chunk]).encode())
            german_file.write("".join([f"{german}\n" for _, german in chunk]).encode())
            done += len(chunk)
            if progress is not None:
                progress(split, done)


def _stream(seed: int, name: str) -> Iterator[tuple[str, str]]:
    kinds = [kind for kind, weight in KINDS for _ in range(weight)]
    block = 0
    while True:
        digest = hashlib.sha256(f"{seed}/{name}/{block}".encode()).digest()
        draw = random.Random(int.from_bytes(digest[:8], "big")).random
        for _ in range(_BLOCK):
            english, german, end = kinds[int(draw() * len(kinds))](draw)
            yield english[0].upper() + english[1:] + end, german[0].upper() + german[1:] + end
        block += 1


def _distinct(pairs: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for pair in pairs:
        if pair[1] not in seen:
            seen.add(pair[1])
            yield pair
