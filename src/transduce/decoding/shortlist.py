"""The tokens that the output of a sentence may hold, chosen by the sentence's own tokens.

Most of the vocabulary is never a translation of a given sentence. What may be one is learned from parallel
text and kept beside the model in ``shortlist.safetensors``, together with the checksum of the tokenizer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import safetensors
import safetensors.numpy

from transduce.bundle import load_tokenizer
from transduce.counts import counted
from transduce.data.corpora import read_corpora
from transduce.data.lexicon import KEPT, Sentences, learn_lexicon
from transduce.data.subwords import reservoir
from transduce.data.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID, Tokenizer
from transduce.errors import BundleError, DataError, UsageError
from transduce.files import write_bytes

FILE, FORMAT = "shortlist.safetensors", 1
# Pairs that are learned from; of more text so many are drawn.
SAMPLE = 500_000
# The work on a pair grows with the product of its lengths; longer ones are left out.
_LONGEST = 200
_ENCODED_AT_ONCE = 10_000
_AGAIN = "make it again with `transduce shortlist`"


@dataclass(frozen=True)
class Shortlist:
    """``candidates`` has a row for each source id (0 where it has no more); ``frequent`` are always there."""

    candidates: npt.NDArray[np.int32]
    frequent: npt.NDArray[np.int32]
    byte_pieces: npt.NDArray[np.bool_]

    def tokens(self, source: Sequence[int]) -> npt.NDArray[np.bool_]:
        """Which tokens the output may hold: what these ids may become, the ids, and what always may."""
        allowed = self._always.copy()
        ids = np.asarray(source, np.int64)
        allowed[self.candidates[ids]] = True
        allowed[ids] = True
        return allowed & self.every

    @cached_property
    def every(self) -> npt.NDArray[np.bool_]:
        """The whole vocabulary, of which an output may hold all but the reserved ids."""
        every = np.ones(len(self.byte_pieces), np.bool_)
        every[[PAD_ID, BOS_ID, UNK_ID]] = False
        return every

    @cached_property
    def _always(self) -> npt.NDArray[np.bool_]:
        """The end, the bytes, which spell whatever is missing, and the frequent tokens."""
        always = self.byte_pieces.copy()
        always[self.frequent] = True
        always[EOS_ID] = True
        return always


@dataclass(frozen=True)
class Learned:
    """A shortlist, and what it was learned from; ``left_out`` pairs had an empty or a very long side."""

    shortlist: Shortlist
    pairs: int
    left_out: int

    def __str__(self) -> str:
        known = int((self.shortlist.candidates > 0).any(1).sum())
        rest = (
            f" ({self.left_out:,} left out: a side empty or above {_LONGEST} tokens)" if self.left_out else ""
        )
        most = self.shortlist.candidates.shape[1]
        return (
            f"up to {most} candidates for each of {counted(known, 'source token')}, from "
            f"{counted(self.pairs, 'pair')}{rest}"
        )


def make_shortlist(
    folder: str | Path,
    source: Sequence[str | Path],
    target: Sequence[str | Path],
    *,
    candidates: int = 50,
    frequent: int = 100,
    seed: int = 0,
    told: Callable[[str], None] | None = None,
) -> Learned:
    """What was learned from files that translate each other line by line, and is in the folder now.

    The model in ``folder`` takes it with ``shortlist=True``. ``told`` is called with lines that say how far
    it is. Raises DataError where two files have different numbers of lines, BundleError for a folder that is
    no model.
    """
    if len(source) != len(target) or not source:
        raise UsageError(
            f"{len(source)} source and {counted(len(target), 'target file')}; name as many of one as of the "
            "other, at least one"
        )
    tokenizer = load_tokenizer(folder)
    read = read_corpora([str(path) for path in source], [str(path) for path in target])
    learned = learn_shortlist(
        ((pair.source, pair.target) for pair in read),
        tokenizer,
        candidates=candidates,
        frequent=frequent,
        seed=seed,
        told=told,
    )
    write_shortlist(Path(folder) / FILE, learned.shortlist, tokenizer)
    return learned


def learn_shortlist(
    pairs: Iterable[tuple[str, str]],
    tokenizer: Tokenizer,
    *,
    candidates: int = 50,
    frequent: int = 100,
    seed: int = 0,
    told: Callable[[str], None] | None = None,
) -> Learned:
    """The shortlist of ``candidates`` for each source id and so many ``frequent`` target tokens.

    At most 500,000 pairs, drawn by the seed, are learned from. Raises DataError where no pair is left.
    """
    if not 1 <= candidates <= KEPT:
        raise UsageError(f"candidates is {candidates}; it must lie between 1 and {KEPT}")
    if frequent < 0:
        raise UsageError(f"frequent is {frequent}; it must be 0 or more")
    drawn = reservoir(pairs, SAMPLE, seed)
    sources: list[npt.NDArray[np.int32]] = []
    targets: list[npt.NDArray[np.int32]] = []
    for first in range(0, len(drawn), _ENCODED_AT_ONCE):
        some = drawn[first : first + _ENCODED_AT_ONCE]
        sides = [
            encode([pair[side].strip() for pair in some])
            for side, encode in enumerate((tokenizer.encode_batch, tokenizer.encode_target_batch))
        ]
        for one, other in zip(*sides, strict=True):
            if one and other and max(len(one), len(other)) <= _LONGEST:
                # The padding's id stands for no word at all, which target tokens may come from as well.
                sources.append(np.asarray([PAD_ID, *one], np.int32))
                targets.append(np.asarray(other, np.int32))
    if not sources:
        raise DataError(
            f"there is nothing to learn a shortlist from: of {counted(len(drawn), 'pair')} each has an empty "
            f"side or one above {_LONGEST} tokens"
        )

    def rounds(number: int) -> None:
        if told is not None:
            told(f"round {number} of 5 over {counted(len(sources), 'pair')}")

    target = Sentences.of(targets)
    lexicon = learn_lexicon(Sentences.of(sources), target, tokenizer.vocabulary, rounds=5, told=rounds)
    counts = np.bincount(target.ids, minlength=tokenizer.vocabulary)
    counts[tokenizer.byte_pieces] = 0
    order = np.argsort(-counts, kind="stable")[: min(frequent, np.count_nonzero(counts))]
    kept = np.ascontiguousarray(lexicon.targets[:, :candidates])
    shortlist = Shortlist(kept, np.sort(order).astype(np.int32), tokenizer.byte_pieces)
    return Learned(shortlist, len(sources), len(drawn) - len(sources))


def write_shortlist(path: str | Path, shortlist: Shortlist, tokenizer: Tokenizer) -> None:
    """Nothing; the file says afterwards which tokenizer's ids these are, and its own checksum."""
    tensors = {"candidates": shortlist.candidates, "frequent": shortlist.frequent}
    about = {"format": FORMAT, "tokenizer": tokenizer.sha256, "sha256": _digest(tensors)}
    write_bytes(path, safetensors.numpy.save(tensors, {"shortlist": json.dumps(about)}))


def read_shortlist(folder: str | Path, tokenizer: Tokenizer) -> Shortlist:
    """The shortlist in a model folder; BundleError where it is missing, damaged or of another tokenizer."""
    path = Path(folder) / FILE
    if not path.exists():
        raise BundleError(
            f"{path}: there is no shortlist beside this model; make one with "
            f"`transduce shortlist {folder} --source FILE --target FILE`"
        )
    try:
        with safetensors.safe_open(path, "numpy") as file:
            about = json.loads((file.metadata() or {}).get("shortlist", "{}"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
    except OSError as error:
        raise BundleError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (safetensors.SafetensorError, TypeError, ValueError) as error:
        raise BundleError(f"{path}: is damaged ({error}); {_AGAIN}") from None
    version = about.get("format") if isinstance(about, dict) else None
    if version != FORMAT:
        raise BundleError(
            f"{path}: format is {version!r}, this version reads {FORMAT}; upgrade with "
            f"`pip install -U transduce`, or {_AGAIN}"
        )
    if about.get("tokenizer") != tokenizer.sha256:
        raise BundleError(f"{path}: belongs to another tokenizer than this model's; {_AGAIN}")
    if about.get("sha256") != _digest(tensors):
        raise BundleError(f"{path}: is damaged (other checksum); {_AGAIN}")
    candidates, frequent = tensors.get("candidates"), tensors.get("frequent")
    if (
        candidates is None
        or frequent is None
        or candidates.ndim != 2
        or len(candidates) != tokenizer.vocabulary
        or not _are_ids(candidates, tokenizer)
        or not _are_ids(frequent, tokenizer)
    ):
        raise BundleError(f"{path}: does not hold ids of this model's vocabulary; {_AGAIN}")
    return Shortlist(candidates, frequent, tokenizer.byte_pieces)


def _are_ids(array: npt.NDArray[np.int32], tokenizer: Tokenizer) -> bool:
    if array.dtype != np.int32:
        return False
    return not array.size or bool(((array >= 0) & (array < tokenizer.vocabulary)).all())


def _digest(tensors: dict[str, npt.NDArray[np.int32]]) -> str:
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(f"{name} {tensors[name].shape} {tensors[name].dtype}\n".encode())
        digest.update(np.ascontiguousarray(tensors[name]).tobytes())
    return digest.hexdigest()
