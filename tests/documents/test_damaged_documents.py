"""Documents with a few bytes changed are translated or refused: in bounded time, with no other error."""

from __future__ import annotations

import contextlib
import io
import random
import zipfile
from collections.abc import Iterator

import pytest
from fakes import HOSTILE
from test_office import B, body, docx, field, odt, r
from test_subtitle_documents import VTT, cue
from test_xliff_and_tmx import TMX, UNIT, one, two

from transduce.documents.translate import FORMATS, translate_document
from transduce.errors import TransduceError

PO = """msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\\n"
"Plural-Forms: nplurals=3; plural=(n%10==1 ? 0 : n%10>=2 ? 1 : 2);\\n"

#, c-format
msgctxt "menu"
msgid "&Open %s"
msgid_plural "Open \\303\\244 %d files\\n"
msgstr[0] ""
msgstr[1] ""

#~ msgid "x"
#~ msgstr ""
"""
HTML = """<!doctype html><html><head><meta charset="utf-8"><title>a &amp; b</title><style>p{}</style></head>
<body><p class="x">One <b>two <i>three</i></b>, four<br>five <code>six</code> <img src="a" alt="seven">.</p>
<ul><li>a<li translate="no">b</ul><script>if (a < b) {}</script><!-- c -->
<table><td title='d'>e &lt; f</table>"""
MARKDOWN = """---
a: b
---
# Title *here*

> A quoted `code` paragraph [with a link](http://a.b "title")
> on **two** lines.

- item ![image](x.png) &amp; more
  1. nested[^1]

| a | b |
|---|---|
| c \\| d | <br> e |

```
code
```

[^1]: a note
"""
WORD = docx(
    f"<w:p>{r('a ')}{r('b', B)}<w:hyperlink>{r('c')}</w:hyperlink>{field('HYPERLINK', r('d'))}</w:p>"
    f"<w:tbl><w:tr><w:tc><w:p>{r('e')}<w:r><w:tab/></w:r>{r('f')}</w:p></w:tc></w:tr></w:tbl>",
    header=f"<w:p>{r('g')}</w:p>",
)
WRITER = odt('<text:p>a <text:span text:style-name="T1">b</text:span><text:tab/>c</text:p>')
SEEDS = {
    "po": [PO.encode()],
    "xliff": [
        one(
            '<trans-unit id="1"><source>a <g id="1">b &amp; c</g><x id="2"/></source><target/></trans-unit>'
        ).encode(),
        two('<unit id="1"><segment><source>a <pc id="1">b</pc></source></segment></unit>').encode(),
    ],
    "tmx": [
        TMX.format(encoding="UTF-8", units=UNIT).encode(),
        TMX.format(encoding="UTF-16", units=UNIT).encode("utf-16"),
    ],
    "srt": ["\n".join([cue(1, "<i>When it,</i>"), cue(2, "was so"), cue(3, "- a\n- b")]).encode()],
    "vtt": [VTT.encode()],
    "html": [HTML.encode()],
    "markdown": [MARKDOWN.encode()],
    "docx": [WORD],
    "odt": [WRITER],
}
TOKENS = [
    b"<",
    b">",
    b'"',
    b"\n",
    b"\r",
    b"\0",
    b"&",
    b"]]>",
    b"-->",
    b"<!--",
    b"\\",
    b"|",
    b"`",
    b"\xff",
    b"\xe2\x80",
    b"<p>",
    b"</",
    b"PK",
]


def mutated(content: bytes, draw: random.Random) -> bytes:
    """The content with a few bytes changed, left out, doubled or moved."""
    data = bytearray(content)
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(data) + 1)
        end = min(len(data), at + draw.choice([1, 1, 2, 8, 60]))
        way = draw.randrange(5)
        if way == 0:
            data[at:end] = bytes(draw.randrange(256) for _ in range(end - at))
        elif way == 1:
            del data[at:end]
        elif way == 2:
            data[at:at] = data[at:end] * draw.choice([1, 1, 30])
        elif way == 3:
            data[at:at] = draw.choice(TOKENS)
        else:
            other = draw.randrange(len(data) + 1)
            data[other:other] = data[at:end]
    return bytes(data)


def repacked(content: bytes, draw: random.Random) -> bytes:
    """A package whose parts are damaged inside."""
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as old,
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            part = old.read(name)
            new.writestr(name, mutated(part, draw) if draw.random() < 0.5 else part)
    return buffer.getvalue()


def damaged(format: str, count: int) -> Iterator[bytes]:
    draw = random.Random(format)
    for number in range(count):
        seed = SEEDS[format][number % len(SEEDS[format])]
        yield repacked(seed, draw) if format in ("docx", "odt") and number % 2 else mutated(seed, draw)


def check(format: str, count: int) -> None:
    translated = 0
    for number, content in enumerate(damaged(format, count)):
        try:
            done = translate_document(content, format, HOSTILE[number % len(HOSTILE)], target_language="de")
        except TransduceError:
            continue
        translated += 1
        # What comes out can be read again.
        translate_document(done.content, format, HOSTILE[1], target_language="de")
    assert translated > count // 50


@pytest.mark.parametrize("format", FORMATS)
def test_damaged_documents_are_translated_or_refused(format: str) -> None:
    check(format, 150)


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
def test_10_000_damaged_documents_are_translated_or_refused(format: str) -> None:
    check(format, 10_000)


def test_the_seeds_are_translated() -> None:
    for format, seeds in SEEDS.items():
        for seed in seeds:
            assert translate_document(seed, format, HOSTILE[0], target_language="de").filled
    assert "A " in body(translate_document(WORD, "docx", HOSTILE[0]).content)


LONG = 200_000


@pytest.mark.parametrize(
    ("format", "content"),
    [
        ("html", "<" * LONG),
        ("html", "<a " * LONG),
        ("html", "<!--" * LONG),
        ("html", "<b>" * 20_000 + "x" + "</b>" * 20_000),
        ("html", "</title" * LONG),
        ("html", "<p>" + "<b>a" * 20_000),
        ("html", "&amp" * LONG),
        ("srt", "</i>" * LONG),
        ("srt", "1\n00:00:01,000 --> 00:00:02,000\n" + "</i>" * LONG),
        ("srt", " " * LONG + "\n" + "\t" * LONG),
        ("po", '"' * LONG),
        ("po", 'msgid "' + "\\a" * LONG + '"\nmsgstr ""\n'),
        ("po", 'msgid "' + "a " * LONG + '"\nmsgstr ""\n'),
        ("po", "\n".join(['msgid "a"', 'msgstr ""', ""] * 20_000)),
        ("xliff", one('<trans-unit id="1"><source>' + '<x id="1"/>a' * 10_000 + "</source></trans-unit>")),
        ("markdown", "*" * 20_000),
        ("markdown", "a\n" * 20_000),
        ("markdown", "> " * 5_000 + "a"),
    ],
)
def test_what_is_made_to_take_long_does_not(format: str, content: str) -> None:
    # Quadratic time would be minutes here; nothing is measured, the limit of the run would tell.
    with contextlib.suppress(TransduceError):
        translate_document(content.encode(), format, lambda texts: texts)
        translate_document(content.encode(), format, lambda texts: [text.upper() for text in texts])
