"""Which of the served languages a text is in."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from transduce.data.cleaning.identifier import Identifier, identifier
from transduce.data.formats.languages import normal
from transduce.errors import UsageError

READ = 1_000
"""Characters that are looked at: more cost time and change nothing."""


def detect(text: str, languages: Sequence[str]) -> list[tuple[str, float]]:
    """The languages and how probable each is among them, best first.

    Those that the identifier does not know have 0. Raises UsageError where py3langid is not installed.
    """
    known = identifier()
    of_all = known.probabilities([text[:READ]])[0]
    found = [(code, _of(code, known, of_all)) for code in languages]
    total = sum(probability for _, probability in found)
    return sorted(((code, p / total if total else 0.0) for code, p in found), key=lambda one: -one[1])


def _of(language: str, known: Identifier, probabilities: Sequence[float]) -> float:
    base = normal(language).partition("-")[0]
    return max((p for code, p in zip(known.codes, probabilities, strict=True) if code == base), default=0.0)


def prepare() -> None:
    """Nothing; the identifier is loaded, where it is installed, so that nobody waits for it later."""
    with suppress(UsageError):
        identifier()
