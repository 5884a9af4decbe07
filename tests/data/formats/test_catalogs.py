"""PO and MO catalogs: by hand, and against gettext's own tools and library."""

from __future__ import annotations

import gettext
import io
import shutil
import struct
import subprocess
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from transduce.data.formats.mo import read_mo
from transduce.data.formats.po import read_entries
from transduce.data.formats.sides import Wanted
from transduce.data.formats.tally import Tally
from transduce.errors import DataError

Write = Callable[..., str]
HEADER = 'msgid ""\nmsgstr ""\n"Language: de\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n\n'
PO = (
    HEADER
    + """# a comment
#. of a programmer
#: file.c:1
#, c-format
msgid "Open %s\\n"
msgstr "\\"%s\\" öffnen\\n"

msgctxt "menu"
msgid ""
"Two "
"lines"
msgstr ""
"Zwei "
"Zeilen"

#, fuzzy
#| msgid "old"
msgid "perhaps"
msgstr "vielleicht"
msgid "not yet"
msgstr ""

msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d Datei"
msgstr[1] "%d Dateien"

#~ msgid "gone"
#~ msgstr "weg"
"""
)
LOCALES = Path("/usr/share/locale")
CATALOGS = sorted(LOCALES.glob("*/LC_MESSAGES/*.mo"))
needs_catalogs = pytest.mark.skipif(not CATALOGS, reason=f"there are no catalogs under {LOCALES}")
needs_gettext = pytest.mark.skipif(
    not (shutil.which("msgfmt") and shutil.which("msgunfmt")), reason="gettext's tools are not installed"
)


def test_po(write: Write, read) -> None:
    path = write("de.po", PO.encode())
    pairs, tally = read(path)
    assert [(p.source, p.target, p.line) for p in pairs] == [
        ("Open %s\n", '"%s" öffnen\n', 10),
        ("Two lines", "Zwei Zeilen", 13),
        ("%d file", "%d Datei", 28),
        ("%d files", "%d Dateien", 28),
    ]
    assert dict(tally.skipped[path]) == {"fuzzy": 1, "untranslated": 1, "obsolete": 1}
    assert tally.lines()[0] == f"{path}: source not named, target de: it holds no others"
    assert [p.source for p in read(path, "de", "en")[0]][1] == "Zwei Zeilen"
    with pytest.raises(DataError, match=r"has no text in 'en' and 'fr'"):
        read(path, "en", "fr")


def test_plurals_that_english_lacks_are_counted(write: Write, read) -> None:
    forms = 'msgid "a"\nmsgid_plural "b"\n' + "".join(f'msgstr[{n}] "{n}"\n' for n in range(3))
    one = 'msgid "c"\nmsgid_plural "d"\nmsgstr[0] "e"\n'
    path = write("pl.po", (HEADER + forms + one).encode())
    pairs, tally = read(path)
    assert pairs == []
    assert dict(tally.skipped[path]) == {"with 3 plural forms": 1, "with 1 plural forms": 1}


def test_other_encodings(write: Write, read) -> None:
    for encoding in ("ISO-8859-1", "Shift_JIS"):
        text = HEADER.replace("UTF-8", encoding) + 'msgid "a"\nmsgstr "%s"\n' % (
            "ä" if "8859" in encoding else "表\\n"
        )
        pairs, _ = read(write("x.po", text.encode(encoding)))
        assert pairs[0].target == ("ä" if "8859" in encoding else "表\n")
    with pytest.raises(DataError, match=r"x.po:7: is not in UTF-8, which its header names"):
        read(write("x.po", (HEADER + 'msgid "a"\nmsgstr "ä"\n').encode("latin-1")))
    with pytest.raises(DataError, match=r"x.po: its header names the charset 'klingon'"):
        read(write("x.po", HEADER.replace("UTF-8", "klingon").encode()))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('msgid "a"\n', r"x.po:\d: the entry of line 6 has no msgstr"),
        ('msgstr "a"\n', r"x.po:6: msgstr after no msgid"),
        ('msgid "a\nmsgstr "b"\n', r"x.po:6: 'msgid \"a' is no comment"),
        ('msgid "a"b"\n', r"x.po:6: "),
        ('msgid "a"\nmsgid "b"\n', r"x.po:7: msgid after msgid"),
        ('msgid "a"\nmsgstr "b"\nmsgstr "c"\n', r"x.po:8: msgstr where one msgstr is"),
        ('msgid "a"\nmsgstr[0] "b"\n', r"x.po:7: msgstr\[0\] where one msgstr is expected"),
        ('msgid "a"\nmsgid_plural "b"\nmsgstr[1] "c"\n', r"x.po:8: msgstr\[1\] where msgstr\[0\] is exp"),
        ('msgid "a"\nmsgid_plural "b"\nmsgstr "c"\n', r"x.po:8: msgstr where msgstr\[0\] is expected"),
        ('msgid "\\q"\nmsgstr "b"\n', r"x.po:6: '.*q' is no escape of PO"),
        ('msgid "\\303"\nmsgstr "b"\n', r"x.po:6: .*is half a character"),
        ("noise\n", r"x.po:6: 'noise' is no comment"),
        ('"alone"\n', r"x.po:|"),
    ],
)  # fmt: skip
def test_damage_is_named_with_its_line(write: Write, read, text: str, message: str) -> None:
    if text.startswith('"alone'):
        text, message = '# c\n"alone"\n', r"x.po:7: a text that belongs to no keyword"
    with pytest.raises(DataError, match=message):
        read(write("x.po", (HEADER + text).encode()))


@needs_gettext
def test_mo_says_what_po_says(write: Write, read, tmp_path: Path) -> None:
    po, mo = write("de.po", PO.encode()), tmp_path / "de.mo"
    subprocess.run(["msgfmt", "-o", mo, po], check=True)
    texts = {(p.source, p.target) for p in read(po)[0]}
    pairs, tally = read(str(mo))
    assert {(p.source, p.target) for p in pairs} == texts
    assert tally.count() == 0
    for big in ("--endianness=big", "--no-hash", "--alignment=16"):
        subprocess.run(["msgfmt", big, "-o", mo, po], check=True)
        assert {(p.source, p.target) for p in read(str(mo))[0]} == texts


def test_mo_by_hand(write: Write, read) -> None:
    raw = made(
        [
            (b"", b"Language: de\nContent-Type: text/plain; charset=UTF-8\n"),
            (b"m\x04a", b"b"),
            (b"c\0d", b"e\0f"),
        ]
    )
    pairs, _ = read(write("x.mo", raw))
    assert [(p.source, p.target, p.line) for p in pairs] == [("a", "b", 2), ("c", "e", 3), ("d", "f", 3)]


def made(entries: list[tuple[bytes, bytes]]) -> bytes:
    """A catalog without a hash table."""
    at = 28 + 16 * len(entries)
    tables, texts = [], b""
    for side in (0, 1):
        for entry in entries:
            tables.append(struct.pack("<2I", len(entry[side]), at + len(texts)))
            texts += entry[side] + b"\0"
    return (
        struct.pack("<7I", 0x950412DE, 0, len(entries), 28, 28 + 8 * len(entries), 0, 0)
        + b"".join(tables)
        + texts
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda raw: b"PO" + raw, r"is no MO file"),
        (lambda raw: raw[:20], r"ends in its header"),
        (lambda raw: raw[:-1], r"the text of entry 2 has no end"),
        (lambda raw: raw[:-1] + b"x", r"the text of entry 2 has no end"),
        (lambda raw: raw[:8] + struct.pack("<I", 1) + raw[12:], r"belong to no entry|lie over one another"),
        (lambda raw: raw[:8] + struct.pack("<I", 99) + raw[12:], r"has no room for the 99 entries"),
        (lambda raw: raw[:4] + struct.pack("<I", 9 << 16) + raw[8:], r"has the revision 9.0"),
        (lambda raw: raw + b"more", r"bytes \d+ to \d+ belong to no entry"),
        (lambda raw: raw.replace(b"a\0", b"\xff\0"), r"entry 2 is not in UTF-8"),
    ],
)
def test_damaged_mo_is_named(write: Write, read, change: Callable[[bytes], bytes], message: str) -> None:
    raw = made([(b"", b"Language: de\n"), (b"a", b"b")])
    with pytest.raises(DataError, match=rf"x.mo: .*{message}"):
        read(write("x.mo", change(raw)))


@needs_catalogs
def test_every_catalog_of_this_machine_is_read_as_python_reads_it() -> None:
    compared = 0
    for path in CATALOGS[:: max(1, len(CATALOGS) // 40)]:
        with path.open("rb") as file:
            expected = gettext.GNUTranslations(file)._catalog
        try:
            tally = Tally()
            pairs = list(read_mo(path, Wanted(), tally))
        except DataError as error:
            pytest.fail(str(error))
        found = {(p.source, p.target) for p in pairs}
        single = {
            k.partition("\x04")[2] or k: v for k, v in expected.items() if isinstance(k, str) and k and v
        }
        assert {one for one in islice(single.items(), 200) if one not in found} == set(), path
        compared += len(single)
    assert compared > 1000


@needs_catalogs
@needs_gettext
def test_real_catalogs_as_text_say_the_same(tmp_path: Path, read) -> None:
    chosen = [path for path in CATALOGS if path.parts[-3] in ("de", "fr", "ja", "pl")][::7][:5]
    for path in chosen:
        po = tmp_path / "x.po"
        po.write_bytes(subprocess.run(["msgunfmt", path], check=True, capture_output=True).stdout)
        compiled, text = (sorted((p.source, p.target) for p in read(str(one))[0]) for one in (path, po))
        assert compiled == text, path
        entries = list(read_entries(po, Tally()))
        raw = path.read_bytes()
        assert len(entries) == sum(struct.unpack("<I", raw[at : at + 4])[0] for at in (8, 36)[: 1 + raw[4]])


@needs_catalogs
def test_a_catalog_goes_through_a_pipe(monkeypatch: pytest.MonkeyPatch, read) -> None:
    path = next(path for path in CATALOGS if path.parts[-3] == "de")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    through = [p[:2] for p in read_mo("-", Wanted(), Tally())]
    assert through == [p[:2] for p in read(str(path))[0]]
