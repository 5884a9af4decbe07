"""Markdown (CommonMark with tables and strikethrough): paragraphs, headings, list items and table cells.

Code, targets of links, front matter and reference definitions are untouched. markdown-it finds the blocks;
`markdown_inline` finds the places of what stands in them. A paragraph of several lines is broken anew at the
width that it had, behind the same marks of quotation and indentation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from transduce.documents.encodings import decode
from transduce.documents.html_page import html_slots
from transduce.documents.inline import Segment, says_something
from transduce.documents.markdown_inline import Block, Inside, NotFound, escaped, parser, without_block_start
from transduce.documents.message import broken
from transduce.documents.slots import Lines, Opened, Part, Raw, Slot
from transduce.documents.translate import Reading
from transduce.errors import DataError

_FRONT = re.compile(r"\ufeff?(---|\+\+\+)[ \t]*\r?\n(?:[^\n]*\n)*?\1[ \t]*(?:\r?\n|$)")
_LINE_END = re.compile(r"\r\n?|\n")
# What stands for spaces and line ends that must stay where they are while lines are broken.
_HOLD = str.maketrans({" ": "\0", "\n": "\1"})
_FREE = str.maketrans({"\0": " ", "\1": "\n"})


def open_markdown(content: bytes, reading: Reading) -> Opened:
    """The blocks of the file as slots."""
    text, encode = decode(content, "utf-8", reading.name)
    if "\0" in text or "\1" in text:
        raise DataError(f"{reading.name}: holds control characters; it is no Markdown")
    slots = tuple(_File(text, reading.name).slots())
    return Opened((Part(text, slots),), lambda texts: encode(texts[0]))


class _File:
    """The blocks of one file."""

    def __init__(self, text: str, name: str) -> None:
        self.text, self.name, self.lines = text, name, Lines(text)
        front = _FRONT.match(text)
        self.first = front.end() if front else len(text) - len(text.removeprefix("\ufeff"))
        self.starts, self.ends = [self.first], []
        for match in _LINE_END.finditer(text, self.first):
            self.ends.append(match.start())
            self.starts.append(match.end())
        self.ends.append(len(text))

    def slots(self) -> Iterator[Slot]:
        """The slots in the order of their blocks."""
        environment: dict[str, Any] = {}
        tokens = parser().parse(self.text[self.first :], environment)
        references = environment.get("references", {})
        before, column = "", 0
        for token in tokens:
            if token.type == "html_block" and not token.level:
                first, last = token.map
                begin, end = self.starts[first], self.ends[last - 1]
                yield from html_slots(self.text, self.name, self.lines, begin, end)
            elif token.type == "inline":
                in_table = before in ("th_open", "td_open")
                block = self._cell(token, column) if in_table else self._paragraph(token)
                column += 1
                if block is not None:
                    yield from self._block(block, token, references, in_table)
            elif token.type == "tr_open":
                column = 0
            before = token.type

    def _paragraph(self, token: Any) -> Block | None:
        """Where the lines of a block's content stand in the file; None if they cannot be found."""
        places: list[int] = []
        for number, line in enumerate(token.content.split("\n"), token.map[0]):
            begin, end = self.starts[number], self.ends[number]
            body = line.lstrip()
            at = self.text.rfind(body, begin, end)
            if at < 0:
                return None
            first = at - (len(line) - len(body))
            places += [max(begin, place) for place in range(first, at + len(body))]
            places.append(at + len(body))
        return Block(token.content, tuple(places))

    def _cell(self, token: Any, column: int) -> Block | None:
        """Where the content of a table's cell stands; an escaped bar is one character of it."""
        begin, end = self.starts[token.map[0]], self.ends[token.map[0]]
        line = self.text[begin:end]
        bars = [match.start() for match in re.finditer(r"(?<!\\)\|", line)]
        indent = len(line) - len(line.lstrip("> \t"))
        ends = [*(bar for bar in bars if bar > indent), len(line)]
        starts = [indent + 1 if indent in bars else indent, *(bar + 1 for bar in ends[:-1])]
        if column >= len(starts):
            return None
        raw = line[starts[column] : ends[column]]
        first = begin + starts[column] + len(raw) - len(raw.lstrip())
        places = [first + match.start() for match in re.finditer(r"\\\||.", raw.strip())]
        if raw.strip().replace("\\|", "|") != token.content:
            return None
        return Block(token.content, (*places, first + len(raw.strip())))

    def _block(self, block: Block, token: Any, references: dict[str, Any], in_table: bool) -> Iterator[Slot]:
        inside = Inside(block, references)
        try:
            inside.walk(token.children or [])
        except NotFound:
            return
        segment = inside.builder.segment(partial(escaped, in_table=in_table), collapse=True)
        for first, last in inside.texts:
            yield from self._within(block.places[first], block.places[last])
        if not segment.text or not says_something(segment.text):
            return
        text = self.text
        yield Slot(
            begin=block.places[0],
            end=block.places[-1],
            place=f"{self.name}:{self.lines.number(block.places[0])}",
            texts=(segment.text,),
            fill=partial(_filled, segment, *self._broken_at(token, block)),
            shown=segment.shown(lambda begin, end: text[begin:end]),
        )

    def _broken_at(self, token: Any, block: Block) -> tuple[int, str]:
        """The longest line of a paragraph, and what stands between its lines; 0 where it has one line."""
        lines = token.content.split("\n")
        if len(lines) == 1:
            return 0, ""
        line_end = len(lines[0])
        second = line_end + 1 + len(lines[1]) - len(lines[1].lstrip())
        first_end = self.ends[token.map[0]]
        return max(map(len, lines)), self.text[first_end : block.places[second]]

    def _within(self, begin: int, end: int) -> Iterator[Slot]:
        """The slot of a text within markup: what an image shows, or the title of a link."""
        text = self.text[begin:end]
        plain = re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", text)
        if says_something(plain) and "\n" not in text:
            yield Slot(
                begin=begin,
                end=end,
                place=f"{self.name}:{self.lines.number(begin)}",
                texts=(plain.strip(),),
                fill=lambda outputs, _: re.sub(r"[\\\"'()\[\]`*<]", r"\\\g<0>", outputs[0]),
            )


def _filled(segment: Segment, width: int, prefix: str, outputs: Sequence[str], raw: Raw) -> str:
    """The block with its translation, in lines of this width with ``prefix`` between them; 0: in one line."""
    if not width:
        return without_block_start(segment.filled(outputs[0], raw))
    held = segment.filled(outputs[0], lambda begin, end: raw(begin, end).translate(_HOLD))
    lines: list[str] = []
    for line in broken(held, width).split("\n"):
        if lines and line.startswith(
            "<"
        ):  # a comment or a block's tag at a line's begin would end the paragraph
            lines[-1] += f" {line}"
        else:
            lines.append(line)
    return prefix.join(map(without_block_start, lines)).translate(_FREE)
