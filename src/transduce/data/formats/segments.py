"""Segments of test sets by document and number, and how the two sides of one are brought together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from transduce.data.formats.pair import Pair
from transduce.data.formats.sides import Sides
from transduce.data.formats.tally import Tally
from transduce.errors import DataError

Key = tuple[str, str]


@dataclass
class Segments:
    """One side of a test set: the text and line of each segment, by document and number."""

    language: str
    kind: str
    """"src" or "ref"."""
    line: int = 0
    texts: dict[Key, tuple[str, int]] = field(default_factory=dict)

    def add(self, key: Key, text: str, line: int, file: str) -> None:
        """Nothing; DataError where there is a segment of this number already."""
        if key in self.texts:
            raise DataError(
                f"{file}:{line}: a second segment {key[1]!r} in the document {key[0]!r}; give each "
                "a number of its own"
            )
        self.texts[key] = (text, line)


def matched(sets: list[Segments], file: str, sides: Sides, tally: Tally, corpus: int) -> Iterator[Pair]:
    """The pairs of a source and the reference that fits best; further references are counted in ``tally``."""
    sources, references = ([one for one in sets if one.kind == kind] for kind in ("src", "ref"))
    if not sources or not references:
        missing = "source (srcset, src)" if references else "reference (refset, ref)"
        raise DataError(
            f"{file}: has no {missing}; where the sides are two files, give them as --source and --target"
        )
    both = [sources[0], *references]
    places = sides.of([one.language for one in both], sources[0].language)
    if places is None:
        sides.finish()
        raise DataError(f"{file}: its source and reference are both in {sources[0].language!r}")
    if 0 not in places:
        raise DataError(
            f"{file}: the source is in {sources[0].language!r}, which is not asked for; no side is"
        )
    reference = both[places[1] or places[0]]
    for other in references:
        if other is not reference:
            tally.skip(file, "segments of other references", other.line, len(other.texts))
    yield from _pairs(sources[0], reference, file, places[0] == 0, corpus)


def _pairs(source: Segments, reference: Segments, file: str, forward: bool, corpus: int) -> Iterator[Pair]:
    for one, other, name in ((source, reference, "reference"), (reference, source, "source")):
        for key, (_, line) in one.texts.items():
            if key not in other.texts:
                raise DataError(f"{file}:{line}: segment {key[1]!r} of the document {key[0]!r} has no {name}")
    for key, (text, line) in source.texts.items():
        translation = reference.texts[key][0]
        both = (text, translation) if forward else (translation, text)
        yield Pair(*both, file, line, corpus=corpus)
