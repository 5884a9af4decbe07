"""``transduce export``, ``verify`` and ``import``: models for other libraries, and theirs for us."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

Source = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Text that both models translate, to compare their BLEU.")
]
Reference = Annotated[Path | None, typer.Option(metavar="FILE", help="Its translation by a person.")]


def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model folder, as `train` writes it.")],
    *,
    to: Annotated[
        str, typer.Option(help="The format: ctranslate2, argos, onnx or safetensors (docs/interchange.md).")
    ],
    output: Annotated[Path, typer.Option(metavar="PATH", help="What to write; nothing may lie there.")],
    precision: Annotated[
        str, typer.Option(help="What weights are stored in: float32, float16, bfloat16 or int8.")
    ] = "float32",
    source: Source = None,
    reference: Reference = None,
) -> None:
    """Write a model for another library, and compare what that library computes before it is kept."""
    from transduce.interchange.exporting import export_model

    export_model(
        model,
        output,
        to=to,
        precision=precision,
        source=source,
        reference=reference,
        say=lambda line: print(line, file=sys.stderr),
    )
    print(f"{output}: {to}, {precision}, verified")


def verify(
    one: Annotated[Path, typer.Argument(metavar="A", help="A model folder, or an exported model.")],
    other: Annotated[Path, typer.Argument(metavar="B", help="What it is compared with.")],
    *,
    source: Source = None,
    reference: Reference = None,
) -> None:
    """Say whether two models, ours or exported ones, are the same; exit code 1 if they are not."""
    from transduce.errors import TransduceError
    from transduce.interchange.verification import verify as verify_models

    comparison = verify_models(one, other, source=source, reference=reference)
    for line in comparison.lines():
        print(line)
    if not comparison.good:
        raise TransduceError(f"{one} and {other} are not the same model")


def import_model(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="The other toolkit's model.")],
    *,
    origin: Annotated[str, typer.Option("--from", help="The toolkit that made it (docs/interchange.md).")],
    output: Annotated[Path, typer.Option(metavar="FOLDER", help="The model folder to make.")],
) -> None:
    """Make a model folder of another toolkit's model, and compare the two before it is kept."""
    from transduce.interchange.importing import import_model as import_one

    import_one(path, output, origin=origin, say=lambda line: print(line, file=sys.stderr))
    print(f"{output}: from {origin}")
