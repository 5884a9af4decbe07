"""``transduce train``: a translator from parallel text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from transduce.errors import ConfigError, UsageError

File = typer.Option(metavar="FILE")


def train(  # noqa: PLR0913 - a command's parameters are its flags
    config: Annotated[
        Path | None, typer.Argument(metavar="[CONFIG]", help="A TOML file with [data], [model], [training].")
    ] = None,
    *,
    source: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Source text; may be repeated.")
    ] = None,
    target: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Its translation, line by line; as often as --source."),
    ] = None,
    tsv: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Source, tab, target on each line; may be repeated."),
    ] = None,
    pairs: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="A file or folder with both sides: TMX, XLIFF, PO, CSV, JSONL, ...; may be repeated.",
        ),
    ] = None,
    valid_source: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Validation source text.")
    ] = None,
    valid_target: Annotated[list[Path] | None, typer.Option(metavar="FILE", help="Its translation.")] = None,
    validation: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Validation text, both sides in one file, as --pairs."),
    ] = None,
    source_language: Annotated[
        str, typer.Option(metavar="CODE", help="Language to read as the source where files hold several.")
    ] = "",
    target_language: Annotated[str, typer.Option(metavar="CODE", help="The same for the target.")] = "",
    weights: Annotated[
        list[float] | None,
        typer.Option(
            "--weight",
            metavar="W",
            help="The share of a corpus in an epoch, as often as there are corpora: first those of --source, "
            "then those of --tsv, then of --pairs.",
        ),
    ] = None,
    alignments: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Word alignments of a --source and --target, as 0-0 1-2."),
    ] = None,
    languages: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SOURCE:TARGET", help="The languages of a corpus, as often as there are corpora: en:de."
        ),
    ] = None,
    domain: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="The kind of text of a corpus, as often as there are corpora."),
    ] = None,
    valid_languages: Annotated[
        list[str] | None,
        typer.Option(metavar="SOURCE:TARGET", help="The same of each pair of validation files."),
    ] = None,
    valid_domain: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="The same of each pair of validation files.")
    ] = None,
    start: Annotated[
        Path | None,
        typer.Option("--from", metavar="FOLDER", help="Start from this model, run or checkpoint."),
    ] = None,
    output: Annotated[Path, typer.Option(metavar="FOLDER", help="The model folder to make.")],
    preset: Annotated[
        str, typer.Option(help="A named recipe, e.g. tiny or paper-base; default: by the data.")
    ] = "",
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="A.B=C", help="Any setting, e.g. training.max_minutes=30; may be repeated."
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the newest checkpoint in --output.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the run that --output holds.")
    ] = False,
    accept_changes: Annotated[
        bool,
        typer.Option("--accept-changes", help="With --resume: go on although data or settings have changed."),
    ] = False,
    prepare_only: Annotated[
        bool, typer.Option("--prepare-only", help="Make tokens of the text and stop: train later, elsewhere.")
    ] = False,
    ray: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="Make tokens on this Ray cluster; local: one of this machine."),
    ] = "",
    batch: Annotated[
        str,
        typer.Option(
            metavar="auto|TOKENS",
            help="Tokens worked on at once; auto: as many as memory holds. Updates stay as they are.",
        ),
    ] = "",
) -> None:
    """Train a translator from parallel text. Ctrl-C saves; --resume goes on."""
    from transduce import machine

    machine.tune_allocator()
    from transduce.config import merge, parse_assignment
    from transduce.training.run import train as run

    files = {
        "source": source,
        "target": target,
        "tsv": tsv,
        "pairs": pairs,
        "valid_source": valid_source,
        "valid_target": valid_target,
        "alignments": alignments,
        "validation": validation,
    }
    data: dict[str, Any] = {name: [str(path) for path in paths] for name, paths in files.items() if paths}
    wanted = {"source_language": source_language, "target_language": target_language}
    data |= {name: language for name, language in wanted.items() if language}
    lists: dict[str, Any] = {
        "weights": weights,
        "languages": languages,
        "domains": domain,
        "valid_languages": valid_languages,
        "valid_domains": valid_domain,
    }
    settings = merge(
        _read(config) if config else {},
        {"data": {**data, **{name: values for name, values in lists.items() if values}}},
        {"data": {"ray": ray}} if ray else {},
        {"preset": preset} if preset else {},
        {"training": _micro_batch(batch)} if batch else {},
        {"start": str(start)} if start else {},
        *(parse_assignment(text) for text in assignments or ()),
    )
    result = run(
        output,
        settings=settings,
        resume=resume,
        overwrite=overwrite,
        accept_changes=accept_changes,
        prepare_only=prepare_only,
    )
    if result.interrupted is not None:
        raise typer.Exit(128 + result.interrupted)


def _micro_batch(batch: str) -> dict[str, Any]:
    """The settings that ``--batch`` stands for."""
    if batch == "auto":
        return {"fit_micro_batch": True}
    if batch.isdecimal() and int(batch):
        return {"micro_batch_tokens": int(batch), "fit_micro_batch": False}
    raise UsageError(f"--batch is {batch!r}; it must be a number of tokens above 0, or auto")


def _read(config: Path) -> dict[str, Any]:
    """The settings in a TOML file, whose name stands in whatever is wrong with them."""
    from transduce.config import read_toml
    from transduce.training.settings import check_names

    if config.suffix != ".toml" and not config.is_dir():
        raise UsageError(
            f"{config}: a settings file ends in .toml; to train on several files repeat the flag "
            "before each: --source A --source B"
        )
    settings = read_toml(config)
    try:
        check_names(settings)
    except ConfigError as error:
        raise ConfigError(f"{config}: {error}") from error
    return settings
