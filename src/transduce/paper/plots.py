"""The paper's tables and experiments as pictures (matplotlib, extra ``plots``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transduce.counts import counted
from transduce.figures import figure, write_figure
from transduce.paper import table2, table4

_OWN, _PRINTED = "tab:red", "tab:gray"


def plot_table_2(rows: Sequence[Mapping[str, Any]], language: str, path: str | Path) -> None:
    """Nothing; ``path`` shows the paper's BLEU over the cost of training; a line where no cost is known."""
    drawn = figure(7.5, 4.8)
    axes = drawn.subplots()
    for row in table2.PRINTED:
        bleu, flops = (getattr(row, f"{what}_{language}") for what in ("bleu", "flops"))
        if bleu is not None and flops is not None:
            _point(axes, flops, bleu, row.system, _PRINTED)
    for found in rows:
        if found["flops"] is None:
            axes.axhline(found["paper_bleu"], color=_OWN, linestyle="--", linewidth=1)
            axes.annotate(
                found["system"], (0, found["paper_bleu"]), xycoords=("axes fraction", "data"), fontsize=7
            )
        else:
            _point(axes, found["flops"]["paper_unit"], found["paper_bleu"], found["system"], _OWN)
    axes.set(xscale="log", xlabel="training cost, FLOPs in the paper's unit", ylabel="BLEU as in the paper")
    axes.grid(alpha=0.3)
    write_figure(drawn, path)


def _point(axes: Any, x: float, y: float, name: str, color: str) -> None:
    axes.plot([x], [y], "o", color=color)
    axes.annotate(name, (x, y), xytext=(4, 3), textcoords="offset points", fontsize=7)


def plot_table_3(rows: Sequence[Mapping[str, Any]], path: str | Path) -> None:
    """Nothing; ``path`` shows how far each row's BLEU and perplexity are from base's, here and as printed.

    ``rows`` are those of `transduce.paper.table3.summary`; where there is no base, nothing is shown.
    """
    compared = [row for row in rows if "bleu_difference" in row]
    drawn = figure(9.0, 1.2 + 0.3 * len(compared))
    for axes, name in zip(drawn.subplots(1, 2, sharey=True), ("bleu", "perplexity"), strict=True):
        for shift, color, kind, label in (
            (-0.2, _OWN, f"{name}_difference", "here"),
            (0.2, _PRINTED, f"printed_{name}_difference", "printed"),
        ):
            axes.barh(
                [at + shift for at in range(len(compared))],
                [row[kind] for row in compared],
                height=0.38,
                color=color,
                label=label,
            )
        axes.axvline(0, color="black", linewidth=0.8)
        axes.set(xlabel=f"{'BLEU' if name == 'bleu' else name} less that of base")
        axes.grid(alpha=0.3, axis="x")
    axes.set_yticks(range(len(compared)), [row["row"] for row in compared])
    axes.invert_yaxis()
    axes.legend(fontsize=8)
    write_figure(drawn, path)


def plot_table_4(f1: float, what: str, path: str | Path) -> None:
    """Nothing; ``path`` shows a parser's bracket F1, called ``what``, below the printed ones."""
    names = [*table4.PRINTED, what]
    drawn = figure(7.5, 3.0)
    axes = drawn.subplots()
    bars = axes.barh(names, [*table4.PRINTED.values(), f1], color=[_PRINTED] * len(table4.PRINTED) + [_OWN])
    axes.bar_label(bars, fmt="%.1f", padding=2, fontsize=8)
    axes.set(xlabel="labelled bracket F1", xlim=(0, 105))
    axes.invert_yaxis()
    write_figure(drawn, path)


def plot_baselines(rows: Sequence[Mapping[str, Any]], path: str | Path) -> None:
    """Nothing; ``path`` shows the perplexity of what each system was trained on, over updates and seconds."""
    drawn = figure(10.0, 4.2)
    for axes, name in zip(drawn.subplots(1, 2, sharey=True), ("updates", "seconds"), strict=True):
        for row in rows:
            xs = [point[name] for point in row["curve"]]
            axes.semilogy(
                xs, [point["perplexity"] for point in row["curve"]], marker=".", label=row["system"]
            )
        axes.set(xlabel=name)
        axes.grid(alpha=0.3)
    drawn.axes[0].set(ylabel="perplexity in training")
    axes.legend(fontsize=8)
    write_figure(drawn, path)


def plot_norms(rows: Sequence[Mapping[str, Any]], path: str | Path) -> None:
    """Nothing; ``path`` shows output and gradient of each layer, post-norm and pre-norm, at each moment."""
    counts = sorted({row["updates"] for row in rows})
    kinds = tuple(dict.fromkeys(row["norm"] for row in rows))
    drawn = figure(10.0, 1.0 + 2.6 * len(counts))
    grid = drawn.subplots(len(counts), 2, sharex=True, squeeze=False)
    for count, line in zip(counts, grid, strict=True):
        for axes, name in zip(line, ("activation", "gradient"), strict=True):
            for kind in kinds:
                own = [row for row in rows if (row["norm"], row["updates"]) == (kind, count)]
                labels = [f"{row['stack'][0]}{row['layer']}" for row in own]
                axes.semilogy(labels, [row[name] for row in own], marker=".", label=f"{kind}-norm")
            axes.set(title=f"{name}, {counted(count, 'update')}")
            axes.title.set_fontsize(9)
            axes.grid(alpha=0.3)
    grid[-1][-1].legend(fontsize=8)
    write_figure(drawn, path)
