"""What stands within a block of Markdown, with its places: markdown-it says what it is, this finds where."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from transduce.documents.inline import Builder
from transduce.errors import UsageError

_BREAK = re.compile(r"\\?[ \t]*\n[ \t]*")
_FOOTNOTE = re.compile(r"(\[\^[^\]\s]+\])")
_PREFIX = re.compile(r"\[[ xX]\][ \t]+|\[\^[^\]\s]+\]:[ \t]+")
_HTML_NAME = re.compile(r"</?([A-Za-z][\w-]*)")
_HTML_WHOLE = {"code", "kbd", "samp", "var", "math", "svg"}
_SPACE = re.compile(r"[ \t\n]*")
_SPECIAL = re.compile(
    r"[\\`*\[\]]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|<(?=[A-Za-z/!?])|&(?=#?\w+;)|~(?=~)|(?<=~)~"
)
_BLOCK_START = re.compile(
    r"(?=#{1,6}(?:\s|$)|>|[-+](?:\s|$)|(?:-[ \t]*){3,}$|=+\s*$|-+\s*$|~~~|:?-+:?\s*\|)"
    r"|(\d{1,9})(?=[.)](?:\s|$))"
)


@cache
def parser() -> Any:
    """The markdown-it parser: CommonMark with tables and strikethrough, escapes kept apart."""
    try:
        from markdown_it import MarkdownIt
    except ImportError:
        raise UsageError(
            "Markdown is read with the markdown-it-py package; install it with "
            "`pip install 'transduce[documents]'`"
        ) from None
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("text_join")


@dataclass(frozen=True)
class Block:
    """The content of a block, and where each of its characters, and its end, stand in the file."""

    content: str
    places: tuple[int, ...]


class NotFound(Exception):
    """The tokens do not lead through the content: something is written in a way that this does not know."""


@dataclass
class Inside:
    """Goes through the tokens of a block: ``builder`` collects it, ``texts`` are places within the markup."""

    block: Block
    references: dict[str, Any]
    builder: Builder = field(default_factory=Builder)
    texts: list[tuple[int, int]] = field(default_factory=list)
    at: int = 0

    def walk(self, tokens: list[Any]) -> None:
        """Nothing; raises `NotFound` where content and tokens do not match."""
        prefix = _PREFIX.match(self.block.content)
        if prefix and tokens and tokens[0].type == "text" and tokens[0].content.startswith(prefix.group()):
            self.builder.alone(self._take(prefix.group()))
            self._text(tokens[0].content[prefix.end() :])
            tokens = tokens[1:]
        self._steps(tokens)
        if self.block.content[self.at :].strip():
            raise NotFound

    def _steps(self, tokens: list[Any]) -> None:
        number = 0
        while number < len(tokens):
            number += self._step(tokens, number)

    def _step(self, tokens: list[Any], number: int) -> int:
        """How many tokens are done."""
        token = tokens[number]
        if token.type == "text":
            self._text(token.content)
        elif token.type == "text_special":
            self._take(token.markup)
            self.builder.text(token.content)
        elif token.type in ("softbreak", "hardbreak"):
            self._line_end(token.type == "hardbreak")
        elif token.type == "code_inline":
            self.builder.alone(self._place(self.at, self._end_of_code(token.markup)))
        elif token.type == "html_inline":
            return self._html(tokens, number)
        elif token.type == "image":
            self._image(token)
        elif token.type == "link_open" and token.markup == "autolink":
            self.builder.alone(self._place(self.at, self.block.content.index(">", self.at) + 1))
            return 3
        else:
            self._tag(token)
        return 1

    def _tag(self, token: Any) -> None:
        """Nothing; the token begins or ends a link or something emphasised."""
        name, _, way = token.type.rpartition("_")
        if way not in ("open", "close"):
            raise NotFound
        if name == "link":
            place = self._take("[") if way == "open" else self._tail()
        else:
            place = self._take(token.markup)
        if way == "open":
            self.builder.open(name, place, optional=name != "link")
        else:
            self.builder.close(name, place)

    def _place(self, begin: int, end: int) -> tuple[int, int]:
        """The place in the file of what the content has there; the walk goes on behind it."""
        self.at = end
        return self.block.places[begin], self.block.places[end]

    def _take(self, text: str) -> tuple[int, int]:
        if not self.block.content.startswith(text, self.at):
            raise NotFound
        return self._place(self.at, self.at + len(text))

    def _text(self, text: str) -> None:
        for piece in _FOOTNOTE.split(text):
            if piece.startswith("[^") and _FOOTNOTE.fullmatch(piece):
                self.builder.alone(self._take(piece))
            elif piece:
                self._take(piece)
                self.builder.text(piece)

    def _line_end(self, hard: bool) -> None:
        found = _BREAK.match(self.block.content, self.at)
        if found is None:
            raise NotFound
        place = self._place(self.at, found.end())
        if hard:
            self.builder.alone(place, separates=True, optional=True)
        else:
            self.builder.text(" ")

    def _end_of_code(self, marks: str) -> int:
        begin = self.at + len(marks)
        found = re.compile(rf"(?<!`){marks}(?!`)").search(self.block.content, begin)
        if not self.block.content.startswith(marks, self.at) or found is None:
            raise NotFound
        return found.end()

    def _html(self, tokens: list[Any], number: int) -> int:
        """How many tokens are done: one, or those of an element that is not translated."""
        tag = tokens[number].content
        place = self._take(tag)
        name = _HTML_NAME.match(tag)
        if name is None or tag.endswith("/>"):
            self.builder.alone(place, separates=name is not None and name[1].lower() == "br")
        elif tag.startswith("</"):
            self.builder.close(f"html {name[1].lower()}", place)
        elif name[1].lower() in _HTML_WHOLE or 'translate="no"' in tag:
            for last in range(number + 1, len(tokens)):
                if tokens[last].type == "html_inline" and tokens[last].content.startswith(f"</{name[1]}"):
                    silent = Inside(self.block, self.references, at=self.at)
                    silent._steps(tokens[number + 1 : last + 1])
                    self.at = silent.at
                    self.builder.alone((place[0], self.block.places[self.at]))
                    return last + 1 - number
            self.builder.alone(place)
        else:
            self.builder.open(f"html {name[1].lower()}", place)
        return 1

    def _image(self, token: Any) -> None:
        begin = self.at
        self._take("![")
        silent = Inside(self.block, self.references, at=self.at)
        silent._steps(token.children or [])
        if all(child.type in ("text", "softbreak") for child in token.children or []):
            self.texts.append((self.at, silent.at))
        self.at = silent.at
        self._tail()
        self.builder.alone(self._place(begin, self.at))

    def _tail(self) -> tuple[int, int]:
        """What closes a link: its target with a title, its reference, or the bracket alone."""
        content, begin = self.block.content, self.at
        self._take("]")
        end = self._target(begin + 1) if content.startswith("(", begin + 1) else None
        if end is None and content.startswith("[", begin + 1):
            label_end = re.compile(r"(?<!\\)\]").search(content, begin + 2)
            label = content[begin + 2 : label_end.start()] if label_end else "?"
            if label_end and (not label or self._is_known(label)):
                end = label_end.end()
        return self._place(begin, end or begin + 1)

    def _is_known(self, label: str) -> bool:
        from markdown_it.common.utils import normalizeReference

        return normalizeReference(label) in self.references

    def _target(self, begin: int) -> int | None:
        """The end of ``(target "title")`` that begins there; None where it is none."""
        from markdown_it.helpers import parseLinkDestination, parseLinkTitle

        content = self.block.content
        at = _after_spaces(content, begin + 1)
        destination = parseLinkDestination(content, at, len(content))
        if destination.ok:
            at = destination.pos
            following = _after_spaces(content, at)
            title = parseLinkTitle(content, following, len(content))
            if following > at and title.ok:
                self.texts.append((following + 1, title.pos - 1))
                following = _after_spaces(content, title.pos)
            at = following
        return at + 1 if content.startswith(")", at) else None


def _after_spaces(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def escaped(text: str, *, in_table: bool = False) -> str:
    """Text as it stands in a block: what Markdown would take for markup has a backslash before it."""
    text = _SPECIAL.sub(r"\\\g<0>", text)
    return text.replace("|", "\\|") if in_table else text


def without_block_start(line: str) -> str:
    """The line so that it does not begin another block: a heading, a list item, a quotation, a rule."""
    return (
        _BLOCK_START.sub(lambda match: f"{match[1] or ''}\\", line, count=1)
        if _BLOCK_START.match(line)
        else line
    )
