from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tiny_translator import tiny_bundle
from transduce.decoding.alignment import Aligner
from transduce.decoding.protected import restored, translate_protected
from transduce.decoding.protection import KINDS, find_items, kinds_of, lost_or_doubled
from transduce.decoding.tags import Element, elements, without_tags
from transduce.decoding.translation import Alternative, OutputPart, Translation
from transduce.decoding.translator import Translator
from transduce.errors import UsageError

ALL = frozenset(KINDS)


def items(text: str) -> list[tuple[str, str]]:
    return [(item.kind, item.text) for item in find_items(text, ALL)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('a <b>x</b> <br/> <a href="u>v" k>', ["<b>", "</b>", "<br/>", '<a href="u>v" k>']),
        ("1 < 2 > 1 <3 a<b", ["1", "2", "1", "3"]),
        ("{name} {0} {} {{x}} ${y} { a }", ["{name}", "{0}", "{}", "{{x}}", "${y}"]),
        ("%s, %d! %(name)s %1$d %5.2f %@ 100% sure", ["%s", "%d", "%(name)s", "%1$d", "%5.2f", "%@", "100"]),
        ("100%sure, a %dog, %ss", ["100"]),
        ("see https://a.b/c?d=(1). Or www.x.org, ok", ["https://a.b/c?d=(1", "www.x.org"]),
        ("a.b+c@x-y.co.uk.", ["a.b+c@x-y.co.uk"]),
        ("3 3rd 1,234.5 12:30 A4 2016.", ["3", "1,234.5", "12:30", "2016"]),
        ("<!-- a > b --> x", ["<!-- a > b -->"]),
    ],
)
def test_what_is_protected(text: str, found: list[str]) -> None:
    assert [item for _, item in items(text)] == found


def test_kinds_are_named_or_refused() -> None:
    assert kinds_of("all") == ALL
    assert kinds_of("tags, urls") == {"tags", "urls"}
    assert kinds_of("") == frozenset()
    with pytest.raises(UsageError, match=r"protect is 'tag'; choose all, or some of tags, placeholders"):
        kinds_of("tag")


def test_what_is_lost_doubled_or_invented_is_told() -> None:
    told = lost_or_doubled("{a} %s 1,000 7 x", "%s %s 1.000 {b} 9", ALL)
    assert told == [
        "lost: {a} (in the source 1, in the output 0)",
        "doubled: %s (in the source 1, in the output 2)",
        "lost: 7 (in the source 1, in the output 0)",
        "invented: {b} (in the source 0, in the output 1)",
    ]
    assert lost_or_doubled("<b>x</b>", "<b>y</b>", ALL) == []


@pytest.mark.parametrize(
    ("line", "bare"),
    [
        ("a <b>c</b> d", "a c d"),
        ("<b>a</b>b", "ab"),
        ("a <br/> b", "a b"),
        ("a<br/>b", "a b"),
        ("<p>One</p><p>Two</p>", "One Two"),
        ("<i> a </i>", "a "),
        ("a<br/><b>c</b>", "a c"),
        # Together they would be another number, and an address.
        ("1<b>2</b>", "1 2"),
        ("http://x.org<b>now</b>", "http://x.org now"),
        ("<br/>", ""),
    ],
)
def test_lines_without_their_tags(line: str, bare: str) -> None:
    assert without_tags(line)[0] == bare


def shape(element: Element) -> str:
    """An element's name, with those that it encloses in brackets if it is a pair."""
    name = ("/" if element.open.closes else "") + (element.open.name or "!")
    return f"{name}({' '.join(map(shape, element.children))})" if element.close else name


@pytest.mark.parametrize(
    ("line", "shapes"),
    [
        ("<b>a <b>c</b></b>", "b(b())"),
        ("<div>a <div>c</div> d</div> <div>e</div>", "div(div()) div()"),
        # What is closed in the wrong order, or never, stands alone; what it seemed to enclose, beside it.
        ("<b>a<i>c</b>", "b(i)"),
        ("<i>a<b>c</b>", "i b()"),
        ("<b>a</i>c</b>", "b(/i)"),
        ("</b>a</b>", "/b /b"),
        ("<br/>a</br>", "br /br"),
        ("<!-- x -->a<b>c</b>", "! b()"),
    ],
)
def test_tags_are_read_as_the_pairs_that_they_are(line: str, shapes: str) -> None:
    assert " ".join(map(shape, elements(without_tags(line)[1]))) == shapes


class Diagonal(Aligner):
    """An aligner for which word i comes from word i."""

    def __init__(self) -> None: ...

    def weights(self, pairs: Sequence[tuple[str, Alternative]]) -> list[torch.Tensor]:
        return [torch.eye(len(output.text.split()), len(source.split())) for source, output in pairs]


class Nobody(Diagonal):
    """One for which no word comes from any."""

    def weights(self, pairs: Sequence[tuple[str, Alternative]]) -> list[torch.Tensor]:
        return [torch.zeros_like(weights) for weights in super().weights(pairs)]


def test_only_lines_with_something_protected_are_touched() -> None:
    heard: list[list[str]] = []

    def translate(texts: list[str]) -> list[Translation]:
        heard.append(texts)
        rows = [(text.strip(), f"line {number}: told") for number, text in enumerate(texts, 5)]
        return [
            Translation(
                text,
                tuple(
                    Alternative(said, -1.0, -1.0, 1, False, (7,), parts=(OutputPart((7,), 0, (7,), 0),))
                    for said in (text.upper(), text.lower())
                ),
                (told,),
            )
            for text, told in rows
        ]

    lines = ["  <b>ab</b> cd ", "x y", "", "ef {n}"]
    both, one = frozenset({"tags", "placeholders"}), frozenset({"placeholders"})
    found = translate_protected(lines, both, Diagonal(), translate, first_line=5)
    assert heard == [["  ab cd ", "x y", "", "ef {n}"]]
    assert [a.text for a in found[0].alternatives] == ["<b>AB</b> CD", "<b>ab</b> cd"]
    assert found[0].source == "<b>ab</b> cd"
    assert {a.parts for a in found[0].alternatives} == {()}
    assert found[0].warnings == ("line 5: told",)
    assert found[1:3] == translate(lines)[1:3]
    assert found[3].text == "EF {n} {N}"
    assert found[3].warnings[1:] == ("line 8: invented: {N} (in the source 0, in the output 1)",)
    assert found[3].alternatives[1].text == "ef {n}"
    kept = translate_protected(lines, one, Diagonal(), translate, first_line=5)
    assert heard[-1] == lines
    assert kept[0].text == "<B>AB</B> CD"
    gone = translate_protected(["<b>b</b> a <i>c</i>"], both, Nobody(), translate, first_line=9)
    assert [warning[:6] for warning in gone[0].warnings] == ["line 5", "line 9", "line 9"]
    assert "nothing is left between <i>" in gone[0].warnings[2]


PIECES = st.sampled_from(
    [
        "a",
        "b,",
        "(c)",
        "<b>",
        "</b>",
        "<i x='1'>",
        "</i>",
        "<br/>",
        "<p>",
        "</p>",
        "{n}",
        "%s",
        "http://x/(y)",
    ]
)
LINES = st.lists(st.tuples(PIECES, st.sampled_from(["", " ", " "])), max_size=12).map(
    lambda pairs: "".join(piece + gap for piece, gap in pairs).strip()
)


@settings(max_examples=200, deadline=None)
@given(LINES, st.lists(st.sampled_from(["x", "y.", "„z“", "{n}", "%s", "(w"]), max_size=8), st.randoms())
def test_no_tag_is_ever_lost_doubled_or_damaged(line: str, said: list[str], draw: Any) -> None:
    bare = without_tags(line)[0]
    output = " ".join(said)
    weights = torch.tensor([[draw.random() for _ in bare.split()] for _ in said]).view(
        len(said), len(bare.split())
    )
    kinds = frozenset({"tags"})
    whole = restored(line, output, weights, kinds)
    result = whole.text
    if said:
        assert result.split(" ") == result.split(), "spaces in a row, or at an end"
    assert lost_or_doubled(line, result, kinds) == []
    if said:
        # The model's own words are all there and in their order.
        assert re.sub(r"\s", "", without_tags(result)[0]) == re.sub(r"\s", "", output)
    if well_formed(line):
        assert well_formed(result), result
        if said:
            assert bool(whole.emptied) == (empty_pairs(result) > empty_pairs(line))
    confidences = whole.confidences(tuple(0.5 for _ in said))
    assert confidences is not None
    assert len(confidences) == len(result.split())
    for word, value in zip(result.split(), confidences, strict=True):
        assert (value is None) == (not re.sub(r"<i$|x='1'>|<[^>]*>", "", word))


@settings(max_examples=200, deadline=None)
@given(LINES, st.lists(st.sampled_from(["x", "y.", "„z“", "{n}", "%s", "(w"]), max_size=8), st.randoms())
def test_what_must_be_in_the_output_is_there_or_is_told(line: str, said: list[str], draw: Any) -> None:
    bare = without_tags(line)[0]
    weights = torch.tensor([[draw.random() for _ in bare.split()] for _ in said]).view(
        len(said), len(bare.split())
    )
    whole = restored(line, " ".join(said), weights, ALL)
    result = whole.text
    if said:
        assert result.split(" ") == result.split(), "spaces in a row, or at an end"
    if said and well_formed(line):
        assert bool(whole.emptied) == (empty_pairs(result) > empty_pairs(line))
    told = lost_or_doubled(line, result, ALL)
    wanted = Counter(text for kind, text in items(line))
    there = Counter(text for kind, text in items(result))
    for text, count in wanted.items():
        assert there[text] >= count or any(text in message for message in told)
        assert there[text] <= count or any(text in message for message in told)
    # Nothing that the source has is lost: what the output lacks is put in.
    assert not [message for message in told if message.startswith("lost")]


@pytest.mark.parametrize(
    ("line", "output", "restored_line"),
    [("{n}{n}", "7 x %s", "{n} {n} %s"), ("{n}%s", "(w ,", "({n} %s")],
)
def test_no_spaces_in_a_row_where_a_word_was_replaced(line: str, output: str, restored_line: str) -> None:
    # All words come from the one of the source, the later ones more so.
    weights = torch.linspace(0.5, 1, len(output.split())).view(-1, 1)
    assert restored(line, output, weights, ALL).text == restored_line


def empty_pairs(text: str) -> int:
    """How many pairs of tags enclose nothing but tags; the text must be well formed."""
    waiting, count = [], 0
    for item in find_items(text, ["tags"]):
        if item.text.startswith("</"):
            count += not without_tags(text[waiting.pop() : item.begin])[0].strip()
        elif not item.text.endswith("/>"):
            waiting.append(item.end)
    return count


def well_formed(text: str) -> bool:
    waiting: list[str] = []
    for item in find_items(text, ["tags"]):
        name = re.findall(r"[a-z]+", item.text)[0]
        if item.text.startswith("</"):
            if not waiting or waiting.pop() != name:
                return False
        elif not item.text.endswith("/>"):
            waiting.append(name)
    return not waiting


@pytest.mark.usefixtures("shapes_unchecked")
def test_confidences_of_a_protected_line_are_those_of_its_words() -> None:
    it = Translator(tiny_bundle())
    options: dict[str, Any] = {"confidence": True, "max_extra": 6}
    (bare,) = it.translate_detailed(["ab de gh"], **options)
    (whole,) = it.translate_detailed(["<b>ab</b> de <i x='1'>gh</i>"], protect="tags", **options)
    confidences = whole.alternatives[0].word_confidences
    assert confidences is not None
    assert len(confidences) == len(whole.text.split())
    assert [c for c in confidences if c is not None] == pytest.approx(bare.alternatives[0].word_confidences)
    assert None in confidences  # x='1' is a part of a tag with a space in it


@pytest.mark.usefixtures("shapes_unchecked")
def test_protected_lines_keep_the_terms_that_are_asked_of_them() -> None:
    it = Translator(tiny_bundle())
    (found,) = it.translate_detailed(["<b>ab</b> de"], protect="tags", terms=[["gh il"]], max_extra=20)
    assert "gh il" in found.text.replace("<b>", "").replace("</b>", "")
    assert found.text.count("<b>") == found.text.count("</b>") == 1
