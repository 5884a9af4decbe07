"""Which languages a model translates between, and the way from one language to another over models."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from transduce.data.formats.languages import is_language, normal
from transduce.errors import UsageError

_CODE = r"[A-Za-z]{2,3}(?:_[A-Za-z0-9]{2,8})*"
_PAIR = rf"({_CODE})-({_CODE})"
_SPEC = re.compile(rf"({_PAIR}(?:,{_PAIR})*)=(.+)", re.DOTALL)
_PACKED = (".gz", ".zst", ".bz2", ".xz")
MOST_LEGS = 2
"""Models that a translation may pass through: more than one common language between is not worth reading."""
Place = TypeVar("Place")


class Pair(NamedTuple):
    """The codes of source and target."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source}-{self.target}"


@dataclass(frozen=True)
class Spec:
    """A model to serve: its folder, and the pairs it is said to be for (none: what its training says)."""

    folder: Path
    pairs: tuple[Pair, ...] = ()

    @classmethod
    def read(cls, text: str) -> Spec:
        """``FOLDER``, or ``en-de=FOLDER``, or ``en-de,de-en=FOLDER``; a region is written pt_BR."""
        found = _SPEC.fullmatch(text)
        if found is None or Path(text).exists():
            return cls(Path(text))
        pairs = tuple(Pair(*re.fullmatch(_PAIR, one).groups()) for one in found[1].split(","))  # type: ignore[union-attr]
        return cls(Path(found[len(found.groups())]), pairs)


def trained_pairs(training: dict[str, Any], known: Sequence[str]) -> tuple[Pair, ...]:
    """The pairs that a model was trained on, by its ``training.json``; empty where that does not tell.

    ``known`` are the languages that the model can be asked for, if it is one of several.
    """
    recipe = training.get("recipe")
    data = recipe.get("data") if isinstance(recipe, dict) else None
    if not isinstance(data, dict):
        return ()
    labelled = [Pair(*one.split(":")) for one in _strings(data.get("languages")) if one.count(":") == 1]
    if labelled:
        return tuple(dict.fromkeys(pair for pair in labelled if not known or pair.target in known))
    source, target = data.get("source_language"), data.get("target_language")
    if isinstance(source, str) and isinstance(target, str) and source and target:
        return (Pair(source, target),)
    named = {
        (_named(one), _named(other))
        for one, other in zip(_strings(data.get("source")), _strings(data.get("target")), strict=False)
    }
    pairs = [Pair(one, other) for one, other in named if one and other and one != other]
    return tuple(pairs) if len(named) == 1 else ()


def _strings(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _named(file: str) -> str:
    """The language in a file's name, such as train.de.gz; empty where there is none."""
    path = Path(file)
    ending = (path.with_suffix("") if path.suffix in _PACKED else path).suffix[1:]
    return ending if ending and is_language(ending) else ""


def find_language(wanted: str, known: Iterable[str]) -> str | None:
    """Which of the ``known`` codes is meant: the same one, or the only one that is a variety of it."""
    codes = list(dict.fromkeys(known))
    same = [code for code in codes if normal(code) == normal(wanted)]
    base = normal(wanted).partition("-")[0]
    related = [code for code in codes if normal(code).partition("-")[0] == base]
    if same:
        return same[0]
    return related[0] if len(related) == 1 else None


def way(
    legs: Sequence[tuple[Pair, Place]], source: str, target: str, most: int = MOST_LEGS
) -> list[tuple[Pair, Place]]:
    """The shortest way from ``source`` to ``target``, the earlier-named models first; empty where none is."""
    waiting: deque[tuple[str, list[tuple[Pair, Place]]]] = deque([(source, [])])
    seen = {source}
    while waiting:
        at, so_far = waiting.popleft()
        for pair, place in legs:
            if pair.source != at:
                continue
            if pair.target == target:
                return [*so_far, (pair, place)]
            if pair.target not in seen and len(so_far) + 1 < most:
                seen.add(pair.target)
                waiting.append((pair.target, [*so_far, (pair, place)]))
    return []


def checked(pairs: Sequence[Pair], folder: Path) -> tuple[Pair, ...]:
    """The pairs; UsageError, with the remedy, where there is none, or one is no pair of two languages."""
    if not pairs:
        raise UsageError(
            f"{folder}: its training does not say between which languages it translates; "
            f"say it: en-de={folder}"
        )
    for pair in pairs:
        if normal(pair.source) == normal(pair.target):
            raise UsageError(f"{folder}: {pair} is no pair of two languages; write, e.g., en-de={folder}")
    return tuple(dict.fromkeys(pairs))
