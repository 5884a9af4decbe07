"""Validation during training: loss without smoothing, BLEU of greedy translations, and samples."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from transduce.bundle import Bundle
from transduce.counts import counted
from transduce.data.batching import Batching, Ids, collate, rectangle
from transduce.data.formats.pair import Pair
from transduce.data.shards import TokenShards
from transduce.data.tokenizer import Tokenizer
from transduce.data.variation import Rows
from transduce.decoding.translator import Translator
from transduce.evaluation.scores import score
from transduce.model.transformer import Transformer
from transduce.training.precision import precision_context
from transduce.training.step import Batch, batch_loss

Scored = Mapping[str, Mapping[str, Any]]

SAMPLES = 3
# A model that has learned next to nothing babbles up to the length limit; translating with it teaches nobody.
BABBLE = 100.0


@dataclass(frozen=True)
class Validation:
    """The scores of one validation; ``perplexity`` is exp of the un-smoothed loss per target token.

    ``bleu`` and ``chrf`` are None while the perplexity is above 100: then only the samples were translated.
    """

    loss: float
    bleu: float | None
    signature: str
    samples: tuple[tuple[str, str, str], ...]
    chrf: float | None = None
    languages: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The scores of each pair of languages, where there are several; see `scores_by_languages`."""

    def value(self, metric: str) -> float | None:
        """What ``training.metric`` chooses by: more is better; None where it was not measured."""
        return {"bleu": self.bleu, "chrf": self.chrf, "loss": -self.loss}[metric]

    @property
    def perplexity(self) -> float:
        """exp(loss), per subword token."""
        return math.exp(min(self.loss, 700.0))


def to_batch(shards: TokenShards, ids: Ids, model: Transformer, device: str) -> Batch:
    """The pairs ``ids`` as tensors on ``device``."""
    sides = collate(shards, ids, model.config.start_id, model.config.pad_id)
    return _batch(
        sides, (int(shards.source_lengths[ids].sum()), int(shards.target_lengths[ids].sum())), device
    )


def rows_to_batch(sources: Rows, targets: Rows, model: Transformer, device: str) -> Batch:
    """The pairs with these ids, ends included, as tensors on ``device``."""
    config = model.config
    source, target_out = rectangle(sources, config.pad_id), rectangle(targets, config.pad_id)
    target_in = np.full_like(target_out, config.pad_id)
    target_in[:, 0] = config.start_id
    for row, target in enumerate(targets):
        target_in[row, 1 : len(target)] = target[:-1]
    return _batch((source, target_in, target_out), (sum(map(len, sources)), sum(map(len, targets))), device)


def _batch(sides: tuple[Ids, Ids, Ids], tokens: tuple[int, int], device: str) -> Batch:
    source, target_in, target_out = (_sent(torch.from_numpy(side), device) for side in sides)
    return Batch(source, target_in, target_out, *tokens)


def _sent(array: Tensor, device: str) -> Tensor:
    """The array on ``device``; from pinned memory a GPU fetches it while the host goes on."""
    if device.startswith("cuda"):
        array = array.pin_memory()
    return array.to(device, non_blocking=True)


def validate(
    model: Transformer,
    tokenizer: Tokenizer,
    shards: TokenShards,
    pairs: Sequence[Pair],
    *,
    device: str,
    precision: str,
) -> Validation:
    """The scores of ``model`` as it stands; it is in evaluation mode meanwhile, and as before afterwards."""
    training = model.training
    model.eval()
    try:
        loss = validation_loss(model, shards, device=device, precision=precision)
        step = max(1, len(pairs) // SAMPLES)
        chosen = list(range(0, len(pairs), step)[:SAMPLES])
        if math.exp(min(loss, 700.0)) > BABBLE:
            pairs, chosen, measured = [pairs[i] for i in chosen], list(range(len(chosen))), False
        else:
            measured = True
        bundle = Bundle(model=model, tokenizer=tokenizer, training={}, path=None)
        translator = Translator(bundle, device=device, precision=precision)
        outputs = outputs_of(translator, pairs, beam=1)
        scores = score(outputs, [pair.target for pair in pairs], ter=False)
        samples = tuple((pairs[i].source, pairs[i].target, outputs[i]) for i in chosen)
        bleu, chrf = (scores.bleu, scores.chrf) if measured else (None, None)
        languages = scores_by_languages(outputs, pairs) if measured else {}
        return Validation(loss, bleu, scores.signature, samples, chrf, languages)
    finally:
        model.train(training)


def first_of_each(pairs: Sequence[Pair], lines: int) -> list[Pair]:
    """The first ``lines`` pairs; where there are several pairs of languages, about as many of each."""
    groups = _by_label(pairs)
    if len({languages for languages, _ in groups}) < 2:
        return list(pairs[:lines])
    places = sorted((rank, at) for group in groups.values() for rank, at in enumerate(group))[:lines]
    return [pairs[at] for at in sorted(at for _, at in places)]


def outputs_of(translator: Translator, pairs: Sequence[Pair], *, beam: int, alpha: float = 0.6) -> list[str]:
    """The translation of each pair's source, asked for by its label.

    What is too long was said when it was counted.
    """
    outputs = [""] * len(pairs)
    for (languages, domain), places in _by_label(pairs).items():
        found = translator.translate_detailed(
            [pairs[at].source for at in places],
            beam=beam,
            alpha=alpha,
            to=languages.partition(":")[2],
            domain=domain,
        )
        for at, translation in zip(places, found, strict=True):
            outputs[at] = translation.text
    return outputs


def scores_by_languages(outputs: Sequence[str], pairs: Sequence[Pair]) -> dict[str, dict[str, Any]]:
    """Lines, BLEU and chrF of each pair of languages; empty where there are not several."""
    groups: dict[str, list[int]] = {}
    for at, pair in enumerate(pairs):
        groups.setdefault(pair.languages, []).append(at)
    if len(groups) < 2:
        return {}
    found = {}
    for languages, places in sorted(groups.items()):
        result = score([outputs[at] for at in places], [pairs[at].target for at in places], ter=False)
        found[languages] = {"lines": len(places), "bleu": result.bleu, "chrf": result.chrf}
    return found


def lines_by_languages(languages: Scored) -> Iterator[str]:
    """The same for people."""
    for name, found in languages.items():
        yield (
            f"    {name}: BLEU {found['bleu']:.2f}, chrF {found['chrf']:.2f} "
            f"({counted(found['lines'], 'line')})"
        )


def _by_label(pairs: Sequence[Pair]) -> dict[tuple[str, str], list[int]]:
    """The places of the pairs of each label."""
    groups: dict[tuple[str, str], list[int]] = {}
    for at, pair in enumerate(pairs):
        groups.setdefault((pair.languages, pair.domain), []).append(at)
    return groups


@torch.inference_mode()
def validation_loss(model: Transformer, shards: TokenShards, *, device: str, precision: str) -> float:
    """The negative log-likelihood per target token, un-smoothed, in nats."""
    longest = int(max(shards.source_lengths.max(), shards.target_lengths.max()))
    budget = max(4096, longest)
    batching = Batching(
        shards.source_lengths, shards.target_lengths, batch_tokens=budget, micro_batch_tokens=budget, seed=0
    )
    total, tokens = 0.0, 0
    for (ids,) in batching.epoch(0):
        batch = to_batch(shards, ids, model, device)
        with precision_context(device, precision):
            total += float(batch_loss(model, batch, smoothing=0.0, scale=1.0)[1])
        tokens += batch.target_tokens
    return total / tokens
