"""A model written for another library, and kept only if that library computes what ours does."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from transduce.bundle import load_bundle
from transduce.errors import TransduceError, UsageError
from transduce.files import sync_file, sync_folder
from transduce.interchange.format import Opened
from transduce.interchange.formats import find_format
from transduce.interchange.native import Native
from transduce.interchange.verification import Comparison, check_test_set, compare, first_difference


@dataclass(frozen=True, kw_only=True)
class Exported:
    """Where the model lies, what could not be expressed there, and how far it agrees with ours."""

    path: Path
    remarks: list[str]
    comparison: Comparison


def export_model(
    folder: str | Path,
    output: str | Path,
    *,
    to: str,
    precision: str = "float32",
    source: str | Path | None = None,
    reference: str | Path | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Exported:
    """The model in ``folder`` as ``output``, in the format ``to``; `docs/interchange.md` lists them.

    It is written under another name first, opened again by the format's own library and compared with ours;
    with a test set (``source`` and ``reference``) BLEU is told too. ``say`` gets what could not be expressed
    and what was measured. Raises TransduceError, with the first tensor that differs, where the two do not
    agree, and UsageError where the format cannot express the model; then nothing is left behind.
    """
    output = Path(output)
    form = find_format(to)
    if precision not in form.precisions:
        raise UsageError(
            f"precision is {precision!r}; the format {to} is written in {', '.join(form.precisions)}"
        )
    check_test_set(source, reference)
    bundle = load_bundle(folder)
    with emerging(output) as temporary:
        remarks = form.write(bundle, temporary, precision)
        for remark in remarks:
            say(remark)
        ours, theirs = Native(bundle), form.open(temporary)
        comparison = compare(
            ours, theirs, paths=(Path(folder), temporary), source=source, reference=reference
        )
        for line in comparison.lines():
            say(line)
        if not comparison.good:
            raise TransduceError(f"{output}: is not kept: {disagreement(comparison, ours, theirs)}")
    return Exported(path=output, remarks=remarks, comparison=comparison)


def disagreement(comparison: Comparison, one: Opened, other: Opened) -> str:
    """What is wrong where two models do not agree, in one line."""
    pair, token = comparison.at
    tensor = first_difference(one, other)
    reason = (
        f"the first tensor that differs is {tensor}"
        if tensor
        else "no stored tensor differs: settings or arithmetic do"
    )
    return (
        f"log P differs by up to {comparison.largest:.3g} (bound {comparison.bound:g}; on average "
        f"{comparison.mean:.3g}, bound {comparison.mean_bound:g}), most at token {token + 1} of built-in "
        f"pair {pair + 1}; {reason}"
    )


@contextmanager
def emerging(output: Path) -> Iterator[Path]:
    """A name beside ``output`` for a file or folder, which gets that name at the end, or is removed.

    Raises UsageError where something lies there already: it is never overwritten.
    """
    if output.exists() or output.is_symlink():
        raise UsageError(f"{output}: is there already; name another --output, or remove it first")
    if not output.absolute().parent.is_dir():
        raise UsageError(f"{output}: there is no folder {output.parent}; make it first")
    temporary = output.with_name(f".{output.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        for file in [temporary] if temporary.is_file() else temporary.rglob("*"):
            if file.is_file():
                sync_file(file)
        temporary.rename(output)
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary)
        else:
            temporary.unlink(missing_ok=True)
    sync_folder(output.absolute().parent)
