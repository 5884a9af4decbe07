"""The flags that say which models are asked and what computes them: alike in all commands that have them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from transduce.errors import UsageError

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A model folder, as `train` writes it.")]
Ensemble = Annotated[
    list[Path] | None,
    typer.Option("--ensemble", metavar="MODEL", help="A further model to ask as well; may be repeated."),
]
EnsembleBy = Annotated[
    str, typer.Option(help="How models agree: mean of their probabilities, or of their logarithms: log.")
]
To = Annotated[str, typer.Option(help="The language that a model of several is asked for.")]
Domain = Annotated[str, typer.Option(help="The kind of text that the source is said to be.")]
Shortlist = Annotated[
    bool, typer.Option("--shortlist", help="Choose among the tokens that `transduce shortlist` found.")
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:N or mps.")]
Precision = Annotated[str, typer.Option(help="auto, fp32, bf16 or int8.")]
Engine = Annotated[str, typer.Option(help="What computes: auto, torch, openvino, onnx or ctranslate2.")]
Threads = Annotated[int, typer.Option(help="CPU threads; 0: all usable cores.")]


def folders(model: Path, ensemble: Sequence[Path] | None, by: str) -> list[Path]:
    """The folders of all models; UsageError for a way to agree where there is nobody to agree with."""
    if by != "mean" and not ensemble:
        raise UsageError(f"--ensemble-by {by} is for several models; name them with --ensemble MODEL")
    return [model, *(ensemble or [])]
