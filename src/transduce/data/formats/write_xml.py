"""Pairs as XML: TMX, XLIFF, the test sets of WMT; and as SGM."""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.sax.saxutils import quoteattr

from transduce import __version__
from transduce.data.formats.pair import Pair
from transduce.data.formats.sides import Wanted
from transduce.data.formats.tally import Tally
from transduce.data.outputs import Sink
from transduce.errors import DataError, UsageError

# What XML cannot hold, not even as a number.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"}
_SPECIAL = re.compile("[&<>\r]")
_EDGE = re.compile(r"^[ \t\n]|[ \t\n]$")


def write_tmx(pairs: Iterable[Pair], file: Sink, languages: Wanted, tally: Tally) -> None:
    """Nothing; a translation memory, a unit for each pair."""
    source, target = _attributes(languages, "TMX")
    file.write(
        '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">\n'
        f'<header creationtool="transduce" creationtoolversion="{__version__}" segtype="sentence" '
        f'o-tmf="transduce" adminlang="en" srclang={source} datatype="plaintext"/>\n<body>\n'.encode()
    )
    for pair in pairs:
        sides = (
            f"<tuv xml:lang={language}><seg>{_escaped(text, pair)}</seg></tuv>"
            for language, text in ((source, pair.source), (target, pair.target))
        )
        file.write(f"<tu>{''.join(sides)}</tu>\n".encode())
    file.write(b"</body>\n</tmx>\n")


def write_xliff(pairs: Iterable[Pair], file: Sink, languages: Wanted, tally: Tally) -> None:
    """Nothing; XLIFF 1.2, a unit for each pair."""
    source, target = _attributes(languages, "XLIFF")
    file.write(
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">\n'
        f'<file original="transduce" source-language={source} target-language={target} '
        'datatype="plaintext" xml:space="preserve">\n<body>\n'.encode()
    )
    for number, pair in enumerate(pairs, 1):
        one, other = _escaped(pair.source, pair), _escaped(pair.target, pair)
        unit = f"<source>{one}</source><target>{other}</target>"
        file.write(f'<trans-unit id="{number}">{unit}</trans-unit>\n'.encode())
    file.write(b"</body>\n</file>\n</xliff>\n")


def write_wmt_xml(pairs: Iterable[Pair], file: Sink, languages: Wanted, tally: Tally) -> None:
    """Nothing; one document with its source and reference. The pairs are held in memory."""
    source, target = _attributes(languages, "a test set in XML")
    held = list(pairs)
    file.write(b'<?xml version="1.0" encoding="UTF-8"?>\n<dataset id="transduce">\n<doc id="1">\n')
    for kind, language, texts in (
        ("src", source, [pair.source for pair in held]),
        ("ref", target, [pair.target for pair in held]),
    ):
        file.write(f"<{kind} lang={language}>\n<p>\n".encode())
        for number, (text, pair) in enumerate(zip(texts, held, strict=True), 1):
            file.write(f'<seg id="{number}">{_escaped(text, pair)}</seg>\n'.encode())
        file.write(f"</p>\n</{kind}>\n".encode())
    file.write(b"</doc>\n</dataset>\n")


def write_sgm(pairs: Iterable[Pair], file: Sink, languages: Wanted, tally: Tally) -> None:
    """Nothing; one document with its source and reference. The pairs are held in memory."""
    source, target = _attributes(languages, "SGM")
    held = list(pairs)
    file.write(b"<mteval>\n")
    for kind, attributes, texts in (
        ("srcset", f"srclang={source}", [pair.source for pair in held]),
        ("refset", f"srclang={source} trglang={target}", [pair.target for pair in held]),
    ):
        file.write(f'<{kind} setid="transduce" {attributes}>\n<doc docid="1">\n'.encode())
        for number, text in enumerate(texts, 1):
            escaped = _SPECIAL.sub(lambda found: _ESCAPES[found[0]], text)
            # White space at the ends of a segment is layout, so that of the text is written as a number.
            escaped = _EDGE.sub(lambda found: f"&#{ord(found[0])};", escaped)
            file.write(f'<seg id="{number}">{escaped}</seg>\n'.encode())
        file.write(f"</doc>\n</{kind}>\n".encode())
    file.write(b"</mteval>\n")


def _attributes(languages: Wanted, what: str) -> tuple[str, str]:
    """Both languages as values of attributes."""
    if not languages.both:
        raise UsageError(f"{what} names its languages; say them with --source-language and --target-language")
    return quoteattr(languages.source), quoteattr(languages.target)


def _escaped(text: str, pair: Pair) -> str:
    if found := _FORBIDDEN.search(text):
        raise DataError(
            f"{pair.file}:{pair.line}: holds U+{ord(found[0]):04X}, which XML cannot; clean the text, or "
            "write JSON lines instead"
        )
    return _SPECIAL.sub(lambda found: _ESCAPES[found[0]], text)
