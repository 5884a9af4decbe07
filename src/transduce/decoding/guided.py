"""The continuations that a search step chooses from where a guide has a say."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from transduce.decoding.candidates import Candidates, Scored, best_tokens, ranked
from transduce.decoding.guide import NEVER, Chooser, Guide, guided_log_p


def guided_continuations(
    scores: Float[Tensor, "rows vocabulary"] | Scored,
    alive: Float[Tensor, "sentences slots"],
    guide: Guide,
    *,
    beam: int,
    never: Int[Tensor, " ids"],
    not_yet: int | None,
) -> tuple[Candidates, Bool[Tensor, ""]]:
    """What `continuations` gives, of the log P that the ``guide`` leaves."""
    log_p = guided_log_p(scores, guide, never=never, not_yet=not_yet)
    usable = ~torch.isnan(log_p).any(1)
    count = min(max(2 * beam, 4), log_p.shape[1])
    gains, tokens = best_tokens(log_p, count, min(beam, count - 1))
    best = ranked(gains.to(alive.dtype), tokens, alive, beam=beam, vocabulary=log_p.shape[1])
    if isinstance(guide, Chooser):
        best = guide.choose(best, log_p, alive, beam)
    return best, (usable.view_as(alive) | (alive == NEVER)).all()
