"""The lengths of parallel text as diagrams, PNG or SVG."""

from __future__ import annotations

from pathlib import Path

from transduce.data.information import Information
from transduce.figures import figure, write_figure

_SHARE = 0.995
"""The diagrams end where so many of the texts do."""


def plot_lengths(found: Information, path: Path) -> None:
    """Nothing; ``path`` shows how many texts have which length, and the ratio of the two sides."""
    drawn = figure(8.0, 9.0)
    words, characters, ratios = drawn.subplots(3)
    for axes, kind in ((words, "words"), (characters, "characters")):
        for name, side in (("source", found.source), ("target", found.target)):
            lengths = getattr(side, kind)
            last = lengths.quantile(_SHARE)
            axes.step(range(last + 1), [lengths.counts[n] for n in range(last + 1)], where="mid", label=name)
        axes.set(xlabel=kind, ylabel="pairs")
        axes.legend()
        axes.grid(alpha=0.3)
    steps = sorted(ratio for ratio in found.ratios if ratio <= 4)
    ratios.bar(steps, [found.ratios[ratio] for ratio in steps], width=0.08)
    ratios.set(xlabel="words of the target for each of the source", ylabel="pairs")
    ratios.grid(alpha=0.3)
    write_figure(drawn, path)
