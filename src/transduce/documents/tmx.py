"""TMX translation memories: units that lack the target language get a variant in it, marked for review.

The new ``tuv`` carries ``<prop type="x-transduce">needs-review</prop>``; TMX has no state of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from transduce.data.formats.languages import agreement
from transduce.documents.catalog_text import Content, Role
from transduce.documents.slots import Lines, Opened, Part, Slot
from transduce.documents.translate import Reading
from transduce.documents.xml_text import Element, Xml, read_xml, space_before
from transduce.errors import DataError, UsageError

_PROP = '<prop type="x-transduce">needs-review</prop>'
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]+)*")


def open_tmx(content: bytes, reading: Reading) -> Opened:
    """The memory's units without a segment in the target language as slots.

    The source language is the given one, else that of the header.
    """
    target = reading.target_language
    if not _LANGUAGE.fullmatch(target):
        raise UsageError(
            f"{reading.name}: a TMX file has any number of languages; say which to add, "
            f"e.g. --target-language de (given: {target!r})"
        )
    xml = read_xml(content, reading.name)
    header = xml.root.first("header")
    body = xml.root.first("body")
    if xml.root.name != "tmx" or body is None:
        raise DataError(f"{reading.name}: is no TMX: expected <tmx> with a <body>, found <{xml.root.name}>")
    source = reading.source_language or ("" if header is None else header.attributes.get("srclang", ""))
    if not source or source == "*all*":
        raise UsageError(f"{reading.name}: its header names no source language; say it, e.g. --language en")
    lines = Lines(xml.text)
    seen: set[str] = set()
    slots = []
    for unit in body.elements:
        variants = [one for one in unit.elements if one.name == "tuv"]
        languages = [one.attributes.get("xml:lang", one.attributes.get("lang", "")) for one in variants]
        seen.update(languages)
        sources = [one for one, code in zip(variants, languages, strict=True) if _same(code, source)]
        targets = [one for one, code in zip(variants, languages, strict=True) if _same(code, target)]
        place = f"{reading.name}:{lines.number(unit.begin)}"
        if "tuid" in unit.attributes:
            place += f" (unit {unit.attributes['tuid']!r})"
        slot = _slot(xml, sources[0] if sources else None, targets, target, place)
        if slot is not None:
            slots.append(slot)
    if seen and not any(_same(code, source) for code in seen):
        there = ", ".join(sorted(filter(None, seen)))
        raise DataError(f"{reading.name}: has no units in {source!r}; its languages are: {there}")
    return Opened((Part(xml.text, tuple(slots)),), lambda texts: xml.encode(texts[0]))


def _same(code: str, wanted: str) -> bool:
    """Whether ``code`` is the language ``wanted``, or a variety of it, as en-GB is of en."""
    return bool(code) and agreement(code, wanted) >= 2


def _slot(
    xml: Xml, source: Element | None, targets: Sequence[Element], language: str, place: str
) -> Slot | None:
    segment = None if source is None else source.first("seg")
    if source is None or segment is None:
        return None
    there = [one for one in (target.first("seg") for target in targets) if one is not None]
    if targets and (not there or any(one.children for one in there)):
        return None
    content = Content.of(segment, _role)
    if not content.texts:
        return None
    text = xml.text
    begin, end = (there[0].begin, there[0].end) if there else (source.end, source.end)
    if there:
        frame = (f"{_PROP}{space_before(text, begin)}<seg>", "</seg>")
    else:
        deeper = space_before(text, segment.begin)
        frame = (
            f'{space_before(text, source.begin)}<tuv xml:lang="{language}">{deeper}{_PROP}{deeper}<seg>',
            f"</seg>{space_before(text, source.inner_end)}</tuv>",
        )
    return Slot(
        begin=begin,
        end=end,
        place=place,
        texts=content.texts,
        fill=lambda outputs, raw: content.written(outputs, raw).join(frame),
        shown=content.segment.shown(lambda first, last: text[first:last]),
        always=True,
    )


def _role(element: Element) -> Role:
    own = element.attributes.get("i", element.attributes.get("x", ""))
    if element.name == "hi":
        return "pair", ""
    if element.name in ("bpt", "ept"):
        return ("open" if element.name == "bpt" else "close"), own
    return "whole", ""
