"""Section 3.5: where a token stands.

PE(pos, 2i) = sin(pos / 10000^(2i / d_model)),  PE(pos, 2i + 1) = cos(pos / 10000^(2i / d_model))
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from transduce.errors import DataError
from transduce.model.config import OUTPUT_RESERVE, ModelConfig


def sinusoids(positions: int, d_model: int, offset: int = 0) -> Float[Tensor, "positions d_model"]:
    """The paper's table from position ``offset`` on, in float64: sine and cosine interleaved."""
    frequencies = 10_000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angles = torch.arange(offset, offset + positions, dtype=torch.float64)[:, None] * frequencies
    return torch.stack([angles.sin(), angles.cos()], dim=-1).reshape(positions, d_model)


def t2t_sinusoids(positions: int, d_model: int) -> Float[Tensor, "positions d_model"]:
    """tensor2tensor's table in float64: all sines, then all cosines, with exponent i / (d_model / 2 - 1)."""
    half = d_model // 2
    exponent = torch.arange(half, dtype=torch.float64) / max(half - 1, 1)
    angles = torch.arange(positions, dtype=torch.float64)[:, None] * 10_000.0**-exponent
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


class PositionalEncoding(nn.Module):
    """Adds the positions ``offset``, ``offset`` + 1, ... to a sequence of scaled embeddings.

    Sinusoids are functions of the position, so their table grows as needed. A learned table (Table 3,
    row E) has ``max_length`` + 64 rows and raises DataError beyond. Rotary positions act inside attention
    and add nothing here.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.kind, self.d_model, self.max_length = config.positions, config.d_model, config.max_length
        if self.kind == "learned":
            self.learned = nn.Parameter(torch.empty(self.max_length + OUTPUT_RESERVE, self.d_model))
        # Not a buffer: half() would round it for good, a model built on the meta device would keep it empty,
        # and data-parallel ranks would send each other tables of different lengths.
        self.table = torch.empty(0, self.d_model)

    def forward(
        self,
        x: Float[Tensor, "batch length d_model"],
        offset: int = 0,
        real: Bool[Tensor, "batch length"] | None = None,
    ) -> Float[Tensor, "batch length d_model"]:
        """X plus its positions; where ``real`` is given, only real tokens count, so the first one has 0."""
        if self.kind == "rotary":
            return x
        rows = self.rows(offset + x.shape[1], x.device)[offset:]
        if real is not None:
            rows = rows[(real.cumsum(1) - 1).clamp(min=0)]
        return x + rows.to(x.dtype)

    def rows(self, length: int, device: torch.device) -> Float[Tensor, "length d_model"]:
        """The first ``length`` rows of the table; raises DataError beyond the end of a learned one."""
        if self.kind == "learned":
            if length > len(self.learned):
                raise DataError(
                    f"a sequence of {length} tokens is longer than this model's {len(self.learned)} learned "
                    f"positions (model.max_length = {self.max_length}); split or truncate the line"
                )
            return self.learned[:length]
        table = self.table
        if length > len(table) or table.device != device:
            formula = sinusoids if self.kind == "sinusoid" else t2t_sinusoids
            table = formula(max(length, 2 * len(table), 128), self.d_model).float().to(device)
            self.table = table
        return table[:length]


class Rotary(nn.Module):
    """Rotary positions: each pair of dimensions of a query or key is turned by its position's angle.

    The angles are those of the paper's sinusoids; the dot product then depends on the distance alone (Su et
    al., 2021, RoFormer, equation 34). A departure from the paper, off by default.
    """

    def forward(
        self, x: Float[Tensor, "batch heads length d_k"], offset: int
    ) -> Float[Tensor, "batch heads length d_k"]:
        """X with position ``offset`` + i turned into its i-th vector."""
        length, d_k = x.shape[-2:]
        table = sinusoids(length, d_k, offset).to(x.dtype).to(x.device)  # some devices have no float64
        sine, cosine = table[:, 0::2], table[:, 1::2]
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.stack([even * cosine - odd * sine, even * sine + odd * cosine], dim=-1).flatten(-2)
