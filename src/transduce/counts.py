"""Counts with their nouns, as messages say them: 1 pair, 2 pairs."""

from __future__ import annotations

from typing import SupportsFloat

_PLURALS = {"corpus": "corpora", "entry": "entries", "prefix": "prefixes"}
_VERBS = {"are": "is", "were": "was", "have": "has", "do": "does"}


def counted(count: SupportsFloat, noun: str, verb: str = "") -> str:
    """The count, the noun as it must be, and the verb that follows, if any, which is given for several.

    ``counted(1, "source line", "are")`` gives "1 source line is", and of 2,000 "2,000 source lines are".
    """
    value = float(count)  # of numpy's kinds too
    if value != 1:
        before, _, last = noun.rpartition(" ")
        noun = f"{before} {_PLURALS.get(last, f'{last}s')}".strip()
    elif verb:
        verb = _VERBS.get(verb, f"{verb}s")
    number = f"{int(value):,}" if value.is_integer() else f"{value:g}"
    return f"{number} {noun} {verb}".rstrip()
