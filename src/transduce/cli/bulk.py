"""``transduce bulk``: folders of files translated, on this machine or a Ray cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from transduce.cli.models import Device, Engine, Precision
from transduce.cli.progress import Progress
from transduce.counts import counted
from transduce.errors import UsageError


def bulk(  # noqa: PLR0913 - a command's parameters are its flags
    models: Annotated[
        list[Path], typer.Argument(metavar="MODEL...", help="A model folder; several are asked together.")
    ],
    *,
    source: Annotated[
        Path,
        typer.Option("--input", metavar="FOLDER", help="Text files and documents, also in folders in it."),
    ],
    output: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where the files go; those that are there are kept.")
    ],
    workers: Annotated[int, typer.Option(help="Processes that hold a model each; 0: one for each core.")] = 1,
    ray: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Work on this Ray cluster; local: one of this machine's.")
    ] = "",
    gpus: Annotated[float, typer.Option(help="With --ray: GPUs for each worker.")] = 0.0,
    pairs: Annotated[
        bool, typer.Option("--pairs", help="Write translation, tab, original: back-translated pairs.")
    ] = False,
    tag: Annotated[str, typer.Option(help="With --pairs: stands before each translation.")] = "",
    kind: Annotated[
        str, typer.Option("--format", help="Read every file so: text is lines, po, ...; else by their names.")
    ] = "",
    target_language: Annotated[
        str, typer.Option(help="The target's language, where a document must say it (TMX, XLIFF 2).")
    ] = "",
    beam: Annotated[int, typer.Option(help="Hypotheses kept in the search; 1 is greedy.")] = 4,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="A=B", help="An option of `translate`, e.g. alpha=1; may be repeated."),
    ] = None,
    device: Device = "auto",
    precision: Precision = "auto",
    engine: Engine = "auto",
    threads: Annotated[int, typer.Option(help="CPU threads of each worker; 0: its share of the cores.")] = 0,
) -> None:
    """Translate every file in a folder. What was stopped goes on with the same command."""
    from transduce import machine
    from transduce.config import merge, parse_assignment
    from transduce.data.crew import Crew
    from transduce.documents.bulk import translate_folder

    options: dict[str, Any] = merge({"beam": beam}, *(parse_assignment(text) for text in assignments or ()))
    if workers < 0 or gpus < 0:
        raise UsageError(f"--workers {workers} --gpus {gpus:g}: there is no less than none")
    if gpus and not ray:
        raise UsageError(f"--gpus {gpus:g} is for the workers of a Ray cluster: add --ray, or use --device")
    crew = Crew(workers=workers, ray=ray, gpus=gpus)
    cores = machine.usable_cores()
    how = {
        "device": device,
        "precision": precision,
        "engine": engine,
        "threads": threads or max(1, cores // (workers or cores)),
    }
    with Progress("-", "translated", quiet=False) as progress:
        written = translate_folder(
            models,
            source,
            output,
            crew=crew,
            pairs=pairs,
            tag=tag,
            format=kind,
            target_language=target_language,
            say=progress.say,
            told=progress.finished,
            how=how,
            **options,
        )
        progress.say(f"{output}: {counted(len(written), 'file')}")
