"""Dropout (section 5.4) whose masks come from random bits: on CPUs about ten times as fast as PyTorch's."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

_LEVELS = 1 << 16


def keep_mask(shape: torch.Size, p: float, device: torch.device) -> Tensor:
    """Booleans, True (keep) with probability 1 - p to within 1 / 65,536.

    Drawn from torch's default generator, whose state is all that a resumed run must restore; one 64-bit draw
    serves four elements.
    """
    count = shape.numel()
    bits = torch.empty((count + 3) // 4, dtype=torch.int64, device=device).random_(-(2**63), None)
    # int16 values are uniform on -32768..32767, and `dropped` of the 65,536 mean "drop".
    return (bits.view(torch.int16)[:count] >= _dropped(p) - _LEVELS // 2).view(shape)


def _dropped(p: float) -> int:
    return min(round(p * _LEVELS), _LEVELS - 1)


class _DropoutFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, p: float) -> Tensor:
        mask = keep_mask(x.shape, p, x.device)
        ctx.save_for_backward(mask)
        # Scaled by the probability that the mask really has, so that the expectation is exact.
        ctx.scale = _LEVELS / (_LEVELS - _dropped(p))
        scaled: Tensor = x * ctx.scale
        return scaled.mul_(mask)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (mask,) = ctx.saved_tensors
        return (gradients[0] * ctx.scale).mul_(mask), None


class Dropout(nn.Module):
    """Zeroes elements with probability ``p`` during training and scales the others by 1 / (1 - p)."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """X itself outside training or at p = 0; zeros at p = 1."""
        if not self.training or self.p == 0.0:
            return x
        if self.p == 1.0:
            return x * 0.0
        if x.device.type != "cpu":
            return nn.functional.dropout(x, self.p)
        return _DropoutFunction.apply(x, self.p)  # type: ignore[no-any-return,no-untyped-call]

    def extra_repr(self) -> str:
        """The rate, for print(model)."""
        return f"p={self.p}"
