"""Several models that say together what follows: their probabilities averaged, or their logarithms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from transduce.bundle import Bundle
from transduce.decoding.candidates import widened
from transduce.decoding.choice import Choice
from transduce.decoding.engines import Engine
from transduce.decoding.guide import NEVER, Guides, guided_log_p
from transduce.errors import UsageError
from transduce.model.transformer import Transformer

BY = ("mean", "log")


def joint_log_p(
    log_ps: Sequence[Float[Tensor, "*any vocabulary"]], by: str
) -> Float[Tensor, "*any vocabulary"]:
    """Log P of the models together, which adds up to 1.

    ``mean`` is the arithmetic mean of the probabilities: one model that is sure is enough. ``log`` is their
    geometric mean, normalised: what one model holds impossible is so for all.
    """
    stacked = torch.stack(tuple(log_ps))
    if by == "log":
        return stacked.mean(0).log_softmax(-1)
    return stacked.logsumexp(0) - math.log(len(stacked))


def joint_logits(
    models: Sequence[Transformer],
    source: Int[Tensor, "pairs source"],
    target_in: Int[Tensor, "pairs length"],
    *,
    by: str,
    forbidden: Sequence[int],
) -> Float[Tensor, "pairs length vocabulary"]:
    """Logits of known targets; of several models their joint log P, ``forbidden`` ids left out."""
    if len(models) == 1:
        return models[0](source, target_in)  # type: ignore[no-any-return]
    log_ps = []
    for model in models:
        logits: Tensor = model(source, target_in).float()
        logits[..., list(forbidden)] = NEVER
        log_ps.append(logits.log_softmax(-1))
    return joint_log_p(log_ps, by)


def check_together(bundles: Sequence[Bundle], by: str) -> None:
    """Nothing; raises UsageError, naming the model, for what cannot speak together."""
    if by not in BY:
        raise UsageError(f"ensemble_by is {by!r}; choose one of {', '.join(BY)}")
    if not bundles:
        raise UsageError("an ensemble of no models cannot translate; name at least one model folder")
    first = bundles[0]
    for number, bundle in enumerate(bundles[1:], 2):
        name, other = bundle.path or f"model {number}", first.path or "model 1"
        if bundle.tokenizer.sha256 != first.tokenizer.sha256:
            raise UsageError(
                f"{name}: has another vocabulary than {other}; train the models of an ensemble with one "
                f"tokenizer, e.g. --set data.tokenizer={other}/tokenizer.model"
            )
        if bundle.model.config.start_id != first.model.config.start_id:
            raise UsageError(
                f"{name}: begins its outputs with token {bundle.model.config.start_id}, {other} with "
                f"{first.model.config.start_id}; train both with one model.decoder_start"
            )


@dataclass(frozen=True)
class EnsembleState:
    """The states of the models, row by row the same hypotheses."""

    members: tuple[Any, ...]

    def rows(
        self, hypotheses: Int[Tensor, " rows"], sentences: Int[Tensor, " kept"] | None = None
    ) -> EnsembleState:
        """The state whose hypothesis i is this one's ``hypotheses[i]``, for the ``sentences`` that stay."""
        return EnsembleState(tuple(state.rows(hypotheses, sentences) for state in self.members))


class Ensemble:
    """Several engines as one; the ids in ``forbidden`` take no part in the mean."""

    def __init__(self, engines: Sequence[Engine], *, by: str, forbidden: Sequence[int]) -> None:
        self._engines, self._by = tuple(engines), by
        self._forbidden = tuple(forbidden)
        self.name = engines[0].name
        self.workers = min(engine.workers for engine in engines)

    def start(self, source: Int[Tensor, "sentences source"], choice: Choice | None = None) -> EnsembleState:
        """The state before the first target token."""
        return EnsembleState(tuple(engine.start(source, choice) for engine in self._engines))

    def step(
        self, tokens: Int[Tensor, " rows"], state: EnsembleState
    ) -> tuple[Float[Tensor, "rows vocabulary"], EnsembleState]:
        """Log P of what may follow each of ``tokens``, and the state after them."""
        never = torch.tensor(self._forbidden, dtype=torch.long, device=tokens.device)
        log_ps, states = [], []
        for engine, member in zip(self._engines, state.members, strict=True):
            scores, after = engine.step(tokens, member)
            log_ps.append(guided_log_p(widened(scores), Guides(()), never=never))
            states.append(after)
        return joint_log_p(log_ps, self._by), EnsembleState(tuple(states))
