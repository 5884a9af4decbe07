"""How much each attention head matters: by masking it, and by the gradient of the loss.

Masking: the head's output is set to zero before W^O, one head at a time. Gradient: each head's output is
multiplied by a number that is 1, and the mean over the pairs of the size of the loss's derivative by that
number is taken (Michel, Levy and Neubig 2019, equation 2): one backward pass for all heads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transduce.bundle import Bundle
from transduce.decoding.batches import batches
from transduce.decoding.scoring import shifted
from transduce.errors import DataError
from transduce.inspection.attention_maps import attentions
from transduce.model.attention import MultiHeadAttention
from transduce.model.transformer import Transformer

Table = Float[Tensor, "layers heads"]
BATCH_TOKENS = 4096


@contextmanager
def scaled_heads(scales: Mapping[MultiHeadAttention, Float[Tensor, ...]]) -> Iterator[None]:
    """Nothing; meanwhile the outputs of the modules' heads are multiplied by these numbers before W^O.

    They are [heads], or [batch, heads] where every sequence has its own. A model that is searched with must
    be run by PyTorch for this to act.
    """

    def multiply(module: MultiHeadAttention, scale: Tensor) -> Callable[..., tuple[Tensor]]:
        def hook(_: nn.Module, arguments: tuple[Tensor, ...]) -> tuple[Tensor]:
            x = arguments[0]
            heads = x.view(*x.shape[:2], module.heads, module.d_v)
            numbers = scale.to(x)
            numbers = numbers[:, None, :, None] if numbers.dim() == 2 else numbers[:, None]
            return ((heads * numbers).flatten(2),)

        return hook

    with ExitStack() as stack:
        for module, scale in scales.items():
            stack.callback(module.o.register_forward_pre_hook(multiply(module, scale)).remove)
        yield


def without_head(module: MultiHeadAttention, head: int) -> dict[MultiHeadAttention, Tensor]:
    """What `scaled_heads` takes to mask one head, counted from 0."""
    scale = torch.ones(module.heads)
    scale[head] = 0.0
    return {module: scale}


Batch = tuple[Tensor, Tensor, Tensor]


def batched_pairs(bundle: Bundle, pairs: Sequence[tuple[str, str]]) -> list[Batch]:
    """Source, target_in and target_out of the pairs in batches of about equal length; DataError without any.

    Pairs with an empty side are left out.
    """
    config, tokenizer = bundle.model.config, bundle.tokenizer
    real = [(source, target) for source, target in pairs if source.strip() and target.strip()]
    if not real:
        raise DataError("no pairs with text on both sides; give some to measure the heads on")
    sources = [torch.tensor([*tokenizer.encode(source), config.eos_id]) for source, _ in real]
    targets = [(*tokenizer.encode_target(target), config.eos_id) for _, target in real]
    lengths = [max(len(s), len(t)) for s, t in zip(sources, targets, strict=True)]
    found = []
    for chosen in batches(lengths, BATCH_TOKENS, 1):
        source = torch.nn.utils.rnn.pad_sequence(
            [sources[i] for i in chosen], batch_first=True, padding_value=config.pad_id
        )
        target_in, target_out = shifted([targets[i] for i in chosen], config.start_id, config.pad_id)
        found.append((source, target_in, target_out))
    return found


def loss_of(model: Transformer, data: Sequence[Batch]) -> float:
    """The mean negative log-likelihood of a target token, in nats; no label smoothing."""
    total, tokens = 0.0, 0
    with torch.inference_mode():
        for batch in data:
            total += float(_losses(model, batch).double().sum())
            tokens += int((batch[2] != model.config.pad_id).sum())
    return total / tokens


def _losses(model: Transformer, batch: Batch) -> Float[Tensor, " pairs"]:
    source, target_in, target_out = (x.to(next(model.parameters()).device) for x in batch)
    logits = model(source, target_in)
    return nn.functional.cross_entropy(
        logits.transpose(1, 2), target_out, ignore_index=model.config.pad_id, reduction="none"
    ).sum(1)


def importance_by_masking(
    model: Transformer, data: Sequence[Batch], progress: Callable[[int, int], None] | None = None
) -> dict[str, Table]:
    """How much the loss (nats a target token) rises without each head; negative where it falls."""
    base = loss_of(model, data)
    found = {}
    modules = attentions(model)
    done, total = 0, sum(module.heads for group in modules.values() for module in group)
    for kind, group in modules.items():
        table = torch.zeros(len(group), model.config.heads)
        for layer, module in enumerate(group):
            for head in range(module.heads):
                with scaled_heads(without_head(module, head)):
                    table[layer, head] = loss_of(model, data) - base
                done += 1
                if progress is not None:
                    progress(done, total)
        found[kind] = table
    return found


def importance_by_gradient(model: Transformer, data: Sequence[Batch]) -> dict[str, Table]:
    """The mean over pairs of |d loss / d scale| of each head's output, its pair's loss summed over tokens."""
    modules = attentions(model)
    sums = {kind: torch.zeros(len(group), model.config.heads) for kind, group in modules.items()}
    pairs = 0
    for batch in data:
        rows = len(batch[0])
        scales = {
            module: torch.ones(rows, module.heads, requires_grad=True)
            for group in modules.values()
            for module in group
        }
        with torch.enable_grad(), scaled_heads(scales):
            loss = _losses(model, batch).sum()
            # The rows do not meet, so the derivative by a row's scale is that of its own pair's loss.
            gradients = dict(zip(scales, torch.autograd.grad(loss, list(scales.values())), strict=True))
        for kind, group in modules.items():
            sums[kind] += torch.stack([gradients[module].abs().sum(0) for module in group])
        pairs += rows
    return {kind: table / pairs for kind, table in sums.items()}
