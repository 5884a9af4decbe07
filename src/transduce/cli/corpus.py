"""``transduce corpus``: parallel text in files, and from the embedded grammar in any amount."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from transduce.cli.corpus_clean import clean
from transduce.cli.corpus_files import convert, info, split
from transduce.cli.corpus_get import get
from transduce.counts import counted

app = typer.Typer(add_completion=False, rich_markup_mode=None)
app.command(epilog="Example: transduce corpus info memory.tmx")(info)
app.command(epilog="Example: transduce corpus convert memory.tmx pairs.tsv")(convert)
app.command(epilog="Example: transduce corpus split memory.tmx --to tsv --output parts")(split)
app.command(epilog="Example: transduce corpus clean memory.tmx --output clean.tsv")(clean)
app.command(epilog="Example: transduce corpus get multi30k")(get)

_SECONDS_BETWEEN_LINES = 10.0
_NEXT = "Train on it: transduce train --source {0}/train.en --target {0}/train.de{1} --output model"
_VALID = " --valid-source {0}/valid.en --valid-target {0}/valid.de"


@app.callback()
def corpus() -> None:
    """Look at parallel text, clean, convert, split, get it; or generate some by a grammar."""


@app.command(epilog="Example: transduce corpus generate --pairs 10000 --output corpus")
def generate(
    *,
    pairs: Annotated[int, typer.Option(help="Sentence pairs for training, 1 or more.")],
    output: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the six files go.")],
    seed: Annotated[int, typer.Option(help="The same seed gives the same files.")] = 1,
    valid: Annotated[int, typer.Option(help="Sentence pairs for validation.")] = 1000,
    test: Annotated[int, typer.Option(help="Sentence pairs for testing.")] = 1000,
    longest: Annotated[int, typer.Option(help="Most English words in a sentence; 0: no limit.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
) -> None:
    """Write train, valid and test files (.en and .de); no split shares a sentence with another."""
    from transduce.data.corpus.generator import SIDES, SPLITS, write_corpus
    from transduce.errors import UsageError

    present = [path for split in SPLITS for side in SIDES if (path := output / f"{split}.{side}").exists()]
    if present and not force:
        raise UsageError(f"{present[0]}: exists already; choose another --output, or replace it with --force")
    total = pairs + valid + test
    started = time.monotonic()
    with _progress(total) as report:
        write_corpus(output, pairs, seed, valid, test, longest, report)
    seconds = time.monotonic() - started
    _say(
        f"{output}: {counted(pairs, 'pair')} in train.en and train.de, {valid:,} in valid.*, {test:,} in "
        "test.*"
    )
    _say(f"Seed {seed}, {seconds:.1f} s")
    _say(_NEXT.format(output, _VALID.format(output) if valid else ""))


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    """A function that shows how many pairs are done: a bar on a terminal, else a line now and then."""
    if not sys.stderr.isatty():
        yield _lines(total)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("pairs, {task.fields[rate]:,.0f} pairs/s, left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("", total=max(total, 1), rate=0.0)
        started = time.monotonic()

        def report(done: int) -> None:
            progress.update(task, completed=done, rate=done / max(time.monotonic() - started, 1e-9))

        yield report


def _lines(total: int) -> Callable[[int], None]:
    started = told = time.monotonic()

    def report(done: int) -> None:
        nonlocal told
        now = time.monotonic()
        if now - told < _SECONDS_BETWEEN_LINES or done in (0, total):
            return
        told = now
        rate = done / (now - started)
        _say(
            f"{done:,} of {counted(total, 'pair')}, {rate:,.0f} pairs/s, {(total - done) / rate:,.0f} s left"
        )

    return report


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
