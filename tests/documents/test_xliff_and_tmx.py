from __future__ import annotations

from typing import Any

import pytest
from fakes import backwards, same, upper, without_tags
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.documents.translate import translate_document
from transduce.documents.xml_text import read_xml
from transduce.errors import DataError, UsageError

STATE = 'state="needs-review-translation" state-qualifier="mt-suggestion"'
STATE_2 = 'state="initial" subState="transduce:needs-review"'


def one(units: str) -> str:
    return (
        '<?xml version="1.0"?>\n<xliff version="1.2"><file source-language="en" target-language="de">'
        f"<body>\n{units}\n</body></file></xliff>\n"
    )


def two(units: str) -> str:
    return (
        '<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en" trgLang="de">'
        f"<file id='f'>\n{units}\n</file></xliff>\n"
    )


def xliff(text: str, function: Any = upper, **languages: str) -> str:
    done = translate_document(text.encode(), "xliff", function, **languages)
    return done.content.decode()


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        (
            '<trans-unit id="1">\n  <source>open</source>\n</trans-unit>',
            f'<trans-unit id="1">\n  <source>open</source>\n  <target {STATE}>OPEN</target>\n</trans-unit>',
        ),
        (
            '<trans-unit id="1"><source>open</source><target/><note>n</note></trans-unit>',
            '<trans-unit id="1"><source>open</source>'
            f"<target {STATE}>OPEN</target><note>n</note></trans-unit>",
        ),
        (
            '<trans-unit id="1"><source>a</source><target xml:lang="de" state="new">a</target></trans-unit>',
            f'<trans-unit id="1"><source>a</source><target xml:lang="de" {STATE}>A</target></trans-unit>',
        ),
        (
            '<trans-unit id="1"><source>a</source><target state="new">x</target></trans-unit>',
            '<trans-unit id="1"><source>a</source><target state="new">x</target></trans-unit>',
        ),
        (
            '<trans-unit id="1"><source>Info</source><target state="translated">Info</target></trans-unit>',
            '<trans-unit id="1"><source>Info</source><target state="translated">Info</target></trans-unit>',
        ),
        (
            '<trans-unit id="1" translate="no"><source>a</source></trans-unit>',
            '<trans-unit id="1" translate="no"><source>a</source></trans-unit>',
        ),
        (
            '<trans-unit id="1" approved="yes"><source>a</source></trans-unit>',
            '<trans-unit id="1" approved="yes"><source>a</source></trans-unit>',
        ),
        (
            '<group translate="no"><trans-unit id="1"><source>a</source></trans-unit></group>',
            '<group translate="no"><trans-unit id="1"><source>a</source></trans-unit></group>',
        ),
        (
            '<trans-unit id="1"><source>a &lt;b&gt; &amp; <g id="1">c</g><x id="2"/></source></trans-unit>',
            '<trans-unit id="1"><source>a &lt;b&gt; &amp; <g id="1">c</g><x id="2"/></source>'
            f'<target {STATE}>A &lt;b&gt; &amp; <g id="1">C</g><x id="2"/></target></trans-unit>',
        ),
        (
            '<trans-unit id="1"><source>a <bpt id="1">&lt;b></bpt>b<ept id="1">&lt;/b></ept> c</source>'
            "</trans-unit>",
            '<trans-unit id="1"><source>a <bpt id="1">&lt;b></bpt>b<ept id="1">&lt;/b></ept> c</source>'
            f'<target {STATE}>A <bpt id="1">&lt;b></bpt>B<ept id="1">&lt;/b></ept> C</target></trans-unit>',
        ),
        (
            '<trans-unit id="1"><source>a. b.</source><seg-source><mrk mid="1" mtype="seg">a.</mrk> '
            '<mrk mid="2" mtype="seg">b.</mrk></seg-source></trans-unit>',
            '<trans-unit id="1"><source>a. b.</source><seg-source><mrk mid="1" mtype="seg">a.</mrk> '
            f'<mrk mid="2" mtype="seg">b.</mrk></seg-source><target {STATE}>'
            '<mrk mid="1" mtype="seg">A.</mrk> '
            '<mrk mid="2" mtype="seg">B.</mrk></target></trans-unit>',
        ),
        (
            '<trans-unit id="1"><source>one\ntwo</source></trans-unit>',
            f'<trans-unit id="1"><source>one\ntwo</source><target {STATE}>ONE\nTWO</target></trans-unit>',
        ),
        (
            '<trans-unit id="1"><source><![CDATA[a <b>]]></source></trans-unit>',
            '<trans-unit id="1"><source><![CDATA[a <b>]]></source>'
            f"<target {STATE}>A &lt;b&gt;</target></trans-unit>",
        ),
    ],
)
def test_units_of_1_2_without_a_target_get_one(unit: str, expected: str) -> None:
    assert xliff(one(unit)) == one(expected)


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        (
            '<unit id="u"><segment>\n <source>a <pc id="1">b</pc><ph id="2"/></source>\n</segment></unit>',
            f'<unit id="u"><segment {STATE_2}>\n <source>a <pc id="1">b</pc><ph id="2"/></source>\n'
            ' <target>A <pc id="1">B</pc><ph id="2"/></target>\n</segment></unit>',
        ),
        (
            '<unit id="u"><segment id="s" state="initial"><source>a</source><target></target></segment>'
            "</unit>",
            f'<unit id="u"><segment id="s" {STATE_2}><source>a</source><target>A</target></segment></unit>',
        ),
        (
            '<unit id="u"><segment state="final"><source>a</source></segment><ignorable><source>b</source>'
            "</ignorable><segment><source>c</source><target>C!</target></segment></unit>",
            '<unit id="u"><segment state="final"><source>a</source></segment><ignorable><source>b</source>'
            "</ignorable><segment><source>c</source><target>C!</target></segment></unit>",
        ),
        (
            '<unit id="u"><segment><source><sc id="1"/>a<ec startRef="1"/> '
            '<mrk id="m" translate="no">b</mrk> c'
            "</source></segment></unit>",
            f'<unit id="u"><segment {STATE_2}><source><sc id="1"/>a<ec startRef="1"/> '
            '<mrk id="m" translate="no">b</mrk> c</source><target><sc id="1"/>A<ec startRef="1"/> '
            '<mrk id="m" translate="no">b</mrk> C</target></segment></unit>',
        ),
    ],
)
def test_segments_of_2_without_a_target_get_one(unit: str, expected: str) -> None:
    assert xliff(two(unit)) == two(expected)


def test_the_target_language_is_said_where_it_is_lacking() -> None:
    unit = "<unit id='u'><segment><source>a</source></segment></unit>"
    lacking = two(unit).replace(' trgLang="de"', "")
    with pytest.raises(UsageError, match="has no trgLang; say which language"):
        xliff(lacking)
    assert '<xliff trgLang="fr" xmlns' in xliff(lacking, target_language="fr")
    lacking = one('<trans-unit id="1"><source>a</source></trans-unit>').replace(' target-language="de"', "")
    assert xliff(lacking).count("target-language") == 0
    assert '<file target-language="fr" source-language="en">' in xliff(lacking, target_language="fr")
    # Where nothing is filled in, nothing is changed.
    assert xliff(lacking, lambda texts: [""], target_language="fr") == lacking


def test_prefixes_of_names_are_those_of_the_file() -> None:
    text = (
        '<x:xliff xmlns:x="urn:x" version="1.2"><x:file><x:body><x:trans-unit id="1"><x:source>a</x:source>'
        "</x:trans-unit></x:body></x:file></x:xliff>"
    )
    assert f"<x:source>a</x:source><x:target {STATE}>A</x:target>" in xliff(text)


def test_what_a_translator_does_to_markup_is_mended_and_told() -> None:
    unit = '<trans-unit id="k"><source>a <g id="1">b <x id="2"/>c</g> d</source></trans-unit>'
    done = translate_document(one(unit).encode(), "xliff", without_tags, name="a.xlf")
    new = done.content.decode()
    assert f'<target {STATE}>A B C D<g id="1"></g><x id="2"/>' in new
    place = "a.xlf:3 (unit 'k')"
    assert done.warnings == (
        f'{place}: lost: <g id="1"> (in the source 1, in the output 0)',
        f'{place}: lost: <x id="2"/> (in the source 1, in the output 0)',
        f"{place}: lost: </g> (in the source 1, in the output 0)",
    )
    swapped = xliff(one(unit), backwards)
    read_xml(swapped.encode(), "x")
    assert swapped.count('<g id="1">') == swapped.count('<x id="2"/>') == 2


TMX = """<?xml version="1.0" encoding="{encoding}"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en" datatype="plaintext"/><body>
{units}
</body></tmx>
"""
UNIT = """<tu tuid="1">
  <tuv xml:lang="en-GB">
    <seg>open <bpt i="1">{</bpt>it<ept i="1">}</ept></seg>
  </tuv>
</tu>"""


def test_a_unit_of_a_memory_gets_a_variant_in_the_target_language() -> None:
    text = TMX.format(encoding="UTF-8", units=UNIT)
    done = translate_document(text.encode(), "tmx", upper, target_language="de")
    new = """
  <tuv xml:lang="de">
    <prop type="x-transduce">needs-review</prop>
    <seg>OPEN <bpt i="1">{</bpt>IT<ept i="1">}</ept></seg>
  </tuv>
</tu>"""
    assert done.content.decode() == text.replace("\n</tu>", new)
    assert done.filled == 1
    assert translate_document(done.content, "tmx", upper, target_language="de-AT").filled == 1
    assert translate_document(done.content, "tmx", upper, target_language="de").content == done.content


def test_memories_in_utf_16_stay_so() -> None:
    text = TMX.format(encoding="UTF-16", units=UNIT)
    content = text.encode("utf-16")
    new = translate_document(content, "tmx", upper, target_language="de").content
    assert new.decode("utf-16").startswith(text[:200])
    assert "OPEN" in new.decode("utf-16")
    assert translate_document(content, "tmx", upper, target_language="en").content == content


def test_languages_must_be_told() -> None:
    text = TMX.format(encoding="UTF-8", units=UNIT).encode()
    with pytest.raises(UsageError, match=r"say which to add, e\.g\. --target-language de"):
        translate_document(text, "tmx", upper)
    with pytest.raises(UsageError, match="names no source language"):
        translate_document(text.replace(b'"en"', b'"*all*"'), "tmx", upper, target_language="de")
    with pytest.raises(DataError, match="has no units in 'fr'; its languages are: en-GB"):
        translate_document(text, "tmx", upper, target_language="de", source_language="fr")


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>'


@pytest.mark.parametrize("format", ["xliff", "tmx"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB + "<xliff version='1.2'>&b;</xliff>", "document type with content of its own"),
        (
            "<!DOCTYPE x SYSTEM 'file:///etc/passwd'><xliff version='1.2'>&e;</xliff>",
            "only its DTD could tell",
        ),
        ("<xliff version='1.2'>" + "<g>" * 300 + "</g>" * 300 + "</xliff>", "nested more than 200 deep"),
        ("<xliff>", "is not well-formed XML: no element found"),
        ("<a/>", "expected"),
        ("<?xml version='1.0' encoding='klingon'?><a/>", "encoding 'klingon', which is unknown"),
    ],
)
def test_hostile_and_broken_xml_is_refused(format: str, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        translate_document(text.encode(), format, same, target_language="de", name="x")


INLINE = st.recursive(
    st.sampled_from(
        ["ab", " c ", "&amp;", "&#228;", '<x id="7"/>', '<ph id="8">&lt;br></ph>', "<!-- n -->", "%s"]
    ),
    lambda inner: st.lists(inner, max_size=4).map(lambda some: f'<g id="{len(some)}">{"".join(some)}</g>'),
    max_leaves=8,
)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(INLINE, st.booleans()), max_size=4), st.sampled_from([upper, backwards, without_tags])
)
def test_all_bytes_outside_of_new_targets_stay(units: list[tuple[str, bool]], function: Any) -> None:
    text = one(
        "\n".join(
            f'<trans-unit id="{at}"><source>{source}</source>'
            f"{'<target>x</target>' if there else ''}</trans-unit>"
            for at, (source, there) in enumerate(units)
        )
    )
    new = xliff(text, function)
    read_xml(new.encode(), "new")
    pieces = new.split(f"<target {STATE}>")
    assert pieces[0] + "".join(piece.split("</target>", 1)[1] for piece in pieces[1:]) == text
    for piece in pieces[1:]:
        # Every tag of the source is there once.
        target = piece.split("</target>", 1)[0]
        source = text.split("<trans-unit ")[new[: new.index(piece)].count("<trans-unit ")]
        source = source.split("<source>")[1].split("</source>")[0]
        for tag in ("<g ", "</g>", "<x ", "<ph ", "<!--"):
            assert target.count(tag) == source.count(tag), (source, target)
