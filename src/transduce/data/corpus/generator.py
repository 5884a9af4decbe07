"""The embedded corpus: any number of English-German sentence pairs from a seed, and its files.

Pairs come in blocks. A block is a pure function of the seed and its number, made from
``random.Random(integer).random()`` alone, whose sequence Python guarantees for every version and platform; so
the same seed gives the same bytes everywhere, a longer run begins with the shorter one, and memory stays flat
however many pairs are asked for. Pairs may repeat, as short sentences do sooner or later: what was made is
not remembered.

The German sentence itself decides which split its pair belongs to, by a hash, for any seed and any number of
pairs. The English sentence determines the German one, so two pairs that share either side share the German
side and lie in the same split: no sentence of one split ever occurs in another.
"""

from __future__ import annotations

import hashlib
import random
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count, islice
from pathlib import Path
from typing import IO

from transduce.counts import counted
from transduce.data.corpus.sentences import KINDS
from transduce.errors import UsageError
from transduce.files import atomic_writer, check_free

SPLITS = ("train", "valid", "test")
SIDES = ("en", "de")
_BLOCK = 100
_BLOCKS_BETWEEN_REPORTS = 10
PAIR_BYTES = 200  # generously, both sides together; the mean is about half of it
LEAST_WORDS = 4  # below, too few sentences are left for three disjoint splits
_HELD_OUT = 5  # percent of all sentences for each of validation and test

Pair = tuple[str, str]


def generate(pairs: int, seed: int) -> Iterator[Pair]:
    """``pairs`` sentence pairs (English, German), of all splits together."""
    return islice((pair for number in count() for pair in _block(seed, number)), pairs)


def split_of(german: str) -> str:
    """The split that a pair belongs to, whatever seed made it: ``train``, ``valid`` or ``test``."""
    bucket = zlib.crc32(german.encode()) % 100
    if bucket < _HELD_OUT:
        return "valid"
    return "test" if bucket < 2 * _HELD_OUT else "train"


def write_corpus(
    folder: str | Path,
    pairs: int,
    seed: int,
    valid: int = 1000,
    test: int = 1000,
    longest: int = 0,
    progress: Callable[[int], None] | None = None,
) -> list[Path]:
    """The six files written: ``{train,valid,test}.{en,de}`` in ``folder``, one sentence a line, UTF-8.

    ``pairs`` counts the training pairs, which may repeat; those of ``valid`` and ``test`` are distinct, and
    the seed alone decides them. Sentences of more than ``longest`` English words are left out (0: none are).
    Files that are there already are replaced, when all are complete.
    ``progress`` is called with the pairs written so far, of all splits together.
    """
    missing = {"train": pairs, "valid": valid, "test": test}
    for split, wanted in missing.items():
        least = 1 if split == "train" else 0
        if wanted < least:
            raise UsageError(f"{counted(wanted, f'{split} pair')}: ask for {least} or more")
    if longest and longest < LEAST_WORDS:
        most = counted(longest, "word")
        raise UsageError(f"sentences of at most {most}: ask for {LEAST_WORDS} or more, or 0 for all")
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise UsageError(f"{folder}: is a file; the corpus needs a folder of its own") from None
    check_free(folder, sum(missing.values()) * PAIR_BYTES, "ask for fewer pairs, or choose another folder")
    paths = {split: [folder / f"{split}.{side}" for side in SIDES] for split in SPLITS}
    with ExitStack() as stack:
        files = {s: [stack.enter_context(atomic_writer(path)) for path in paths[s]] for s in SPLITS}
        _fill(files, missing, _blocks(seed, longest), progress)
    return [path for split in SPLITS for path in paths[split]]


def _fill(
    files: dict[str, list[IO[bytes]]],
    missing: dict[str, int],
    blocks: Iterator[list[Pair]],
    progress: Callable[[int], None] | None,
) -> None:
    total = sum(missing.values())
    held_out: set[str] = set()
    for number, block in enumerate(blocks):
        found: dict[str, list[Pair]] = {split: [] for split in SPLITS}
        for pair in block:
            split = split_of(pair[1])
            if missing[split] == 0 or pair[1] in held_out:
                continue
            if split != "train":
                held_out.add(pair[1])
            missing[split] -= 1
            found[split].append(pair)
        for split, chosen in found.items():
            for side, file in enumerate(files[split]):
                file.write("".join([f"{pair[side]}\n" for pair in chosen]).encode())
        left = sum(missing.values())
        if progress is not None and (left == 0 or number % _BLOCKS_BETWEEN_REPORTS == 0):
            progress(total - left)
        if left == 0:
            return


def _blocks(seed: int, longest: int) -> Iterator[list[Pair]]:
    for number in count():
        block = _block(seed, number)
        yield [pair for pair in block if pair[0].count(" ") < longest] if longest else block


def _block(seed: int, number: int) -> list[Pair]:
    digest = hashlib.sha256(f"{seed}/{number}".encode()).digest()
    draw = random.Random(int.from_bytes(digest[:8], "big")).random
    kinds = _KINDS
    block = []
    for _ in range(_BLOCK):
        english, german, end = kinds[int(draw() * len(kinds))](draw)
        block.append((english[0].upper() + english[1:] + end, german[0].upper() + german[1:] + end))
    return block


_KINDS = tuple(kind for kind, weight in KINDS for _ in range(weight))
