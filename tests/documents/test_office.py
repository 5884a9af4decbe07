from __future__ import annotations

import io
import struct
import zipfile
from typing import Any

import pytest
from fakes import HOSTILE, backwards, same, upper, without_tags
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.documents import package
from transduce.documents.translate import translate_document
from transduce.documents.xml_text import read_xml
from transduce.errors import DataError

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Override PartName="/word/{0}.xml" ContentType="application/vnd.openxmlformats-officedocument.'
    'wordprocessingml.document.main+xml"/><Override PartName="/word/header1.xml" ContentType="application/'
    'vnd.openxmlformats-officedocument.wordprocessingml.header+xml"/><Override PartName="/word/styles.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.styles+xml"/></Types>'
)


def zipped(parts: dict[str, str | bytes], **options: Any) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, **options) as file:
        for at, (name, content) in enumerate(parts.items()):
            kind = zipfile.ZIP_STORED if at == 0 else zipfile.ZIP_DEFLATED
            file.writestr(zipfile.ZipInfo(name, (2020, 1, 2, 3, 4, 6)), content, kind)
    return buffer.getvalue()


def docx(paragraphs: str, header: str = "") -> bytes:
    return zipped(
        {
            "[Content_Types].xml": TYPES.format("document"),
            "word/document.xml": f"<w:document {W}><w:body>{paragraphs}</w:body></w:document>",
            "word/header1.xml": f"<w:hdr {W}>{header}</w:hdr>",
            "word/styles.xml": f"<w:styles {W}><w:p><w:r><w:t>no</w:t></w:r></w:p></w:styles>",
            "word/media/image.png": bytes(range(256)) * 9,
        }
    )


def body(content: bytes, name: str = "word/document.xml") -> str:
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        assert file.testzip() is None
        text = file.read(name).decode()
    read_xml(text.encode(), name)
    return text.partition("<w:body>")[2].rpartition("</w:body>")[0] if "<w:body>" in text else text


def word(paragraphs: str, function: Any = upper) -> str:
    done = translate_document(docx(paragraphs), "docx", function)
    return body(done.content)


def r(text: str, look: str = "") -> str:
    return f'<w:r>{look}<w:t xml:space="preserve">{text}</w:t></w:r>'


B = "<w:rPr><w:b/></w:rPr>"
TAB = "<w:r><w:tab/></w:r>"


@pytest.mark.parametrize(
    ("paragraph", "expected"),
    [
        ("<w:r><w:t>ab cd</w:t></w:r>", r("AB CD")),
        (
            f"<w:pPr><w:jc/></w:pPr>{r('a ')}{r('b', B)}{r(' c d')}",
            f"<w:pPr><w:jc/></w:pPr>{r('A ')}{r('B', B)}{r(' C D')}",
        ),
        # Runs that Word has split for itself are one.
        (
            '<w:r w:rsidR="1"><w:t>spl</w:t></w:r><w:proofErr w:type="x"/>'
            '<w:r w:rsidR="2"><w:rPr><w:lang w:val="x"/></w:rPr>'
            "<w:t>it &amp; on</w:t></w:r>",
            r("SPLIT &amp; ON"),
        ),
        (f"{r('a')}{TAB}{r('b')}", f"{r('A')}{TAB}{r('B')}"),
        ("<w:r><w:t>a</w:t><w:br/><w:t>B c</w:t></w:r>", f"{r('A')}<w:r><w:br/></w:r>{r('B C')}"),
        (
            f'{r("see ")}<w:hyperlink r:id="x">{r("it", B)}</w:hyperlink>{r(" now")}',
            f'{r("SEE ")}<w:hyperlink r:id="x">{r("IT", B)}</w:hyperlink>{r(" NOW")}',
        ),
        (
            f'<w:bookmarkStart w:id="1"/>{r("a b")}<w:bookmarkEnd w:id="1"/>',
            f'<w:bookmarkStart w:id="1"/>{r("A B")}<w:bookmarkEnd w:id="1"/>',
        ),
        (
            f"{r('a')}<w:del><w:r><w:delText>x</w:delText></w:r></w:del>{r(' b')}",
            f"{r('A')}<w:del><w:r><w:delText>x</w:delText></w:r></w:del>{r(' B')}",
        ),
        (f"<w:ins>{r('a')}</w:ins>", f"<w:ins>{r('A')}</w:ins>"),
        (
            f"{r('a')}<w:r><w:footnoteReference w:id='2'/></w:r>{r('.')}",
            f"{r('A')}<w:r><w:footnoteReference w:id='2'/></w:r>{r('.')}",
        ),
        (r("42"), None),
        ("", None),
        ("<w:pPr/>", None),
    ],
)
def test_paragraphs_of_word_keep_what_is_not_their_text(paragraph: str, expected: str | None) -> None:
    whole = f"<w:p>{paragraph}</w:p>"
    namespace = whole.replace("<w:p>", '<w:p xmlns:r="urn:r">', 1)
    wanted = namespace if expected is None else f'<w:p xmlns:r="urn:r">{expected}</w:p>'
    assert word(namespace) == wanted


def field(instruction: str, result: str) -> str:
    return (
        '<w:r><w:fldChar w:fldCharType="begin"/></w:r>'
        f"<w:r><w:instrText>{instruction}</w:instrText></w:r>"
        f'<w:r><w:fldChar w:fldCharType="separate"/></w:r>{result}<w:r><w:fldChar w:fldCharType="end"/></w:r>'
    )


def test_fields_stay_as_they_are_but_for_the_text_of_links() -> None:
    heard: list[str] = []
    page, link = field(" PAGE ", r("seven")), field(" HYPERLINK x ", r("this"))
    paragraph = f"<w:p>{r('on page ')}{page}{r(' of ')}{link}{r(' now')}</w:p>"
    new = word(paragraph, lambda texts: (heard.extend(texts), upper(texts))[1])
    assert heard == ["on page <x1/> of <g2>this</g2> now"]
    link = link.replace("this", "THIS")
    assert new == f"<w:p>{r('ON PAGE ')}{page}{r(' OF ')}{link}{r(' NOW')}</w:p>"
    # A field that goes on in the next paragraph, as a table of contents does.
    begin = '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>TOC</w:instrText></w:r>'
    end = '<w:r><w:fldChar w:fldCharType="end"/></w:r>'
    assert (
        word(f"<w:p>{begin}{r('a')}</w:p><w:p>{r('b')}{end}</w:p>")
        == f"<w:p>{begin}{r('A')}</w:p><w:p>{r('B')}{end}</w:p>"
    )


def test_tables_headers_and_text_boxes_within_paragraphs_are_translated_too() -> None:
    inner = f"<w:r><w:pict><w:txbxContent><w:p>{r('in')}</w:p></w:txbxContent></w:pict></w:r>"
    table = f"<w:tbl><w:tr><w:tc><w:p>{r('cell')}</w:p></w:tc></w:tr></w:tbl>"
    content = docx(f"<w:p>{r('a')}{inner}{r(' b')}</w:p>{table}", header=f"<w:p>{r('head')}</w:p>")
    done = translate_document(content, "docx", upper)
    assert (
        body(done.content)
        == f"<w:p>{r('A')}{inner.replace('in<', 'IN<')}{r(' B')}</w:p>{table.replace('cell', 'CELL')}"
    )
    assert r("HEAD") in body(done.content, "word/header1.xml")
    assert done.filled == 4
    assert "<w:t>no</w:t>" in body(done.content, "word/styles.xml")


def test_formatting_goes_where_its_words_go() -> None:
    paragraph = f"<w:p>{r('the ')}{r('red', B)}{r(' old car')}</w:p>"
    assert word(paragraph, lambda texts: ["la vieille voiture <g1>rouge</g1>"]) == (
        f"<w:p>{r('la vieille voiture ')}{r('rouge', B)}</w:p>"
    )


def raw_members(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        infos = file.infolist()
        begins = [info.header_offset for info in infos] + [file.start_dir]
    return {
        info.filename: content[begin:end] for info, begin, end in zip(infos, begins, begins[1:], strict=False)
    }


@pytest.mark.parametrize("format", ["docx", "odt"])
def test_every_other_part_of_the_package_keeps_its_bytes(format: str) -> None:
    content = docx(f"<w:p>{r('a')}</w:p>") if format == "docx" else odt("<text:p>a</text:p>")
    new = translate_document(content, format, upper).content
    changed = {"word/document.xml", "content.xml"}
    before, after = raw_members(content), raw_members(new)
    assert list(before) == list(after)
    assert {name for name in before if before[name] != after[name]} <= changed
    assert new != content
    assert translate_document(content, format, same).content == content
    # What streams write: sizes behind the data instead of before it.
    streamed = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as old,
        zipfile.ZipFile(NotSeekable(streamed), "w", zipfile.ZIP_DEFLATED) as file,
    ):  # type: ignore[arg-type]
        for name in old.namelist():
            file.writestr(name, old.read(name))
    again = translate_document(streamed.getvalue(), format, upper).content
    with zipfile.ZipFile(io.BytesIO(again)) as file, zipfile.ZipFile(io.BytesIO(new)) as other:
        assert file.testzip() is None
        # A part that is new has its sizes before its data, and says so.
        for info in file.infolist():
            local = again[info.header_offset + 6]
            assert local & 8 == info.flag_bits & 8 == (0 if info.filename in changed else 8)
        assert {n: file.read(n) for n in file.namelist()} == {n: other.read(n) for n in other.namelist()}


class NotSeekable:
    def __init__(self, file: io.BytesIO) -> None:
        self.write, self.flush = file.write, file.flush


NAMES = " ".join(f'xmlns:{name}="urn:{name}"' for name in ("office", "text", "style", "draw", "officeooo"))


def odt(paragraphs: str, styles: str = "") -> bytes:
    return zipped(
        {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "content.xml": f"<office:document-content {NAMES}><office:automatic-styles>{styles}"
            f"</office:automatic-styles><office:body>{paragraphs}</office:body></office:document-content>",
            "styles.xml": f"<office:document-styles {NAMES}/>",
            "Pictures/a.png": b"\x89PNG" * 50,
        }
    )


def writer(paragraphs: str, function: Any = upper, styles: str = "") -> str:
    done = translate_document(odt(paragraphs, styles), "odt", function)
    return body(done.content, "content.xml").partition("<office:body>")[2].partition("</office:body>")[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<text:h>a</text:h><text:p>b c</text:p>", "<text:h>A</text:h><text:p>B C</text:p>"),
        (
            '<text:p>a <text:span text:style-name="T1">b</text:span> c</text:p>',
            '<text:p>A <text:span text:style-name="T1">B</text:span> C</text:p>',
        ),
        ('<text:p>a <text:span text:style-name="T2">b</text:span> c</text:p>', "<text:p>A B C</text:p>"),
        (
            "<text:p>a<text:tab/>b<text:line-break/>c</text:p>",
            "<text:p>A<text:tab/>B<text:line-break/>C</text:p>",
        ),
        (
            "<text:p>a<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>n</text:p>"
            "</text:note-body></text:note>.</text:p>",
            "<text:p>A<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>N</text:p>"
            "</text:note-body></text:note>.</text:p>",
        ),
        (
            "<text:p>a <office:annotation><text:p>n</text:p></office:annotation>b</text:p>",
            "<text:p>A <office:annotation><text:p>n</text:p></office:annotation>B</text:p>",
        ),
        ("<text:p/><text:p>  </text:p><text:p>7</text:p>",) * 2,
    ],
)
def test_paragraphs_of_opendocument_keep_what_is_not_their_text(text: str, expected: str) -> None:
    styles = (
        '<style:style style:name="T1" style:family="text"><style:text-properties a="1"/></style:style>'
        '<style:style style:name="T2" style:family="text">'
        '<style:text-properties officeooo:rsid="1"/></style:style>'
    )
    assert writer(text, styles=styles) == expected


PARTS = st.sampled_from(
    [
        r("ab "),
        r("cd", B),
        r(" ef", "<w:rPr><w:i/></w:rPr>"),
        TAB,
        "<w:proofErr/>",
        '<w:bookmarkStart w:id="3"/>',
        '<w:bookmarkEnd w:id="3"/>',
        f"<w:hyperlink>{r('gh', B)}{r(' x')}</w:hyperlink>",
        "<w:hyperlink/>",
        field("PAGE", r("1")),
        field("HYPERLINK", r("ij")),
        '<w:r><w:fldChar w:fldCharType="end"/></w:r>',
        "<w:r><w:br/></w:r>",
        r("7"),
        f"<w:sdt><w:sdtPr/><w:sdtContent>{r('kl')}</w:sdtContent></w:sdt>",
        "<w:r><w:drawing/></w:r>",
        r(" "),
        "<w:r/>",
    ]
)


@settings(max_examples=100, deadline=None)
@given(st.lists(PARTS, max_size=9), st.sampled_from([*HOSTILE, backwards, without_tags]))
def test_whatever_the_translator_says_the_document_is_whole(parts: list[str], function: Any) -> None:
    text = f"<w:p>{''.join(parts)}</w:p>"
    new = word(text, function)
    for tag in (
        "<w:tab/>",
        "<w:bookmarkStart",
        "<w:bookmarkEnd",
        "<w:hyperlink",
        "<w:fldChar",
        "<w:drawing/>",
        "<w:sdt>",
        "<w:br/>",
    ):
        assert new.count(tag) == text.count(tag), tag
    # Text stands in runs, and runs in paragraphs or in what may be around runs, never in one another.
    root = read_xml(f"<w:x {W}>{new}</w:x>".encode(), "new").root
    for element in root.every():
        for child in element.elements:
            if child.name == "w:r":
                assert element.name in ("w:p", "w:hyperlink", "w:sdtContent")
            if child.name == "w:t":
                assert element.name == "w:r"
            if child.name == "w:hyperlink":
                assert element.name == "w:p"


def test_bombs_and_damage_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(content: bytes, message: str, format: str = "docx") -> None:
        with pytest.raises(DataError, match=message):
            translate_document(content, format, same, name="x")

    good = docx(f"<w:p>{r('a')}</w:p>")
    refused(b"no zip", "is no zip package")
    refused(good[:-30], "is no zip package|bytes around")
    refused(good + b"x", "bytes around its parts")
    refused(b"x" + good, "bytes around its parts|bytes before")
    refused(zipped({"a": "b"}), "lacks the part")
    refused(zipped({"a": "b"}), "has no content.xml", "odt")
    refused(zipped({"[Content_Types].xml": "<Types/>"}), "is no Word document")
    refused(zipped({"[Content_Types].xml": "<!DOCTYPE a [<!ENTITY b 'c'>]><Types/>"}), "content of its own")
    bomb = {"[Content_Types].xml": TYPES.format("document"), "word/document.xml": b" " * (1 << 23)}
    refused(zipped(bomb), "unpacks to 8,388,608 bytes; that is no document")
    encrypted = bytearray(good)
    at = good.index(b"PK\x01\x02")
    encrypted[at + 8] |= 1
    refused(bytes(encrypted), "is damaged or encrypted")
    # A part that lies over the next one.
    over = bytearray(good)
    struct.pack_into("<I", over, at + 20, 10**6)
    refused(bytes(over), "lie over one another")
    monkeypatch.setattr(package, "LARGEST", 100)
    refused(good, "that is no document")
