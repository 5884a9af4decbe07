"""A system on the command line: a file of outputs, or a model folder that translates the source itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from transduce.cli.progress import Progress

if TYPE_CHECKING:
    from transduce.bundle import Bundle


def outputs_of(name: str, sources: list[str]) -> tuple[list[str], Bundle | None]:
    """The lines of a file; or what the model in a folder makes of the sources (beam 4), and the model."""
    from transduce.data.lines import read_lines

    if not Path(name).is_dir():
        return list(read_lines(name)), None
    from transduce import machine
    from transduce.decoding.translator import Translator

    machine.tune_allocator()
    translator = Translator.load(name)
    with Progress("-", f"translated by {name}", quiet=False, total=len(sources)) as progress:
        outputs = translator.translate(sources, progress=progress.within_chunk)
    return outputs, translator.bundles[0]
