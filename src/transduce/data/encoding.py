"""A few thousand pairs at a time from text to ids: the work that processes share out among themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from transduce.data.corpora import HeldOut
from transduce.data.formats.pair import Pair
from transduce.data.links import links_of
from transduce.data.report import Report
from transduce.data.tags import Label, tags_of
from transduce.data.tokenizer import EOS_ID, Tokenizer

SIDES = ("source", "target")
LINKS = "links"
"""A third sequence of a pair, where its words are linked: source word, target word, source word, ..."""

Tokens = npt.NDArray[np.uint16] | npt.NDArray[np.uint32]
Lengths = npt.NDArray[np.int32]


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """The pairs of one chunk that are used, as ids, and the counts of that chunk alone.

    ``tokens`` has both sides, one sequence after another, each with its EOS; ``lengths`` counts the EOS.
    """

    tokens: dict[str, Tokens]
    lengths: dict[str, Lengths]
    corpora: Counter[int]
    report: Report


def token_type(vocabulary: int) -> np.dtype[np.uint16] | np.dtype[np.uint32]:
    """What holds an id on disk: little-endian uint16, uint32 for vocabularies above 65,536."""
    return np.dtype("<u2") if vocabulary <= 1 << 16 else np.dtype("<u4")


class Encoder:
    """Chunks of pairs to ids; a value that can be sent to other processes.

    Left out, each as a pair and counted: what is in ``held_out``, an empty side (white space only), a side of
    more than ``limit`` tokens with its EOS. ``threads`` work on a chunk; 0 is all cores.
    ``aligned`` keeps the links of the pairs' words as well.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        limit: int,
        held_out: Sequence[Pair] = (),
        *,
        threads: int = 0,
        aligned: bool = False,
    ) -> None:
        self.tokenizer, self.limit, self.threads = tokenizer, limit, threads
        self.held_out, self.aligned = HeldOut(held_out), aligned

    def __call__(self, chunk: Sequence[Pair]) -> Encoded:
        """The ids of the pairs that are used, in their order."""
        report = Report(limit=self.limit, pairs=len(chunk))
        rest = [pair for pair in chunk if pair not in self.held_out]
        report.repeats_held_out = len(chunk) - len(rest)
        report.extra_columns = sum(pair.extra_columns > 0 for pair in rest)
        full = [pair for pair in rest if pair.source.strip() and pair.target.strip()]
        report.empty = len(rest) - len(full)
        sources = self.tokenizer.encode_batch([pair.source for pair in full], threads=self.threads)
        if self.tokenizer.tags:
            tags = [self.tokenizer.tag_ids(tags_of(Label(pair.languages, pair.domain))) for pair in full]
            sources = [tag + ids for tag, ids in zip(tags, sources, strict=True)]
        targets = self.tokenizer.encode_target_batch([pair.target for pair in full], threads=self.threads)
        report.longest_source = 1 + max(map(len, sources), default=0)
        report.longest_target = 1 + max(map(len, targets), default=0)
        fits = [max(len(s), len(t)) < self.limit for s, t in zip(sources, targets, strict=True)]
        report.kept = sum(fits)
        report.too_long = len(fits) - report.kept
        used = {
            side: self._flat([ids for ids, fit in zip(encoded, fits, strict=True) if fit])
            for side, encoded in zip(SIDES, (sources, targets), strict=True)
        }
        if self.aligned:
            links = [links_of(pair) for pair, fit in zip(full, fits, strict=True) if fit]
            flat = np.concatenate([np.zeros(0, dtype="<u2"), *links]).astype("<u2")
            used[LINKS] = flat, np.fromiter(map(len, links), np.int32, len(links))
        spelled = self.tokenizer.byte_pieces
        (source, _), (target, _) = used["source"], used["target"]
        report.source_tokens, report.target_tokens = len(source), len(target)
        report.source_bytes, report.target_bytes = int(spelled[source].sum()), int(spelled[target].sum())
        return Encoded(
            tokens={side: tokens for side, (tokens, _) in used.items()},
            lengths={side: lengths for side, (_, lengths) in used.items()},
            corpora=Counter(pair.corpus for pair, fit in zip(full, fits, strict=True) if fit),
            report=report,
        )

    def _flat(self, encoded: Sequence[Sequence[int]]) -> tuple[Tokens, Lengths]:
        """The sequences one after another, an EOS behind each; and their lengths."""
        dtype = token_type(self.tokenizer.vocabulary)
        lengths = np.fromiter(map(len, encoded), np.int32, len(encoded)) + np.int32(1)
        flat = np.full(int(lengths.sum(dtype=np.int64)), EOS_ID, dtype=dtype)
        inside = np.ones(len(flat), dtype=np.bool_)
        inside[np.cumsum(lengths, dtype=np.int64) - 1] = False
        flat[inside] = np.fromiter(chain.from_iterable(encoded), dtype, len(flat) - len(encoded))
        return flat, lengths
