"""The continuations that a search step chooses from, ranked so that ties always fall the same way."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

# Scores that lie no further apart count as equal. Sums in another order differ by less.
TIE = 1e-6
_NEVER = float("-inf")


@dataclass(frozen=True)
class Candidates:
    """Continuations of each sentence, best first; log P of minus infinity marks one that does not exist."""

    log_p: Float[Tensor, "sentences candidates"]
    tokens: Int[Tensor, "sentences candidates"]
    parents: Int[Tensor, "sentences candidates"]

    def pick(self, index: Int[Tensor, "sentences picked"]) -> Candidates:
        """The candidates at ``index``, sentence by sentence."""
        return Candidates(
            self.log_p.gather(1, index), self.tokens.gather(1, index), self.parents.gather(1, index)
        )

    def first(self, count: int) -> Candidates:
        """The best ``count`` of each sentence."""
        return Candidates(self.log_p[:, :count], self.tokens[:, :count], self.parents[:, :count])


def ranking(
    scores: Float[Tensor, "sentences n"], preference: Int[Tensor, "#sentences n"], span: int
) -> Int[Tensor, "sentences n"]:
    """The order of ``scores``, best first; among equals (see TIE) the lower ``preference`` (< span) leads."""
    falling, index = scores.sort(dim=1, descending=True)
    # Equals form a run: a new one begins wherever the next score is clearly lower.
    run = pad((falling[:, :-1] - falling[:, 1:] > TIE).cumsum(1), (1, 0))
    return index.gather(1, (run * span + preference.expand_as(index).gather(1, index)).argsort(1))


def best_tokens(
    logits: Float[Tensor, "rows vocabulary"], count: int, certain: int
) -> tuple[Float[Tensor, "rows count"], Int[Tensor, "rows count"]]:
    """The ``count`` highest logits of each row and their tokens.

    Where the cut runs through equals that reach up to rank ``certain``, the lower tokens are taken; further
    down it does not matter which of them a search sees.
    """
    values, tokens = logits.topk(count, dim=1)
    if count == logits.shape[1]:
        return values, tokens
    tied = values[:, certain] - values[:, -1] <= TIE
    if bool(tied.any()):
        rows = tied.nonzero().squeeze(1)
        some, last = logits[rows], values[rows, -1:]
        size = logits.shape[1]
        wanted = torch.arange(size, 0, -1, device=logits.device).expand_as(some)
        wanted = wanted.masked_fill(some - last > TIE, size + 1).masked_fill(last - some > TIE, 0)
        chosen = wanted.topk(count, dim=1).indices
        values[rows], tokens[rows] = some.gather(1, chosen), chosen
    return values, tokens


def continuations(
    logits: Float[Tensor, "rows vocabulary"],
    alive: Float[Tensor, "sentences slots"],
    *,
    beam: int,
    never: Int[Tensor, " ids"],
    not_yet: int | None,
) -> tuple[Candidates, Bool[Tensor, ""]]:
    """The 2 x ``beam`` best continuations of each sentence's hypotheses, and whether all logits were usable.

    ``logits`` is overwritten. The ids ``never`` are taken out before the softmax; the id ``not_yet`` is not
    chosen either, but keeps its probability. A beam of 1 has one candidate: greedy search. Otherwise an end
    for every hypothesis may be among the candidates and there are still enough to fill the beam.
    """
    if len(never):
        logits.index_fill_(1, never, _NEVER)
    gains, tokens, usable = _best_gains(logits, beam, not_yet, alive.dtype)
    best = ranked(gains, tokens, alive, beam=beam, vocabulary=logits.shape[1])
    return best, (usable.view_as(alive) | (alive == _NEVER)).all()


def ranked(
    gains: Float[Tensor, "rows count"],
    tokens: Int[Tensor, "rows count"],
    alive: Float[Tensor, "sentences slots"],
    *,
    beam: int,
    vocabulary: int,
) -> Candidates:
    """The 2 x ``beam`` best of each sentence's ``tokens`` that add ``gains`` to its hypotheses' log P."""
    slots = alive.shape[1]
    shape = len(alive), slots, tokens.shape[1]
    dead = alive == _NEVER
    log_p = torch.where(dead[:, :, None], _NEVER, alive[:, :, None] + gains.view(shape)).flatten(1)
    parents = torch.arange(slots, device=tokens.device)[:, None].expand(shape).flatten(1)
    every = Candidates(log_p, tokens.view(len(alive), -1), parents)
    order = ranking(log_p, every.tokens * slots + parents, vocabulary * slots)
    best = every.pick(order[:, : 2 * beam if beam > 1 else 1])
    missing = beam - best.log_p.shape[1]
    if missing > 0:  # a vocabulary smaller than the beam
        log_p = pad(best.log_p, (0, missing), value=_NEVER)
        best = Candidates(log_p, pad(best.tokens, (0, missing)), pad(best.parents, (0, missing)))
    return best


def _best_gains(
    logits: Float[Tensor, "rows vocabulary"], beam: int, not_yet: int | None, dtype: torch.dtype
) -> tuple[Float[Tensor, "rows count"], Int[Tensor, "rows count"], Bool[Tensor, " rows"]]:
    """Log P of each row's best tokens, the tokens, and which rows are finite.

    log P = logit - top - log(sum(exp(logits - top))), so that only the best are ever brought into that form.
    """
    count = min(max(2 * beam, 4), logits.shape[1])
    held_back = None if not_yet is None else logits[:, not_yet, None].clone()
    if not_yet is not None:
        logits[:, not_yet] = _NEVER
    values, tokens = best_tokens(logits, count, min(beam, count - 1))
    top = values.amax(1, keepdim=True)
    if not_yet is not None and held_back is not None:
        logits[:, not_yet, None] = held_back
        top = torch.maximum(top, held_back)
    rest = logits.sub_(top).exp_().sum(1, keepdim=True).log_()
    return values.to(dtype) - top.to(dtype) - rest.to(dtype), tokens, torch.isfinite(rest).squeeze(1)
