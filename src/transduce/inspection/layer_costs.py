"""Table 1 by stopwatch: time and memory of each layer type over n and d, and the exponents that fit."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from transduce.inspection.layer_types import LAYER_TYPES, LayerType, longest_path


@dataclass(frozen=True)
class Measured:
    """One layer at one size: seconds of forward and backward (the median), bytes kept in between."""

    n: int
    d: int
    seconds: float
    bytes_kept: int


def measure(layer: nn.Module, n: int, d: int, *, seconds: float = 0.2, least: int = 3) -> Measured:
    """What one sequence of n positions of width d costs to learn from, repeated for about so many seconds."""
    x = torch.randn(1, n, d, requires_grad=True)
    kept = _bytes_kept(layer, x)
    layer(x).sum().backward()
    times: list[float] = []
    begin = time.perf_counter()
    while len(times) < least or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        layer(x).sum().backward()
        times.append(time.perf_counter() - start)
    return Measured(n, d, sorted(times)[len(times) // 2], kept)


def _bytes_kept(layer: nn.Module, x: Tensor) -> int:
    """The bytes of all storages, parameters and input apart, that the backward pass holds on to."""
    own = {parameter.untyped_storage().data_ptr() for parameter in layer.parameters()}
    own.add(x.untyped_storage().data_ptr())
    held: dict[int, tuple[Tensor, int]] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            held[storage.data_ptr()] = (
                tensor,
                storage.nbytes(),
            )  # the tensor too, so its address stays taken
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = layer(x)
    total = sum(size for _, size in held.values())
    del result
    return total


def exponent(sizes: Sequence[int], values: Sequence[float] | Sequence[int]) -> float:
    """The slope of log value over log size, by least squares: how the value grows with the size."""
    x, y = [math.log(size) for size in sizes], [math.log(value) for value in values]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    rise = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return rise / sum((a - mean_x) ** 2 for a in x)


def crossing(sizes: Sequence[int], one: Sequence[float], other: Sequence[float]) -> float | None:
    """The size from which ``one`` costs more than ``other``, or None; straight in logarithms."""
    gaps = [math.log(a / b) for a, b in zip(one, other, strict=True)]
    for i in range(len(gaps) - 1, 0, -1):
        if gaps[i - 1] < 0 <= gaps[i]:
            share = -gaps[i - 1] / (gaps[i] - gaps[i - 1])
            return math.exp(math.log(sizes[i - 1]) + share * math.log(sizes[i] / sizes[i - 1]))
    return None


def table_1(
    lengths: Sequence[int],
    widths: Sequence[int],
    *,
    d: int,
    n: int,
    seconds: float = 0.2,
    progress: Callable[[int, int], None] | None = None,
) -> list[dict[str, Any]]:
    """A row for each layer type: counts, the measured path, times and memory over ``lengths`` (width ``d``)
    and over ``widths`` (length ``n``), and the exponents beside the printed ones."""  # fmt: skip
    rows = []
    total, done = len(LAYER_TYPES) * (len(lengths) + len(widths)), 0
    for kind in LAYER_TYPES:
        sizes = [(size, d) for size in lengths] + [(n, size) for size in widths]
        found = []
        for size in sizes:
            found.append(measure(kind.make(size[1], 0), *size, seconds=seconds))
            done += 1
            if progress is not None:
                progress(done, total)
        rows.append(_row(kind, found[: len(lengths)], found[len(lengths) :], n, d))
    return rows


def _row(
    kind: LayerType, over_n: Sequence[Measured], over_d: Sequence[Measured], n: int, d: int
) -> dict[str, Any]:
    lengths, widths = [m.n for m in over_n], [m.d for m in over_d]
    reach = min(n, 128)
    return {
        "layer": kind.name,
        "printed_operations": kind.printed,
        "operations": kind.operations(n, d),
        "sequential_steps": kind.steps(n),
        "printed_steps": kind.printed_steps,
        "longest_path": longest_path(kind, reach),
        "longest_path_of": reach,
        "path_by_formula": kind.path(n),
        "printed_path": kind.printed_path,
        "printed_exponents": {"n": kind.time_n, "d": kind.time_d},
        "operation_exponents": {
            "n": exponent(lengths, [kind.operations(size, d) for size in lengths]),
            "d": exponent(widths, [kind.operations(n, size) for size in widths]),
        },
        "time_exponents": {
            "n": exponent(lengths, [m.seconds for m in over_n]),
            "d": exponent(widths, [m.seconds for m in over_d]),
        },
        "memory_exponents": {
            "n": exponent(lengths, [max(1, m.bytes_kept) for m in over_n]),
            "d": exponent(widths, [max(1, m.bytes_kept) for m in over_d]),
        },
        "over_n": [vars(m) for m in over_n],
        "over_d": [vars(m) for m in over_d],
    }
