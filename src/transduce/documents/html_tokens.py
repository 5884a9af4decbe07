"""HTML cut into tags, text and the rest, as browsers cut it: nothing is ever an error, nothing is lost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

# Elements whose content is no markup, and of those the ones that hold text for readers.
RAW = {"script", "style", "xmp", "iframe", "noembed", "noframes", "textarea", "title", "plaintext"}
_TAG = re.compile(r"</?([A-Za-z][^\s/>]*)")
_ATTRIBUTE = re.compile(r"""[\s/]*([^\s/>=][^\s/>=]*)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s>"'][^\s>]*))?""")
_SPACE = re.compile(r"[\s/]*")


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the page. ``kind`` is text, raw, open, close or other; ``name`` a tag's, in small letters.

    ``attributes`` hold for each name where its value stands, without quotes.
    """

    kind: str
    begin: int
    end: int
    name: str = ""
    attributes: dict[str, tuple[int, int]] = field(default_factory=dict)
    closes_itself: bool = False


def tokens(text: str, at: int, end_of_page: int) -> Iterator[Token]:
    """The pieces of the page that stands in ``text`` between two characters, without gaps."""
    text = text[:end_of_page]
    while at < len(text):
        if text[at] != "<":
            end = _next_markup(text, at + 1)
            yield Token("text", at, end)
        elif text.startswith("<!--", at):
            end = _after(text, "-->", at + 2)
            yield Token("other", at, end)
        elif text.startswith("<![CDATA[", at):
            end = _after(text, "]]>", at)
            yield Token("other", at, end)
        elif (match := _TAG.match(text, at)) is None:
            end = _after(text, ">", at)
            yield Token("other", at, end)
        else:
            token = _tag(text, at, match)
            yield token
            end = token.end
            if token.kind == "open" and token.name in RAW:
                stop = _end_of_raw(text, end, token.name)
                if stop > end:
                    yield Token("raw", end, stop, token.name)
                end = stop
        at = end


def _tag(text: str, at: int, match: re.Match[str]) -> Token:
    name, end = match[1].lower(), match.end()
    attributes: dict[str, tuple[int, int]] = {}
    while (found := _ATTRIBUTE.match(text, end)) is not None and found.end() > end:
        begin, stop = found.span(2) if found[2] is not None else (found.end(), found.end())
        if found[2] is not None and found[2][0] in "\"'":
            begin, stop = begin + 1, stop - 1
        attributes.setdefault(found[1].lower(), (begin, stop))
        end = found.end()
    end = _after(text, ">", end)
    if text[end - 1] != ">":
        return Token("other", at, end)
    kind = "close" if text[at + 1] == "/" else "open"
    return Token(kind, at, end, name, attributes, text[end - 2] == "/")


def _next_markup(text: str, at: int) -> int:
    """Where the next tag, comment or the like begins; a ``<`` before anything else is text."""
    found = _MARKUP.search(text, at)
    return found.start() if found else len(text)


_MARKUP = re.compile(r"<(?=[A-Za-z/!?])")


def _after(text: str, mark: str, at: int) -> int:
    found = text.find(mark, at)
    return len(text) if found < 0 else found + len(mark)


def _end_of_raw(text: str, at: int, name: str) -> int:
    found = (
        None if name == "plaintext" else re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE).search(text, at)
    )
    return found.start() if found else len(text)
