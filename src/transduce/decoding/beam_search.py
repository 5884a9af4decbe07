"""Section 6.1: beam search, as a pure function over a step; it has never heard of a model.

Hypotheses that have ended are kept apart from those alive. A sentence is left as soon as nothing alive can
beat what has ended, whatever length it would reach: with log P <= 0 falling as tokens are added, the best
that a hypothesis can still score is its log P divided by the largest penalty within its limit.

The tensors of a step stay where the model is; what is remembered of the few candidates is handled in numpy,
which takes a fraction of the time that torch takes for arrays as small as these.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from transduce.decoding.back_trace import Ended, Record, back_trace
from transduce.decoding.candidates import Candidates, Scored, continuations, widened
from transduce.decoding.config import SearchOptions
from transduce.decoding.guide import Guide
from transduce.decoding.guided import guided_continuations
from transduce.decoding.hypothesis import Hypothesis, length_penalty, not_finite

_NEVER = float("-inf")
# Sentences that are done are taken out of the batch once they are this share of it: doing so copies the rest.
DONE_SHARE = 1 / 8


Own = TypeVar("Own")
Result = TypeVar("Result")


@runtime_checkable
class State(Protocol):
    """What a step remembers: one row per hypothesis, and something per sentence."""

    def rows(self: Own, hypotheses: Tensor, sentences: Tensor | None = None) -> Own:
        """The state whose hypothesis i is this one's ``hypotheses[i]``, for the ``sentences`` that stay."""
        ...


S = TypeVar("S", bound=State)
# The newest token of each row and the state -> logits [rows, vocabulary] for the next one, and the new state.
# They may come with their sum (see Scored). They belong to the search, which overwrites them.
Step = Callable[[Tensor, S], tuple[Tensor | Scored, S]]


@dataclass(frozen=True)
class Standing:
    """Where a search stands after ``length`` steps: the last one, and the best that ended till then."""

    length: int
    last: Record
    ended: Ended


@dataclass(frozen=True)
class _Batch:
    """The sentences still searched: which they are, their limits, and their hypotheses, best first.

    ``endings`` counts the ends that were among a sentence's ``beam`` best candidates.
    """

    sentences: Int[np.ndarray, " active"]
    limits: Int[np.ndarray, " active"]
    ended: Ended
    endings: Int[np.ndarray, " active"]
    log_p: Float[np.ndarray, "active slots"]
    tokens: Int[np.ndarray, "active slots"]
    parents: Int[np.ndarray, "active slots"]

    def kept(self, index: Int[np.ndarray, " kept"]) -> _Batch:
        """The batch without the other sentences."""
        return _Batch(
            self.sentences[index],
            self.limits[index],
            self.ended.kept(index),
            self.endings[index],
            self.log_p[index],
            self.tokens[index],
            self.parents[index],
        )


@dataclass(frozen=True)
class _Rules:
    options: SearchOptions
    start_id: int
    eos_id: int
    never: Int[Tensor, " ids"]


def beam_search(
    step: Step[S],
    state: S,
    *,
    max_lengths: Int[Tensor, " sentences"],
    options: SearchOptions,
    start_id: int,
    eos_id: int,
    forbidden: Sequence[int] = (),
    guide: Guide | None = None,
) -> list[list[Hypothesis]]:
    """The ``options.n_best`` best outputs of each sentence, best first (fewer where fewer ended).

    The first step gets one row per sentence, each later one ``options.beam`` rows per sentence, those of a
    sentence next to each other; sentences that are done disappear from the rows. ``max_lengths`` bounds the
    tokens of each sentence's output, the end included, on the device where the search runs. If nothing ended
    within the limit, the best that are alive are given, scored alike and marked ``truncated``. The ids in
    ``forbidden`` have no probability; the ``guide`` says what else may not follow. Scores that tie within
    1e-6 are ranked by the lower token, then by the better parent. Raises TransduceError where the step's
    logits are not finite.
    """
    steps = beam_search_steps(
        step,
        state,
        max_lengths=max_lengths,
        options=options,
        start_id=start_id,
        eos_id=eos_id,
        forbidden=forbidden,
        guide=guide,
    )
    with torch.inference_mode():
        return outcome(steps)


def beam_search_steps(
    step: Step[S],
    state: S,
    *,
    max_lengths: Int[Tensor, " sentences"],
    options: SearchOptions,
    start_id: int,
    eos_id: int,
    forbidden: Sequence[int] = (),
    guide: Guide | None = None,
) -> Generator[Standing, None, list[list[Hypothesis]]]:
    """The same search step by step: says where it stands after each but the last, and returns the outputs.

    Whoever goes on with it sees to it that this happens in inference mode.
    """
    assert eos_id not in forbidden
    if not len(max_lengths):
        return []
    assert int(max_lengths.min()) >= 1
    never = torch.tensor(tuple(forbidden), dtype=torch.long, device=max_lengths.device)
    return (yield from _steps(step, state, max_lengths, _Rules(options, start_id, eos_id, never), guide))


def outcome(steps: Generator[Any, None, Result]) -> Result:
    """What a search returns when it has made all its steps."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result


def _steps(
    step: Step[S], state: S, max_lengths: Tensor, rules: _Rules, guide: Guide | None
) -> Generator[Standing, None, list[list[Hypothesis]]]:
    options, device, limits = rules.options, max_lengths.device, max_lengths.cpu().numpy()
    batch = _opening(limits, rules)
    results = Ended.none(len(limits), options.n_best)
    history: list[Record] = []
    for length in range(1, int(limits.max()) + 1):
        scores, state = step(torch.from_numpy(batch.tokens.ravel()).to(device), state)
        not_yet = rules.eos_id if length <= options.min_length else None
        if guide is None:
            best = continuations(
                widened(scores), batch.log_p, beam=options.beam, never=rules.never, not_yet=not_yet
            )
        else:
            best = guided_continuations(
                widened(scores), batch.log_p, guide, beam=options.beam, never=rules.never, not_yet=not_yet
            )
        if best is None:
            raise not_finite(length)
        slots = batch.log_p.shape[1]
        batch = _advanced(batch, best, length, rules)
        history.append(Record(batch.sentences, batch.tokens, batch.parents, batch.log_p))
        is_open = _open(batch, length, options)
        open_count = int(is_open.sum())
        if not open_count:
            break
        ended, keep = batch.ended, None
        if open_count < len(is_open):
            # A sentence that is done stays as dead rows until it is worth taking out.
            batch = replace(batch, log_p=np.where(is_open[:, None], batch.log_p, _NEVER))
            if len(is_open) - open_count >= DONE_SHARE * len(is_open):
                results.store(batch.sentences, batch.ended)
                keep = is_open.nonzero()[0]
                batch = batch.kept(keep)
        moved = keep is not None or slots != options.beam or _out_of_order(batch.parents)
        if moved or guide is not None:
            stay = np.arange(len(is_open)) if keep is None else keep
            rows = torch.from_numpy((stay[:, None] * slots + batch.parents).ravel()).to(device)
            if moved:
                state = state.rows(rows, None if keep is None else torch.from_numpy(keep).to(device))
            if guide is not None:
                guide = guide.extended(rows, torch.from_numpy(batch.tokens.ravel()).to(device))
        yield Standing(length, history[-1], ended)
    results.store(batch.sentences, batch.ended)
    return back_trace(history, results, limits, options, rules.eos_id)


def _opening(limits: Int[np.ndarray, " sentences"], rules: _Rules) -> _Batch:
    """Every sentence with one hypothesis: the start."""
    every = np.arange(len(limits))
    ended = Ended.none(len(limits), rules.options.n_best)
    start = np.full((len(limits), 1), rules.start_id)
    return _Batch(
        every, limits, ended, np.zeros_like(every), np.zeros(start.shape), start, np.zeros_like(start)
    )


def _advanced(batch: _Batch, best: Candidates, length: int, rules: _Rules) -> _Batch:
    """The batch one token later: candidates that end join the ended, the best others are alive."""
    beam, ends = rules.options.beam, best.tokens == rules.eos_id
    if not ends.any():  # most steps of a small batch
        going_on = best.first(beam)
        return replace(batch, log_p=going_on.log_p, tokens=going_on.tokens, parents=going_on.parents)
    scores = np.where(ends, best.log_p / length_penalty(length, rules.options.alpha), _NEVER)
    ended = batch.ended.with_new(Ended(scores, best.log_p, best.parents + (length - 1) * beam))
    going_on = best.pick(ends.argsort(1, kind="stable")[:, :beam])
    log_p = np.where(going_on.tokens == rules.eos_id, _NEVER, going_on.log_p)
    endings = batch.endings + ends[:, :beam].sum(1)
    batch = replace(batch, ended=ended, endings=endings)
    return replace(batch, log_p=log_p, tokens=going_on.tokens, parents=going_on.parents)


def _open(batch: _Batch, length: int, options: SearchOptions) -> Bool[np.ndarray, " active"]:
    """Which sentences are below their limit and not yet left, by the rule ``options.stop``."""
    # The penalty that flatters most: the longest output's, or for a negative alpha the shortest one's.
    reached = batch.limits if options.alpha >= 0 else length + 1
    bound = batch.log_p.max(1) / ((5.0 + reached) / 6.0) ** options.alpha
    still: npt.NDArray[np.bool_] = (batch.limits > length) & (bound > batch.ended.scores[:, -1])
    return still if options.stop == "exact" else still & (batch.endings < options.beam)


def _out_of_order(parents: Int[np.ndarray, "active slots"]) -> bool:
    """Whether any hypothesis does not go on in the row of its parent."""
    return bool((parents != np.arange(parents.shape[1])).any())
