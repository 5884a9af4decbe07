"""Self-attention restricted to a neighbourhood (Table 1, last row) whose cost really is O(r n d).

The model's own setting ``neighbourhood`` hides what lies outside by a mask, which still computes all n x n
scores. Here the sequence is cut into blocks of r positions; a block's queries meet the keys of their own
block and of the two beside it, so that each position costs 3 r dot products whatever n is.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad


def restricted_attention(
    q: Float[Tensor, "batch heads n d_k"],
    k: Float[Tensor, "batch heads n d_k"],
    v: Float[Tensor, "batch heads n d_v"],
    r: int,
) -> Float[Tensor, "batch heads n d_v"]:
    """Equation 1 where position i sees the positions i - r to i + r alone."""
    assert r >= 1
    n = q.shape[2]
    blocks = -(-n // r)
    spare = blocks * r - n

    def cut(x: Tensor) -> Tensor:
        return pad(x, (0, 0, 0, spare)).view(*x.shape[:2], blocks, r, x.shape[3])

    def beside(x: Tensor) -> Tensor:
        """Each block with the one before it and the one after it: [..., blocks, 3 r, d]."""
        wide = pad(x, (0, 0, r, r + spare)).view(*x.shape[:2], blocks + 2, r, x.shape[3])
        return torch.cat([wide[:, :, :-2], wide[:, :, 1:-1], wide[:, :, 2:]], 3)

    scores = cut(q) @ beside(k).transpose(-2, -1) / math.sqrt(q.shape[-1])
    place = torch.arange(blocks * r, device=q.device).view(blocks, r, 1)
    other = torch.arange(-r, 2 * r, device=q.device) + torch.arange(blocks, device=q.device)[:, None] * r
    other = other[:, None]
    seen = ((place - other).abs() <= r) & (other >= 0) & (other < n)
    # A position of the filling sees nothing; whatever it gets is cut off again.
    weights = scores.masked_fill(~seen, torch.finfo(scores.dtype).min).softmax(-1)
    return (weights @ beside(v)).flatten(2, 3)[:, :, :n]
