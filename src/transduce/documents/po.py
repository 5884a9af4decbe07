"""PO catalogs (GNU gettext): entries without a translation get one, and the flag ``fuzzy``.

Of plural forms the one that the language takes for 1 is made of the singular, the others of the plural.
"""

from __future__ import annotations

import gettext
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from transduce.documents.encodings import decode
from transduce.documents.message import Message
from transduce.documents.po_entries import Entry, read_entries, written
from transduce.documents.slots import Lines, Opened, Part, Raw, Slot
from transduce.documents.translate import Reading

_CHARSET = re.compile(rb"Content-Type:[^\n\"]*charset=([\w.:-]{1,40})", re.IGNORECASE)
_FORMS = re.compile(r"Plural-Forms:[^\n]*nplurals\s*=\s*(\d{1,4})\s*;\s*plural\s*=\s*([^;\n]{1,999});?")
_MOST_FORMS = 12


def open_po(content: bytes, reading: Reading) -> Opened:
    """The catalog's untranslated entries as slots; obsolete entries and the header stay as they are."""
    found = _CHARSET.search(content[:65_536])
    charset = found[1].decode() if found else "utf-8"
    text, encode = decode(content, "utf-8" if charset == "CHARSET" else charset, reading.name)
    entries = list(read_entries(text, reading.name))
    headers = [one for one in entries if not one.strings["msgid"].text and "msgctxt" not in one.strings]
    header = headers[0].strings.get("msgstr") if headers else None
    forms = _Forms.of(header.text if header else "")
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = Lines(text)
    slots = []
    for entry in entries:
        place = f"{reading.name}:{lines.number(entry.strings['msgid'].begin)}"
        slots += list(_slots(entry, forms, newline, place))
    return Opened((Part(text, tuple(slots)),), lambda texts: encode(texts[0]))


@dataclass(frozen=True)
class _Forms:
    """The plural forms of a language: how many, 0 if unknown; which one it takes for 1 alone, -1: none."""

    count: int = 0
    singular: int = 0

    @classmethod
    def of(cls, header: str) -> _Forms:
        """The forms that a header tells; what is nonsense counts as not told."""
        found = _FORMS.search(header)
        if found is None or not 1 <= int(found[1]) <= _MOST_FORMS:
            return cls()
        count = int(found[1])
        try:
            form: Callable[[int], int] = gettext.c2py(found[2])
            return cls(count, -1 if count == 1 else form(1))
        except (ValueError, ArithmeticError, RecursionError):
            return cls(count)

    def wanted(self, entry: Entry) -> dict[str, str]:
        """For each msgstr to be filled in the text that it is made of."""
        strings = entry.strings
        source = strings["msgid"].text
        there = [key for key in strings if key.startswith("msgstr")]
        empty = [key for key in there if not strings[key].text]
        plural = strings.get("msgid_plural")
        if plural is None:
            return {key: source for key in empty if key == "msgstr"}
        if empty == there:
            # A template has two forms, whatever the language.
            empty = list(dict.fromkeys([*empty, *(f"msgstr[{form}]" for form in range(self.count))]))
        return {key: source if key == f"msgstr[{self.singular}]" else plural.text for key in empty}


def _slots(entry: Entry, forms: _Forms, newline: str, place: str) -> Iterator[Slot]:
    """The slot of an entry, if something in it is to be filled in."""
    strings = entry.strings
    messages = {key: Message(text) for key, text in forms.wanted(entry).items() if strings["msgid"].text}
    texts = tuple(text for message in messages.values() for text in message.texts)
    if texts:
        begin = entry.flags[0] if entry.flags and entry.flags[0] < entry.body else entry.body
        end = max(string.end for string in strings.values())
        fill = partial(_filled, entry, messages, newline)
        yield Slot(begin=begin, end=end, place=place, texts=texts, fill=fill, always=True)


def _filled(
    entry: Entry, messages: Mapping[str, Message], newline: str, outputs: Sequence[str], raw: Raw
) -> str:
    """The entry with its flag and the new strings in place of the empty ones, or behind them."""
    following = iter(outputs)
    several = any(string.rows > 1 for key, string in entry.strings.items() if key.startswith("msgid"))
    new = {
        key: written(
            key, message.joined(list(islice(following, len(message.texts)))), newline, several=several
        )
        for key, message in messages.items()
    }
    pieces, at = [_with_flag(entry, raw, newline)], entry.body
    for key, string in entry.strings.items():
        if key in new:
            # The last line of a file may lack its end.
            ends = raw(string.end - 1, string.end) == "\n"
            pieces += [raw(at, string.begin), new[key] if ends else new[key].removesuffix(newline)]
            at = string.end
    pieces.append(raw(at, max(string.end for string in entry.strings.values())))
    whole, more = "".join(pieces), [text for key, text in new.items() if key not in entry.strings]
    return "".join([whole, newline if more and not whole.endswith("\n") else "", *more])


def _with_flag(entry: Entry, raw: Raw, newline: str) -> str:
    """What stands before the strings of an entry from its flags on, ``fuzzy`` among them."""
    if entry.flags is None or entry.flags[0] > entry.body:
        return f"#, fuzzy{newline}"
    flags, rest = raw(*entry.flags), raw(entry.flags[1], entry.body)
    if re.search(r"[,\s]fuzzy\s*(,|$)", flags):
        return flags + rest
    return re.sub(r"#,[ \t]*", "#, fuzzy, ", flags, count=1) + rest
