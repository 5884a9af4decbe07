"""Guards against repetition: no n-gram twice, and a penalty on tokens that the output has already."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from transduce.decoding.guide import NEVER


@dataclass(frozen=True)
class NoRepeatedNgram:
    """Forbids every token that would end an n-gram (of ``n`` tokens) that the output has already."""

    n: int
    tokens: Int[Tensor, "rows length"]

    @classmethod
    def start(cls, n: int, sentences: int, device: str | torch.device = "cpu") -> NoRepeatedNgram:
        """The guide of so many sentences of which nothing is chosen yet."""
        return cls(n, torch.zeros((sentences, 0), dtype=torch.long, device=device))

    def guided(self, log_p: Float[Tensor, "rows vocabulary"]) -> Float[Tensor, "rows vocabulary"]:
        """See `Guide.guided`."""
        if self.tokens.shape[1] < self.n:
            return log_p
        earlier = self.tokens.unfold(1, self.n, 1)
        latest = self.tokens[:, self.tokens.shape[1] - self.n + 1 :]
        again = (earlier[:, :, :-1] == latest[:, None]).all(2)
        # A token is forbidden if any of its n-grams is there again: the least of 0 and minus infinity.
        bans = torch.zeros(again.shape, dtype=log_p.dtype, device=log_p.device).masked_fill(again, NEVER)
        return log_p + torch.zeros_like(log_p).scatter_reduce(1, earlier[:, :, -1], bans, "amin")

    def extended(self, rows: Int[Tensor, " new"], tokens: Int[Tensor, " new"]) -> NoRepeatedNgram:
        """See `Guide.extended`."""
        return NoRepeatedNgram(self.n, torch.cat([self.tokens[rows], tokens[:, None]], 1))


@dataclass(frozen=True)
class RepetitionPenalty:
    """Raises the probability of each token that the output has already to the power ``penalty``.

    The result is normalised to the total that it had. Source: Keskar et al. 2019 (CTRL), which divides
    logits; a power of the probability does not depend on where the logits' zero lies.
    """

    penalty: float
    seen: Bool[Tensor, "rows vocabulary"]

    @classmethod
    def start(
        cls, penalty: float, sentences: int, vocabulary: int, device: str | torch.device = "cpu"
    ) -> RepetitionPenalty:
        """The guide of so many sentences of which nothing is chosen yet."""
        return cls(penalty, torch.zeros((sentences, vocabulary), dtype=torch.bool, device=device))

    def guided(self, log_p: Float[Tensor, "rows vocabulary"]) -> Float[Tensor, "rows vocabulary"]:
        """See `Guide.guided`."""
        return with_total_of(log_p, torch.where(self.seen, log_p * self.penalty, log_p))

    def extended(self, rows: Int[Tensor, " new"], tokens: Int[Tensor, " new"]) -> RepetitionPenalty:
        """See `Guide.extended`."""
        return RepetitionPenalty(self.penalty, self.seen[rows].scatter(1, tokens[:, None], True))


def with_total_of(
    log_p: Float[Tensor, "rows vocabulary"], changed: Float[Tensor, "rows vocabulary"]
) -> Float[Tensor, "rows vocabulary"]:
    """``changed``, normalised so that each row's probabilities add up to what those of ``log_p`` do."""
    return changed + (log_p.logsumexp(1, keepdim=True) - changed.logsumexp(1, keepdim=True))
