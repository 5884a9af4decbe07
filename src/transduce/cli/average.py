"""``transduce average``: one model from several checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def average(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="FOLDER...", help="Checkpoint or model folders, or one run's folder."),
    ],
    *,
    output: Annotated[Path, typer.Option(metavar="FOLDER", help="The model folder to make.")],
    last: Annotated[int, typer.Option(help="Of a run's folder: its last so many checkpoints.")] = 5,
) -> None:
    """Average the weights of several checkpoints into a model folder that can translate."""
    from transduce.training.averaging import average_folders

    used = average_folders(folders, output, last=last)
    print(f"{output}: the average of {', '.join(str(path) for path in used)}")
