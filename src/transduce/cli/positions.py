"""``transduce positions`` and ``transduce neighbours``: a model's positions and embeddings."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transduce.errors import UsageError
from transduce.figures import check_plot

if TYPE_CHECKING:
    from transduce.inspection.positions import Positions

_SHOWN = (1, 2, 3, 5, 10, 20)


def positions(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model folder, as `train` writes it.")],
    *,
    length: Annotated[int, typer.Option(help="So many positions; 0: the model's longest.")] = 0,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the tables to FILE.png or FILE.svg.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object for machines.")] = False,
) -> None:
    """Compare a model's positions with the paper's sinusoids: similarity by distance, linear offsets."""
    if length and length <= max(_SHOWN):
        raise UsageError(f"--length is {length}; use more than {max(_SHOWN)}, or 0")
    if output is not None:
        check_plot(output)
    from transduce.bundle import load_bundle
    from transduce.inspection.positions import model_positions

    bundle = load_bundle(model)
    found = model_positions(bundle.model, length)
    if output is not None:
        from transduce.inspection.position_pictures import draw_positions

        draw_positions(found, output)
        print(f"{output}: {', '.join(of.name for of in found)}", file=sys.stderr)
    if as_json:
        print(
            json.dumps(
                {
                    of.name: {"similarity": of.similarity.tolist(), "offset_error": of.offset_error.tolist()}
                    for of in found
                }
            )
        )
    else:
        print(describe(found, bundle.model.config.positions))


def describe(found: Sequence[Positions], kind: str) -> str:
    """The tables' figures for some distances and offsets."""
    lines = [f"this model's positions: {kind}"]
    if kind == "rotary":
        lines.append(
            "rotary positions turn queries and keys by the sinusoids' angles; there is no table of them"
        )
    for title, values in (
        ("cosine of two rows so far apart, mean", "similarity"),
        ("error of the best linear map from a row to the one so far on, relative", "offset_error"),
    ):
        width = max(len(of.name) for of in found)
        lines += ["", title, " " * width + "".join(f"{distance:>9}" for distance in _SHOWN)]
        for of in found:
            begin = 0 if values == "similarity" else 1
            row = [float(getattr(of, values)[distance - begin]) for distance in _SHOWN]
            lines.append(of.name.ljust(width) + "".join(f"{value:>9.4f}" for value in row))
    return "\n".join(lines)


def neighbours(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model folder, as `train` writes it.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A word or more; each subword is looked up.")],
    *,
    count: Annotated[int, typer.Option(help="Neighbours of each subword.")] = 10,
    side: Annotated[str, typer.Option(help="Whose embeddings: source, target or output.")] = "source",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object for machines.")] = False,
) -> None:
    """List the subwords whose embeddings are nearest to those of a text, with their cosines."""
    from transduce.bundle import load_bundle
    from transduce.inspection.neighbours import neighbours as nearest

    found = nearest(load_bundle(model), text, count=count, side=side)
    if as_json:
        print(
            json.dumps(
                {piece: [list(near) for near in rows] for piece, rows in found.items()}, ensure_ascii=False
            )
        )
        return
    for piece, rows in found.items():
        print(piece)
        for near in rows:
            print(f"  {near.cosine:.3f}  {near.piece}")
