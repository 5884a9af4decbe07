"""Which positions may be seen (section 3.2.3). In every mask here True means "may be seen".

There is no mask for padding of the target: it stands after the end, so the causal mask hides it from every
real position, and the loss ignores what comes out at padded ones.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def source_mask(source: Int[Tensor, "batch source"], pad_id: int) -> Bool[Tensor, "batch 1 1 source"]:
    """True at real tokens of the source, for every head and query alike."""
    return (source != pad_id)[:, None, None, :]


def causal_mask(queries: int, offset: int, device: torch.device) -> Bool[Tensor, "queries keys"]:
    """True where a key is not in the query's future.

    ``offset`` tokens were decoded before: query i stands at position offset + i and there are offset +
    queries keys.
    """
    positions = torch.arange(offset + queries, device=device)
    return positions[None, :] <= positions[offset:, None]


def neighbourhood_mask(
    queries: int, offset: int, r: int, device: torch.device
) -> Bool[Tensor, "queries keys"]:
    """True where query and key stand at most ``r`` positions apart (Table 1, restricted self-attention)."""
    positions = torch.arange(offset + queries, device=device)
    return (positions[None, :] - positions[offset:, None]).abs() <= r
