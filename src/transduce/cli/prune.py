"""``transduce prune``: a smaller, faster model with the attention heads that matter most."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transduce.counts import counted
from transduce.errors import UsageError

if TYPE_CHECKING:
    from transduce.bundle import Bundle


def prune(  # noqa: PLR0913 - a command's parameters are its flags
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model folder, as `train` writes it.")],
    *,
    heads: Annotated[int, typer.Option(help="Heads that every attention keeps; 0 only with --curve.")] = 0,
    source: Annotated[str, typer.Option(metavar="FILE", help="Sentences to judge the heads by.")],
    target: Annotated[str, typer.Option(metavar="FILE", help="Their translations.")],
    output: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where the smaller model goes.")
    ] = None,
    by: Annotated[str, typer.Option(help="How heads are judged: gradient or masking.")] = "gradient",
    pairs: Annotated[int, typer.Option(help="At most so many pairs, from the top; 0: all.")] = 500,
    curve: Annotated[
        bool, typer.Option("--curve", help="Score every number of heads on the same pairs, greedily.")
    ] = False,
    masked: Annotated[
        int,
        typer.Option(
            metavar="STEP",
            help="Score with the least important 0, STEP, 2 x STEP, ... heads of the whole model silenced.",
        ),
    ] = 0,
    as_json: Annotated[
        bool, typer.Option("--json", help="The curve as JSON, one line a number of heads.")
    ] = False,
) -> None:
    """Keep the N most important heads of every attention, or show what each N costs."""
    if as_json and not curve:
        raise UsageError("--json is for the --curve; leave it out")
    if masked < 0:
        raise UsageError(f"--masked is {masked}; use a step of 1 or more")
    _check(heads, output, by, curve or masked > 0)
    from transduce.bundle import load_bundle, save_bundle
    from transduce.cli.heads import importance_of, read_pairs
    from transduce.inspection.head_importance import batched_pairs, loss_of
    from transduce.inspection.pruning import pruned

    texts, _ = read_pairs(source, target, pairs)
    bundle = load_bundle(model)
    (importance,) = importance_of(bundle, texts, by).values()
    if output is not None:
        smaller = pruned(bundle, importance, heads)
        save_bundle(output, smaller.model, smaller.model.config, smaller.tokenizer, smaller.training)
        before, after = bundle.model.parameter_count(), smaller.model.parameter_count()
        data = batched_pairs(bundle, texts)
        loss, less = (loss_of(one.model, data) for one in (bundle, smaller))
        print(
            f"{output}: {heads} of {counted(bundle.model.config.heads, 'head')}, {after:,} of "
            f"{counted(before, 'parameter')}; loss of a target token {loss:.4f} before, {less:.4f} now; "
            "train on with `train --from`",
            file=sys.stderr,
        )
    if masked:
        print(_masked(bundle, importance, texts, masked))
    if curve:
        rows = _curve(bundle, importance, texts)
        print("\n".join(map(json.dumps, rows)) if as_json else describe(rows))


def _masked(bundle: Bundle, importance: Any, texts: Sequence[tuple[str, str]], step: int) -> str:
    from transduce.cli.heads import bleu
    from transduce.cli.progress import Progress
    from transduce.inspection.head_bleu import bleu_of_fewer_heads

    total = sum(table.numel() for table in importance.values())
    counts = range(0, total + 1, step)
    with Progress("-", "scored", quiet=False, unit="numbers of heads", total=len(counts)) as progress:
        scores = bleu_of_fewer_heads(
            bundle, importance, texts, counts, score=bleu, progress=progress.within_chunk
        )
    lines = [f"silenced of {total}    BLEU"]
    best = max(*scores, 1e-9)
    for count, value in zip(counts, scores, strict=True):
        lines.append(f"{count:>14} {value:>7.2f}  {'#' * round(40 * value / best)}")
    return "\n".join(lines)


def _check(heads: int, output: Path | None, by: str, curve: bool) -> None:
    if by not in ("gradient", "masking"):
        raise UsageError(f"--by {by}: choose gradient or masking")
    if output is None and not curve:
        raise UsageError("nothing to do: name a folder with --output, or ask for the --curve or --masked")
    if output is not None and heads < 1:
        raise UsageError(
            f"--heads is {heads}; say how many heads every attention of --output keeps, 1 or more"
        )
    if output is None and heads:
        raise UsageError(f"--heads {heads} needs --output, the folder for the smaller model")
    if output is not None and output.exists() and any(output.iterdir()):
        raise UsageError(f"{output}: exists already; choose another --output")


def _curve(bundle: Bundle, importance: Any, texts: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    from transduce.decoding.translator import Translator
    from transduce.evaluation.scores import score
    from transduce.inspection.pruning import pruned

    rows = []
    for heads in range(bundle.model.config.heads, 0, -1):
        smaller = pruned(bundle, importance, heads)
        translator = Translator(smaller)
        begin = time.perf_counter()
        outputs = translator.translate([source for source, _ in texts], beam=1)
        seconds = time.perf_counter() - begin
        scores = score(outputs, [target for _, target in texts], ter=False)
        rows.append(
            {
                "heads": heads,
                "parameters": smaller.model.parameter_count(),
                "bleu": scores.bleu,
                "chrf": scores.chrf,
                "sentences_per_second": len(texts) / seconds,
            }
        )
        print(f"{counted(heads, 'head')}: BLEU {scores.bleu:.2f}", file=sys.stderr)
    return rows


def describe(rows: Sequence[dict[str, Any]]) -> str:
    """The curve as a table with bars."""
    best = max(max(row["bleu"] for row in rows), 1e-9)
    lines = ["heads  parameters    BLEU    chrF  sentences/s"]
    for row in rows:
        bar = "#" * max(0, round(40 * row["bleu"] / best))
        lines.append(
            f"{row['heads']:>5} {row['parameters']:>11,} {row['bleu']:>7.2f} {row['chrf']:>7.2f} "
            f"{row['sentences_per_second']:>12.1f}  {bar}"
        )
    return "\n".join(lines)
