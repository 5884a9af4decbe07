"""Repeatable noise for sampling: a function of key, position and token, so that no neighbour can change it.

A generator hands out numbers in the order of the calls, which depends on what else is in a batch. Here the
number that a token gets is computed from what it belongs to, alike on every device.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

# The increment and multipliers of SplitMix64 (Steele, Lea and Flood, 2014), as signed numbers.
_STEP = 0x9E3779B97F4A7C15 - (1 << 64)
_FIRST = 0xBF58476D1CE4E5B9 - (1 << 64)
_SECOND = 0x94D049BB133111EB - (1 << 64)


def key_of(seed: int, ids: Sequence[int]) -> int:
    """A key of 64 bits (signed) for a source: equal sources have equal keys, wherever they stand."""
    text = f"{seed}:{','.join(map(str, ids))}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big", signed=True)


def row_keys(keys: Int[Tensor, " sentences"], samples: int) -> Int[Tensor, "sentences samples"]:
    """A key for each sample of each sentence; sample i has the same one however many there are."""
    return _mixed(keys[:, None] + _STEP * torch.arange(1, samples + 1, device=keys.device))


def gumbel(
    keys: Int[Tensor, " rows"],
    position: int,
    tokens: Int[Tensor, "rows n"] | Int[Tensor, "1 n"],
    dtype: torch.dtype,
) -> Float[Tensor, "rows n"]:
    """Noise -log(-log u), u uniform in (0, 1), for each token at a position of each row.

    The token with the highest sum of log P and this noise is a draw from P (Gumbel, 1954), and whether two
    batches agree on it does not hang on the last bit of a cumulative sum.
    """
    streams = _mixed(keys + _wrapped(_STEP * position))
    bits = _mixed(streams[:, None] + _STEP * (tokens + 1))
    precision = 53 if dtype == torch.float64 else 23
    whole = _shifted(bits, 64 - precision).to(dtype)
    return -torch.log(-torch.log((whole + 0.5) * 2.0**-precision))


def _wrapped(number: int) -> int:
    """The signed number of 64 bits that is left when the higher ones are dropped."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def _mixed(x: Tensor) -> Tensor:
    """The finaliser of SplitMix64; products wrap around."""
    x = (x ^ _shifted(x, 30)) * _FIRST
    x = (x ^ _shifted(x, 27)) * _SECOND
    return x ^ _shifted(x, 31)


def _shifted(x: Tensor, bits: int) -> Tensor:
    """The bits moved right, zeros moved in."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)
