"""In which numbers a forward pass multiplies; weights are float32 always."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch


def precision_context(device: str, precision: str) -> AbstractContextManager[Any]:
    """Autocast to bfloat16 where ``precision`` is "bf16"; the parameters stay in float32."""
    if precision == "bf16":
        return torch.autocast(torch.device(device).type, dtype=torch.bfloat16)
    return nullcontext()
