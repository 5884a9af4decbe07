"""Which two columns of a table hold source and target: CSV, JSON lines, Parquet and Arrow alike."""

from __future__ import annotations

from collections.abc import Sequence

from transduce.data.formats.languages import is_language
from transduce.data.formats.sides import REMEDY, Sides, Wanted
from transduce.data.formats.tally import Tally
from transduce.errors import DataError

_SOURCE = ("source", "src", "source_text", "src_text")
_TARGET = ("target", "tgt", "trg", "target_text", "tgt_text", "trg_text")
# What stands before the language in names such as sentence_deu_Latn.
_PREFIXES = ("sentence_", "text_", "translation.")


class Columns:
    """Picks two columns by their names: languages, or words such as source and target."""

    def __init__(self, file: str, wanted: Wanted, tally: Tally) -> None:
        self._sides = Sides(file, wanted, tally)
        self._by_language = False
        self._file, self._wanted = file, wanted
        self._picked: dict[tuple[str, ...], tuple[int, int] | None] = {}

    def of(self, names: Sequence[str]) -> tuple[int, int]:
        """The places of source and target; DataError, with the names that are there, where none fit."""
        key = tuple(names)
        if key not in self._picked:
            self._picked[key] = self._pick(key)
        places = self._picked[key]
        if places is None:
            self._sides.finish()  # says more where there are languages
            raise DataError(
                f"{self._file}: which columns hold source and target is not clear; its columns are: "
                f"{', '.join(names) or 'none'}; name them source and target, or by their languages and "
                f"{REMEDY}"
            )
        return places

    def finish(self) -> None:
        """Nothing; raises DataError, with the languages that are there, where the choice was not clear."""
        if self._by_language:
            self._sides.finish()

    def _pick(self, names: tuple[str, ...]) -> tuple[int, int] | None:
        languages = language_columns(names)
        wanted = self._wanted
        if languages and (wanted.source or wanted.target or not _sides(names)):
            places = self._sides.of([languages[place] for place in languages])
            if places is not None:
                self._by_language = True
                where = list(languages)
                return where[places[0]], where[places[1]]
        return _sides(names)


def is_header(names: Sequence[str]) -> bool:
    """Whether a table's first row holds names of columns: two of them are sides or languages."""
    return _sides(names) is not None or len(language_columns(names)) > 1


def language_columns(names: Sequence[str]) -> dict[int, str]:
    """The columns that are named by a language, and the language; "id" is none where there are two others."""
    found = {}
    for place, name in enumerate(names):
        for prefix in ("", *_PREFIXES):
            if name.startswith(prefix) and is_language(name.removeprefix(prefix)):
                found[place] = name.removeprefix(prefix)
                break
    others = {place: name for place, name in found.items() if name.lower() != "id"}
    return others if len(others) > 1 else found


def _sides(names: Sequence[str]) -> tuple[int, int] | None:
    lower = [name.strip().lower() for name in names]
    source, target = (
        [place for place, name in enumerate(lower) if name in known] for known in (_SOURCE, _TARGET)
    )
    return (source[0], target[0]) if len(source) == len(target) == 1 else None
