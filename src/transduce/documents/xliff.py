"""XLIFF 1.2 and 2.x: units without a target get one, in a state that asks for review.

1.2: ``state="needs-review-translation" state-qualifier="mt-suggestion"`` on the target. 2.x has no such
state: ``state="initial"``, which is that of a segment that nobody has translated, with
``subState="transduce:needs-review"``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from transduce.documents.catalog_text import Content, Role
from transduce.documents.slots import Fill, Lines, Opened, Part, Raw, Slot
from transduce.documents.translate import Reading
from transduce.documents.xml_text import Element, Xml, read_xml, space_before
from transduce.errors import DataError, UsageError

_STATE = 'state="needs-review-translation" state-qualifier="mt-suggestion"'
_STATE_2 = 'state="initial" subState="transduce:needs-review"'
_STATES = re.compile(r"""\s(?:state|state-qualifier|subState)\s*=\s*(?:"[^"]*"|'[^']*')""")
# States in which a target that equals its source is no translation yet.
_COPIED = ("new", "needs-translation")
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]+)*")


def open_xliff(content: bytes, reading: Reading) -> Opened:
    """The file's untranslated units as slots."""
    xml = read_xml(content, reading.name)
    prefix, _, name = xml.root.name.rpartition(":")
    version = xml.root.attributes.get("version", "")
    if name != "xliff" or version[:2] not in ("1.", "2."):
        raise DataError(
            f"{reading.name}: its outermost element is {xml.root.name!r}, version {version!r}; "
            "expected xliff of version 1.x or 2.x"
        )
    if reading.target_language and not _LANGUAGE.fullmatch(reading.target_language):
        raise UsageError(f"the target language is {reading.target_language!r}; it must be a code such as de")
    file = _File(xml, f"{prefix}:" if prefix else "", reading)
    two = version.startswith("2.")
    slots = list(file.units(xml.root, two, True))
    if slots:
        slots += file.language(two)
    return Opened((Part(xml.text, tuple(slots)),), lambda texts: xml.encode(texts[0]))


@dataclass(frozen=True)
class _Place:
    """What a slot is made of: contents to translate and the elements that they are the content of."""

    unit: Element
    source: Element
    target: Element | None
    contents: tuple[tuple[Element, Content], ...]

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(text for _, content in self.contents for text in content.texts)

    def inner(self, outputs: Sequence[str], raw: Raw) -> str:
        """The source's content with the translations in place of the texts."""
        following = iter(outputs)
        pieces, at = [], self.source.inner_begin
        for element, content in self.contents:
            own = [next(following) for _ in content.texts]
            pieces += [raw(at, element.inner_begin), content.written(own, raw)]
            at = element.inner_end
        return "".join([*pieces, raw(at, self.source.inner_end)])


class _File:
    """Finds what is to be translated in one file; names are compared with the prefix of the outermost."""

    def __init__(self, xml: Xml, prefix: str, reading: Reading) -> None:
        self.xml, self.prefix, self.reading = xml, prefix, reading
        self.lines = Lines(xml.text)

    def units(self, element: Element, two: bool, wanted: bool) -> Iterator[Slot]:
        """The slots within ``element``; ``wanted`` is False where something around says translate="no"."""
        translate = element.attributes.get("translate")
        wanted = translate == "yes" if translate in ("yes", "no") else wanted
        name = element.name.removeprefix(self.prefix)
        if not two and name == "trans-unit":
            if wanted and element.attributes.get("approved") != "yes":
                yield from self._unit(element)
        elif two and name == "unit":
            if wanted:
                for segment in element.every():
                    if segment.name == f"{self.prefix}segment":
                        yield from self._segment(element, segment)
        else:
            for child in element.elements:
                yield from self.units(child, two, wanted)

    def language(self, two: bool) -> Iterator[Slot]:
        """What adds the target's language where it is missing.

        UsageError where version 2 must have it and nobody has said which it is.
        """
        root, given = self.xml.root, self.reading.target_language
        if two and "trgLang" not in root.attributes:
            if not given:
                raise UsageError(
                    f"{self.reading.name}: has no trgLang; say which language the translations are in, "
                    "e.g. --target-language de"
                )
            yield self._attribute(root, f' trgLang="{given}"')
        files = [] if two or not given else [one for one in root.elements if self._is(one, "file")]
        for file in files:
            if "target-language" not in file.attributes:
                yield self._attribute(file, f' target-language="{given}"')

    def _attribute(self, element: Element, attribute: str) -> Slot:
        at = element.begin + 1 + len(element.name)
        name = self.reading.name
        return Slot(begin=at, end=at, place=name, texts=(), fill=lambda *_: attribute, always=True)

    def _unit(self, unit: Element) -> Iterator[Slot]:
        source = unit.first(f"{self.prefix}source")
        target = unit.first(f"{self.prefix}target")
        if source is None or (target is not None and not self._is_open(source, target)):
            return
        split = unit.first(f"{self.prefix}seg-source")
        model = source if split is None else split
        segments = [mark for mark in model.every() if mark.attributes.get("mtype") == "seg"]
        place = self._place(unit, model, target, segments or [model])
        begin, end = (model.end, model.end) if target is None else (target.begin, target.end)
        yield from self._slot(place, begin, end, partial(self._fill_unit, place))

    def _fill_unit(self, place: _Place, outputs: Sequence[str], raw: Raw) -> str:
        name, target = f"{self.prefix}target", place.target
        inner = place.inner(outputs, raw)
        if target is None:
            return f"{space_before(self.xml.text, place.source.begin)}<{name} {_STATE}>{inner}</{name}>"
        opening = _opening(_STATES.sub("", raw(target.begin, target.inner_begin)))
        return f"{opening} {_STATE}>{inner}</{name}>"

    def _segment(self, unit: Element, segment: Element) -> Iterator[Slot]:
        source = segment.first(f"{self.prefix}source")
        target = segment.first(f"{self.prefix}target")
        if source is None or segment.attributes.get("state") in ("reviewed", "final"):
            return
        if target is not None and not _is_blank(target):
            return
        place = self._place(unit, source, target, [source])
        fill = partial(self._fill_segment, place, segment)
        yield from self._slot(place, segment.begin, source.end if target is None else target.end, fill)

    def _fill_segment(self, place: _Place, segment: Element, outputs: Sequence[str], raw: Raw) -> str:
        name, source, target = f"{self.prefix}target", place.source, place.target
        tag = _opening(_STATES.sub("", raw(segment.begin, segment.inner_begin)))
        head = f"{tag} {_STATE_2}>{raw(segment.inner_begin, source.end)}"
        inner = place.inner(outputs, raw)
        if target is None:
            return f"{head}{space_before(self.xml.text, source.begin)}<{name}>{inner}</{name}>"
        opening = _opening(raw(target.begin, target.inner_begin))
        return f"{head}{raw(source.end, target.begin)}{opening}>{inner}</{name}>"

    def _place(
        self, unit: Element, source: Element, target: Element | None, elements: Sequence[Element]
    ) -> _Place:
        contents = tuple((element, Content.of(element, self._role)) for element in elements)
        return _Place(unit, source, target, contents)

    def _slot(self, place: _Place, begin: int, end: int, fill: Fill) -> Iterator[Slot]:
        if place.texts:
            text = self.xml.text
            shown: dict[str, str] = {}
            for _, content in place.contents:
                shown |= content.segment.shown(lambda first, last: text[first:last])
            name = place.unit.attributes.get("id", "")
            where = f"{self.reading.name}:{self.lines.number(place.unit.begin)} (unit {name!r})"
            yield Slot(
                begin=begin, end=end, place=where, texts=place.texts, fill=fill, shown=shown, always=True
            )

    def _is(self, element: Element, name: str) -> bool:
        return element.name == f"{self.prefix}{name}"

    def _is_open(self, source: Element, target: Element) -> bool:
        """Whether the target is no translation: empty, or by its state a copy of the source."""
        text = self.xml.text
        copied = text[source.inner_begin : source.inner_end] == text[target.inner_begin : target.inner_end]
        return _is_blank(target) or (copied and target.attributes.get("state") in _COPIED)

    def _role(self, element: Element) -> Role:
        name = element.name.removeprefix(self.prefix)
        attributes = element.attributes
        own = attributes.get("rid", attributes.get("id", ""))
        if attributes.get("translate") == "no" or attributes.get("mtype") == "protected":
            return "whole", ""
        if name in ("g", "pc", "mrk"):
            return "pair", ""
        if name in ("bpt", "bx", "sc", "sm"):
            return "open", own
        if name in ("ept", "ex", "ec", "em"):
            return "close", attributes.get("startRef", own)
        return "whole", ""


def _is_blank(element: Element) -> bool:
    return not any(element.elements) and not element.text.strip()


def _opening(tag: str) -> str:
    """An opening tag without its end."""
    return tag.removesuffix(">").removesuffix("/").rstrip()
