"""SGM and the XML test sets of WMT."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from transduce.data.corpora import count_pairs, read_corpora
from transduce.errors import DataError, UsageError

Write = Callable[..., str]
SOURCE = """<srcset setid="newstest2014" srclang="any">
<doc sysid="ref" docid="a" genre="news" origlang="en">
<hl>
<seg id="1"> Dogs &amp; cats </seg>
</hl>
<p>
<seg id="2">R&D &lt;b&gt; costs &#36; 5 &unknown;</seg>
</p>
</doc>
<DOC docid=b><seg id=1>third</seg></DOC>
</srcset>
"""
TARGET = (
    SOURCE.replace("srcset", "refset")
    .replace('srclang="any"', 'srclang="any" trglang="de"')
    .replace("Dogs &amp; cats", "Hunde")
    .replace("third", "dritter")
)
XML = """<?xml version='1.0' encoding='utf-8'?>
<dataset id="newstest2021.en-de">
  <doc id="a" origlang="en">
    <src lang="en"><p><seg id="1">one</seg><seg id="2">two</seg></p></src>
    <ref lang="de" translator="A"><p><seg id="1">eins</seg></p><p><seg id="2">zwei</seg></p></ref>
    <ref lang="de" translator="B"><p><seg id="1">EINS</seg><seg id="2">ZWEI</seg></p></ref>
    <hyp system="s" lang="de"><p><seg id="1">e</seg><seg id="2">z</seg></p></hyp>
  </doc>
</dataset>
"""


def test_two_files_of_sgm_are_aligned_by_number(write: Write) -> None:
    source, target = write("s.sgm", SOURCE.encode()), write("t.sgm", TARGET.encode())
    pairs = list(read_corpora([source], [target]))
    assert [(p.source, p.target) for p in pairs] == [
        ("Dogs & cats", "Hunde"),
        ("R&D <b> costs $ 5 &unknown;", "R&D <b> costs $ 5 &unknown;"),
        ("third", "dritter"),
    ]
    assert count_pairs([source], [target]) == 3
    lines = write("t.txt", ["x", "y", "z"])
    assert [p.target for p in read_corpora([source], [lines])] == ["x", "y", "z"]
    with pytest.raises(DataError, match=r"s.sgm has 3 lines but \S*u.txt has 2: they are not aligned"):
        list(read_corpora([source], [write("u.txt", ["x", "y"])]))
    other = write("v.sgm", TARGET.replace('docid="a"', 'docid="c"').encode())
    with pytest.raises(
        DataError, match=r"s.sgm has segment '1' of the document 'a' where \S*v.sgm has '1' of 'c'"
    ):
        list(read_corpora([source], [other]))


def test_one_file_with_both_sides(write: Write, read) -> None:
    path = write("b.sgm", (SOURCE + TARGET).encode())
    assert [p[:2] for p in read(path, "en", "de")[0]][2] == ("third", "dritter")
    assert [p[:2] for p in read(path, "de", "en")[0]][2] == ("dritter", "third")
    assert [p.line for p in read(path)[0]] == [4, 7, 10]
    with pytest.raises(DataError, match=r"b.sgm: has no text in 'en' and 'fr'"):
        read(path, "en", "fr")
    with pytest.raises(DataError, match=r"s.sgm: has no reference .*--source and --target"):
        read(write("s.sgm", SOURCE.encode()))
    with pytest.raises(DataError, match=r"b.sgm: holds 2 sides; give it with --pairs"):
        list(read_corpora([path], [path]))


def test_xml_of_iwslt_tells_of_talks(write: Write, read) -> None:
    talk = "<doc docid='7'><url>http://a?b&c</url><keywords>x</keywords><title>A talk</title>\n"
    talk += "<seg id='1'> Hi. </seg></doc>"
    path = write(
        "i.xml",
        f"<?xml version='1.0'?><mteval><srcset srclang='en'>{talk}</srcset>"
        f"<refset trglang='de'>{talk.replace('Hi', 'Hallo')}</refset></mteval>".replace(
            "b&c", "b&amp;c"
        ).encode(),
    )
    assert [p[:2] for p in read(path, "en", "de")[0]] == [("Hi.", "Hallo.")]


def test_xml_of_wmt(write: Write, read) -> None:
    path = write("w.xml", XML.encode())
    pairs, tally = read(path, "en", "de")
    assert [(p.source, p.target, p.line) for p in pairs] == [("one", "eins", 4), ("two", "zwei", 4)]
    assert dict(tally.skipped[path]) == {"segments of other references": 2, "segments of systems": 2}
    assert [p[:2] for p in read(path, "de", "en")[0]] == [("eins", "one"), ("zwei", "two")]
    with pytest.raises(DataError, match=r"w.xml:4: segment '2' of the document 'a' has no reference"):
        read(write("w.xml", XML.replace('<p><seg id="2">zwei</seg></p>', "").encode()))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('<seg id="2">', '<sgg id="2">'), r"b.sgm:7: <sgg> is no element of such a test set"),
        (('<seg id="2">', '<seg id="1">'), r"b.sgm:7: a second segment '1' in the document 'a'"),
        (('<seg id="2">', ""), r"b.sgm:7: text outside of a segment: 'R&D"),
        (('<seg id="2">', "<seg>"), r"b.sgm:7: an element without its id"),
        (("</seg>\n</p>", "\n</p>"), r"b.sgm:8: </p> in a segment"),
        (("R&D", "R<b>D"), r"b.sgm:7: <b> in a segment; write < as &lt;"),
        (("&#36;", "&#55296;"), r"b.sgm:7: &#55296; is no character"),
        (("<srcset", "<sourceset"), r"b.sgm:1: <sourceset> is no element"),
        (('docid="a"', ""), r"b.sgm:2: an element without its docid"),
    ],
)
def test_damage_is_named_with_its_line(write: Write, read, change: tuple[str, str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(write("b.sgm", (SOURCE.replace(*change, 1) + TARGET).encode()))


def test_files_of_both_sides_are_no_side(write: Write) -> None:
    for name in ("m.tmx", "m.po.gz", "m.parquet"):
        with pytest.raises(UsageError, match=rf"{name}: holds both sides; give it with --pairs"):
            list(read_corpora([write(name, b"")], [write("t.de", b"")]))
    with pytest.raises(
        DataError, match=r"w.xml:2: <dataset> is no element .*both sides: give it with --pairs"
    ):
        list(read_corpora([write("w.xml", XML.encode())], [write("t.de", b"")]))


def test_files_that_are_no_test_set(write: Write, read) -> None:
    with pytest.raises(DataError, match=r"e.sgm: holds no srcset"):
        read(write("e.sgm", b"\n"))
    with pytest.raises(DataError, match=r"h.xml: is XML of <html>; known are <dataset>, <mteval>"):
        read(write("h.xml", b"<html/>"))
    with pytest.raises(UsageError, match=r"x.doc: its name tells no format that holds both sides"):
        read(write("x.doc", b""))
