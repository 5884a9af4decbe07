"""What positions look like (section 3.5): similarity by distance, and whether an offset is a linear map."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from transduce.counts import counted
from transduce.errors import DataError
from transduce.model.positional_encoding import PositionalEncoding, sinusoids
from transduce.model.transformer import Transformer

Table = Float[Tensor, "positions d_model"]


@dataclass(frozen=True)
class Positions:
    """One table of positions and what can be said of it; distances and offsets count from 0 and 1."""

    name: str
    table: Table
    similarity: Float[Tensor, " distances"]
    """The mean cosine of the rows that lie so far apart; row 0 is the distance 0."""
    offset_error: Float[Tensor, " offsets"]
    """For the offsets 1, 2, ...: how badly the best linear map takes row p to row p + offset.

    The length of the error over the length of the row, root mean square over all p. Section 3.5 chose
    sinusoids since PE(pos + k) is a linear function of PE(pos) for every k: for them the error is 0. A matrix
    of d_model x d_model would fit any d_model rows, so the map has one rotation and scale for each pair of
    dimensions.
    """


def positions_of(name: str, table: Table, offsets: int = 20) -> Positions:
    """The table with its similarities and errors; DataError where it has too few rows for the offsets."""
    if len(table) <= offsets:
        raise DataError(f"{counted(len(table), 'position', 'are')} too few for offsets up to {offsets}")
    table = table.detach().double()
    rows = torch.nn.functional.normalize(table, dim=1)
    cosine = rows @ rows.T
    similarity = torch.stack([cosine.diagonal(distance).mean() for distance in range(len(table))])
    errors = torch.stack([_offset_error(table, offset) for offset in range(1, offsets + 1)])
    return Positions(name, table, similarity, errors)


def _offset_error(table: Table, offset: int) -> Tensor:
    """The error of the best rotation and scale of each pair of dimensions from row p to row p + offset.

    As complex numbers, a pair's best factor is <x, y> / <x, x>.
    """
    pairs = torch.view_as_complex(table.reshape(len(table), -1, 2).contiguous())
    x, y = pairs[:-offset], pairs[offset:]
    factor = (x.conj() * y).sum(0) / x.abs().square().sum(0).clamp(min=1e-30)
    return ((x * factor - y).abs().square().sum() / y.abs().square().sum()).sqrt()


def model_positions(model: Transformer, length: int = 0) -> list[Positions]:
    """The tables of the model's source and target, and the paper's sinusoids of the same size beside them.

    ``length`` rows (0: the model's ``max_length``). One table where both sides have the same; rotary
    positions have none, since they turn queries and keys by the sinusoids' angles: then only the sinusoids
    are given.
    """
    config = model.config
    length = length or config.max_length
    found: list[Positions] = []
    sides: list[tuple[str, PositionalEncoding]] = [
        ("source", model.source_positions),
        ("target", model.target_positions),
    ]
    if config.positions == "learned":
        found += [
            positions_of(f"learned, {side}", part.rows(length, part.learned.device)) for side, part in sides
        ]
    elif config.positions == "t2t":
        rows = model.source_positions.rows(length, torch.device("cpu"))
        # sines, then cosines: put together, so that a pair of dimensions is one frequency
        found.append(positions_of("t2t", torch.stack(rows.chunk(2, 1), 2).flatten(1)))
    return [*found, positions_of("sinusoid", sinusoids(length, config.d_model))]
