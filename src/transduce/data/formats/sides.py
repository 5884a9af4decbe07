"""Which of the languages in a file are the source and the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

from transduce.data.formats.languages import agreement, normal
from transduce.data.formats.tally import Tally
from transduce.errors import DataError, UsageError

REMEDY = (
    "say which are meant with --source-language and --target-language "
    "(data.source_language, data.target_language)"
)


@dataclass(frozen=True)
class Wanted:
    """The languages that were asked for; ``""`` where the file is to tell."""

    source: str = ""
    target: str = ""

    def __post_init__(self) -> None:
        if self.both and normal(self.source) == normal(self.target):
            raise UsageError(
                f"source and target language are both {self.target!r}; name two languages (--source-language "
                "and --target-language, data.source_language and data.target_language)"
            )

    @property
    def both(self) -> bool:
        """Whether nothing is left for the file to tell."""
        return bool(self.source and self.target)

    @property
    def names(self) -> str:
        """What was asked for, for messages."""
        return " and ".join(repr(name) for name in (self.source, self.target) if name)


class OtherLanguages(DataError):
    """A file holds text, but not in the languages that were asked for."""


class Sides:
    """Picks source and target among the languages of each unit of one file.

    Where a language was not asked for, the units tell: there must be no more than two in the file.
    """

    def __init__(self, file: str, wanted: Wanted, tally: Tally) -> None:
        self._file, self._wanted, self._tally = file, wanted, tally
        self._seen: dict[str, str] = {}
        self._picked: dict[tuple[str, ...], tuple[int, int] | None] = {}
        self._pair = (wanted.source, wanted.target) if wanted.both else None
        self._found = self._ambiguous = False

    def of(self, names: Sequence[str], order: str = "") -> tuple[int, int] | None:
        """The places of source and target in a unit of these languages; None where one of them is not there.

        A name is "" where the file does not tell it. ``order`` is the language that the file calls its
        source: it is, where none was asked for.
        """
        key = (order, *names)
        if key not in self._picked:
            self._picked[key] = self._pick(tuple(names), order)
        return self._picked[key]

    def finish(self) -> None:
        """Nothing; raises DataError, with the languages that are there, where the choice was not clear."""
        there = ", ".join(self._seen.values()) or "none that is named"
        wanted = self._wanted
        if self._ambiguous:
            raise DataError(f"{self._file}: holds more than two languages: {there}; {REMEDY}")
        if self._picked and not self._found and (wanted.source or wanted.target):
            raise OtherLanguages(
                f"{self._file}: has no text in {wanted.names} with its translation; its languages are: "
                f"{there}; {REMEDY}"
            )
        if self._found and not wanted.both:
            source, target = (name or "not named" for name in self._tally.languages)
            self._tally.choose(self._file, f"source {source}, target {target}: it holds no others")

    def _pick(self, names: tuple[str, ...], order: str) -> tuple[int, int] | None:
        self._seen.update({normal(name): name for name in names if name and normal(name) not in self._seen})
        if self._pair is None:
            self._pair = self._learned(names, order)
        if self._pair is None:
            return None
        if not self._wanted.both and any(self._strange(name, self._pair) for name in names if name):
            self._ambiguous = True
        places = max(permutations(range(len(names)), 2), key=lambda two: self._fit(names, two), default=None)
        if places is None or not self._fit(names, places)[0]:
            return None
        if not self._found:
            self._found = True
            self._tally.languages = (names[places[0]], names[places[1]])
        return places

    def _fit(self, names: tuple[str, ...], places: tuple[int, ...]) -> tuple[int, int, int]:
        """How well the languages at these places suit, 0 where one does not; then the first of equals."""
        assert self._pair is not None
        one, other = (agreement(names[place], side) for place, side in zip(places, self._pair, strict=True))
        return (one * other, one + other, -sum(places))

    def _strange(self, name: str, pair: tuple[str, str]) -> bool:
        asked = (self._wanted.source, self._wanted.target)
        return all(normal(name) != normal(side) for side in pair) and not any(
            wanted and agreement(name, wanted) for wanted in asked
        )

    def _learned(self, names: tuple[str, ...], order: str) -> tuple[str, str] | None:
        """Source and target of a unit in exactly two languages, one of which may have been asked for."""
        wanted = self._wanted
        asked = wanted.source or wanted.target
        if asked:
            found = max(range(len(names)), key=lambda place: agreement(names[place], asked), default=None)
            if found is None or not agreement(names[found], asked):
                return None
            others = [
                name
                for place, name in enumerate(names)
                if place != found and (not name or agreement(name, asked) < 2)
            ]
            if not others:
                return None
            pair = (asked, others[0]) if wanted.source else (others[0], asked)
            rest = {normal(name) for name in others}
        else:
            first = {normal(name): name for name in names}
            both = list(first.values()) if any(names) else list(names)
            swap = len(both) == 2 and bool(order) and agreement(both[1], order) > agreement(both[0], order)
            if len(both) < 2:
                return None
            pair = (both[swap], both[not swap])
            rest = set(first) if len(both) > 2 else set()
        self._ambiguous = self._ambiguous or len(rest) > 1
        return pair
