from __future__ import annotations

from collections.abc import Callable

import pytest

from transduce.errors import DataError

Write = Callable[..., str]
ONE = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2" xmlns:x="urn:x">\n'
    '<file original="a" source-language="en-US" target-language="de-DE" datatype="html">\n'
    "<header><note>n</note></header><body><group id='g'>\n%s\n</group></body></file></xliff>\n"
)
TWO = (
    '<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" xmlns:mtc="urn:m" '
    'srcLang="en" trgLang="de">\n'
    '<file id="f"><group id="g"><unit id="1"><notes><note>n</note></notes><originalData>'
    '<data id="d">&lt;br&gt;</data>'
    "</originalData>\n%s\n</unit></group></file></xliff>\n"
)

SURROGATE = '<cp hex="D800"/>'


def one(inside: str, attributes: str = "") -> str:
    return ONE % f'<trans-unit id="1"{attributes}>{inside}</trans-unit>'


def both(source: str, target: str, attributes: str = "") -> str:
    return f"<source>{source}</source><target{attributes}>{target}</target>"


def test_version_1_2(write: Write, read) -> None:
    path = write(
        "m.xlf",
        one(
            both('Save <g id="1">this</g> file', 'Diese <g id="1">Datei</g> sichern')
            + "<alt-trans><source>no</source><target>nein</target></alt-trans><note>n</note><x:y>z</x:y>"
        ).encode(),
    )
    pairs, tally = read(path)
    assert [(p.source, p.target, p.line) for p in pairs] == [("Save this file", "Diese Datei sichern", 5)]
    assert tally.lines() == [f"{path}: source en-US, target de-DE: it holds no others"]
    assert read(path, "de", "en")[0][0].source == "Diese Datei sichern"


def test_version_2(write: Write, read) -> None:
    segments = (
        '<segment><source>a<ph id="1"/>b <pc id="2">c</pc><sc id="3"/>d<ec/></source>'
        '<target>e<cp hex="0001"/></target></segment>'
        "<ignorable><source> </source></ignorable>\n"
        "<segment state='translated'><source>f</source><target>g</target></segment>"
        "<mtc:matches><mtc:match ref='#1'><source>no</source><target>nein</target></mtc:match></mtc:matches>"
    )
    pairs, tally = read(write("m.xliff", (TWO % segments).encode()), "en", "de")
    assert [(p.source, p.target, p.line) for p in pairs] == [("a b cd", "e\x01", 3), ("f", "g", 4)]
    assert tally.count() == 0


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (one("<source>a</source>"), "untranslated"),
        (one(both("a", "")), "untranslated"),
        (one(both("a", "b", ' state="new"')), "not yet translated"),
        (one(both("a", "b", ' state="needs-translation"')), "not yet translated"),
        (one(both("a", "b", ' state="needs-review-translation"')), "needing review"),
        (one(both("a", "b"), ' translate="no"'), "not to be translated"),
        (TWO % f"<segment state='initial'>{both('a', 'b')}</segment>", "not yet translated"),
        (TWO % "<segment><source>a</source></segment>", "untranslated"),
    ],
)
def test_what_is_no_translation_is_counted(write: Write, read, text: str, why: str) -> None:
    path = write("m.xlf", text.encode())
    pairs, tally = read(path, "en", "de")
    assert pairs == []
    assert list(tally.skipped[path].items()) == [(why, 1)]


def test_final_states_are_read(write: Write, read) -> None:
    for state in ("final", "translated", "signed-off"):
        assert len(read(write("m.xlf", one(both("a", "b", f' state="{state}"')).encode()))[0]) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (one("<target>b</target>"), r"m.xlf:5: the unit of line 5 has no <source>"),
        (one(both("a", "b") + "<target>c</target>"), r"m.xlf:5: a second <target> in <trans-unit>"),
        (
            one(both("a", "b")).replace("trans-unit", "trans-unjt"),
            r"m.xlf:5: <trans-unjt> in <group>; XLIFF 1 has",
        ),
        (one(both("a<b>c</b>", "b")), r"m.xlf:5: <b> in a segment"),
        (
            TWO % f"<segment>{both(SURROGATE, 'b')}</segment>",
            r"m.xlf:3: <cp hex='D800'> is no character",
        ),
        (one(both("a", "b") + "stray"), r"m.xlf:5: text outside of a segment: 'stray'"),
    ],
)
def test_damage_is_named_with_its_line(write: Write, read, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(write("m.xlf", text.encode()))


def test_other_languages_are_said(write: Write, read) -> None:
    with pytest.raises(DataError, match=r"has no text in 'en' and 'fr'.*its languages are: en-US, de-DE"):
        read(write("m.xlf", one(both("a", "b")).encode()), "en", "fr")
