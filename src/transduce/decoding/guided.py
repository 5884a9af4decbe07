"""The continuations that a search step chooses from where a guide has a say."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor

from transduce.decoding.candidates import Candidates, Scored, best_of
from transduce.decoding.guide import NEVER, Chooser, Guide, guided_log_p


def guided_continuations(
    scores: Float[Tensor, "rows vocabulary"] | Scored,
    alive: Float[np.ndarray, "sentences slots"],
    guide: Guide,
    *,
    beam: int,
    never: Int[Tensor, " ids"],
    not_yet: int | None,
) -> Candidates | None:
    """What `continuations` gives, of the log P that the ``guide`` leaves."""
    log_p = guided_log_p(scores, guide, never=never, not_yet=not_yet)
    usable = ~log_p.isnan().any(1).cpu().numpy().reshape(alive.shape)
    if not (usable | (alive == NEVER)).all():
        return None
    best = best_of(Scored(log_p, log_p.new_zeros((len(log_p), 1)), log_p.shape[1]), alive, beam=beam)
    return guide.choose(best, log_p, alive, beam) if isinstance(guide, Chooser) else best
