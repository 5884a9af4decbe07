"""``transduce demo``: the whole path in minutes, without data or network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

NEXT = """
Next, with files of your own (one sentence a line, the same number of lines in both):

  {command} train --source train.en --target train.de --output model
  {command} translate model < new.en > new.de
  {command} evaluate model --source test.en --reference test.de

Try this model:  echo "The old teacher gives the child a red apple." | {command} translate {model}"""


def demo(
    *,
    output: Annotated[Path, typer.Option(metavar="FOLDER", help="Where corpus and model go.")] = Path("demo"),
    pairs: Annotated[int, typer.Option(help="Sentence pairs to generate for training.")] = 150_000,
    minutes: Annotated[float, typer.Option(help="Training time.")] = 3.4,
    seed: Annotated[int, typer.Option(help="Seed of corpus and training.")] = 1,
    short: Annotated[
        bool, typer.Option("--short", help="A quarter of a minute: shows the path, not the quality.")
    ] = False,
) -> None:
    """Generate a corpus, train a tiny model, translate unseen sentences, and show where it looks."""
    from transduce import machine

    machine.tune_allocator()
    from transduce.demo import demo as run

    lines = 1000
    if short:
        pairs, minutes, lines = min(pairs, 5_000), min(minutes, 0.25), 50
    settings = {"training": {"max_minutes": minutes, "seed": seed}}
    result = run(output, pairs=pairs, lines=lines, seed=seed, settings=settings)
    print(
        NEXT.format(command="./run transduce" if Path("run").exists() else "transduce", model=result.folder)
    )
