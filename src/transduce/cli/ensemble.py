"""The flags that name further models: --ensemble and --ensemble-by."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from transduce.errors import UsageError


def folders(model: Path, ensemble: Sequence[Path] | None, by: str) -> list[Path]:
    """The folders of all models; UsageError for a way to agree where there is nobody to agree with."""
    if by != "mean" and not ensemble:
        raise UsageError(f"--ensemble-by {by} is for several models; name them with --ensemble MODEL")
    return [model, *(ensemble or [])]
