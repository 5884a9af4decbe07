"""Marian's vocabulary files: YAML of one subword a line, read and written as what they are, lines of text.

A reader of YAML as a whole takes a second for every few thousand subwords, and leaves out some.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from transduce.errors import BundleError

_ESCAPED = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))")
_LETTERS = {
    "n": "\n", "t": "\t", "r": "\r", "0": "\0", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f",
    "v": "\v", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip


def listing_text(pieces: Sequence[str]) -> str:
    """The content of a vocabulary file with these subwords, by their ids."""
    return "".join(f'"{_quoted(piece)}": {index}\n' for index, piece in enumerate(pieces))


def read_listing(path: Path) -> dict[str, int]:
    """Subword to id; BundleError, with the line, for what is no vocabulary."""
    try:
        lines = path.read_bytes().decode().split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BundleError(f"{path}: cannot be read: {error}") from None
    found: dict[str, int] = {}
    key = ""
    for number, line in enumerate(lines, 1):
        line = line.removesuffix("\r")
        if line.startswith("? "):  # a key that has a line of its own
            key = line[2:]
            continue
        if not line:
            continue
        name, _, value = (key + line).rpartition(":") if key else line.rpartition(":")
        key = ""
        if not value.strip().isdigit():
            raise BundleError(f"{path}:{number}: expected a subword, a colon and its id, found {line[:60]!r}")
        found[_unquoted(name.strip(" "))] = int(value)
    return found


def _quoted(piece: str) -> str:
    return "".join(map(_written, piece))


def _written(character: str) -> str:
    """A character between double quotes; what YAML takes for the end of a line is written by its number."""
    code = ord(character)
    if character in '\\"':
        return "\\" + character
    if code < 32 or 127 <= code < 160:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code in (0x2028, 0x2029, 0xFEFF) else character


def _unquoted(name: str) -> str:
    if len(name) > 1 and name[0] == name[-1] == "'":
        return name[1:-1].replace("''", "'")
    if len(name) > 1 and name[0] == name[-1] == '"':
        return _ESCAPED.sub(_meant, name[1:-1])
    return name


def _meant(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    return chr(int(code, 16)) if code else _LETTERS.get(match[4], match[4])
