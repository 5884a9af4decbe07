"""``transduce heads``: what each attention head does and how much it matters, over parallel text."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transduce.cli.progress import Progress
from transduce.counts import counted
from transduce.errors import DataError, UsageError

if TYPE_CHECKING:
    from transduce.bundle import Bundle

_BY = ("none", "gradient", "masking", "bleu")


def heads(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model folder, as `train` writes it.")],
    *,
    source: Annotated[str, typer.Option(metavar="FILE", help="Sentences, one a line (also .gz, .zst).")],
    target: Annotated[str, typer.Option(metavar="FILE", help="Their translations.")],
    alignments: Annotated[
        str, typer.Option(metavar="FILE", help="Links of words, Pharaoh format, a line a pair.")
    ] = "",
    pairs: Annotated[int, typer.Option(help="At most so many pairs, from the top; 0: all.")] = 200,
    importance: Annotated[
        str,
        typer.Option(
            help="How much a head matters: none, by gradient, by masking it (change of loss), or bleu (both "
            "changes; every head is masked and all pairs are translated greedily)."
        ),
    ] = "gradient",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object for machines.")] = False,
) -> None:
    """Say for each head where it looks on the average, and how much the model needs it."""
    if importance not in _BY:
        raise UsageError(f"--importance {importance}: choose one of {', '.join(_BY)}")
    from transduce.bundle import load_bundle
    from transduce.inspection.heads import head_statistics

    texts, links = read_pairs(source, target, pairs, alignments)
    bundle = load_bundle(model)
    with Progress("-", "looked at", quiet=False, unit="pairs", total=len(texts)) as progress:
        statistics = head_statistics(bundle, texts, links, progress=progress.within_chunk)
    extra = {} if importance == "none" else importance_of(bundle, texts, importance)
    found: dict[str, list[dict[str, Any]]] = {}
    for kind, of in statistics.items():
        found[kind] = of.rows()
        for row in found[kind]:
            for name, tables in extra.items():
                row[name] = float(tables[kind][row["layer"] - 1, row["head"] - 1])
    if as_json:
        print(json.dumps({"pairs": len(texts), "heads": found}))
        return
    print(describe(found))
    print(f"means over the tokens of {counted(len(texts), 'pair')}", file=sys.stderr)


def read_pairs(
    source: str, target: str, count: int, alignments: str = ""
) -> tuple[list[tuple[str, str]], list[list[tuple[int, int]]] | None]:
    """At most ``count`` pairs with text on both sides, and the links of each where a file has them."""
    from itertools import islice

    from transduce.data.formats.text_pair import read_text_pair
    from transduce.data.lines import read_lines
    from transduce.data.links import read_link

    if count < 0:
        raise UsageError(f"--pairs is {count}; use 1 or more, or 0 for all")
    read = list(islice(read_text_pair(source, target), count or None))
    kept = [i for i, pair in enumerate(read) if pair.source.strip() and pair.target.strip()]
    texts = [(read[i].source, read[i].target) for i in kept]
    if not texts:
        raise DataError(f"{source}: no pair with text on both sides among the first {len(read)}")
    if not alignments:
        return texts, None
    lines = list(islice(read_lines(alignments), len(read)))
    if len(lines) < len(read):
        raise DataError(
            f"{alignments} has {counted(len(lines), 'line')}, but {counted(len(read), 'pair', 'were')} read; "
            "one line a pair"
        )
    return texts, [[read_link(item, f"{alignments}:{i + 1}") for item in lines[i].split()] for i in kept]


def importance_of(bundle: Bundle, texts: Sequence[tuple[str, str]], by: str) -> dict[str, dict[str, Any]]:
    """Tables of importance by what they measure: gradient, or loss, or loss and bleu."""
    from transduce.inspection import head_importance

    data = head_importance.batched_pairs(bundle, texts)
    if by == "gradient":
        return {"gradient": head_importance.importance_by_gradient(bundle.model, data)}
    config = bundle.model.config
    count = config.heads * (config.encoder_layers + 2 * config.decoder_layers)
    with Progress("-", "silenced", quiet=False, unit="heads", total=count) as progress:
        found = {
            "loss": head_importance.importance_by_masking(bundle.model, data, progress=progress.within_chunk)
        }
    if by == "bleu":
        from transduce.inspection.head_bleu import bleu_by_masking

        with Progress("-", "silenced", quiet=False, unit="heads", total=count) as progress:
            found["bleu"] = bleu_by_masking(bundle, texts, score=bleu, progress=progress.within_chunk)
    return found


def bleu(outputs: Sequence[str], references: Sequence[str]) -> float:
    """sacreBLEU of the outputs."""
    from transduce.evaluation.scores import score

    return score(outputs, references, ter=False).bleu


def describe(found: dict[str, list[dict[str, Any]]]) -> str:
    """One table a kind of attention, one line a head."""
    from transduce.inspection.heads import NAMES

    lines: list[str] = []
    for kind, name in NAMES.items():
        rows = found[kind]
        columns = [column for column in rows[0] if column not in ("layer", "head")]
        widths = [max(9, len(column)) for column in columns]
        head = "".join(f"{column:>{width + 1}}" for column, width in zip(columns, widths, strict=True))
        lines += [*([""] if lines else []), name, f"layer head{head}"]
        for row in rows:
            cells = "".join(f"{row[c]:>{width + 1}.3f}" for c, width in zip(columns, widths, strict=True))
            lines.append(f"{row['layer']:>5} {row['head']:>4}{cells}")
    return "\n".join(lines)
