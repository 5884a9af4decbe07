"""How much BLEU a model loses without each head: every head is masked in turn, and everything translated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from transduce.bundle import Bundle
from transduce.decoding.translator import Translator
from transduce.inspection.attention_maps import attentions
from transduce.inspection.head_importance import scaled_heads, without_head
from transduce.model.attention import MultiHeadAttention

Table = Float[Tensor, "layers heads"]
Score = Callable[[Sequence[str], Sequence[str]], float]
"""BLEU of outputs and their references."""


def bleu_by_masking(
    bundle: Bundle,
    pairs: Sequence[tuple[str, str]],
    *,
    score: Score,
    beam: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Table]:
    """BLEU (what ``score`` says) without each head less that with all; negative where the head is needed."""
    translator = Translator(bundle)
    base = _scored(translator, pairs, beam, score)
    modules = attentions(bundle.model)
    done, total = 0, sum(module.heads for group in modules.values() for module in group)
    found = {}
    for kind, group in modules.items():
        table = torch.zeros(len(group), bundle.model.config.heads)
        for layer, module in enumerate(group):
            for head in range(module.heads):
                with scaled_heads(without_head(module, head)):
                    table[layer, head] = _scored(translator, pairs, beam, score) - base
                done += 1
                if progress is not None:
                    progress(done, total)
        found[kind] = table
    return found


def bleu_of_fewer_heads(
    bundle: Bundle,
    importance: Mapping[str, Table],
    pairs: Sequence[tuple[str, str]],
    counts: Sequence[int],
    *,
    score: Score,
    beam: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> list[float]:
    """BLEU with the least important ``counts`` heads of the whole model masked, for each of the counts.

    As Michel, Levy and Neubig (2019) prune: all heads of the model in one order, and no training on.
    """
    modules = attentions(bundle.model)
    order = sorted(
        (float(importance[kind][layer, head]), kind, layer, head)
        for kind, group in modules.items()
        for layer in range(len(group))
        for head in range(bundle.model.config.heads)
    )
    translator = Translator(bundle)
    found = []
    for done, count in enumerate(counts, 1):
        scales: dict[MultiHeadAttention, Tensor] = {}
        for _, kind, layer, head in order[:count]:
            module = modules[kind][layer]
            scales.setdefault(module, torch.ones(module.heads))[head] = 0.0
        with scaled_heads(scales):
            found.append(_scored(translator, pairs, beam, score))
        if progress is not None:
            progress(done, len(counts))
    return found


def _scored(translator: Translator, pairs: Sequence[tuple[str, str]], beam: int, score: Score) -> float:
    outputs = translator.translate([source for source, _ in pairs], beam=beam)
    return score(outputs, [target for _, target in pairs])
