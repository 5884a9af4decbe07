"""``transduce shortlist``: what may translate what, for a faster output layer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def shortlist(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model folder, as `train` writes it.")],
    *,
    source: Annotated[
        list[Path], typer.Option(metavar="FILE", help="Source text (also .gz, .zst); may be repeated.")
    ],
    target: Annotated[
        list[Path], typer.Option(metavar="FILE", help="Its translation, line by line; as often as --source.")
    ],
    candidates: Annotated[
        int, typer.Option(help="Target tokens that each source token may become, the most probable ones.")
    ] = 50,
    frequent: Annotated[
        int, typer.Option(help="The most frequent target tokens, which are always there.")
    ] = 100,
    seed: Annotated[int, typer.Option(help="Which pairs are drawn where there are above 500,000.")] = 0,
) -> None:
    """Learn from parallel text which tokens an output may hold, for `translate --shortlist`."""
    from transduce.decoding.shortlist import FILE, make_shortlist

    learned = make_shortlist(
        model,
        source,
        target,
        candidates=candidates,
        frequent=frequent,
        seed=seed,
        told=lambda line: print(line, file=sys.stderr),
    )
    print(f"{model / FILE}: {learned}")
