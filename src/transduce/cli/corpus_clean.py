"""``transduce corpus clean``: what is dropped, what is mended, and why."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transduce.cli.corpus_files import (
    Format,
    OutputFormat,
    Source,
    SourceLanguage,
    Target,
    TargetLanguage,
    inputs_of,
)
from transduce.cli.progress import Progress
from transduce.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from transduce.data.cleaning.config import CleaningConfig
    from transduce.data.cleaning.scores import ByScore
    from transduce.data.conversion import Inputs


def clean(  # noqa: PLR0913 - a command's parameters are its flags
    files: Annotated[
        list[str] | None, typer.Argument(metavar="[IN]...", help="Files or folders to read, `-`.")
    ] = None,
    *,
    output: Annotated[str, typer.Option(metavar="OUT", help="The file to write; its name tells the format.")],
    source: Source = None,
    target: Target = None,
    source_language: SourceLanguage = "",
    target_language: TargetLanguage = "",
    kind: Format = "",
    to: OutputFormat = "",
    dropped: Annotated[
        str,
        typer.Option(
            metavar="FILE", help="Dropped pairs: .jsonl or .tsv, also .gz, .zst; default beside OUT."
        ),
    ] = "",
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Counts and examples as JSON too.")
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="cleaning.NAME=VALUE", help="A filter's setting; may be repeated."),
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes; 0: one for each usable core.")] = 0,
    score: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Score pairs by this model, and drop bad ones.")
    ] = None,
    score_back: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="A model of the other direction to score by as well.")
    ] = None,
    max_score: Annotated[float | None, typer.Option(help="The largest score that is kept.")] = None,
    best_share: Annotated[float | None, typer.Option(help="Keep this share of the pairs, the best.")] = None,
    device: Annotated[str, typer.Option(help="To score on: auto, cpu, cuda, cuda:N or mps.")] = "auto",
) -> None:
    """Clean parallel text: mend what can be mended, drop what harms, and say why of each pair."""
    from transduce.data.cleaning.clean import clean as clean_files
    from transduce.data.cleaning.filters import Filters
    from transduce.data.crew import Crew
    from transduce.files import write_json

    filters = Filters(_config(assignments or []), source_language, target_language)
    inputs = inputs_of(files, source, target, source_language, target_language, kind)
    if workers < 0:
        raise UsageError(f"--workers is {workers}; use 1 or more, or 0 for one on each usable core")
    if report is not None:
        _check_report(report, inputs, output, to, dropped)
    by_score = _by_score(score, score_back, max_score, best_share, device)
    with Progress("-", "cleaned", quiet=False) as progress:
        found = clean_files(
            inputs,
            output,
            filters,
            kind=to,
            dropped=dropped,
            by_score=by_score,
            crew=Crew(workers=workers),
            tell=lambda done: progress.finished(done - progress.lines),
        )
    if report is not None:
        write_json(report, found.to_dict())
    for line in found.lines():
        print(line, file=sys.stderr)


def _check_report(report: Path, inputs: Inputs, output: str, kind: str, dropped: str) -> None:
    """Nothing; what could not be written at the end is refused before the work begins."""
    from transduce.cli.writing import check_output
    from transduce.data.cleaning.clean import check_free_name, dropped_name

    check_output(str(report))
    check_free_name(str(report), inputs, output, kind, what="the report")
    if report.resolve() == Path(dropped or dropped_name(output)).resolve():
        raise UsageError(f"{report}: the dropped pairs go there; name another file for the report")


def _config(assignments: list[str]) -> CleaningConfig:
    from transduce.config import build, merge, parse_assignment, unknown_name
    from transduce.data.cleaning.config import CleaningConfig

    given = merge(*(parse_assignment(text) for text in assignments))
    for name, value in given.items():
        if name != "cleaning":
            raise unknown_name(name, ["cleaning"], "section")
        if not isinstance(value, dict):
            raise ConfigError(f"cleaning is {value!r}; set one of its settings, e.g. cleaning.max_ratio=4")
    return build(CleaningConfig, given.get("cleaning", {}), "cleaning")


def _by_score(
    model: Path | None, back: Path | None, most: float | None, share: float | None, device: str
) -> ByScore | None:
    if model is None:
        given = {"score-back": back is not None, "max-score": most is not None}
        given |= {"best-share": share is not None, "device": device != "auto"}
        for flag, is_given in given.items():
            if is_given:
                raise UsageError(f"--{flag} is about scores; name the model that gives them with --score")
        return None
    if (most is None) == (share is None):
        raise UsageError("--score needs either --max-score or --best-share, to say which pairs are dropped")
    from transduce import machine
    from transduce.data.cleaning.scores import ByScore

    limits = ByScore(
        lambda pairs: [], most, share
    )  # what is wrong with them is said before a model is loaded
    machine.tune_allocator()
    from transduce.decoding.pair_scores import PairScorer
    from transduce.decoding.translator import Translator

    options: dict[str, Any] = {"device": device, "engine": "torch"}
    forward = Translator.load(model, **options)
    return ByScore(
        PairScorer(forward, Translator.load(back, **options) if back else None), limits.most, limits.share
    )
