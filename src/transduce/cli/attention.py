"""``transduce attention``: where each head looks, in the terminal or as a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from transduce.errors import UsageError


def attention(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model folder, as `train` writes it.")],
    *,
    source: Annotated[str, typer.Option(metavar="TEXT", help="The sentence to read.")],
    target: Annotated[
        str, typer.Option(metavar="TEXT", help="Its translation; empty: the model's own, beam 4.")
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write to FILE.npz, .json, .html, .svg or .png instead."),
    ] = None,
    kind: Annotated[
        str, typer.Option(help="encoder, decoder or cross (for terminal and pictures).")
    ] = "cross",
    layer: Annotated[int, typer.Option(help="Layer, counted from 1; 0: the last.")] = 0,
    head: Annotated[int, typer.Option(help="Head, counted from 1; 0: the mean of all.")] = 0,
) -> None:
    """Show where the heads of a model look for a sentence and its translation (Figures 3 to 5)."""
    from transduce.bundle import load_bundle
    from transduce.decoding.translator import Translator
    from transduce.inspection.attention_files import SUFFIXES, labels, write_attention
    from transduce.inspection.attention_maps import KINDS, attention_maps
    from transduce.inspection.render import attention_grid

    if kind not in KINDS:
        raise UsageError(f"--kind {kind}: choose one of {', '.join(KINDS)}")
    if output is not None and output.suffix not in SUFFIXES:
        raise UsageError(f"{output}: the suffix says the format; use one of {', '.join(SUFFIXES)}")
    if not source.strip():
        raise UsageError("--source is empty; give a sentence")
    bundle = load_bundle(model)
    target = target or Translator(bundle).translate([source])[0]
    maps = attention_maps(bundle, source, target)
    weights = getattr(maps, kind)
    for name, value, count in (("layer", layer, weights.shape[0]), ("head", head, weights.shape[1])):
        if not 0 <= value <= count:
            raise UsageError(f"--{name} is {value}, but there are {count}; they count from 1")
    if output is not None:
        write_attention(maps, output, kind=kind, layer=layer - 1)
        print(f"{output}: attention of {bundle.path}: {source} / {target}", file=sys.stderr)
        return
    rows, columns = labels(maps, kind)
    shown = weights[layer - 1].mean(0) if head == 0 else weights[layer - 1, head - 1]
    which = "the mean of all heads" if head == 0 else f"head {head}"
    print(f"{kind} attention, layer {layer or len(weights)}, {which}")
    print(attention_grid(shown, rows, columns))
