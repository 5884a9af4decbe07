"""The side file: every dropped pair with its place, the filter and the reason, as it was read."""

from __future__ import annotations

import json
from collections.abc import Callable

from transduce.data.cleaning.verdict import Verdict
from transduce.errors import UsageError

_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def dropped_format(path: str) -> Callable[[Verdict], str]:
    """How a dropped pair is written to a file of this name: JSON lines, or columns with TABs between them.

    The columns are filter, reason, file, line, source, target; a TAB, line end or backslash within one is
    written ``\\t``, ``\\n``, ``\\r``, ``\\\\``. Raises UsageError for other names.
    """
    name = path.removesuffix(".gz").removesuffix(".zst")
    if name.endswith(".jsonl"):
        return as_json
    if name.endswith(".tsv"):
        return as_columns
    raise UsageError(
        f"{path}: dropped pairs are written as .jsonl or .tsv, also with .gz or .zst; name it so"
    )


def as_json(verdict: Verdict) -> str:
    """One line of JSON."""
    pair = verdict.pair
    value = {"filter": verdict.filter, "reason": verdict.reason, "file": pair.file, "line": pair.line}
    return json.dumps({**value, "source": pair.source, "target": pair.target}, ensure_ascii=False) + "\n"


def as_columns(verdict: Verdict) -> str:
    """One line of columns."""
    pair = verdict.pair
    columns = (verdict.filter, verdict.reason, pair.file, str(pair.line), pair.source, pair.target)
    return "\t".join(column.translate(_ESCAPES) for column in columns) + "\n"
