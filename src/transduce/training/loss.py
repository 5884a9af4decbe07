"""Section 5.4: label smoothing. The true class keeps 1 - epsilon, the other V - 1 classes share epsilon.

The loss takes the decoder's features and the output matrix, not logits: logits for a few hundred tokens at
a time are turned into loss and gradient at once, so that no (tokens x vocabulary) array is ever kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

# At most this many logits exist at a time: 16 MiB in float32, small enough to stay near the processor.
CHUNK_LOGITS = 1 << 22
# Where padding is left out before the products. To ask where it stands would make a GPU wait for the host, so
# there it is multiplied by zero instead.
COMPACT = ("cpu",)


@dataclass(frozen=True)
class Loss:
    """``smoothed``: what training lowers, times ``scale``; ``nll``: the plain one, summed."""

    smoothed: Float[Tensor, ""]
    nll: Float[Tensor, ""]


def smoothed_cross_entropy(
    features: Float[Tensor, "batch length d_model"],
    output: Float[Tensor, "vocabulary d_model"],
    targets: Int[Tensor, "batch length"],
    *,
    smoothing: float,
    pad_id: int,
    scale: float = 1.0,
) -> Loss:
    """The smoothed cross-entropy of all real target tokens, summed and multiplied by ``scale``.

    With ``scale`` = 1 / (target tokens of the whole update) the gradients of its micro-batches add up to that
    of one large batch. Padding adds exactly nothing.
    """
    dtype = (
        torch.get_autocast_dtype(features.device.type)
        if torch.is_autocast_enabled(features.device.type)
        else None
    )
    smoothed, nll = _FusedCrossEntropy.apply(  # type: ignore[no-untyped-call]
        features, output, targets, (smoothing, pad_id, scale, dtype or features.dtype)
    )
    return Loss(smoothed, nll)


def plain_smoothed_cross_entropy(
    logits: Float[Tensor, "tokens vocabulary"], targets: Int[Tensor, " tokens"], smoothing: float
) -> Float[Tensor, " tokens"]:
    """The same written plainly, per token: the oracle, and what scores given translations."""
    log_p = logits.float().log_softmax(-1)
    other = smoothing / (logits.shape[-1] - 1)
    true = log_p.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    return -(1 - smoothing - other) * true - other * log_p.sum(-1)


class _FusedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, features: Tensor, output: Tensor, targets: Tensor, how: tuple[Any, ...]
    ) -> tuple[Tensor, Tensor]:
        smoothing, pad_id, scale, dtype = how
        x, true = features.reshape(-1, features.shape[-1]).to(dtype), targets.reshape(-1)
        real, padding = None, (true == pad_id).unsqueeze(1)
        if x.device.type in COMPACT:
            real = (~padding).nonzero()[:, 0]
            x, true, padding = x.index_select(0, real), true.index_select(0, real), padding[real]
        else:
            x = x.masked_fill(padding, 0.0)
        matrix = output.to(dtype)
        other = smoothing / (len(output) - 1)
        needs_gradient = any(ctx.needs_input_grad[:2])
        d_x, d_matrix = torch.empty_like(x), torch.zeros_like(output)
        sums = output.sum(0)
        smoothed = nll = torch.zeros((), device=x.device)
        rows = max(1, CHUNK_LOGITS // len(output))
        with torch.autocast(x.device.type, enabled=False):
            for begin in range(0, len(x), rows):
                part, goal = x[begin : begin + rows], true[begin : begin + rows].unsqueeze(1)
                logits = part @ matrix.t()
                log_p = logits.log_softmax(-1, dtype=torch.float32)
                log_true = log_p.gather(1, goal)
                # sum_j log p_j = sum_j logit_j - V log Z, without another pass over the vocabulary
                log_z = logits.gather(1, goal).float() - log_true
                log_all = (part.float() @ sums).unsqueeze(1) - len(output) * log_z
                if real is None:
                    log_true, log_all = (
                        each.masked_fill(padding[begin : begin + rows], 0.0) for each in (log_true, log_all)
                    )
                nll = nll - log_true.sum()
                smoothed = smoothed - (1 - smoothing - other) * log_true.sum() - other * log_all.sum()
                if needs_gradient:
                    # d loss / d logits = p - (1 - smoothing - other) [true] - other; the last, constant term
                    # is added to the two products afterwards.
                    p = (
                        log_p.exp_()
                        .scatter_add_(1, goal, torch.full_like(log_true, smoothing + other - 1))
                        .to(dtype)
                    )
                    torch.mm(p, matrix, out=d_x[begin : begin + rows])
                    if p.dtype == d_matrix.dtype:  # added in the product itself: one pass less
                        d_matrix.addmm_(p.t(), part)
                    else:
                        d_matrix += p.t() @ part
        if needs_gradient:
            d_x, d_matrix = d_x.float() - other * sums, d_matrix - other * x.sum(0, dtype=torch.float32)
            if real is None:
                d_x = d_x.masked_fill(padding, 0.0)
        ctx.save_for_backward(real, d_x.mul_(scale), d_matrix.mul_(scale))
        ctx.shape, ctx.dtype = features.shape, features.dtype
        ctx.mark_non_differentiable(nll)
        return smoothed * scale, nll

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        real, d_x, d_matrix = ctx.saved_tensors
        d_x = (d_x * gradients[0]).to(ctx.dtype)
        if real is None:
            return d_x.view(ctx.shape), d_matrix * gradients[0], None, None
        d_features = torch.zeros(ctx.shape, dtype=ctx.dtype, device=d_x.device)
        d_features.view(-1, ctx.shape[-1]).index_copy_(0, real, d_x)
        return d_features, d_matrix * gradients[0], None, None
