"""Sampling: outputs drawn from the model's distribution, as a pure function over a step.

Temperature, then top-k, then top-p shape what is drawn from; scores stay those of the model itself.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from transduce.decoding.beam_search import DONE_SHARE, S, Step, outcome
from transduce.decoding.candidates import TIE, widened
from transduce.decoding.config import SamplingOptions
from transduce.decoding.guide import NEVER, Guide, Guides, guided_log_p
from transduce.decoding.hypothesis import Hypothesis, length_penalty, not_finite
from transduce.decoding.noise import gumbel, row_keys

# Numbers that are drawn at a time: what they take in memory stays bounded.
_NOISE = 1 << 22


@dataclass(frozen=True)
class OutputIds:
    """The ids that open and end an output, and those that none holds."""

    start: int
    end: int
    forbidden: tuple[int, ...] = ()


@dataclass(frozen=True)
class Drawn:
    """What one step drew for the sentences that it worked on."""

    sentences: Int[Tensor, " active"]
    tokens: Int[Tensor, "active samples"]
    log_p: Float[Tensor, "active samples"]


def sample(
    step: Step[S],
    state: S,
    *,
    keys: Int[Tensor, " sentences"],
    max_lengths: Int[Tensor, " sentences"],
    options: SamplingOptions,
    ids: OutputIds,
    guide: Guide | None = None,
) -> list[list[Hypothesis]]:
    """``options.samples`` outputs of each sentence, in the order drawn.

    The first step gets one row per sentence, each later one ``options.samples`` rows per sentence, those of
    a sentence next to each other. Sample i of a sentence depends on its key (see `noise.key_of`), its step
    and the options, on no other sentence and not on the number of samples. Log P and score are the model's
    own, without temperature and cuts. ``max_lengths`` bounds the tokens of each output, the end included;
    what has not ended by then is ``truncated``. Raises TransduceError where the logits are not finite.
    """
    steps = sample_steps(
        step, state, keys=keys, max_lengths=max_lengths, options=options, ids=ids, guide=guide
    )
    with torch.inference_mode():
        return outcome(steps)


def sample_steps(
    step: Step[S],
    state: S,
    *,
    keys: Int[Tensor, " sentences"],
    max_lengths: Int[Tensor, " sentences"],
    options: SamplingOptions,
    ids: OutputIds,
    guide: Guide | None = None,
) -> Generator[Drawn, None, list[list[Hypothesis]]]:
    """The same step by step: says what each step drew, and returns the outputs.

    Whoever goes on with it sees to it that this happens in inference mode.
    """
    assert ids.end not in ids.forbidden
    if not len(max_lengths):
        return []
    assert int(max_lengths.min()) >= 1
    rows = row_keys(keys, options.samples)
    drawn = yield from _draw_all(step, state, rows, max_lengths, options, ids, guide)
    return _hypotheses(drawn, max_lengths.tolist(), options, ids.end)


def _draw_all(
    step: Step[S],
    state: S,
    keys: Int[Tensor, "sentences samples"],
    limits: Int[Tensor, " sentences"],
    options: SamplingOptions,
    ids: OutputIds,
    guide: Guide | None,
) -> Generator[Drawn, None, list[Drawn]]:
    never = torch.tensor(ids.forbidden, dtype=torch.long, device=limits.device)
    active = torch.arange(len(limits), device=limits.device)
    tokens = torch.full_like(active, ids.start)[:, None]
    ended = torch.zeros_like(keys, dtype=torch.bool)
    drawn = []
    for length in range(1, int(limits.max()) + 1):
        scores, state = step(tokens.flatten(), state)
        not_yet = ids.end if length <= options.min_length else None
        log_p = guided_log_p(widened(scores), guide or Guides(()), never=never, not_yet=not_yet)
        if bool(torch.isnan(log_p).any()):
            raise not_finite(length)
        slots = tokens.shape[1]
        rows = torch.arange(len(log_p), device=log_p.device)
        if slots < options.samples:  # from here on every sample has a row of its own
            rows = rows.repeat_interleave(options.samples)
            log_p = log_p[rows]
        chosen = draw(log_p, keys[active].flatten(), length, options)
        gains = log_p.gather(1, chosen[:, None]).squeeze(1)
        tokens = chosen.view(len(active), -1).masked_fill(ended, ids.end)
        drawn.append(Drawn(active, tokens, gains.view_as(tokens)))
        yield drawn[-1]
        ended = ended | (tokens == ids.end) | (limits[active] <= length)[:, None]
        keep = (~ended.all(1)).nonzero().squeeze(1)
        if not len(keep):
            break
        # A sentence that is done stays until it is worth taking out.
        done = len(active) - len(keep)
        leaving = keep if done and done >= DONE_SHARE * len(active) else None
        if leaving is not None:
            rows = rows.view_as(tokens)[leaving].flatten()
            tokens, ended, active = tokens[leaving], ended[leaving], active[leaving]
        if leaving is not None or slots < options.samples:
            state = state.rows(rows, leaving)
        if guide is not None:
            guide = guide.extended(rows, tokens.flatten())
    return drawn


def draw(
    log_p: Float[Tensor, "rows vocabulary"],
    keys: Int[Tensor, " rows"],
    position: int,
    options: SamplingOptions,
) -> Int[Tensor, " rows"]:
    """A token for each row, by the noise of its key at this position."""
    dtype = torch.float32 if log_p.device.type == "mps" else torch.float64
    count = max(1, _NOISE // log_p.shape[1])
    found = []
    for first in range(0, len(keys), count):
        kept, tokens = shaped(log_p[first : first + count], options)
        noise = gumbel(keys[first : first + count], position, tokens, dtype)
        best = (kept.to(dtype) + noise).argmax(1, keepdim=True)
        found.append(tokens.expand_as(kept).gather(1, best).squeeze(1))
    return torch.cat(found)


def shaped(
    log_p: Float[Tensor, "rows vocabulary"], options: SamplingOptions
) -> tuple[Float[Tensor, "rows kept"], Int[Tensor, "_rows kept"]]:
    """What is drawn from: log of the unnormalised probabilities, and the tokens they belong to.

    The temperature divides log P; of that the ``top_k`` highest are kept, and of these the fewest whose
    probabilities, normalised among them, reach ``top_p``. Minus infinity marks what is not kept.
    """
    scaled = log_p / options.temperature
    count = min(options.top_k or log_p.shape[1], log_p.shape[1])
    if count == log_p.shape[1] and options.top_p == 1.0:
        return scaled, torch.arange(count, device=log_p.device)[None]
    values, tokens = scaled.topk(count, dim=1)
    if options.top_p < 1.0:
        values = values.masked_fill(~_nucleus(values, options.top_p), NEVER)
    return values, tokens


def _nucleus(falling: Float[Tensor, "rows kept"], top_p: float) -> Bool[Tensor, "rows kept"]:
    """Which of the values, falling in each row, come before their sum reaches ``top_p``; always the first."""
    probability = falling.softmax(1)
    inside = probability.cumsum(1) - probability < top_p - TIE
    inside[:, 0] = True
    return inside


def _hypotheses(
    drawn: Sequence[Drawn], limits: Sequence[int], options: SamplingOptions, end: int
) -> list[list[Hypothesis]]:
    shape = len(limits), options.samples, len(drawn)
    tokens, gains = torch.full(shape, end), torch.zeros(shape, dtype=torch.float64)
    for at, step in enumerate(drawn):
        where = step.sentences.cpu()
        tokens[where, :, at], gains[where, :, at] = step.tokens.cpu(), step.log_p.cpu().double()
    outputs = []
    for sentence, limit in enumerate(limits):
        rows = zip(tokens[sentence].tolist(), gains[sentence].tolist(), strict=True)
        outputs.append([_hypothesis(row[:limit], gain, options, end) for row, gain in rows])
    return outputs


def _hypothesis(tokens: list[int], gains: list[float], options: SamplingOptions, end: int) -> Hypothesis:
    truncated = end not in tokens
    length = len(tokens) if truncated else tokens.index(end) + 1
    log_probability = sum(gains[:length], 0.0)
    score = log_probability / length_penalty(length, options.alpha)
    return Hypothesis(tuple(tokens[:length]), score, log_probability, truncated, tuple(gains[:length]))
