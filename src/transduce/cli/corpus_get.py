"""``transduce corpus get``: public corpora and test sets by their names."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from transduce.counts import counted


def get(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="multi30k, wmt14-ende, wmt14-enfr, iwslt17, flores, or mtdata:ID."
        ),
    ],
    *,
    output: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where it goes; default: a folder of its name.")
    ] = None,
    source_language: Annotated[
        str, typer.Option(metavar="CODE", help="Another source language than the usual one.")
    ] = "",
    target_language: Annotated[str, typer.Option(metavar="CODE", help="The same for the target.")] = "",
    mirror: Annotated[
        str, typer.Option(metavar="URL", help="Fetch from here: files lie by host and path, as from wget -x.")
    ] = "",
) -> None:
    """Fetch a public corpus as train, valid and test; a download that was cut off goes on."""
    from transduce.data.getting import get as get_corpus

    folder = output or Path(name.replace(":", "-"))
    got = get_corpus(
        name,
        folder,
        source_language=source_language,
        target_language=target_language,
        mirror=mirror,
        say=lambda line: print(line, file=sys.stderr),
        progress=_show if sys.stderr.isatty() else lambda name, done, total: None,
    )
    for part, count in got.pairs.items():
        files = " and ".join(f"{part}.{language}" for language in got.languages)
        print(f"{folder}: {counted(count, 'pair')} in {files}", file=sys.stderr)
    print(got.note, file=sys.stderr)


def _show(name: str, done: int, total: int) -> None:
    share = f" of {total / 2**20:,.0f}" if total else ""
    end = "\n" if done == total else ""
    print(f"\r{name}: {done / 2**20:,.0f}{share} MiB", end=end, file=sys.stderr, flush=True)
