"""HTML: what stands in a block is translated as one text, its inline tags placed by the alignment.

Untouched: script, style, code and the like, comments, and what says ``translate="no"``. Of attributes those
that readers meet are translated: alt, title, placeholder, aria-label, descriptions in meta.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from functools import partial

from transduce.documents.encodings import decode, marked_encoding
from transduce.documents.entities import decoded, encoded
from transduce.documents.html_tokens import Token, tokens
from transduce.documents.inline import Builder, says_something
from transduce.documents.slots import Lines, Opened, Part, Raw, Slot
from transduce.documents.translate import Reading


def _names(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text))


# Elements within a sentence; every other one begins and ends a block.
INLINE = _names(
    "a abbr acronym b bdi bdo big cite data del dfn em font i ins label mark nobr q ruby rb s small span "
    "strike strong sub sup time tt u"
)
# Inline elements that stand in a sentence as a whole, untranslated.
_WHOLE = _names("code kbd samp var math svg rt rp")
# Blocks that are left as they are.
_SKIPPED = _names("pre template object applet audio video canvas listing")
_VOID = _names(
    "area base br col embed hr img input link meta param source track wbr basefont bgsound frame keygen"
)
_INLINE_VOID = _names("img wbr input")
_ATTRIBUTES = ("alt", "title", "placeholder", "aria-label")
_DESCRIPTIONS = {"description", "og:title", "og:description", "twitter:title", "twitter:description"}
_BUTTONS = {"submit", "button", "reset"}
_CHARSET = re.compile(rb"<meta[^>]{1,200}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
_DECLARED = re.compile(rb"^\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]{1,40})")
_SENTENCE_END = re.compile(r"[.!?:…。！？]\W*$")


def open_html(content: bytes, reading: Reading) -> Opened:
    """The blocks and attributes of the page as slots."""
    text, encode = decode(content, _encoding(content), reading.name, errors="xmlcharrefreplace")
    slots = tuple(html_slots(text, reading.name, Lines(text), 0, len(text)))
    return Opened((Part(text, slots),), lambda texts: encode(texts[0]))


def html_slots(text: str, name: str, lines: Lines, begin: int, end: int) -> Iterator[Slot]:
    """The slots of the HTML that stands in ``text`` from ``begin`` to ``end``."""
    yield from _Page(text, name, lines, list(tokens(text, begin, end))).slots()


def _encoding(content: bytes) -> str:
    """The encoding that the page tells; where it tells none: UTF-8 if it is that, else Windows-1252."""
    found = _DECLARED.match(content[:300]) or _CHARSET.search(content[:4096])
    if found is not None and not marked_encoding(content):
        # A page whose charset could be read byte by byte is not UTF-16, whatever it says.
        name = found[1].decode().lower()
        return (
            "utf-8" if name.startswith("utf-16") else "cp1252" if name in ("iso-8859-1", "latin1") else name
        )
    try:
        content.decode()
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


class _Page:
    """Walks through the tokens and closes a block where one ends."""

    def __init__(self, text: str, name: str, lines: Lines, every: list[Token]) -> None:
        self.text, self.name, self.lines, self.every = text, name, lines, every
        self.builder = Builder()
        self.written: dict[str, str] = {}
        self.begin = self.end = 0

    def slots(self) -> Iterator[Slot]:
        """The slots of the page."""
        ends = _ends_of_elements(self.every, self.text)
        at = 0
        while at < len(self.every):
            token, last = self.every[at], ends.get(at, at)
            if at in ends:
                # An element that is not translated, with all that it holds.
                if token.name in INLINE or token.name in _WHOLE:
                    self._alone(token.begin, self.every[last].end)
                else:
                    yield from self._block()
            else:
                if token.kind == "open":
                    yield from self._attributes(token)
                if not self._stays_within(token, at):
                    yield from self._block()
                if token.kind == "raw" and token.name == "title":
                    self._text(token)
                    yield from self._block()
            at = last + 1
        yield from self._block()

    def _stays_within(self, token: Token, at: int) -> bool:
        """Whether the token belongs to the block that is being collected, as which it is then taken."""
        if token.kind == "text":
            self._text(token)
        elif token.kind == "open" and token.name in _INLINE_VOID:
            self._alone(token.begin, token.end)
        elif token.name in INLINE:
            self._tag(token)
        elif token.kind == "other" and self.text.startswith("<!--", token.begin):
            self._alone(token.begin, token.end)
        elif token.name == "br" and self._goes_on(at):
            self._alone(token.begin, token.end, separates=True)
        else:
            return False
        return True

    def _goes_on(self, at: int) -> bool:
        """Whether a sentence goes on behind a line break: with a small letter, after no end of one."""
        before = "".join(event.text for event in self.builder.events[-1:])
        after = self.every[at + 1] if at + 1 < len(self.every) else None
        if after is None or after.kind != "text" or _SENTENCE_END.search(before) or not before.strip():
            return False
        return self.text[after.begin : after.end].lstrip()[:1].islower()

    def _here(self, begin: int, end: int) -> None:
        if not self.builder.events:
            self.begin = begin
        self.end = end

    def _text(self, token: Token) -> None:
        self._here(token.begin, token.end)
        text, written = decoded(self.text[token.begin : token.end])
        self.written |= written
        # Entities without their semicolon are read as browsers do.
        self.builder.text(html.unescape(text) if "&" in text and "&" not in written else text)

    def _alone(self, begin: int, end: int, *, separates: bool = False) -> None:
        self._here(begin, end)
        self.builder.alone((begin, end), separates=separates)

    def _tag(self, token: Token) -> None:
        self._here(token.begin, token.end)
        where = (token.begin, token.end)
        if token.kind == "open" and token.closes_itself:
            self.builder.alone(where)
        elif token.kind == "open":
            self.builder.open(token.name, where)
        else:
            self.builder.close(token.name, where)

    def _block(self) -> Iterator[Slot]:
        """The block that ends here as a slot, if there is something to translate."""
        written, self.written = self.written, {}
        segment = self.builder.segment(partial(_escaped, written=written), collapse=True)
        if not segment.text or not says_something(segment.text):
            return
        text = self.text
        yield Slot(
            begin=self.begin,
            end=self.end,
            place=f"{self.name}:{self.lines.number(self.begin + _space_at_start(text, self.begin))}",
            texts=(segment.text,),
            fill=lambda outputs, raw: segment.filled(outputs[0], raw),
            shown=segment.shown(lambda begin, end: text[begin:end]),
        )

    def _attributes(self, token: Token) -> Iterator[Slot]:
        for name in self._names(token):
            begin, end = token.attributes[name]
            value, written = decoded(self.text[begin:end])
            body = " ".join(value.split())
            if not says_something(body):
                continue
            fill = partial(_value, self.text[begin - 1], written)
            place = f"{self.name}:{self.lines.number(begin)} ({name} of {token.name})"
            yield Slot(begin=begin, end=end, place=place, texts=(body,), fill=fill)

    def _names(self, token: Token) -> list[str]:
        """The names of the attributes that are translated."""
        values = {
            name: self.text[slice(*token.attributes[name])].lower()
            for name in ("name", "property", "type")
            if name in token.attributes
        }
        names = [name for name in _ATTRIBUTES if name in token.attributes]
        if token.name == "meta" and not _DESCRIPTIONS.isdisjoint(values.values()):
            names.append("content")
        if token.name == "input" and values.get("type") in _BUTTONS:
            names.append("value")
        return [name for name in names if name in token.attributes]


def _ends_of_elements(every: Sequence[Token], text: str) -> dict[int, int]:
    """For the number of each tag whose element is not translated: the number of the tag that ends it."""
    ends: dict[int, int] = {}
    first, depth = -1, 0
    for at, token in enumerate(every):
        if depth:
            if token.name == every[first].name and token.kind in ("open", "close"):
                depth += 1 if token.kind == "open" else -1
                if not depth:
                    ends[first] = at
        elif token.kind == "open" and _is_untouched(token, text):
            if token.name in _VOID or token.closes_itself:
                ends[at] = at
            else:
                first, depth = at, 1
    if depth:
        ends[first] = len(every) - 1
    return ends


def _is_untouched(token: Token, text: str) -> bool:
    begin, end = token.attributes.get("translate", (0, 0))
    kept = text[begin:end].strip().lower() == "no" and "translate" in token.attributes
    begin, end = token.attributes.get("class", (0, 0))
    return kept or token.name in _WHOLE or token.name in _SKIPPED or "notranslate" in text[begin:end].split()


def _value(quote: str, written: dict[str, str], outputs: Sequence[str], _: Raw) -> str:
    """The value of an attribute; in quotes where it was in none."""
    if quote in "\"'":
        return _escaped(outputs[0], written={**written, quote: "&quot;" if quote == '"' else "&#39;"})
    return f'"{_escaped(outputs[0], written={**written, chr(34): "&quot;"})}"'


def _escaped(text: str, *, written: dict[str, str]) -> str:
    return encoded(text, {"&": "&amp;", "<": "&lt;", ">": "&gt;"} | written)


def _space_at_start(text: str, begin: int) -> int:
    found = re.compile(r"\s*").match(text, begin)
    return found.end() - begin if found else 0
