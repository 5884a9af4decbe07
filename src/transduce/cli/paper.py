"""``transduce paper``: the paper's tables and figures, made again here, beside what is printed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from transduce.cli.baselines import baselines, norms, table2
from transduce.cli.paper_runs import table3, table4
from transduce.cli.writing import write_figures
from transduce.errors import UsageError
from transduce.figures import check_plot

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.callback()
def paper() -> None:
    """Make the paper's tables and figures again, each beside the printed one."""


def _sizes(text: str, flag: str) -> list[int]:
    try:
        sizes = [int(word) for word in text.split(",")]
    except ValueError:
        sizes = []
    if len(sizes) < 2 or min(sizes) < 8 or sorted(set(sizes)) != sizes:
        raise UsageError(f"{flag} {text}: expected two or more rising numbers from 8 on, e.g. 64,128,256")
    return sizes


for _command, _example in (
    (table2, "table2 outputs.de --source test.en --reference test.de"),
    (table3, "table3 --source train.en --target train.de --output ladder"),
    (table4, "table4 --train train.mrg --test test.mrg --output parser"),
    (norms, "norms --source train.en --target train.de --output norms"),
    (baselines, "baselines --source train.en --target train.de ... --minutes 5 --output baselines"),
):
    app.command(epilog=f"Example: transduce paper {_example}")(_command)


@app.command(epilog="Example: transduce paper table1 --json table1.json --plot table1.svg")
def table1(
    *,
    lengths: Annotated[str, typer.Option(help="Sequence lengths n, with commas.")] = "64,128,256,512,1024",
    widths: Annotated[
        str, typer.Option(help="Widths d, with commas; multiples of 8.")
    ] = "64,128,256,512,1024",
    d: Annotated[int, typer.Option(help="The width while n changes.")] = 512,
    n: Annotated[int, typer.Option(help="The length while d changes.")] = 256,
    seconds: Annotated[float, typer.Option(help="About so long at each size.")] = 0.3,
    threads: Annotated[int, typer.Option(help="CPU threads; 0: all usable cores.")] = 0,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="All figures.")] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Times drawn to .png or .svg.")] = None,
) -> None:
    """Table 1: operations, sequential steps, longest path, time and memory of each layer type."""
    over_n, over_d = _sizes(lengths, "--lengths"), _sizes(widths, "--widths")
    if any(size % 8 for size in [*over_d, d]) or d < 8 or n < 8:
        raise UsageError(
            "--widths, -d and -n: widths must be multiples of 8 (there are 8 heads), n at least 8"
        )
    if plot is not None:
        check_plot(plot)
    from transduce import machine
    from transduce.cli.progress import Progress
    from transduce.inspection.layer_costs import table_1

    machine.tune_allocator()
    machine.set_threads(threads)
    with Progress("-", "measured", quiet=False, unit="sizes") as progress:
        rows = table_1(over_n, over_d, d=d, n=n, seconds=seconds, progress=progress.within_chunk)
    print(describe_table1(rows, n, d))
    write_figures(json_file, {"n": n, "d": d, "rows": rows})
    if plot is not None:
        from transduce.inspection.layer_plot import plot_table_1

        plot_table_1(rows, plot)
        print(f"{plot}: times over n and d", file=sys.stderr)


def describe_table1(rows: Sequence[dict[str, Any]], n: int, d: int) -> str:
    """The table for people, and where self-attention becomes dearer than the others."""
    from transduce.inspection.layer_costs import crossing

    lines = [
        f"one layer, one sequence; counts at n = {n}, d = {d}; exponents: printed / of operations / of time "
        "/ of memory kept",
        f"{'layer':26}{'printed':>12}{'MFLOP':>9}{'steps':>7}{'path':>6}{'printed':>12}{'ms':>9}  "
        f"{'n exponents':<25}d exponents",
    ]
    for row in rows:
        exponents = (
            "/".join(
                f"{row[name][size]:.1f}"
                for name in ("printed_exponents", "operation_exponents", "time_exponents", "memory_exponents")
            )
            for size in ("n", "d")
        )
        nearest = min(row["over_n"], key=lambda m: abs(m["n"] - n))
        lines.append(
            f"{row['layer']:26}{row['printed_operations']:>12}{row['operations'] / 1e6:>9.1f}"
            f"{row['sequential_steps']:>7}{row['longest_path']:>6}{row['printed_path']:>12}"
            f"{1000 * nearest['seconds']:>9.2f}  {next(exponents):<25}{next(exponents)}"
        )
    lines.append(f"path: steps between the ends of {rows[0]['longest_path_of']} positions, by gradients")
    attention = [m["seconds"] for m in rows[0]["over_n"]]
    sizes = [m["n"] for m in rows[0]["over_n"]]
    for row in rows[1:]:
        at = crossing(sizes, attention, [m["seconds"] for m in row["over_n"]])
        dearer = attention[-1] > row["over_n"][-1]["seconds"]
        told = f"from n = {at:.0f} on" if at else "at every n" if dearer else f"at no n up to {sizes[-1]}"
        lines.append(f"self-attention takes longer than {row['layer']} {told} (d = {d})")
    return "\n".join(lines)


@app.command(epilog="Example: transduce paper schedule --plot schedule.svg")
def schedule(
    *,
    widths: Annotated[str, typer.Option(help="d_model, with commas.")] = "256,512,1024",
    warmups: Annotated[str, typer.Option(help="Warm-up steps, with commas.")] = "2000,4000,8000",
    steps: Annotated[int, typer.Option(help="Updates to show.")] = 20_000,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Curves drawn to .png or .svg.")] = None,
) -> None:
    """Section 5.3: the learning rate over the updates for several widths and warm-ups."""
    from transduce.training.optimizer import paper_rate

    if steps < 1:
        raise UsageError(f"--steps is {steps}; use 1 or more")
    if plot is not None:
        check_plot(plot)
    pairs = [(d, w) for d in _sizes(widths, "--widths") for w in _sizes(warmups, "--warmups")]
    print(f"{'d_model':>8}{'warm-up':>9}{'peak':>12}{'at update 1':>14}{f'at {steps:,}':>14}")
    for d, warmup in pairs:
        rates = [paper_rate(step, d, warmup) for step in (warmup, 1, steps)]
        print(f"{d:>8}{warmup:>9}{rates[0]:>12.4e}{rates[1]:>14.4e}{rates[2]:>14.4e}")
    if plot is not None:
        from transduce.figures import plot_lines

        at = sorted({1, *range(1, steps + 1, max(1, steps // 400)), *(w for _, w in pairs if w <= steps)})
        curves = {
            f"d_model {d}, warm-up {w}": (
                [float(step) for step in at],
                [paper_rate(step, d, w) for step in at],
            )
            for d, w in pairs
        }
        plot_lines(curves, plot, x="update", y="learning rate")
        print(f"{plot}: {len(pairs)} schedules", file=sys.stderr)
