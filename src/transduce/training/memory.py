"""Memory that runs out: how it is known, and what is given back."""

from __future__ import annotations

import torch

_MESSAGES = ("out of memory", "can't allocate memory", "cannot allocate memory", "bad_alloc", "ALLOC_FAILED")


def out_of_memory(error: BaseException) -> bool:
    """Whether the error says that memory is short: Python's, torch's, or a library's below it."""
    said = isinstance(error, RuntimeError) and any(text in str(error) for text in _MESSAGES)
    return said or isinstance(error, MemoryError)


def release(device: str) -> None:
    """Nothing; what torch keeps of the device's memory for later is free again."""
    if device.startswith("cuda"):
        torch.cuda.empty_cache()
