"""``transduce tree``: how a beam search came to its translation, as text or as a page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from transduce.errors import UsageError


def tree(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model folder, as `train` writes it.")],
    *,
    source: Annotated[str, typer.Option(metavar="TEXT", help="The sentence to translate.")],
    beam: Annotated[int, typer.Option(help="Hypotheses kept in the search; 1 is greedy.")] = 4,
    alpha: Annotated[float, typer.Option(help="Exponent of the length penalty.")] = 0.6,
    shown: Annotated[
        int, typer.Option(help="Continuations shown of each hypothesis, beside those kept; 0: as the beam.")
    ] = 0,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write one HTML page instead of text.")
    ] = None,
) -> None:
    """Show the tree of a search: what was kept, what was dropped, and why it ended."""
    if shown < 0:
        raise UsageError(f"--shown is {shown}; use 1 or more, or 0")
    if not source.strip():
        raise UsageError("--source is empty; give a sentence")
    if output is not None and output.suffix != ".html":
        raise UsageError(f"{output}: the tree is written as a page; name it .html")
    from transduce.bundle import load_bundle
    from transduce.files import write_bytes
    from transduce.inspection.search_page import tree_page, tree_text
    from transduce.inspection.search_tree import search_tree

    found = search_tree(load_bundle(model), source, beam=beam, alpha=alpha, shown=shown)
    if output is None:
        print(tree_text(found))
        return
    write_bytes(output, tree_page(found).encode())
    print(f"{output}: {found.output}", file=sys.stderr)
