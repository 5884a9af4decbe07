"""A document in, the same document translated out: read, its texts translated together, filled."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from transduce.counts import counted
from transduce.decoding.protection import KINDS, find_items, lost_or_doubled
from transduce.documents.inline import says_something
from transduce.documents.slots import Opened, Slot, filled
from transduce.errors import DataError, UsageError
from transduce.files import same_file, write_bytes


class Translated(Protocol):
    """What a `Translation` is, among others: a text, and what is to be told of it."""

    @property
    def text(self) -> str:
        """The translation."""
        ...

    @property
    def warnings(self) -> Sequence[str]:
        """What is to be told, each beginning with ``line N``."""
        ...


# Lines in, as many lines out: `Translator.translate_detailed`, or any function from texts to texts.
Translate = Callable[[list[str]], Sequence[str | Translated]]

SUFFIXES = {
    ".po": "po",
    ".pot": "po",
    ".xlf": "xliff",
    ".xliff": "xliff",
    ".mxliff": "xliff",
    ".tmx": "tmx",
    ".srt": "srt",
    ".vtt": "vtt",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".md": "markdown",
    ".markdown": "markdown",
    ".docx": "docx",
    ".docm": "docx",
    ".odt": "odt",
}
FORMATS = tuple(dict.fromkeys(SUFFIXES.values()))
_PROTECTED = re.compile(r"line \d+: (?:lost|doubled|invented): ")
_LINE = re.compile(r"line \d+:? +")
_EMPTY = re.compile(r"<(gq*\d+)></\1>")
_MARKER = re.compile(r"<[^<>]*>")
_BY_ORDER = re.compile(r"%(?!\(|\d+\$)|\{\}")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What a reader must know: how messages name the file, and the codes of both languages, maybe empty."""

    name: str = "the document"
    source_language: str = ""
    target_language: str = ""


@dataclass(frozen=True)
class TranslatedDocument:
    """The new bytes, how many units were filled in, and what is to be told, each naming its place.

    A unit is what is translated as one: an entry of a catalog, a paragraph, what a cue shows. ``units``
    counts those that there were to fill in; those that are translated already are none of them.
    """

    content: bytes
    filled: int
    units: int
    warnings: tuple[str, ...]

    @property
    def summary(self) -> str:
        """How many units were filled in, as the command says it."""
        return f"{self.filled:,} of {counted(self.units, 'unit')} filled in"


def format_of(path: str | Path) -> str:
    """The format of a document by its name, such as ``po``; empty where it is none."""
    return SUFFIXES.get(Path(path).suffix.lower(), "")


def translate_document(
    content: bytes,
    format: str,
    translate: Translate,
    *,
    source_language: str = "",
    target_language: str = "",
    name: str = "the document",
) -> TranslatedDocument:
    """The document ``content`` translated by ``translate``; every byte outside of what is filled in stays.

    ``format`` is one of `FORMATS`. ``translate`` gets all texts of the document at once, one line each, each
    only once, with inline markup as tags such as ``<g1>``: `Translator.translate_detailed` with ``protect``
    brings them through. TMX needs ``target_language``. Raises DataError, naming the place, for what is
    damaged or hostile. ``name`` is how messages call the file.
    """
    if format not in FORMATS:
        raise UsageError(f"format is {format!r}; choose one of {', '.join(FORMATS)}")
    reading = Reading(name=name, source_language=source_language, target_language=target_language)
    try:
        opened = _reader(format)(content, reading)
    except RecursionError:
        raise DataError(f"{name}: is nested too deeply; simplify the document") from None
    slots = [slot for part in opened.parts for slot in part.slots]
    texts = list(dict.fromkeys(text for slot in slots for text in slot.texts))
    asked = [text for text in texts if says_something(text)]
    outputs, told = _translated(asked, translate)
    outputs |= {text: text for text in texts if text not in outputs and text not in told}
    warnings = [warning for slot in slots for warning in _told(slot, outputs, told)]
    units = [slot.texts for slot in slots if slot.texts]
    done = sum(all(text in outputs for text in some) for some in units)
    new = opened.close([filled(part, outputs) for part in opened.parts])
    return TranslatedDocument(new, done, len(units), tuple(warnings))


def translate_file(
    source: str | Path,
    output: str | Path,
    translate: Translate,
    *,
    format: str = "",
    source_language: str = "",
    target_language: str = "",
) -> TranslatedDocument:
    """What `translate_document` makes of the file ``source``; it is written to ``output`` when complete.

    The format is that of the name, unless ``format`` says another.
    """
    if same_file(source, output):
        raise UsageError(f"{output}: is the input as well; name another output")
    chosen = format or format_of(source)
    if not chosen:
        raise UsageError(f"{source}: its name tells no format; name one of {', '.join(FORMATS)}")
    done = translate_document(
        read_bytes(source),
        chosen,
        translate,
        source_language=source_language,
        target_language=target_language,
        name=str(source),
    )
    write_bytes(output, done.content)
    return done


def read_bytes(path: str | Path) -> bytes:
    """The bytes of a file; DataError where it cannot be read."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; check the path") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None


def standard_input() -> bytes:
    """All bytes of standard input."""
    if sys.stdin is None:
        raise DataError("standard input is closed; name a file instead")
    return sys.stdin.buffer.read()


def _reader(name: str) -> Callable[[bytes, Reading], Opened]:
    """The reader of a format; only the one that is needed is loaded."""
    if name == "po":
        from transduce.documents.po import open_po as reader
    elif name == "xliff":
        from transduce.documents.xliff import open_xliff as reader
    elif name == "tmx":
        from transduce.documents.tmx import open_tmx as reader
    elif name in ("srt", "vtt"):
        from transduce.documents.subtitles import open_subtitles

        return partial(open_subtitles, vtt=name == "vtt")
    elif name == "html":
        from transduce.documents.html_page import open_html as reader
    elif name == "markdown":
        from transduce.documents.markdown import open_markdown as reader
    elif name == "docx":
        from transduce.documents.docx import open_docx as reader
    else:
        from transduce.documents.odt import open_odt as reader
    return reader


def _translated(texts: list[str], translate: Translate) -> tuple[dict[str, str], dict[str, list[str]]]:
    """The translation of each text, and what is told of it; an empty translation is told and left out."""
    found = translate(texts) if texts else []
    if len(found) != len(texts):
        raise UsageError(
            f"translate gave {counted(len(found), 'line')} for {len(texts)}; it must give one for each"
        )
    outputs: dict[str, str] = {}
    told: dict[str, list[str]] = {}
    for text, one in zip(texts, found, strict=True):
        warnings = [] if isinstance(one, str) else one.warnings
        # What is lost is told later, by the names that it has in the document.
        told[text] = [_LINE.sub("", told, count=1) for told in warnings if not _PROTECTED.match(told)]
        output = _cleaned(text, one if isinstance(one, str) else one.text)
        if output:
            outputs[text] = output
        else:
            told[text].append("the translation is empty; nothing is filled in")
    return outputs, told


def _cleaned(text: str, output: str) -> str:
    """The output as one line; characters that no document holds only if its source does."""
    line = " ".join(re.split(r"[\r\n]+", output)).strip()
    return _CONTROL.sub(lambda match: match.group() if match.group() in text else "", line)


def _out_of_order(text: str, output: str) -> list[str]:
    """What is to be told where placeholders that a program fills by their order have changed it."""
    before, after = (
        [item.text for item in find_items(one, ["placeholders"]) if _BY_ORDER.match(item.text)]
        for one in (text, output)
    )
    if before == after or sorted(before) != sorted(after):
        return []
    return [f"in another order: {' '.join(after)} (in the source {' '.join(before)})"]


def _told(slot: Slot, outputs: Mapping[str, str], told: Mapping[str, list[str]]) -> list[str]:
    messages = []
    for text in slot.texts:
        messages += told.get(text, [])
        if text in outputs:
            messages += lost_or_doubled(text, outputs[text], frozenset(KINDS))
            messages += _out_of_order(text, outputs[text])
            emptied = set(_EMPTY.findall(outputs[text])) - set(_EMPTY.findall(text))
            messages += [f"no word came of what stood in <{name}>" for name in sorted(emptied)]
    return [
        f"{slot.place}: " + _MARKER.sub(lambda found: slot.shown.get(found.group(), found.group()), message)
        for message in messages
    ]
