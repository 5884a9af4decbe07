"""What looks at the tokens chosen so far and says what may follow: a prefix, repetition guards, terms.

A guide is handed to a search or a sampler beside the state. None is the default, and costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from transduce.decoding.candidates import Candidates, Scored

NEVER = float("-inf")
Own = TypeVar("Own")


@runtime_checkable
class Guide(Protocol):
    """A value with one row per hypothesis, in the order of the search's rows: at first, one per sentence."""

    def guided(self, log_p: Float[Tensor, "rows vocabulary"]) -> Float[Tensor, "rows vocabulary"]:
        """log P of each row's next token as the guide will have it; ``log_p`` itself is not changed.

        Minus infinity forbids a token. The others keep what they have, so that a sum of them is still the
        model's; a guide that favours or disfavours tokens normalises instead. Nothing may exceed 0: a search
        stops when nothing alive can win, and counts on log P never rising.
        """
        ...

    def extended(self: Own, rows: Int[Tensor, " new"], tokens: Int[Tensor, " new"]) -> Own:
        """The guide whose row i is this one's ``rows[i]`` with ``tokens[i]`` chosen after it.

        Rows of a sentence that is done, or that have probability 0, come along with any token.
        """
        ...


@runtime_checkable
class Chooser(Protocol):
    """A guide that also has a say in which hypotheses of a sentence stay in the beam."""

    def choose(
        self,
        best: Candidates,
        log_p: Float[Tensor, "rows vocabulary"],
        alive: Float[np.ndarray, "sentences slots"],
        beam: int,
    ) -> Candidates:
        """The candidates instead of ``best``, which are the best 2 x ``beam`` of each sentence.

        ``log_p`` is guided; ``alive`` is the hypotheses' log P. The first ``beam`` of a sentence that do not
        end go on.
        """
        ...


@dataclass(frozen=True)
class Guides:
    """Several guides as one, asked in their order; one that would leave a row nothing is ignored there."""

    members: tuple[Guide, ...]

    def guided(self, log_p: Float[Tensor, "rows vocabulary"]) -> Float[Tensor, "rows vocabulary"]:
        """See `Guide.guided`."""
        for guide in self.members:
            changed = guide.guided(log_p)
            if changed is not log_p:
                nothing_left = changed.amax(1, keepdim=True) == NEVER
                log_p = torch.where(nothing_left, log_p, changed)
        return log_p

    def extended(self, rows: Int[Tensor, " new"], tokens: Int[Tensor, " new"]) -> Guides:
        """See `Guide.extended`."""
        return Guides(tuple(guide.extended(rows, tokens) for guide in self.members))

    def choose(
        self,
        best: Candidates,
        log_p: Float[Tensor, "rows vocabulary"],
        alive: Float[np.ndarray, "sentences slots"],
        beam: int,
    ) -> Candidates:
        """See `Chooser.choose`."""
        for guide in self.members:
            if isinstance(guide, Chooser):
                best = guide.choose(best, log_p, alive, beam)
        return best


def together(guides: Sequence[Guide]) -> Guides | None:
    """One guide of several, those that have the last word first; None of none."""
    return Guides(tuple(guides)) if guides else None


def guided_log_p(
    scores: Float[Tensor, "rows vocabulary"] | Scored,
    guide: Guide,
    *,
    never: Int[Tensor, " ids"],
    not_yet: int | None = None,
) -> Float[Tensor, "rows vocabulary"]:
    """log P of each row's next token, guided.

    The ids ``never`` are taken out before the softmax; the id ``not_yet`` is forbidden but keeps its share.
    A row that is not finite, or has probability nowhere, has NaN. ``scores`` are overwritten.
    """
    if isinstance(scores, Tensor):
        log_p = scores.index_fill_(1, never, NEVER).log_softmax(1)
    else:
        log_p = scores.log_p()
    if not_yet is not None:
        log_p[:, not_yet] = NEVER
    return Guides((guide,)).guided(log_p)
