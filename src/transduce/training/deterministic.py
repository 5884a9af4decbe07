"""The same bits from the same run on a GPU as well: only kernels that always add up in the same order."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def deterministic(wanted: bool) -> Iterator[None]:
    """Nothing; until left, torch uses no kernel whose result may vary, if ``wanted``.

    To be entered before CUDA is first used.
    On a CPU our kernels are of that kind anyway. An operation that has no such kernel raises an error.
    """
    if not wanted:
        yield
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # what torch demands for matrix products
    before = torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.benchmark
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0])
        torch.backends.cudnn.benchmark = before[1]
