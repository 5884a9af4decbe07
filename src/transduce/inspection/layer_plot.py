"""Table 1 as a picture: the time of each layer type over n and over d."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transduce.figures import figure, write_figure


def plot_table_1(rows: Sequence[dict[str, Any]], path: str | Path) -> None:
    """Nothing; ``path`` shows the time of each layer type over n and over d, both axes logarithmic."""
    drawn = figure(11.0, 4.2)
    for axes, sizes, name in zip(drawn.subplots(1, 2), ("over_n", "over_d"), ("n", "d"), strict=True):
        for row in rows:
            points = row[sizes]
            axes.loglog(
                [m[name] for m in points],
                [1000 * m["seconds"] for m in points],
                marker=".",
                label=row["layer"],
            )
        axes.set(xlabel=name, ylabel="ms, forward and backward")
        axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    write_figure(drawn, path)
