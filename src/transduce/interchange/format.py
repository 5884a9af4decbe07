"""What a format of models must be able to do; the formats themselves stand in a table in `formats`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from torch import Tensor

from transduce.bundle import Bundle
from transduce.decoding.pairs import Ids


@runtime_checkable
class Opened(Protocol):
    """A model of some format, computed by that format's own library."""

    @property
    def pieces(self) -> Sequence[str]:
        """Its subwords by their ids."""
        ...

    @property
    def forbidden(self) -> Sequence[int]:
        """The ids that no output holds: padding, the start, the unknown, tags."""
        ...

    @property
    def eos_id(self) -> int:
        """The id of the end."""
        ...

    @property
    def max_length(self) -> int:
        """The most tokens that a source has, its end counted."""
        ...

    @property
    def precision(self) -> str:
        """What it is stored in: float32, bfloat16, float16 or int8."""
        ...

    def forced(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """Log P of each token of each target, among the tokens that an output may hold; as one batch.

        Sources come without their end, targets with it.
        """
        ...

    def translate(self, lines: Sequence[str]) -> list[str]:
        """The translation of each line, by the library's own search with a beam of 4."""
        ...

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """What is stored, under our names (`Transformer.state_dict`), in float32; others are left out."""
        ...


@runtime_checkable
class Format(Protocol):
    """One format. ``precisions`` has the ones that it can be written in, the usual one first."""

    precisions: tuple[str, ...]

    def holds(self, path: Path) -> bool:
        """Whether what lies there is of this format, by its content."""
        ...

    def write(self, bundle: Bundle, path: Path, precision: str) -> list[str]:
        """What could not be expressed, and the nearest equivalent that was chosen, one line each.

        ``path``, which does not exist yet, holds the model afterwards. Raises UsageError, before anything is
        written, for a model that the format has no way to express.
        """
        ...

    def open(self, path: Path) -> Opened:
        """The model there, loaded by the format's own library."""
        ...


@dataclass(frozen=True, kw_only=True)
class Read:
    """A model of another toolkit as ours: its parts, and what is to be told of it, one line each.

    ``original`` is the same model opened by its own library, to be compared with; None where there is none.
    """

    bundle: Bundle
    remarks: list[str]
    original: Opened | None


@runtime_checkable
class Reader(Protocol):
    """Reads a model of another toolkit."""

    def __call__(self, path: Path) -> Read:
        """The model at ``path``; BundleError for what is missing, damaged, or has no equivalent here."""
        ...
