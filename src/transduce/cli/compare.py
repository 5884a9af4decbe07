"""``transduce compare``: several systems, or files of outputs, on one test set."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from transduce.cli.systems import outputs_of
from transduce.counts import counted
from transduce.errors import UsageError


def compare(  # noqa: PLR0913 - a command's parameters are its flags
    systems: Annotated[
        list[str],
        typer.Argument(metavar="SYSTEM...", help="Model folders, or files of outputs (also .gz, .zst)."),
    ],
    *,
    source: Annotated[str, typer.Option(metavar="FILE", help="The test set's source.")],
    reference: Annotated[list[str], typer.Option(metavar="FILE", help="Its translation; may be repeated.")],
    training: Annotated[
        str,
        typer.Option(metavar="FILE", help="Target side of the training text: tells which words are rare."),
    ] = "",
    test: Annotated[str, typer.Option(help="bootstrap, randomisation, both or none.")] = "both",
    samples: Annotated[int, typer.Option(help="Samples of a test; 0: 1,000 and 10,000.")] = 0,
    shown: Annotated[int, typer.Option(help="So many of the sentences that differ most.")] = 10,
    comet: Annotated[
        str,
        typer.Option(metavar="CKPT", help="Also COMET, by this model and the program comet-score."),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object for machines.")] = False,
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write one HTML page.")] = None,
) -> None:
    """Compare systems on one test set: scores, significance, and where they differ."""
    chosen = {"both": ["bootstrap", "randomisation"], "none": []}.get(test, [test])
    if test not in ("both", "none", "bootstrap", "randomisation"):
        raise UsageError(f"--test {test}: choose bootstrap, randomisation, both or none")
    if samples < 0 or shown < 0:
        raise UsageError(f"--samples is {samples} and --shown is {shown}; use 0 or more")
    if output is not None and output.suffix != ".html":
        raise UsageError(f"{output}: the comparison is written as a page; name it .html")
    from transduce.data.lines import read_lines
    from transduce.evaluation.comet import check_comet, comet_scores
    from transduce.evaluation.compare import compare as compared
    from transduce.evaluation.compare_page import describe, page
    from transduce.files import write_bytes

    if comet:
        check_comet(comet)
    sources = list(read_lines(source))
    references = [list(read_lines(path)) for path in reference]
    outputs = [(name, outputs_of(name, sources)[0]) for name in systems]
    lines = read_lines(training) if training else iter(())
    neural: list[list[float]] = []
    if comet:
        told = f"COMET of {counted(len(systems), 'system')}, {counted(len(sources), 'line')} each"
        print(told, file=sys.stderr, flush=True)
        neural = comet_scores([lines for _, lines in outputs], sources, references[0], comet)
    found = compared(
        list(zip(_short([name for name, _ in outputs]), [lines for _, lines in outputs], strict=True)),
        references,
        sources,
        training=lines,
        tests=chosen,
        samples=samples,
        shown=shown,
        comet=neural,
    )
    if output is not None:
        write_bytes(output, page(found).encode())
        print(
            f"{output}: {counted(len(systems), 'system')}, {counted(len(sources), 'sentence')}",
            file=sys.stderr,
        )
    print(json.dumps(found.as_dict(), ensure_ascii=False) if as_json else describe(found))


def _short(names: list[str]) -> list[str]:
    """Names without the folders that all share; whole where they would be the same otherwise."""
    short = [Path(name).name for name in names]
    return short if len(set(short)) == len(short) else names
