"""A model of another toolkit as a folder of ours, kept only if it computes what the original does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from transduce.bundle import load_bundle, save_bundle
from transduce.errors import TransduceError
from transduce.interchange.exporting import disagreement, emerging
from transduce.interchange.formats import find_reader
from transduce.interchange.native import Native
from transduce.interchange.verification import Comparison, compare


@dataclass(frozen=True, kw_only=True)
class Imported:
    """Where our model folder lies, what is to be told of it, and how far it agrees with the original.

    ``comparison`` is None where the original's own library is not there to be compared with.
    """

    path: Path
    remarks: list[str]
    comparison: Comparison | None


def import_model(
    path: str | Path,
    output: str | Path,
    *,
    origin: str,
    say: Callable[[str], None] = lambda line: None,
) -> Imported:
    """The model at ``path``, made by the toolkit ``origin``, as the model folder ``output``.

    ``say`` gets what is to be told and what was measured. Raises BundleError for what has no equivalent
    here, and TransduceError where the two do not agree; then nothing is left behind.
    """
    path, output = Path(path), Path(output)
    read = find_reader(origin)(path)
    for remark in read.remarks:
        say(remark)
    with emerging(output) as temporary:
        bundle = read.bundle
        save_bundle(temporary, bundle.model, bundle.model.config, bundle.tokenizer, bundle.training)
        comparison = None
        if read.original is not None:
            ours = Native(load_bundle(temporary))
            comparison = compare(read.original, ours, paths=(path, temporary))
            for line in comparison.lines():
                say(line)
            if not comparison.good:
                raise TransduceError(
                    f"{output}: is not kept: {disagreement(comparison, read.original, ours)}"
                )
    return Imported(path=output, remarks=read.remarks, comparison=comparison)
