"""``transduce runs``: the runs below a folder with their state and scores, and their curves."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transduce.errors import DataError, UsageError

if TYPE_CHECKING:
    from transduce.training.history import Run

# Columns of words stand to the left, those of numbers to the right.
_WORDS = ("run", "preset", "state", "last line")
_NUMBERS = ("updates", "epochs", "best", "final BLEU", "tokens/s", "time")
_DAY = 86_400


def runs(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FOLDER",
            help="Runs, or folders that hold some (three levels deep); default: this one.",
        ),
    ] = None,
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object a line for machines, one line a run.")
    ] = False,
    curves: Annotated[bool, typer.Option("--curves", help="Draw loss and BLEU of the runs.")] = False,
    by: Annotated[
        str | None, typer.Option(help="Draw over updates, seconds (of training) or tokens (of the target).")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the curves to FILE.png or FILE.svg.")
    ] = None,
) -> None:
    """List training runs with their state, best score and speed, or draw their curves."""
    _check(as_json, curves, by, plot)
    found = _read(folders or [Path()])
    if plot is not None:
        from transduce.training.curves import plot_curves

        plot_curves(found, plot, by=by or "updates")
        print(f"{plot}: the curves of {len(found)} run{'s' * (len(found) != 1)}", file=sys.stderr)
    if curves:
        _draw(found, by or "updates")
    elif plot is None:
        latest_last = [run.summary() for run in sorted(found, key=lambda run: run.last_time)]
        print("\n".join(map(json.dumps, latest_last)) if as_json else describe(latest_last))


def describe(summaries: Sequence[dict[str, Any]], now: float | None = None) -> str:
    """The summaries of runs as a table, in the order given; ages are counted to ``now``, in Unix time."""
    from rich.cells import cell_len

    now = time.time() if now is None else now
    rows = [(*_WORDS, *_NUMBERS), *(_row(summary, now) for summary in summaries)]
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            text + " " * (width - cell_len(text))
            if i < len(_WORDS)
            else " " * (width - cell_len(text)) + text
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _row(summary: dict[str, Any], now: float) -> tuple[str, ...]:
    from transduce.training.history import printable
    from transduce.training.log import duration

    s, best = summary, ""
    if s["best_bleu"] is not None:
        best = f"BLEU {s['best_bleu']:.2f} at {s['best_bleu_step']:,}"
    elif s["best_loss"] is not None:
        best = f"loss {s['best_loss']:.3f} at {s['best_loss_step']:,}"
    age = max(0.0, now - s["last_time"])
    return (
        printable(s["run"]),
        s["preset"] or "?",
        s["reason"] if s["state"] == "stopped" else s["state"],
        f"{age // _DAY:.0f} days ago" if age >= 2 * _DAY else f"{duration(age)} ago",
        f"{s['step']:,}",
        _shown(s["epochs"], ".1f"),
        best,
        _shown(s["final_bleu"], ".2f"),
        _shown(s["target_tokens_per_second"], ",.0f"),
        "" if s["seconds"] is None else duration(s["seconds"]),
    )


def _shown(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def _check(as_json: bool, curves: bool, by: str | None, plot: Path | None) -> None:
    if as_json and (curves or plot is not None):
        raise UsageError("--json prints the table for machines: leave out --curves and --plot")
    if by is None:
        pass
    elif not curves and plot is None:
        raise UsageError(f"--by {by} is for curves: add --curves or --plot FILE")
    else:
        from transduce.training.history import check_by

        check_by(by)
    if plot is not None:
        from transduce.figures import check_plot

        check_plot(plot)


def _read(folders: Sequence[Path]) -> list[Run]:
    from transduce.training.history import DEPTH, find_runs, printable, read_run

    below = {folder: find_runs(folder) for folder in folders}
    found = list(dict.fromkeys(path for paths in below.values() for path in paths))
    missing = f"no training run (settings.json and log.jsonl), {DEPTH} levels deep; train writes them"
    if not found:
        raise DataError(f"{', '.join(map(str, folders))}: {missing}")
    for folder, paths in below.items():
        if not paths:
            print(f"{folder}: {missing}", file=sys.stderr)
    runs = [read_run(path) for path in found]
    for run in runs:
        if run.damaged:
            lines = f"{run.damaged:,} damaged line{'s' * (run.damaged != 1)}"
            print(f"{printable(str(run.folder))}: {lines} of log.jsonl left out", file=sys.stderr)
    return runs


def _draw(found: Sequence[Run], by: str) -> None:
    from rich.console import Console

    from transduce.training.curves import draw_curves

    console = Console(highlight=False, markup=False)
    colours = console.color_system is not None and not console.no_color
    plain = not console.encoding.startswith("utf") or (len(found) > 1 and not colours)
    text = draw_curves(found, by=by, width=console.width, plain=plain)
    console.print(text, soft_wrap=True, end="")
