"""``transduce paper table2`` and ``baselines``: the paper's main comparison, made again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from transduce.cli.systems import outputs_of
from transduce.cli.writing import write_figures
from transduce.errors import UsageError
from transduce.figures import check_plot


def baselines(  # noqa: PLR0913 - a command's parameters are its flags
    *,
    source: Annotated[list[str], typer.Option(metavar="FILE", help="Training text.")],
    target: Annotated[list[str], typer.Option(metavar="FILE", help="Its translation.")],
    valid_source: Annotated[str, typer.Option(metavar="FILE", help="The set that is scored.")],
    valid_target: Annotated[str, typer.Option(metavar="FILE", help="Its translation.")],
    output: Annotated[Path, typer.Option(metavar="FOLDER", help="Where prepared data and figures go.")],
    systems: Annotated[str, typer.Option(help="With commas.")] = "transformer,recurrent,convolutional",
    steps: Annotated[int, typer.Option(help="Updates of each; 0: no limit.")] = 0,
    minutes: Annotated[float, typer.Option(help="Minutes of updates of each; 0: no limit.")] = 0.0,
    d_model: Annotated[int, typer.Option(help="The width of all.")] = 128,
    layers: Annotated[int, typer.Option(help="Encoder and decoder layers of all.")] = 3,
    dropout: Annotated[float, typer.Option(help="Of all.")] = 0.1,
    vocabulary: Annotated[int, typer.Option(help="Subwords.")] = 8000,
    batch_tokens: Annotated[int, typer.Option(help="Tokens a side in an update.")] = 1024,
    rates: Annotated[
        str, typer.Option(help="Peak learning rates, as many as systems, with commas.")
    ] = "4e-3,2e-3,1e-3",
    warmup: Annotated[int, typer.Option(help="Updates of warm-up.")] = 300,
    seed: Annotated[int, typer.Option(help="The seed of all.")] = 1,
    threads: Annotated[int, typer.Option(help="CPU threads; 0: all usable cores.")] = 0,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Learning curves drawn to .png or .svg.")
    ] = None,
) -> None:
    """Train a Transformer, an LSTM and ConvS2S on the same data, batches and budget, and score them."""
    from transduce import machine
    from transduce.baselines.comparison import Budget, compare_systems, describe
    from transduce.data.config import DataConfig
    from transduce.paper import plots
    from transduce.training.config import TrainingConfig

    if plot is not None:
        check_plot(plot)
    budget = Budget(steps=steps, seconds=60 * minutes)
    names = systems.split(",")
    machine.tune_allocator()
    machine.set_threads(threads)
    data = DataConfig(
        source=tuple(source),
        target=tuple(target),
        valid_source=(valid_source,),
        valid_target=(valid_target,),
        vocabulary=vocabulary,
    )
    rows = compare_systems(
        data,
        output / "data",
        model={
            "d_model": d_model,
            "d_ff": 2 * d_model,
            "heads": 4,
            "encoder_layers": layers,
            "decoder_layers": layers,
            "dropout": dropout,
            "norm": "pre",
            "positions": "rotary",
        },
        training=TrainingConfig(
            batch_tokens=batch_tokens, schedule="linear", rate=1e-3, warmup=warmup, seed=seed, max_steps=1
        ),
        budget=budget,
        systems=names,
        rates=dict(zip(names, _rates(rates, len(names)), strict=True)),
        say=lambda line: print(line, file=sys.stderr, flush=True),
    )
    print(describe(rows))
    write_figures(output / "baselines.json", {"rows": rows})
    if plot is not None:
        plots.plot_baselines(rows, plot)
        print(f"{plot}: learning curves", file=sys.stderr)


def _rates(text: str, count: int) -> list[float]:
    try:
        rates = [float(word) for word in text.split(",")]
    except ValueError:
        rates = []
    if len(rates) < count or not all(0 < rate < 1 for rate in rates):
        raise UsageError(
            f"--rates {text}: expected {count} numbers between 0 and 1 with commas, e.g. 4e-3,2e-3"
        )
    return rates[:count]


def table2(
    systems: Annotated[
        list[str],
        typer.Argument(metavar="SYSTEM...", help="Model folders, or files of outputs (also .gz, .zst)."),
    ],
    *,
    source: Annotated[str, typer.Option(metavar="FILE", help="The test set's source.")],
    reference: Annotated[str, typer.Option(metavar="FILE", help="Its translation.")],
    language: Annotated[
        str, typer.Option(help="The target's: de or fr; says which column is printed.")
    ] = "de",
    rate: Annotated[str, typer.Option(help="TFLOP/s of one training device, or k80, k40, m40, p100.")] = "",
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="All figures.")] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="BLEU over cost drawn to .png or .svg.")
    ] = None,
) -> None:
    """Table 2: BLEU, the paper's and sacreBLEU's, and training cost, beside what is printed."""
    if language not in ("de", "fr"):
        raise UsageError(f"--language {language}: Table 2 has de and fr")
    if plot is not None:
        check_plot(plot)
    from transduce.data.lines import read_lines
    from transduce.inspection.cost import measured_rate, sustained_rate
    from transduce.paper import plots
    from transduce.paper.table2 import describe, score_system

    sustained = sustained_rate(rate) if rate else 0.0
    sources, goal = list(read_lines(source)), list(read_lines(reference))
    rows = []
    for name in systems:
        outputs, bundle = outputs_of(name, sources)
        if bundle is not None and not sustained:
            sustained = measured_rate()
        rows.append(score_system(name, outputs, goal, language=language, bundle=bundle, sustained=sustained))
    print(describe(rows, language))
    write_figures(json_file, {"language": language, "rows": rows})
    if plot is not None:
        plots.plot_table_2(rows, language, plot)
        print(f"{plot}: BLEU over cost", file=sys.stderr)


def norms(  # noqa: PLR0913 - a command's parameters are its flags
    *,
    source: Annotated[list[str], typer.Option(metavar="FILE", help="Training text.")],
    target: Annotated[list[str], typer.Option(metavar="FILE", help="Its translation.")],
    output: Annotated[Path, typer.Option(metavar="FOLDER", help="Where prepared data and figures go.")],
    at: Annotated[str, typer.Option(help="After how many updates to look, with commas.")] = "0,10,100,1000",
    d_model: Annotated[int, typer.Option(help="The width.")] = 128,
    layers: Annotated[int, typer.Option(help="Encoder and decoder layers.")] = 6,
    vocabulary: Annotated[int, typer.Option(help="Subwords.")] = 8000,
    batch_tokens: Annotated[int, typer.Option(help="Tokens a side in an update.")] = 1024,
    rate: Annotated[float, typer.Option(help="Peak learning rate.")] = 1e-3,
    warmup: Annotated[int, typer.Option(help="Updates of warm-up.")] = 300,
    threads: Annotated[int, typer.Option(help="CPU threads; 0: all usable cores.")] = 0,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Both kinds by layer drawn to .png or .svg.")
    ] = None,
) -> None:
    """Train with post-norm and with pre-norm alike, and show activations and gradients of each layer."""
    try:
        counts = [int(word) for word in at.split(",")]
    except ValueError:
        counts = []
    if not counts or min(counts) < 0 or sorted(set(counts)) != counts:
        raise UsageError(f"--at {at}: expected rising numbers of updates with commas, e.g. 0,10,100")
    if plot is not None:
        check_plot(plot)
    from transduce import machine
    from transduce.data.config import DataConfig
    from transduce.paper import plots
    from transduce.paper.norms import describe, norms_while_learning
    from transduce.training.config import TrainingConfig

    machine.tune_allocator()
    machine.set_threads(threads)
    shape = {"d_model": d_model, "d_ff": 4 * d_model, "heads": 4, "encoder_layers": layers}
    rows = norms_while_learning(
        DataConfig(source=tuple(source), target=tuple(target), vocabulary=vocabulary),
        output / "data",
        model={**shape, "decoder_layers": layers},
        training=TrainingConfig(
            batch_tokens=batch_tokens,
            schedule="constant",
            rate=rate,
            warmup=warmup,
            max_steps=max(1, max(counts)),
        ),
        at=counts,
        say=lambda line: print(line, file=sys.stderr, flush=True),
    )
    print(describe(rows))
    write_figures(output / "norms.json", {"rows": rows})
    if plot is not None:
        plots.plot_norms(rows, plot)
        print(f"{plot}: outputs and gradients by layer", file=sys.stderr)
