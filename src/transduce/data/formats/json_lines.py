"""JSON lines: an object per line with both sides, flat or as Hugging Face's ``translation``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from transduce.data.formats.columns import Columns
from transduce.data.formats.pair import Pair
from transduce.data.formats.sides import Sides, Wanted
from transduce.data.formats.tally import Tally
from transduce.data.lines import read_lines
from transduce.data.streams import named
from transduce.errors import DataError

_FORMS = '{"source": ..., "target": ...}, {"en": ..., "de": ...} or {"translation": {"en": ..., "de": ...}}'


def read_jsonl(path: str | Path, wanted: Wanted, tally: Tally, corpus: int = 0) -> Iterator[Pair]:
    """The pairs of the lines; null on a side leaves the line out, which ``tally`` counts.

    DataError names file and line where there is no such object.
    """
    file = named(path)
    columns, sides = Columns(file, wanted, tally), Sides(file, wanted, tally)
    for line, text in enumerate(read_lines(path), 1):
        if not text.strip():
            tally.skip(file, "empty lines", line)
            continue
        try:
            value = json.loads(text, object_pairs_hook=_without_repeats)
        except (ValueError, RecursionError) as error:
            raise DataError(
                f"{file}:{line}: is not valid JSON ({error}); one object a line is expected"
            ) from None
        texts = _texts(value, columns, sides, wanted, f"{file}:{line}")
        if texts is None or None in texts:
            tally.skip(file, "without source or target", line)
            continue
        source, target = (_text(text, f"{file}:{line}") for text in texts)
        yield Pair(source, target, file, line, corpus=corpus)
    columns.finish()
    sides.finish()


def _texts(value: Any, columns: Columns, sides: Sides, wanted: Wanted, where: str) -> tuple[Any, Any] | None:
    """What stands for source and target; None where the object lacks a language."""
    if isinstance(value, dict) and isinstance(value.get("translation"), dict):
        names = [name for name, text in value["translation"].items() if text is not None]
        places = sides.of(names)
        return None if places is None else tuple(value["translation"][names[place]] for place in places)
    if not isinstance(value, dict):
        raise DataError(f"{where}: is no object; {_FORMS} is expected")
    names = list(value)
    return tuple(value[names[place]] for place in columns.of(names))


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise DataError(f"{where}: {str(value)[:40]!r} is no text; {_FORMS} is expected")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise DataError(f"{where}: holds half a character (a lone surrogate); mend the text") from None
    return value


def _without_repeats(items: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(items)
    if len(found) != len(items):
        raise ValueError("a name stands twice in one object")
    return found
