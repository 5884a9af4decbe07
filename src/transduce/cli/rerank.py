"""``transduce rerank``: the outputs of n-best JSON lines in another order, and the best of them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transduce.cli.models import Device, Threads
from transduce.cli.progress import Progress
from transduce.cli.writing import check_output, opened
from transduce.counts import counted
from transduce.errors import DataError, UsageError

if TYPE_CHECKING:
    from transduce.decoding.reranking import Weights
    from transduce.decoding.translator import Translator

# Lines that are held at a time.
CHUNK = 1_000
# A line's object, and its outputs: text and score.
NBest = tuple[dict[str, Any], list[tuple[str, float]]]
# The outputs' new order with what is said of each in JSON, and what is to be told of the line.
Order = tuple[list[tuple[int, dict[str, Any]]], Sequence[str]]


def rerank(  # noqa: PLR0913 - a command's parameters are its flags
    models: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[MODEL]...", help="Model folders that score the outputs; not with --mbr."),
    ] = None,
    *,
    input_file: Annotated[
        str,
        typer.Option("--input", metavar="FILE", help="What `translate --json --n-best N` wrote; - is stdin."),
    ] = "-",
    output_file: Annotated[
        str, typer.Option("--output", metavar="FILE", help="Where to write (also .gz); - is stdout.")
    ] = "-",
    as_json: Annotated[
        bool, typer.Option("--json", help="Write the objects with all outputs, in their new order.")
    ] = False,
    mbr: Annotated[str, typer.Option(help="By the highest expected chrf or bleu instead of models.")] = "",
    weight: Annotated[
        list[float] | None, typer.Option(help="What a model's score counts: one for each MODEL; 1 each.")
    ] = None,
    own_weight: Annotated[float, typer.Option(help="What the score in the file counts; 0: nothing.")] = 1.0,
    alpha: Annotated[float, typer.Option(help="Exponent of the length penalty of the models' scores.")] = 0.6,
    long_lines: Annotated[
        str, typer.Option(help="What to do with a side that is too long: split, truncate or error.")
    ] = "split",
    device: Device = "auto",
    precision: Annotated[str, typer.Option(help="auto, fp32 or bf16.")] = "auto",
    threads: Threads = 0,
) -> None:
    """Write for each line the output with the highest weighted sum of scores, or of least risk."""
    folders = models or []
    _check(folders, mbr, weight)
    check_output(output_file, input_file)
    from transduce import machine
    from transduce.data.lines import read_chunks
    from transduce.decoding.pairs import check_pairs
    from transduce.decoding.reranking import Weights
    from transduce.decoding.translator import Translator

    check_pairs([], long_lines=long_lines, batch_tokens=0, first_line=1)
    weights = Weights(models=tuple(weight or [1.0] * len(folders)), own=own_weight, alpha=alpha)
    machine.tune_allocator()
    # Known targets are scored at once by PyTorch; no other engine is needed.
    translators = [
        Translator.load(folder, device=device, precision=precision, threads=threads, engine="torch")
        for folder in folders
    ]
    first = 1
    with opened(output_file) as output, Progress(input_file, "reranked", quiet=False) as progress:
        for chunk in read_chunks(input_file, CHUNK):
            nbest = [
                read_nbest(line, f"{_name(input_file)}:{number}", scored=bool(own_weight or mbr))
                for number, line in enumerate(chunk, first)
            ]
            if mbr:
                orders = [by_risk(outputs, mbr) for _, outputs in nbest]
            else:
                orders = by_models(nbest, translators, weights, long_lines, first, progress)
            for (value, _), (order, told) in zip(nbest, orders, strict=True):
                for warning in told:
                    progress.say(f"transduce: warning: {warning}")
                output.write(_line(value, order, told, as_json=as_json).encode())
            output.flush()
            first += len(chunk)
            progress.finished(len(chunk))


def read_nbest(line: str, place: str, *, scored: bool) -> NBest:
    """The object of a line, and its outputs; a missing score is 0 unless they must be ``scored``.

    Raises DataError, which begins with the ``place``, for what is no such line.
    """
    try:
        value = json.loads(line)
    except ValueError:
        raise DataError(f"{place}: is not JSON; give what `transduce translate --json` writes") from None
    outputs = value.get("translations") if isinstance(value, dict) else None
    if not outputs or not isinstance(outputs, list) or not isinstance(value.get("source"), str):
        raise DataError(f"{place}: has no source with translations; see `transduce translate --json`")
    found = []
    for number, output in enumerate(outputs, 1):
        text = output.get("text") if isinstance(output, dict) else None
        if not isinstance(text, str) or "\n" in text:
            raise DataError(f"{place}: translation {number} has no text of one line")
        score = output.get("score")
        if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
            if scored:
                raise DataError(
                    f"{place}: translation {number} has the score {score!r}, which is no number; "
                    "with models, --own-weight 0 does without"
                )
            score = 0.0
        found.append((text, float(score)))
    return value, found


def by_models(
    nbest: Sequence[NBest],
    translators: Sequence[Translator],
    weights: Weights,
    long_lines: str,
    first: int,
    progress: Progress,
) -> list[Order]:
    """The orders by the weighted sums of scores."""
    from transduce.decoding.reranking import rescored

    found = rescored(
        [(value["source"], outputs) for value, outputs in nbest],
        translators,
        weights=weights,
        long_lines=long_lines,
        first_line=first,
        progress=progress.within_chunk,
    )
    return [
        ([(one.place, {"total": one.total, "model_scores": one.scores}) for one in order], told)
        for order, told in found
    ]


def by_risk(outputs: Sequence[tuple[str, float]], metric: str) -> Order:
    """The order by the highest expected score; one output alone stays as it is."""
    from transduce.decoding.minimum_risk import order_by_risk

    if len(outputs) < 2:
        return [(0, {})], ()
    return [(place, {"expected": expected}) for place, expected in order_by_risk(outputs, metric)], ()


def _line(
    value: dict[str, Any], order: Sequence[tuple[int, dict[str, Any]]], told: Sequence[str], *, as_json: bool
) -> str:
    outputs = value["translations"]
    if not as_json:
        return f"{outputs[order[0][0]]['text']}\n"
    ranked = [outputs[place] | {name: _json(item) for name, item in new.items()} for place, new in order]
    before = value.get("warnings")
    warnings = [*(before if isinstance(before, list) else []), *told]
    return json.dumps({**value, "translations": ranked, "warnings": warnings}, ensure_ascii=False) + "\n"


def _json(value: float | tuple[float, ...]) -> float | list[Any] | None:
    """What JSON has for a number or several: probability 0 has no logarithm there, but null."""
    if isinstance(value, tuple):
        return [_json(item) for item in value]
    return value if math.isfinite(value) else None


def _name(path: str) -> str:
    return "standard input" if path == "-" else path


def _check(folders: Sequence[Path], mbr: str, weight: Sequence[float] | None) -> None:
    """Nothing; UsageError for no way, or two ways, to choose, and for weights of nothing."""
    if mbr:
        from transduce.decoding.config import MBR

        if mbr not in MBR:
            raise UsageError(f"mbr is {mbr!r}; choose one of {', '.join(MBR)}")
        if folders or weight:
            raise UsageError("--mbr chooses by the outputs alone; leave out models and weights, or --mbr")
    elif not folders:
        raise UsageError("nothing to rerank by: name model folders, or --mbr chrf")
    elif weight and len(weight) != len(folders):
        raise UsageError(
            f"{len(weight)} --weight for {counted(len(folders), 'model')}; give one for each, or none"
        )
