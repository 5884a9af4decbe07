"""The entries of a PO catalog, and where their strings and flags stand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from transduce.errors import DataError

_KEYWORD = re.compile(r'[ \t]*(msgctxt|msgid_plural|msgid|msgstr)(?:\[(\d{1,3})\])?[ \t]*(?=["\r\n])')
_STRING = re.compile(r'[ \t]*"((?:[^"\\\n]|\\.)*)"[ \t]*(?:\r?\n|\r?$)')
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', **{value: f"\\{key}" for key, value in _PLAIN.items()}})
_WIDTH = 77


@dataclass(frozen=True)
class String:
    """A keyword with its string: where it begins and ends, line end included, and over how many rows."""

    begin: int
    end: int
    text: str
    rows: int


@dataclass
class Entry:
    """An entry: its strings by their keywords (``msgstr[0]`` and so on), where its last line of flags stands.

    ``body`` is where a line of flags belongs if there is none: before the first string and its old versions.
    """

    flags: tuple[int, int] | None = None
    body: int = -1
    strings: dict[str, String] = field(default_factory=dict)

    def takes(self, keyword: str) -> bool:
        """Whether a string with this keyword may still belong to the entry."""
        if keyword in self.strings:
            return False
        return keyword not in ("msgctxt", "msgid") or set(self.strings) <= {"msgctxt"}


def read_entries(text: str, name: str) -> Iterator[Entry]:
    """The entries of a catalog, its header first; obsolete ones (``#~``) are passed over.

    DataError names ``name`` and the line where something is no part of a catalog.
    """
    return _Reader(text, name).entries()


def written(keyword: str, text: str, newline: str, *, several: bool) -> str:
    """The keyword with its string, as gettext writes it: over ``several`` rows, or where it has lines."""
    if not several and "\n" not in text[:-1]:
        return f'{keyword} "{text.translate(_ESCAPED)}"{newline}'
    rows = [f'{keyword} ""']
    for line in re.findall(r"[^\n]*\n|[^\n]+$", text):
        row = ""
        for word in re.findall(r"\S+\s*|\s+", line.translate(_ESCAPED)):
            if row and len(row) + len(word.rstrip()) > _WIDTH:
                rows.append(f'"{row}"')
                row = ""
            row += word
        rows.append(f'"{row}"')
    return "".join(row + newline for row in rows)


class _Reader:
    """Goes through the lines; ``at`` is the character, ``line`` the number of the next one."""

    def __init__(self, text: str, name: str) -> None:
        self.text, self.name = text, name
        self.at = len(text) - len(text.removeprefix("\ufeff"))
        self.line = 1

    def entries(self) -> Iterator[Entry]:
        entry = Entry()
        while self.at < len(self.text):
            begin = self.at
            end = self.text.find("\n", begin) + 1 or len(self.text)
            line = self.text[begin:end].strip()
            if line and not line.startswith("#"):
                keyword, string = self._string()
                if not entry.takes(keyword):
                    yield self._checked(entry)
                    entry = Entry()
                if entry.body < 0:
                    entry.body = begin
                entry.strings[keyword] = string
                continue
            self.at, self.line = end, self.line + 1
            if entry.strings:
                yield self._checked(entry)
                entry = Entry()
            if not line or line.startswith("#~"):
                entry = Entry()
            elif line.startswith("#,"):
                entry.flags = (begin, end)
            elif line.startswith("#|") and entry.body < 0:
                entry.body = begin
        if entry.strings:
            yield self._checked(entry)

    def _checked(self, entry: Entry) -> Entry:
        if "msgid" not in entry.strings or not any(name.startswith("msgstr") for name in entry.strings):
            raise self._wrong("the entry before lacks msgid or msgstr")
        return entry

    def _string(self) -> tuple[str, String]:
        keyword = _KEYWORD.match(self.text, self.at)
        if keyword is None:
            raise self._wrong("expected msgid, msgstr, a string in quotes or a comment")
        begin, rows, pieces = self.at, 0, []
        self.at = keyword.end()
        while (string := _STRING.match(self.text, self.at)) is not None:
            pieces.append(_unescaped(string[1]))
            self.at = string.end()
            rows, self.line = rows + 1, self.line + 1
        if not pieces:
            raise self._wrong("the string is not in quotes, or its quotes are not closed")
        name = keyword[1] if keyword[2] is None else f"{keyword[1]}[{int(keyword[2])}]"
        return name, String(begin, self.at, "".join(pieces), rows)

    def _wrong(self, what: str) -> DataError:
        shown = self.text[self.at : self.at + 60].split("\n")[0].strip()
        return DataError(
            f"{self.name}:{self.line}: {what}; found {shown!r}: mend the catalog (msgfmt -c tells more)"
        )


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda match: _character(match[1]), text) if "\\" in text else text


def _character(code: str) -> str:
    if code[0] == "x" and len(code) > 1:
        return chr(int(code[1:], 16))
    if code[0] in "01234567":
        return chr(int(code, 8) & 0xFF)
    return _PLAIN.get(code, code)
