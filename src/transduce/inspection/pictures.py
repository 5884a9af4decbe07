"""Pictures by matplotlib (extra ``plots``): how they begin and end, and those of the paper's tables."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transduce.errors import UsageError
from transduce.files import atomic_writer


def figure(width: float, height: float) -> Any:
    """An empty matplotlib figure of so many inches; UsageError without the extra ``plots``."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError(
            'pictures need matplotlib: install it with `pip install "transduce[plots]"`'
        ) from None
    return Figure(figsize=(width, height), layout="constrained")


def write_figure(drawn: Any, path: str | Path) -> None:
    """Nothing; ``path`` (.png or .svg) holds the figure; equal figures give equal bytes."""
    from matplotlib import rc_context

    path, buffer = Path(path), io.BytesIO()
    with rc_context({"svg.hashsalt": "transduce"}):
        metadata = {"Date": None} if path.suffix == ".svg" else None
        drawn.savefig(buffer, format=path.suffix[1:], metadata=metadata)
    with atomic_writer(path) as file:
        file.write(buffer.getvalue())


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


def plot_curves(
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]], path: str | Path, *, x: str, y: str
) -> None:
    """Nothing; ``path`` shows the named curves, each a pair of xs and ys, in one picture."""
    drawn = figure(7.0, 4.2)
    axes = drawn.subplots()
    for name, (xs, ys) in curves.items():
        axes.plot(xs, ys, label=name)
    axes.set(xlabel=x, ylabel=y)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    write_figure(drawn, path)
