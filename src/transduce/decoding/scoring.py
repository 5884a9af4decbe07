"""Force-decoding: how probable a model finds a given translation, token by token.

The distribution is that of the search: the reserved ids that no output holds have no probability.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from transduce.decoding.batches import batches
from transduce.decoding.hypothesis import not_finite
from transduce.decoding.pairs import Ids, Parts


@dataclass(frozen=True)
class PairScore:
    """What a model thinks of one pair; the natural logarithms of its tokens' probabilities.

    The end is one of the tokens. ``log_probability`` is their sum: 0 with no token for a pair of empty
    lines, minus infinity with no token for text that translates nothing.
    """

    source: str
    target: str
    log_probability: float
    tokens: tuple[int, ...]
    token_log_probabilities: tuple[float, ...]
    warnings: tuple[str, ...] = ()

    @property
    def length(self) -> int:
        """The number of tokens, ends counted."""
        return len(self.tokens)

    @property
    def perplexity(self) -> float | None:
        """exp(-log P / tokens), the end counted; None where there is no token to predict."""
        if not self.tokens:
            return None if self.log_probability == 0 else math.inf
        return _perplexity(self.log_probability, self.length)


@dataclass(frozen=True)
class Total:
    """The sums over many pairs; those of probability 0 are counted in ``impossible`` only."""

    lines: int = 0
    impossible: int = 0
    tokens: int = 0
    log_probability: float = 0.0

    @property
    def perplexity(self) -> float | None:
        """exp(-log P / tokens) of all tokens together; None where there is none."""
        return _perplexity(self.log_probability, self.tokens) if self.tokens else None

    def plus(self, scores: Iterable[PairScore]) -> Total:
        """The sums with these pairs as well."""
        scores = list(scores)
        real = [score for score in scores if score.log_probability > -math.inf]
        return Total(
            self.lines + len(scores),
            self.impossible + len(scores) - len(real),
            self.tokens + sum(score.length for score in real),
            self.log_probability + sum(score.log_probability for score in real),
        )


def assemble_score(parts: Parts, found: Sequence[Sequence[float]]) -> PairScore:
    """The score of a pair from the log probabilities of its parts' tokens."""
    gains = tuple(gain for part in found for gain in part)
    return PairScore(
        source=parts.source,
        target=parts.target,
        log_probability=sum(gains, 0.0) if parts.possible else -math.inf,
        tokens=tuple(token for part in parts.targets for token in part),
        token_log_probabilities=gains,
        warnings=parts.warnings,
    )


def score_parts(
    read: Sequence[Parts],
    force_decode: Callable[[Sequence[Ids], Sequence[Ids]], list[list[float]]],
    batch_tokens: int,
    progress: Callable[[int, int], None] | None,
) -> list[PairScore]:
    """The score of each pair; ``force_decode`` gives log P of the tokens of a batch of sources and targets.

    ``progress`` is called with the numbers of finished and of all pairs.
    """
    places = [(line, part) for line, parts in enumerate(read) for part in range(len(parts.sources))]
    found: list[list[list[float]]] = [[[] for _ in parts.sources] for parts in read]
    lengths = [max(len(read[i].sources[part]), len(read[i].targets[part])) for i, part in places]
    done = 0
    for batch in batches(lengths, batch_tokens, 1):
        chosen = [places[i] for i in batch]
        gains = force_decode(
            [read[line].sources[part] for line, part in chosen],
            [read[line].targets[part] for line, part in chosen],
        )
        for (line, part), gain in zip(chosen, gains, strict=True):
            found[line][part] = gain
        done += len(batch)
        if progress is not None:
            progress(len(read) * done // len(places), len(read))
    return [assemble_score(parts, gains) for parts, gains in zip(read, found, strict=True)]


def shifted(targets: Sequence[Ids], start_id: int, pad_id: int) -> tuple[Tensor, Tensor]:
    """The decoder's input and what it should say, [pairs, longest], padded at the end."""
    target_out = torch.nn.utils.rnn.pad_sequence(
        [torch.tensor(target) for target in targets], batch_first=True, padding_value=pad_id
    )
    start = torch.full((len(targets), 1), start_id)
    return torch.cat([start, target_out[:, :-1]], 1), target_out


def token_log_probabilities(
    logits: Float[Tensor, "pairs length vocabulary"],
    target_out: Int[Tensor, "pairs length"],
    lengths: Sequence[int],
    forbidden: Sequence[int],
    *,
    unknown: int | None = None,
) -> list[list[float]]:
    """Log P of the first ``lengths`` tokens of each target; ``logits`` is overwritten.

    The ids in ``forbidden`` have no probability, as in the search. A target of an imported model may hold
    what its vocabulary lacks, as the id ``unknown``: where it stands, its probability is that beside all that
    an output may hold. Raises TransduceError where the logits of a token that counts are not finite.
    """
    logits = logits.float() if logits.dtype in (torch.bfloat16, torch.float16) else logits
    own = logits.gather(2, target_out[..., None]).squeeze(2)
    if forbidden:
        logits[..., list(forbidden)] = float("-inf")
    chosen, total = logits.gather(2, target_out[..., None]).squeeze(2), torch.logsumexp(logits, 2)
    if unknown is not None:
        there = target_out.eq(unknown)
        chosen, total = (
            torch.where(there, own, chosen),
            torch.where(there, torch.logaddexp(total, own), total),
        )
    # Summed in float64 later; a difference of two float32 is as exact as the logits are.
    gains = (chosen - total).double().tolist()
    found = [row[:length] for row, length in zip(gains, lengths, strict=True)]
    for row in found:
        for at, gain in enumerate(row, 1):
            if not math.isfinite(gain):
                raise not_finite(at)
    return found


def _perplexity(log_probability: float, tokens: int) -> float:
    try:
        return math.exp(-log_probability / tokens)
    except OverflowError:
        return math.inf
