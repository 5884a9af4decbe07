"""``transduce backtranslate`` and ``transduce distill``: training text that a model makes, line by line."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transduce.cli.beside import Beside
from transduce.cli.models import Device, Domain, Engine, Model, Precision, Threads, To
from transduce.cli.partial import fingerprint, resumable
from transduce.cli.progress import Progress
from transduce.cli.writing import check_output
from transduce.counts import counted

if TYPE_CHECKING:
    from transduce.decoding.synthetic import Made

CHUNK = 10_000
# Lines, the lines beside them, the number of the first, and how far it is: what is made of each.
Make = Callable[[list[str], list[str] | None, int, Progress], Iterable["Made"]]

Beam = Annotated[int, typer.Option(help="Hypotheses kept in the search; 1 is greedy.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the --output of a run that was stopped.")]
BatchTokens = Annotated[
    int, typer.Option(help="Sentences x beam x longest in one batch; 0: chosen for the device.")
]
Unfinished = Annotated[
    str, typer.Option(help="An output that ran into its length limit makes no pair: drop, or keep.")
]


def backtranslate(  # noqa: PLR0913 - a command's parameters are its flags
    model: Model,
    *,
    input_file: Annotated[
        str, typer.Option("--input", metavar="MONO", help="Text of the target language (also .gz, .zst).")
    ],
    output: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="The sources, line by line as MONO; FOLDER/ gets source.txt, and MONO's text as target.txt.",
        ),
    ],
    resume: Resume = False,
    method: Annotated[str, typer.Option(help="beam: the likeliest sources; sample: varied ones.")] = "beam",
    beam: Beam = 4,
    top_k: Annotated[int, typer.Option(help="Sample from the K most probable tokens; 0: all.")] = 0,
    temperature: Annotated[
        float, typer.Option(help="Of sampling: below 1 what is probable becomes more so.")
    ] = 1.0,
    drop_words: Annotated[float, typer.Option(help="Leave out this share of the words, e.g. 0.1.")] = 0.0,
    shuffle_words: Annotated[int, typer.Option(help="Words move by at most so many places, e.g. 3.")] = 0,
    seed: Annotated[int, typer.Option(help="Of sampling and noise; a line's text and seed decide.")] = 0,
    to: To = "",
    domain: Domain = "",
    unfinished: Unfinished = "drop",
    batch_tokens: BatchTokens = 0,
    device: Device = "auto",
    precision: Precision = "auto",
    engine: Engine = "auto",
    threads: Threads = 0,
) -> None:
    """Make training pairs of text in the target language: MODEL translates it into the source language."""
    folder = Path(output) if output.endswith("/") or Path(output).is_dir() else None
    paths = [output] if folder is None else [str(folder / name) for name in ("source.txt", "target.txt")]
    for path in paths if folder is None or folder.exists() else ():
        check_output(path, input_file)
    from transduce.decoding.synthetic import BackTranslation, back_translate
    from transduce.files import made_folder

    options = {
        "method": method, "beam": beam, "top_k": top_k, "temperature": temperature, "seed": seed, "to": to,
        "drop_words": drop_words, "shuffle_words": shuffle_words, "domain": domain,
        "unfinished": unfinished,
    }  # fmt: skip
    chosen = BackTranslation(**options, batch_tokens=batch_tokens)  # type: ignore[arg-type]
    translator = _translator(model, device, precision, engine, threads)

    def make(chunk: list[str], _: list[str] | None, first: int, progress: Progress) -> Iterator[Made]:
        return back_translate(translator, chunk, chosen, first_line=first, progress=progress.within_chunk)

    made_from = {**options, "model": fingerprint(model), "device": translator.device, "engine": engine}
    with nullcontext() if folder is None else made_folder(folder):
        counts = _run(
            make,
            input_file,
            paths,
            {**made_from, "precision": precision},
            Beside(None, input_file, ""),
            resume,
        )
    where = f"--source {paths[0]} --target {input_file if folder is None else paths[1]}"
    print(f"{_told(counts)}; train with {where}, e.g. as --domain bt")


def distill(  # noqa: PLR0913 - a command's parameters are its flags
    model: Annotated[Path, typer.Argument(metavar="TEACHER", help="The model folder to learn from.")],
    *,
    source: Annotated[str, typer.Option(metavar="FILE", help="Training sources (also .gz, .zst).")],
    output: Annotated[str, typer.Option(metavar="FILE", help="The teacher's targets, line by line.")],
    target: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The real targets: with --n-best, the closest output is taken."),
    ] = None,
    resume: Resume = False,
    beam: Beam = 4,
    n_best: Annotated[int, typer.Option(help="Outputs to choose from by sentence BLEU with --target.")] = 1,
    to: To = "",
    domain: Domain = "",
    unfinished: Unfinished = "drop",
    batch_tokens: BatchTokens = 0,
    device: Device = "auto",
    precision: Precision = "auto",
    engine: Engine = "auto",
    threads: Threads = 0,
) -> None:
    """Make targets for a smaller model to learn: TEACHER translates the sources of the training text."""
    check_output(output, source, *([target] if target else []))
    from transduce.decoding.synthetic import Distillation
    from transduce.decoding.synthetic import distill as distilled
    from transduce.errors import UsageError

    options = {"beam": beam, "n_best": n_best, "to": to, "domain": domain, "unfinished": unfinished}
    chosen = Distillation(**options, batch_tokens=batch_tokens)  # type: ignore[arg-type]
    if (n_best > 1) != (target is not None):
        raise UsageError(
            "--n-best and --target belong together: of the teacher's n best the closest to the real target "
            "is taken"
        )
    beside = Beside(target, source, "--target")
    translator = _translator(model, device, precision, engine, threads)

    def make(
        chunk: list[str], references: list[str] | None, first: int, progress: Progress
    ) -> Iterator[Made]:
        return distilled(
            translator, chunk, references, chosen, first_line=first, progress=progress.within_chunk
        )

    made_from = {**options, "model": fingerprint(model), "device": translator.device, "engine": engine}
    counts = _run(make, source, [output], {**made_from, "precision": precision}, beside, resume)
    print(f"{_told(counts)}; train with --source {source} --target {output}")


def _translator(model: Path, device: str, precision: str, engine: str, threads: int) -> Any:
    from transduce import machine
    from transduce.decoding.translator import Translator

    machine.tune_allocator()
    return Translator.load(model, device=device, precision=precision, engine=engine, threads=threads)


def _run(
    make: Make,
    input_file: str,
    paths: list[str],
    made_from: dict[str, Any],
    beside: Beside,
    resume: bool,
) -> Counter[str]:
    """How many lines were read now, and how many of them made no pair, by reason; the files are complete.

    The first file gets what is made, the second one, if any, the line itself, where a pair was made.
    """
    from transduce.data.lines import read_chunks

    counts: Counter[str] = Counter()
    chunks = read_chunks(input_file, CHUNK)
    with (
        resumable(paths, made_from, resume=resume) as files,
        Progress(input_file, "translated", quiet=False) as progress,
    ):
        following = itertools.chain.from_iterable(chunks)
        for chunk in files.rest(chunks, lambda count: beside.take(count, following)):
            others = beside.take(len(chunk), following)
            for line, made in zip(chunk, make(chunk, others, files.lines + 1, progress), strict=True):
                counts[made.problem or "pairs"] += 1
                for file, text in zip(files.files, (made.text, "" if made.problem else line), strict=False):
                    file.write(f"{text}\n".encode())
            files.done(chunk, others)
            progress.finished(len(chunk))
        beside.finish()
    return counts


def _told(counts: Counter[str]) -> str:
    reasons = {"empty": "without text", "unfinished": "whose output has no end"}
    told = [
        f"{counted(counts[name], 'line')} {what} made none" for name, what in reasons.items() if counts[name]
    ]
    return ", ".join([counted(counts["pairs"], "pair"), *told])
