"""The layer types of Table 1, as layers that can be run: what each costs and how far it reaches."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transduce.inspection.restricted_attention import restricted_attention
from transduce.model.attention import attention

HEADS, KERNEL, NEIGHBOURHOOD = 8, 3, 32
Sequence = Float[Tensor, "batch n d"]


class SelfAttention(nn.Module):
    """Equation 1 for every head over the whole sequence, or over ``r`` positions to each side.

    As Table 1 counts it: without the projections, which add 4 n d^2 multiplications to every kind of it.
    """

    def __init__(self, d: int, *, r: int = 0) -> None:
        super().__init__()
        self.r, self.heads = r, min(HEADS, d)

    def forward(self, x: Sequence) -> Sequence:
        """What the heads gather, side by side."""
        x = x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)
        y = restricted_attention(x, x, x, self.r) if self.r else attention(x, x, x)
        return y.transpose(1, 2).flatten(2)


class Recurrent(nn.Module):
    """An LSTM or GRU that reads from left to right."""

    def __init__(self, d: int, kind: type[nn.LSTM] | type[nn.GRU]) -> None:
        super().__init__()
        self.layer = kind(d, d, batch_first=True)

    def forward(self, x: Sequence) -> Sequence:
        """The hidden state at each position."""
        y: Tensor = self.layer(x)[0]
        return y


class Convolution(nn.Module):
    """One convolution of kernel k over the sequence, as wide as it came."""

    def __init__(self, d: int, dilation: int = 1) -> None:
        super().__init__()
        self.layer = nn.Conv1d(d, d, KERNEL, padding=dilation * (KERNEL // 2), dilation=dilation)

    def forward(self, x: Sequence) -> Sequence:
        """The convolution's output at each position."""
        y: Tensor = self.layer(x.transpose(1, 2))
        return y.transpose(1, 2)


@dataclass(frozen=True, kw_only=True)
class LayerType:
    """A row of Table 1: how to build it, and what the paper says of it.

    ``make(d, place)`` builds the layer at a place in a stack, counted from 0. ``operations`` are exact FLOPs
    of the matrix products of one layer over n positions; ``steps`` the operations that must follow each
    other; ``path`` the printed longest path, as a number.
    """

    name: str
    make: Callable[[int, int], nn.Module]
    operations: Callable[[int, int], int]
    printed: str
    time_n: int
    """The printed exponent of n in the operations; ``time_d`` that of d."""
    time_d: int
    steps: Callable[[int], int]
    printed_steps: str
    path: Callable[[int], int]
    printed_path: str


def _constant(_: int) -> int:
    return 1


def _whole(n: int) -> int:
    return n


LAYER_TYPES: tuple[LayerType, ...] = (
    LayerType(
        name="self-attention",
        make=lambda d, _: SelfAttention(d),
        operations=lambda n, d: 4 * n * n * d,
        printed="O(n^2 d)", time_n=2, time_d=1,
        steps=_constant, printed_steps="O(1)", path=_constant, printed_path="O(1)",
    ),
    LayerType(
        name="recurrent, LSTM",
        make=lambda d, _: Recurrent(d, nn.LSTM),
        operations=lambda n, d: 16 * n * d * d,
        printed="O(n d^2)", time_n=1, time_d=2,
        steps=_whole, printed_steps="O(n)", path=_whole, printed_path="O(n)",
    ),
    LayerType(
        name="recurrent, GRU",
        make=lambda d, _: Recurrent(d, nn.GRU),
        operations=lambda n, d: 12 * n * d * d,
        printed="O(n d^2)", time_n=1, time_d=2,
        steps=_whole, printed_steps="O(n)", path=_whole, printed_path="O(n)",
    ),
    LayerType(
        name="convolution, k = 3",
        make=lambda d, _: Convolution(d),
        operations=lambda n, d: 2 * KERNEL * n * d * d,
        printed="O(k n d^2)", time_n=1, time_d=2,
        steps=_constant, printed_steps="O(1)",
        path=lambda n: math.ceil((n - 1) / (KERNEL // 2)), printed_path="O(n/k)",
    ),
    LayerType(
        name="convolution, dilated",
        make=lambda d, place: Convolution(d, KERNEL**place),
        operations=lambda n, d: 2 * KERNEL * n * d * d,
        printed="O(k n d^2)", time_n=1, time_d=2,
        steps=_constant, printed_steps="O(1)",
        # To one side a stack of L layers reaches 1 + k + ... + k^(L-1) = (k^L - 1) / (k - 1) positions.
        path=lambda n: math.ceil(math.log((n - 1) * (KERNEL - 1) + 1, KERNEL) - 1e-9),
        printed_path="O(log_k n)",
    ),
    LayerType(
        name=f"self-attention, r = {NEIGHBOURHOOD}",
        make=lambda d, _: SelfAttention(d, r=NEIGHBOURHOOD),
        operations=lambda n, d: 12 * NEIGHBOURHOOD * -(-n // NEIGHBOURHOOD) * NEIGHBOURHOOD * d,
        printed="O(r n d)", time_n=1, time_d=1,
        steps=_constant, printed_steps="O(1)",
        path=lambda n: math.ceil((n - 1) / NEIGHBOURHOOD), printed_path="O(n/r)",
    ),
)  # fmt: skip


def longest_path(kind: LayerType, n: int, d: int = 8) -> int:
    """How many steps lie between the first position's input and the last one's output, by gradients.

    Layers are stacked until the gradient of the last position's output by the first position's input is not
    zero; they lie within a longer one, since a dilated convolution may pass beyond either end on its way.
    A layer whose positions follow each other, as in a recurrent one, takes n steps.
    """
    layers: list[nn.Module] = []
    while len(layers) < n:
        layers.append(kind.make(d, len(layers)).double())
        if _reaches(nn.Sequential(*layers), n, d):
            return len(layers) * kind.steps(n)
    raise AssertionError(f"{kind.name} does not reach over {n} positions")


def _reaches(stack: nn.Module, n: int, d: int) -> bool:
    for parameter in stack.parameters():
        # Small positive weights: nothing cancels, and no gate closes.
        nn.init.uniform_(parameter, 0.05, 0.1)
    x = torch.rand(1, 3 * n, d, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(stack(x)[0, 2 * n - 1].sum(), x)
    return bool((gradient[0, n] != 0).any())
