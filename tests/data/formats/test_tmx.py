from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from transduce.errors import DataError

Write = Callable[..., str]
HEAD = '<?xml version="1.0"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4">\n'
HEADER = '<header srclang="en" segtype="sentence"><prop type="x">p <b/></prop></header>\n'


def memory(body: str) -> str:
    return f"{HEAD}{HEADER}<body>\n{body}\n</body></tmx>\n"


def unit(**texts: str) -> str:
    return (
        "<tu>"
        + "".join(f'<tuv xml:lang="{name}"><seg>{text}</seg></tuv>' for name, text in texts.items())
        + "</tu>"
    )


def test_units_are_pairs_with_their_line(write: Write, read) -> None:
    path = write(
        "m.tmx",
        memory(
            "<tu><note>n</note><prop type='t'>p</prop>\n"
            '<tuv lang="de-DE"><prop type="t">q</prop><seg>Hund &amp; Katze</seg></tuv>'
            '<tuv xml:lang="en-GB"><seg>dog &#38; <hi>cat</hi></seg></tuv></tu>\n' + unit(en="a\nb", de="c")
        ).encode(),
    )
    pairs, tally = read(path, "en", "de")
    assert [(p.source, p.target, p.line) for p in pairs] == [
        ("dog & cat", "Hund & Katze", 6),
        ("a\nb", "c", 8),
    ]
    assert {p.file for p in pairs} == {path}
    assert tally.lines() == []
    assert [p.source for p in read(path, "de", "en")[0]] == ["Hund & Katze", "c"]


@pytest.mark.parametrize(
    ("segment", "expected"),
    [
        ('un<bpt i="1">&lt;b&gt;</bpt>happy<ept i="1">&lt;/b&gt;</ept>!', "unhappy!"),
        ('one<ph x="1">&lt;br/&gt;</ph>two', "one two"),
        ('one <ph x="1">{x}</ph> two', "one two"),
        ('<it pos="begin">&lt;p&gt;</it>text', "text"),
        ('see <ph>&lt;img alt="<sub>a dog</sub>"&gt;</ph>.', "see ."),
        ("<hi>all <hi>of</hi></hi> it", "all of it"),
        ("", ""),
        (" kept  as it is ", " kept  as it is "),
        ("<![CDATA[<b> & so]]>", "<b> & so"),
    ],
)
def test_codes_are_taken_out_and_words_stay_apart(write: Write, read, segment: str, expected: str) -> None:
    assert read(write("m.tmx", memory(unit(en=segment, de="x")).encode()))[0][0].source == expected


def test_what_lacks_a_language_is_counted_with_its_line(write: Write, read) -> None:
    pairs, tally = read(
        write(
            "m.tmx",
            memory("\n".join([unit(en="a", de="b"), unit(en="c"), unit(), unit(de="d", en="e")])).encode(),
        )
    )
    assert [(p.source, p.target) for p in pairs] == [("a", "b"), ("e", "d")]
    assert tally.count() == 2
    assert tally.lines()[-1].endswith("m.tmx: 2 left out: 2 without source or target (first at 7)")
    assert "source en, target de: it holds no others" in tally.lines()[0]


def test_the_header_says_which_of_two_is_the_source(write: Write, read) -> None:
    assert read(write("m.tmx", memory(unit(de="b", en="a")).encode()))[0][0].source == "a"
    everything = memory(unit(de="b", en="a")).replace('srclang="en"', 'srclang="*all*"')
    assert read(write("m.tmx", everything.encode()))[0][0].source == "b"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("<tu>", "<tux>"), r"m.tmx:6: is not well-formed|m.tmx:6: <tux> in <body>; TMX has tu there"),
        (("<body>", "<bodies>"), r"m.tmx:5: <bodies> in <tmx>"),
        (("<tmx version", "<tmz version"), r"m.tmx:3: <tmz> as the outermost element"),
        ((' xml:lang="en"', ""), r"m.tmx:6: <tuv> without a language; give it xml:lang"),
        (("<seg>a</seg>", ""), r"m.tmx:6: <tuv> without a <seg>"),
        (("<seg>a</seg>", "<seg>a</seg><seg>b</seg>"), r"m.tmx:6: a second <seg>"),
        (("<seg>a", "stray<seg>a"), r"m.tmx:6: text outside of a segment: 'stray'"),
        (("<seg>a", "<seg><i>a</i>"), r"m.tmx:6: <i> in a segment"),
        (("</tmx>", ""), r"m.tmx:\d+: is not well-formed XML: no element found; mend the file"),
        (("<seg>a", "<seg>&nbsp;"), r"m.tmx:6: uses the entity &nbsp;"),
        (("<?xml version", "<?xml encoding='x-none' version"), r"m.tmx:1: "),
        (('"1.0"?', '"1.0" encoding="x-none"?'), r"m.tmx:1: .*ncoding"),
    ],
)  # fmt: skip
def test_damage_is_named_with_its_line(write: Write, read, change: tuple[str, str], message: str) -> None:
    text = memory(unit(en="a", de="b"))
    assert change[0] in text
    with pytest.raises(DataError, match=message):
        read(write("m.tmx", text.replace(*change, 1).encode()))


def test_hostile_files_are_refused(write: Write, read, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret", encoding="utf-8")
    bomb = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 9))
    for subset, message in (
        (f'<!ENTITY e0 "ha">{bomb}', "defines the entity 'e0'"),
        (f'<!ENTITY x SYSTEM "file://{secret}">', "defines the entity 'x'"),
        ('<!ENTITY % p SYSTEM "http://127.0.0.1:9/p.dtd"> %p;', "defines the entity 'p'"),
        (f'<!ATTLIST seg a CDATA "{"x" * 1000}">', "declares the attribute 'a' of <seg>"),
    ):
        text = memory(unit(en="&e8;", de="&x;")).replace(' SYSTEM "tmx14.dtd"', f"[{subset}]")
        with pytest.raises(DataError, match=f"m.tmx:2: {message}"):
            read(write("m.tmx", text.encode()))
    with pytest.raises(DataError, match="more than 200 elements inside one another"):
        read(write("m.tmx", memory(unit(en="<hi>" * 1000 + "</hi>" * 1000, de="b")).encode()))


def test_other_encodings_are_read(write: Write, read) -> None:
    text = memory(unit(en="café", de="Größe"))
    for encoding in ("utf-16", "iso-8859-1", "windows-1252"):
        raw = text.replace('"1.0"?', f'"1.0" encoding="{encoding}"?').encode(encoding)
        assert [(p.source, p.target) for p in read(write("m.tmx", raw))[0]] == [("café", "Größe")]


MEASURE = """
import sys, tracemalloc
from transduce.data.formats.sides import Wanted
from transduce.data.formats.tally import Tally
from transduce.data.formats.tmx import read_tmx
for path in sys.argv[1:]:
    tracemalloc.start()
    count = sum(1 for _ in read_tmx(path, Wanted(), Tally()))
    print(count, tracemalloc.get_traced_memory()[1])
    tracemalloc.stop()
"""


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    counts = (100, 1_000, 10_000)
    for count in counts:
        units = (unit(en=f"{n} of many sentences", de=f"{n} von vielen Sätzen") for n in range(count))
        (tmp_path / f"{count}.tmx").write_text(memory("".join(units)), encoding="utf-8")
    command = [sys.executable, "-c", MEASURE, *(str(tmp_path / f"{count}.tmx") for count in counts)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")
    found = [tuple(map(int, line.split())) for line in lines if line]
    assert [count for count, _ in found] == list(counts)
    assert found[2][1] < found[1][1] + 150_000
