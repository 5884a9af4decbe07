"""Pictures by matplotlib (extra ``plots``): asked for before the work, begun, and written."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transduce.errors import UsageError
from transduce.files import write_bytes

ENDINGS = (".png", ".svg")


def check_plot(path: str | Path) -> None:
    """Nothing; UsageError where no picture can be written under this name, before anything is read."""
    path = Path(path)
    if path.suffix not in ENDINGS:
        raise UsageError(f"{path}: a plot is written as PNG or SVG; end its name in {' or '.join(ENDINGS)}")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise UsageError(f"{path}: is a folder, or in none that exists; name a file in an existing folder")
    check_matplotlib()


def check_matplotlib() -> None:
    """Nothing; UsageError, with the remedy, where matplotlib is not there."""
    try:
        import matplotlib.figure  # noqa: F401 - whether it is there, and whole
    except ImportError as error:
        raise UsageError(
            f"plots need matplotlib ({error}): pip install matplotlib, or 'transduce[plots]'"
        ) from error


def figure(width: float, height: float) -> Any:
    """An empty figure of so many inches, which needs no screen; UsageError without matplotlib."""
    check_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def write_figure(drawn: Any, path: str | Path) -> None:
    """Nothing; ``path`` (.png or .svg) holds the figure; equal figures give equal bytes."""
    from matplotlib import rc_context

    path, content = Path(path), io.BytesIO()
    # No date and no random names go into the file; the text of an SVG stays text.
    with rc_context({"svg.hashsalt": "transduce", "svg.fonttype": "none"}):
        metadata = {"Date": None} if path.suffix == ".svg" else {}
        drawn.savefig(content, format=path.suffix[1:], dpi=150, metadata=metadata)
    write_bytes(path, content.getvalue())


def plot_lines(
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
