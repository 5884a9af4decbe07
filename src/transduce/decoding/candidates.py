"""The continuations that a search step chooses from, ranked so that ties always fall the same way."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

# Scores that lie no further apart count as equal. Sums in another order differ by less.
TIE = 1e-6
# Rows of logits are looked through in blocks of this many.
BLOCK = 64
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


@dataclass(frozen=True)
class Scored:
    """Logits from which what is forbidden is out already, and the logarithm of their exponentials' sum.

    Rows may be wider than the vocabulary; what is beyond it is minus infinity. Both belong to the search.
    Where not all tokens can be chosen, ``tokens`` says which the columns of each sentence are, ascending; a
    column that only fills the row up is minus infinity, and any token stands there.
    """

    logits: Float[Tensor, "rows wide"]
    log_sum: Float[Tensor, "rows 1"]
    vocabulary: int
    tokens: Int[Tensor, "sentences wide"] | None = None

    def log_p(self) -> Float[Tensor, "rows vocabulary"]:
        """Log P of every token."""
        if self.tokens is None:
            return self.logits[:, : self.vocabulary] - self.log_sum
        own = self.logits - self.log_sum
        index = self.tokens.repeat_interleave(len(own) // len(self.tokens), 0)
        nowhere = own.new_full((len(own), self.vocabulary), _NEVER)
        return nowhere.scatter_reduce_(1, index, own, "amax")

    def forbid(self, token: int) -> None:
        """Nothing; the token is not chosen, but its probability stays in the sum."""
        if self.tokens is None:
            self.logits[:, token] = _NEVER
        else:
            grouped = self.logits.view(len(self.tokens), -1, self.logits.shape[1])
            grouped.masked_fill_((self.tokens == token)[:, None], _NEVER)

    def at(self, columns: Int[Tensor, "rows count"]) -> Int[Tensor, "rows count"]:
        """The tokens that stand in these columns."""
        if self.tokens is None:
            return columns
        return self.tokens.gather(1, columns.view(len(self.tokens), -1)).view_as(columns)


def widened(scores: Float[Tensor, "rows vocabulary"] | Scored) -> Float[Tensor, "rows vocabulary"] | Scored:
    """The same scores, in single precision where they came in half."""
    if isinstance(scores, Tensor) and scores.dtype in (torch.bfloat16, torch.float16):
        return scores.float()
    return scores


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
    values, tokens = _highest(logits, count)
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


def _highest(
    logits: Float[Tensor, "rows vocabulary"], count: int
) -> tuple[Float[Tensor, "rows count"], Int[Tensor, "rows count"]]:
    """What topk gives, on a CPU by blocks: the highest lie in the blocks with the highest maxima."""
    rows, width = logits.shape
    if logits.device.type != "cpu" or width % BLOCK or width < 4 * count * BLOCK:
        values, tokens = logits.topk(count, dim=1)
        return values, tokens
    blocks = logits.reshape(rows, -1, BLOCK)
    chosen = blocks.amax(2).topk(count, dim=1, sorted=False).indices
    first = torch.arange(rows, device=logits.device)[:, None] * blocks.shape[1]
    inside = blocks.flatten(0, 1).index_select(0, (first + chosen).flatten()).view(rows, -1)
    values, place = inside.topk(count, dim=1)
    return values, chosen.gather(1, place // BLOCK) * BLOCK + place % BLOCK


def continuations(
    scores: Float[Tensor, "rows vocabulary"] | Scored,
    alive: Float[Tensor, "sentences slots"],
    *,
    beam: int,
    never: Int[Tensor, " ids"],
    not_yet: int | None,
) -> tuple[Candidates, Bool[Tensor, ""]]:
    """The 2 x ``beam`` best continuations of each sentence's hypotheses, and whether all logits were usable.

    ``scores`` are overwritten. The ids ``never`` are taken out before the softmax (of what is `Scored` they
    are out already); the id ``not_yet`` is not chosen either, but keeps its probability. A beam of 1 has one
    candidate: greedy search. Otherwise an end for every hypothesis may be among the candidates and there are
    still enough to fill the beam.
    """
    if isinstance(scores, Tensor):
        if len(never):
            scores.index_fill_(1, never, _NEVER)
        vocabulary = scores.shape[1]
        gains, tokens, usable = _best_gains(scores, beam, not_yet, alive.dtype)
    else:
        vocabulary = scores.vocabulary
        gains, tokens, usable = _best_scored(scores, beam, not_yet, alive.dtype)
    best = ranked(gains, tokens, alive, beam=beam, vocabulary=vocabulary)
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


def _best_scored(
    scores: Scored, beam: int, not_yet: int | None, dtype: torch.dtype
) -> tuple[Float[Tensor, "rows count"], Int[Tensor, "rows count"], Bool[Tensor, " rows"]]:
    """The same where the sum over the vocabulary is known."""
    count = min(max(2 * beam, 4), scores.vocabulary, scores.logits.shape[1])
    if not_yet is not None:
        scores.forbid(not_yet)
    values, columns = best_tokens(scores.logits, count, min(beam, count - 1))
    gains = values.to(dtype) - scores.log_sum.to(dtype)
    return gains, scores.at(columns), torch.isfinite(scores.log_sum).squeeze(1)
