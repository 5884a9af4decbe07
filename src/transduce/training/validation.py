"""Validation during training: loss without smoothing, BLEU of greedy translations, and samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transduce.bundle import Bundle
from transduce.data.batching import Batching, Ids, collate
from transduce.data.formats.pair import Pair
from transduce.data.shards import TokenShards
from transduce.data.tokenizer import Tokenizer
from transduce.decoding.translator import Translator
from transduce.evaluation.scores import score
from transduce.model.transformer import Transformer
from transduce.training.precision import precision_context
from transduce.training.step import Batch, batch_loss

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

    def value(self, metric: str) -> float | None:
        """What ``training.metric`` chooses by: more is better; None where it was not measured."""
        return {"bleu": self.bleu, "chrf": self.chrf, "loss": -self.loss}[metric]

    @property
    def perplexity(self) -> float:
        """exp(loss), per subword token."""
        return math.exp(min(self.loss, 700.0))


def to_batch(shards: TokenShards, ids: Ids, model: Transformer, device: str) -> Batch:
    """The pairs ``ids`` as tensors on ``device``."""
    source, target_in, target_out = (
        _sent(torch.from_numpy(array), device)
        for array in collate(shards, ids, model.config.start_id, model.config.pad_id)
    )
    return Batch(
        source,
        target_in,
        target_out,
        int(shards.source_lengths[ids].sum()),
        int(shards.target_lengths[ids].sum()),
    )


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
        found = translator.translate_detailed([pair.source for pair in pairs], beam=1)
        outputs = [translation.text for translation in found]  # overlong lines were said when counted
        scores = score(outputs, [pair.target for pair in pairs], ter=False)
        samples = tuple((pairs[i].source, pairs[i].target, outputs[i]) for i in chosen)
        bleu, chrf = (scores.bleu, scores.chrf) if measured else (None, None)
        return Validation(loss, bleu, scores.signature, samples, chrf)
    finally:
        model.train(training)


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
