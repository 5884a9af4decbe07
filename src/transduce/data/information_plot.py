"""The lengths of parallel text as diagrams, PNG or SVG."""

from __future__ import annotations

import io
from pathlib import Path

from transduce.data.information import Information
from transduce.errors import UsageError
from transduce.files import write_bytes

_ENDINGS = (".png", ".svg")
_SHARE = 0.995
"""The diagrams end where so many of the texts do."""


def check_plot(path: Path) -> None:
    """Nothing; UsageError where no plot can be drawn under this name, before anything is read."""
    if path.suffix not in _ENDINGS:
        raise UsageError(f"{path}: a plot is written as PNG or SVG; end its name in {' or '.join(_ENDINGS)}")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise UsageError(f"{path}: is a folder, or in none that exists; name a file in an existing folder")
    try:
        import matplotlib.figure  # noqa: F401 - only whether it is there
    except ImportError:
        raise UsageError(
            f"{path}: drawing needs matplotlib; install it with `pip install 'transduce[plots]'`"
        ) from None


def plot_lengths(found: Information, path: Path) -> None:
    """Nothing; ``path`` shows how many texts have which length, and the ratio of the two sides."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    # The same text gives the same file: no date, no random names.
    with rc_context({"svg.hashsalt": "transduce", "svg.fonttype": "none"}):
        figure = Figure(figsize=(8, 9), layout="constrained")
        words, characters, ratios = figure.subplots(3)
        for axes, kind in ((words, "words"), (characters, "characters")):
            for name, side in (("source", found.source), ("target", found.target)):
                lengths = getattr(side, kind)
                last = lengths.quantile(_SHARE)
                axes.step(
                    range(last + 1), [lengths.counts[n] for n in range(last + 1)], where="mid", label=name
                )
            axes.set(xlabel=kind, ylabel="pairs")
            axes.legend()
            axes.grid(alpha=0.3)
        steps = sorted(ratio for ratio in found.ratios if ratio <= 4)
        ratios.bar(steps, [found.ratios[ratio] for ratio in steps], width=0.08)
        ratios.set(xlabel="words of the target for each of the source", ylabel="pairs")
        ratios.grid(alpha=0.3)
        content = io.BytesIO()
        metadata = {"Date": None} if path.suffix == ".svg" else {}
        figure.savefig(content, format=path.suffix[1:], dpi=150, metadata=metadata)
    write_bytes(path, content.getvalue())
