"""The continuations that a search step chooses from, ranked so that ties always fall the same way.

Logits stay where the model is; what is looked at of them, a few for each hypothesis, is handled in numpy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float, Int
from torch import Tensor

# Scores that lie no further apart count as equal. Sums in another order differ by less.
TIE = 1e-6
# Rows of logits are looked through in blocks of this many.
BLOCK = 64
_NEVER = float("-inf")


@dataclass(frozen=True)
class Candidates:
    """Continuations of each sentence, best first; log P of minus infinity marks one that does not exist."""

    log_p: Float[np.ndarray, "sentences candidates"]
    tokens: Int[np.ndarray, "sentences candidates"]
    parents: Int[np.ndarray, "sentences candidates"]

    def pick(self, index: Int[np.ndarray, "sentences picked"]) -> Candidates:
        """The candidates at ``index``, sentence by sentence."""
        places = flat(index, self.log_p.shape[1])
        return Candidates(self.log_p.take(places), self.tokens.take(places), self.parents.take(places))

    def first(self, count: int) -> Candidates:
        """The best ``count`` of each sentence."""
        return Candidates(self.log_p[:, :count], self.tokens[:, :count], self.parents[:, :count])

    def padded(self, count: int) -> Candidates:
        """At least ``count`` of each sentence, the rest of which do not exist."""
        missing = max(0, count - self.log_p.shape[1])
        log_p = np.pad(self.log_p, ((0, 0), (0, missing)), constant_values=_NEVER)
        tokens, parents = (np.pad(part, ((0, 0), (0, missing))) for part in (self.tokens, self.parents))
        return Candidates(log_p, tokens, parents)


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

    def at(self, columns: Int[np.ndarray, "sentences n"]) -> Int[np.ndarray, "sentences n"]:
        """The tokens that stand in these columns."""
        if self.tokens is None:
            return columns
        return self.tokens.cpu().numpy().take(flat(columns, self.tokens.shape[1]))


def widened(scores: Float[Tensor, "rows vocabulary"] | Scored) -> Float[Tensor, "rows vocabulary"] | Scored:
    """The same scores, in single precision where they came in half."""
    if isinstance(scores, Tensor) and scores.dtype in (torch.bfloat16, torch.float16):
        return scores.float()
    return scores


def flat(index: Int[np.ndarray, "rows count"], width: int) -> Int[np.ndarray, "rows count"]:
    """Where the columns ``index`` of each row lie in an array of such rows: `take` is then fastest."""
    places: npt.NDArray[np.int64] = index + np.arange(0, len(index) * width, width)[:, None]
    return places


def ranking(
    scores: Float[np.ndarray, "sentences n"], preference: Int[np.ndarray, "#sentences n"], span: int
) -> Int[np.ndarray, "sentences n"]:
    """The order of ``scores``, best first; among equals (see TIE) the lower ``preference`` (< span) leads."""
    index = (-scores).argsort(1)
    places = flat(index, scores.shape[1])
    falling = scores.take(places)
    # Equals form a run: a new one begins wherever the next score is clearly lower.
    run = np.zeros_like(index)
    with np.errstate(invalid="ignore"):
        np.cumsum(falling[:, :-1] - falling[:, 1:] > TIE, axis=1, out=run[:, 1:])
    own = preference.take(places if len(preference) == len(index) else index)
    return index.take(flat((run * span + own).argsort(1), scores.shape[1]))


def continuations(
    scores: Float[Tensor, "rows vocabulary"] | Scored,
    alive: Float[np.ndarray, "sentences slots"],
    *,
    beam: int,
    never: Int[Tensor, " ids"],
    not_yet: int | None,
) -> Candidates | None:
    """The 2 x ``beam`` best continuations of each sentence's hypotheses; None where logits are no numbers.

    ``scores`` are overwritten. The ids ``never`` are taken out before the softmax (of what is `Scored` they
    are out already); the id ``not_yet`` is not chosen either, but keeps its probability. A beam of 1 has one
    candidate: greedy search. Otherwise an end for every hypothesis may be among the candidates and there are
    still enough to fill the beam.
    """
    scored = _scored(scores, never) if isinstance(scores, Tensor) else scores
    usable = torch.isfinite(scored.log_sum).cpu().numpy().reshape(alive.shape)
    if not (usable | (alive == _NEVER)).all():
        return None
    if not_yet is not None:
        scored.forbid(not_yet)
    return best_of(scored, alive, beam=beam)


def best_of(scored: Scored, alive: Float[np.ndarray, "sentences slots"], *, beam: int) -> Candidates:
    """The best continuations by scores that are usable; see `continuations`."""
    wanted = 2 * beam if beam > 1 else 1
    log_sum = scored.log_sum.cpu().numpy().astype(np.float64)
    with np.errstate(invalid="ignore"):
        found = _best_by_blocks(scored.logits, log_sum, alive, wanted)
        if found is None:
            found = _best_by_rows(scored.logits, len(alive), min(max(2 * beam, 4), scored.vocabulary), beam)
        values, columns, rows = found
        slots = alive.shape[1]
        log_p = alive.take(rows) + (values.astype(np.float64) - log_sum.take(rows))
        log_p[alive.take(rows) == _NEVER] = _NEVER
        tokens, parents = scored.at(columns), rows % slots
        order = ranking(log_p, tokens * slots + parents, scored.vocabulary * slots)
    best = Candidates(log_p, tokens, parents).pick(order[:, :wanted])
    return best if best.log_p.shape[1] >= beam else best.padded(beam)  # a vocabulary smaller than the beam


def _scored(logits: Float[Tensor, "rows vocabulary"], never: Int[Tensor, " ids"]) -> Scored:
    """``logits``, the ids ``never`` out, with the logarithm of the sum, more exact than they are."""
    if len(never):
        logits.index_fill_(1, never, _NEVER)
    top = logits.amax(1, keepdim=True)
    rest = (logits - top).exp_().sum(1, keepdim=True).log_()
    exact = torch.float32 if logits.device.type == "mps" else torch.float64
    return Scored(logits, top.to(exact) + rest.to(exact), logits.shape[1])


# The logit, column and row of each sentence's candidates.
_Found = tuple[
    Float[np.ndarray, "sentences n"], Int[np.ndarray, "sentences n"], Int[np.ndarray, "sentences n"]
]


def _best_by_blocks(
    logits: Float[Tensor, "rows wide"],
    log_sum: Float[np.ndarray, "rows 1"],
    alive: Float[np.ndarray, "sentences slots"],
    count: int,
) -> _Found | None:
    """The ``count`` best of each sentence and the next one: they lie in the blocks with the highest maxima.

    None where that cannot be used: on a GPU, with few blocks, and where equals (see TIE) lie on both sides
    of the cut, of which a closer look takes the lower tokens.
    """
    sentences, slots = alive.shape
    blocks, spare = divmod(logits.shape[1], BLOCK)
    if logits.device.type != "cpu" or spare or slots * blocks < 2 * (count + 1):
        return None
    offset = alive.reshape(-1, 1) - log_sum
    maxima = logits.reshape(len(logits), blocks, BLOCK).amax(2).numpy() + offset
    maxima[alive.ravel() == _NEVER] = _NEVER  # whatever their logits are
    chosen = torch.from_numpy(maxima.reshape(sentences, -1)).topk(count + 1, sorted=False).indices.numpy()
    places = flat(chosen, slots * blocks)
    rows = places // blocks
    inside = logits.numpy().reshape(-1, BLOCK).take(places, 0)
    totals = (inside + offset.take(rows)[:, :, None]).reshape(sentences, -1)
    falling, index = torch.from_numpy(totals).topk(count + 1)
    if bool((falling[:, -2] - falling[:, -1] <= TIE).any()):
        return None
    inner = index.numpy()
    at = flat(inner // BLOCK, count + 1)
    values = inside.take(flat(inner, inside[0].size))
    return values, places.take(at) % blocks * BLOCK + inner % BLOCK, rows.take(at)


def _best_by_rows(logits: Float[Tensor, "rows wide"], sentences: int, count: int, beam: int) -> _Found:
    """The ``count`` best of each row, of equals on both sides of what a search sees the lower tokens."""
    count = min(count, logits.shape[1])
    values, columns = best_tokens(logits, count, min(beam, count - 1))
    rows = np.arange(len(values))[:, None].repeat(count, 1)
    return values.reshape(sentences, -1), columns.reshape(sentences, -1), rows.reshape(sentences, -1)


def best_tokens(
    logits: Float[Tensor, "rows vocabulary"], count: int, certain: int
) -> tuple[Float[np.ndarray, "rows count"], Int[np.ndarray, "rows count"]]:
    """The ``count`` highest logits of each row and their tokens.

    Where the cut runs through equals that reach up to rank ``certain``, the lower tokens are taken; further
    down it does not matter which of them a search sees.
    """
    highest = logits.topk(count, dim=1)
    values, tokens = highest.values.cpu().numpy(), highest.indices.cpu().numpy()
    if count == logits.shape[1]:
        return values, tokens
    with np.errstate(invalid="ignore"):
        tied = values[:, certain] - values[:, -1] <= TIE
    if tied.any():
        rows = tied.nonzero()[0]
        some = logits[torch.from_numpy(rows).to(logits.device)]
        last = torch.from_numpy(values[rows, -1:]).to(logits.device)
        size = logits.shape[1]
        wanted = torch.arange(size, 0, -1, device=logits.device).expand_as(some)
        wanted = wanted.masked_fill(some - last > TIE, size + 1).masked_fill(last - some > TIE, 0)
        chosen = wanted.topk(count, dim=1).indices
        values[rows], tokens[rows] = some.gather(1, chosen).cpu().numpy(), chosen.cpu().numpy()
    return values, tokens
