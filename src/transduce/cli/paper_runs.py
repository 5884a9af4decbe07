"""``transduce paper table3`` and ``table4``: the tables that need training."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from transduce.cli.writing import write_figures
from transduce.errors import UsageError
from transduce.figures import check_plot

_SETTINGS = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A setting of training or data; may be repeated."),
]


def table3(  # noqa: PLR0913 - a command's parameters are its flags
    *,
    source: Annotated[list[str], typer.Option(metavar="FILE", help="Training text.")],
    target: Annotated[list[str], typer.Option(metavar="FILE", help="Its translation.")],
    valid_source: Annotated[str, typer.Option(metavar="FILE", help="The set that is scored.")] = "",
    valid_target: Annotated[str, typer.Option(metavar="FILE", help="Its translation.")] = "",
    output: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the runs and table3.json go.")],
    rows: Annotated[str, typer.Option(help="Rows with commas, e.g. base,A1,D1; empty: all.")] = "",
    seeds: Annotated[str, typer.Option(help="Seeds with commas; each row is trained with each.")] = "1,2",
    width_by: Annotated[int, typer.Option(help="Divide d_model, d_ff, d_k, d_v by this.")] = 8,
    depth_by: Annotated[int, typer.Option(help="Divide the numbers of layers by this.")] = 2,
    steps: Annotated[int, typer.Option(help="Updates of every run (base and big alike).")] = 2000,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Differences to base drawn to .png or .svg.")
    ] = None,
    overrides: _SETTINGS = None,
) -> None:
    """Table 3: train its rows, at the paper's size or smaller, and set them beside the printed ones.

    Called again, it goes on where it was: finished runs are read, the interrupted one is resumed.
    """
    if plot is not None:
        check_plot(plot)
    from transduce import machine
    from transduce.config import merge, parse_assignment
    from transduce.paper.plots import plot_table_3
    from transduce.paper.table3 import PRINTED, Scale, describe, table_3
    from transduce.training.settings import expand

    names = rows.split(",") if rows else list(PRINTED)
    machine.tune_allocator()
    defaults = {
        "data.vocabulary": 8000,
        "training.batch_tokens": 2048,
        "training.warmup": max(1, steps // 10),
        "training.max_steps": steps,
        "training.save_every": max(1, steps // 4),
        "training.valid_every": steps,
        **({"data.valid_source": [valid_source]} if valid_source else {}),
        **({"data.valid_target": [valid_target]} if valid_target else {}),
    }
    settings = merge(expand(defaults), *(parse_assignment(text) for text in overrides or ()))
    found = table_3(
        output,
        settings=settings,
        rows=names,
        seeds=[_seed(word) for word in seeds.split(",")],
        scale=Scale(width=width_by, depth=depth_by),
        say=lambda line: print(line, file=sys.stderr, flush=True),
        source=source,
        target=target,
    )
    print(describe(found))
    if plot is not None:
        plot_table_3(found, plot)
        print(f"{plot}: differences to base", file=sys.stderr)


def _seed(word: str) -> int:
    if not word.strip().isdecimal():
        raise UsageError(f"--seeds: {word!r} is no seed; expected numbers with commas, e.g. 1,2,3")
    return int(word)


def table4(
    *,
    train: Annotated[str, typer.Option(metavar="FILE", help="Trees to learn from, one a line.")],
    valid: Annotated[str, typer.Option(metavar="FILE", help="Trees that choose the model.")] = "",
    test: Annotated[str, typer.Option(metavar="FILE", help="Trees to be found again.")],
    output: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where the run goes; a finished one is used.")
    ],
    preset: Annotated[
        str, typer.Option(help="The model, e.g. tiny; the paper's has d_model 1024 and 4 layers.")
    ] = "",
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="All figures.")] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="F1 drawn to .png or .svg.")] = None,
    overrides: _SETTINGS = None,
) -> None:
    """Table 4: learn to parse from trees, and score new sentences by labelled bracket F1."""
    if plot is not None:
        check_plot(plot)
    from transduce import machine
    from transduce.cli.progress import Progress
    from transduce.config import merge, parse_assignment
    from transduce.decoding.translator import Translator
    from transduce.evaluation.brackets import bracket_scores
    from transduce.paper import table4 as parsing
    from transduce.paper.plots import plot_table_4
    from transduce.training.run import train as learn

    gold = parsing.read_treebank(test)
    machine.tune_allocator()
    if not (output / "config.json").exists():
        texts = output.with_name(f"{output.name}-text")
        texts.mkdir(parents=True, exist_ok=True)
        names = {"train": train, **({"valid": valid} if valid else {})}
        files = {name: (str(texts / f"{name}.words"), str(texts / f"{name}.trees")) for name in names}
        for name, path in names.items():
            parsing.write_parallel(parsing.read_treebank(path), *files[name])
        held = {"valid_source": [files["valid"][0]], "valid_target": [files["valid"][1]]} if valid else {}
        settings = merge({"data": held}, *(parse_assignment(text) for text in overrides or ()))
        one, other = files["train"]
        resume = (output / "settings.json").exists()
        learn(output, source=one, target=other, preset=preset, settings=settings, resume=resume)
    translator = Translator.load(output)
    with Progress("-", "parsed", quiet=False, unit="sentences", total=len(gold)) as progress:
        sentences = [parsing.words_of(tree) for tree in gold]
        found, mended = parsing.parse(translator.translate, sentences, progress=progress.within_chunk)
    scores = bracket_scores(gold, found)
    print(parsing.describe(scores, mended, f"{output}, {test}"))
    figures = {"f1": scores.f1, "precision": scores.precision, "recall": scores.recall}
    write_figures(
        json_file, {**figures, "sentences": scores.sentences, "repaired": mended, "printed": parsing.PRINTED}
    )
    if plot is not None:
        plot_table_4(scores.f1, str(output), plot)
        print(f"{plot}: F1 beside the printed ones", file=sys.stderr)
