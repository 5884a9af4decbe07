"""Positions as pictures: the table itself, similarity by distance, and the error of linear offsets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from transduce.figures import figure, write_figure
from transduce.inspection.positions import Positions


def draw_positions(found: Sequence[Positions], path: str | Path) -> None:
    """Nothing; ``path`` (.png or .svg) shows each table in a row of its own."""
    drawn = figure(12.0, 3.2 * len(found))
    for row, of in zip(drawn.subplots(len(found), 3, squeeze=False), found, strict=True):
        table, similarity, error = row
        limit = float(of.table.abs().max())
        table.imshow(of.table.numpy(), aspect="auto", cmap="RdBu", vmin=-limit, vmax=limit)
        table.set(title=f"{of.name}: the table", xlabel="dimension", ylabel="position")
        similarity.plot(of.similarity.numpy())
        similarity.set(title="mean cosine by distance", xlabel="distance", ylim=(-1.05, 1.05))
        error.plot(range(1, len(of.offset_error) + 1), of.offset_error.numpy(), marker=".")
        error.set(title="error of the best linear map", xlabel="offset", ylim=(-0.05, 1.05))
    write_figure(drawn, path)
