"""What a model costs: parameters by part, operations, memory, and a run in the unit of Table 2.

A multiplication and an addition count as two operations (FLOPs), as in Table 2. Only matrix products are
counted; the rest (softmax, normalisation, ReLU, the optimizer) is below a few per cent at the paper's widths.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from transduce.errors import UsageError
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer

BACKWARD = 2
"""The backward pass multiplies each matrix twice: by its inputs and by the gradient of its outputs."""
SUSTAINED: dict[str, float] = {"k80": 2.8e12, "k40": 3.7e12, "m40": 6.0e12, "p100": 9.5e12}
"""FLOP/s in single precision that the paper assumes of GPUs (section 6.1, footnote 5)."""
PAPER_VOCABULARY = 37_000
ADAM_BYTES = 16
"""Bytes a parameter while training in fp32: the weight, its gradient and Adam's two moments."""


def parameters_by_part(model: Transformer) -> dict[str, int]:
    """The number of trained values of each part; a matrix with several uses counts once, where it is first.

    The parts add up to ``model.parameter_count()``.
    """
    parts: dict[str, int] = {}
    seen: set[nn.Parameter] = set()
    for name, parameter in model.named_parameters():
        if parameter not in seen:
            seen.add(parameter)
            part = _part(name)
            parts[part] = parts.get(part, 0) + parameter.numel()
    return parts


def _part(name: str) -> str:
    words = name.split(".")
    if words[0] not in ("encoder", "decoder"):
        return "embeddings" if words[0] == "embeddings" else "positions"
    inner = next(
        (word for word in words if word in ("self_attention", "cross_attention", "feed_forward")), ""
    )
    return f"{words[0]} {inner.replace('_', '-') or 'norms'}"


def shape_of(config: ModelConfig) -> Transformer:
    """A model of this configuration without storage: it can be counted, not run."""
    with torch.device("meta"):
        return Transformer(config)


@dataclass(frozen=True)
class Operations:
    """FLOPs of one sentence pair, by part."""

    encoder: int
    decoder: int
    output: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.encoder + self.decoder + self.output

    def times(self, factor: int) -> Operations:
        """The same work so many times."""
        return Operations(self.encoder * factor, self.decoder * factor, self.output * factor)


def forward_operations(config: ModelConfig, source: int, target: int) -> Operations:
    """FLOPs of teacher forcing one pair of ``source`` and ``target`` tokens (ends included), all at once.

    Masked scores are computed like the others, so the decoder's self-attention counts in full.
    """
    wide_k, wide_v = config.heads * config.d_k, config.heads * config.d_v
    qkvo = config.d_model * (2 * wide_k + 2 * wide_v)
    feed_forward = 2 * config.d_model * config.d_ff
    per_pair = wide_k + wide_v  # Q K^T and the weights times V, for one query and one key
    encoder = 2 * (source * (qkvo + feed_forward) + source * source * per_pair)
    queries = config.d_model * (wide_k + wide_v)
    decoder = 2 * (
        target * (qkvo + queries + feed_forward)
        + source * config.d_model * (wide_k + wide_v)
        + target * (target + source) * per_pair
    )
    return Operations(
        encoder * config.encoder_layers,
        decoder * config.decoder_layers,
        2 * target * config.d_model * config.vocabulary,
    )


def training_operations(config: ModelConfig, source: int, target: int) -> Operations:
    """FLOPs of learning from one pair: forward and backward."""
    return forward_operations(config, source, target).times(1 + BACKWARD)


def translation_operations(config: ModelConfig, source: int, target: int, beam: int = 4) -> Operations:
    """FLOPs of finding an output of ``target`` tokens (its end included) by a search of this ``beam``.

    The encoder runs once and its output is projected once; a step works on one token of each hypothesis
    (the first step on one hypothesis) and attends to all tokens before it.
    """
    wide_k, wide_v = config.heads * config.d_k, config.heads * config.d_v
    per_pair = wide_k + wide_v
    token = config.d_model * (2 * wide_k + 2 * wide_v) + config.d_model * per_pair
    token += 2 * config.d_model * config.d_ff
    rows = 1 + beam * (target - 1)
    seen = 1 + beam * (target * (target + 1) // 2 - 1)
    decoder = 2 * (rows * token + source * config.d_model * per_pair + (seen + rows * source) * per_pair)
    encoder = forward_operations(config, source, 1).encoder
    return Operations(encoder, decoder * config.decoder_layers, 2 * rows * config.d_model * config.vocabulary)


def cache_bytes_per_token(config: ModelConfig) -> int:
    """Bytes in fp32 that a search remembers of one token of one hypothesis: keys and values of each layer."""
    return 4 * config.decoder_layers * config.heads * (config.d_k + config.d_v)


@dataclass(frozen=True)
class RunCost:
    """What a training run took, twice: as Table 2 reckons it, and by arithmetic."""

    seconds: float
    devices: int
    sustained: float
    """FLOP/s of one device."""
    arithmetic: float
    """FLOPs of the matrix products for the tokens that were seen: 6 x weights x tokens."""

    @property
    def paper_unit(self) -> float:
        """FLOPs as in Table 2: time x devices x sustained rate."""
        return self.seconds * self.devices * self.sustained

    @property
    def utilisation(self) -> float:
        """The share of the sustained rate that went into matrix products."""
        return self.arithmetic / self.paper_unit


def arithmetic_cost(model: Transformer, source_tokens: float, target_tokens: float) -> float:
    """FLOPs of training on so many tokens: 6 x the weights that multiply them, attention left out.

    Cross-attention's keys and values are made of source tokens, all else in the decoder of target tokens.
    """
    config = model.config
    encoder = _matrix_weights(model.encoder.layers)
    memory = config.decoder_layers * config.d_model * config.heads * (config.d_k + config.d_v)
    decoder = _matrix_weights(model.decoder.layers) - memory
    output = config.d_model * config.vocabulary
    per_source, per_target = encoder + memory, decoder + output
    return 2 * (1 + BACKWARD) * (per_source * source_tokens + per_target * target_tokens)


def _matrix_weights(layers: Iterable[nn.Module]) -> int:
    return sum(p.numel() for layer in layers for p in layer.parameters() if p.dim() == 2)


def run_cost(model: Transformer, training: Mapping[str, Any], sustained: float) -> RunCost | None:
    """The cost of the run that ``training`` (a model folder's training.json) tells of; None if it tells none.

    ``sustained`` is in FLOP/s of one device.
    """
    seconds = training.get("seconds")
    source, target = training.get("source_tokens"), training.get("target_tokens")
    if not (seconds and source and target):
        return None
    devices = int(training.get("workers", 1))  # what earlier versions wrote has no such entry
    return RunCost(float(seconds), devices, sustained, arithmetic_cost(model, float(source), float(target)))


def sustained_rate(text: str) -> float:
    """FLOP/s from a name of the paper's footnote (p100) or a number of TFLOP/s; UsageError for others."""
    if text.lower() in SUSTAINED:
        return SUSTAINED[text.lower()]
    try:
        rate = float(text) * 1e12
    except ValueError:
        rate = 0.0
    if not 0.0 < rate < float("inf"):
        names = ", ".join(SUSTAINED)
        raise UsageError(f"--rate {text}: expected TFLOP/s of one device, above 0, or one of {names}")
    return rate


def measured_rate(size: int = 1024, seconds: float = 0.5) -> float:
    """FLOP/s that this processor reaches in fp32 matrix products of ``size``, with torch's threads."""
    import time

    a, b = torch.randn(size, size), torch.randn(size, size)
    torch.mm(a, b)
    begin, count = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        torch.mm(a, b)
        count += 1
    return count * 2 * size**3 / (time.perf_counter() - begin)
