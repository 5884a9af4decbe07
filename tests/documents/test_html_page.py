from __future__ import annotations

from typing import Any

import pytest
from fakes import HOSTILE, backwards, same, upper, without_tags
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.documents.html_tokens import tokens
from transduce.documents.translate import translate_document


def html(text: str, function: Any = upper) -> str:
    return translate_document(text.encode(), "html", function).content.decode()


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<p>a <b>c</b> d</p>", "<p>A <b>C</b> D</p>"),
        ("<p>\n  one\n  two\n</p>", "<p>\n  ONE TWO\n</p>"),
        ("<ul><li>a<li>b</ul>tail", "<ul><li>A<li>B</ul>TAIL"),
        ("<p>a<br>b<br/>c d</p>", "<p>A<br>B<br/>C D</p>"),
        ("<script>a</script><style>b</style><pre>c</pre><!-- d -->", None),
        ("<textarea>a</textarea><template>b</template><svg><text>c</text></svg>", None),
        ("<p>see <code>ls <b>x</b></code> now</p>", "<p>SEE <code>ls <b>x</b></code> NOW</p>"),
        (
            '<p>a <span translate="no">Transduce</span> b</p>',
            '<p>A <span translate="no">Transduce</span> B</p>',
        ),
        ('<div translate="no"><div>a</div>b</div>c', '<div translate="no"><div>a</div>b</div>C'),
        ('<p class="x notranslate">a</p>b', '<p class="x notranslate">a</p>B'),
        (
            "<p>a&nbsp;b &amp; c &lt;d&gt; &eacute; é &copy;</p>",
            "<p>A&nbsp;B &amp; C &lt;d&gt; É É &copy;</p>",
        ),
        ("<p>1 < 2 & ab</p>", "<p>1 &lt; 2 &amp; AB</p>"),
        (
            '<img alt="a dog" src="a b.png"><a title=cat href=x>c</a>',
            '<img alt="A DOG" src="a b.png"><a title="CAT" href=x>C</a>',
        ),
        ("<img alt='it&#39;s'>", "<img alt='IT&#39;S'>"),
        ('<p>an <img alt="a dog"> here</p>', '<p>AN <img alt="A DOG"> HERE</p>'),
        (
            '<meta name="description" content="a b"><meta name="viewport" content="c">',
            '<meta name="description" content="A B"><meta name="viewport" content="c">',
        ),
        (
            '<input type="submit" value="go"><input value="no" placeholder="who">',
            '<input type="submit" value="GO"><input value="no" placeholder="WHO">',
        ),
        ("<title>a &amp; <b></title><p>c", "<title>A &amp; &lt;b&gt;</title><p>C"),
        (
            "<button>ok</button> <select><option>x<option>y</select>",
            "<button>OK</button> <select><option>X<option>Y</select>",
        ),
        ("<b>a</b>", "<b>A</b>"),
        ("<p><a href=x><b>a</b></a></p>", "<p><a href=x><b>A</b></a></p>"),
        ("<b>a<p>b</b>c</p>", "<b>A<p>B</b>C</p>"),
        ("<p>42 — %s</p>", None),
        ("<p>a</p", "<p>A</p"),
        ("<p title='a", None),
        ("<!doctype html><![CDATA[a]]><?php b ?>", None),
        ("<p>a <!-- x --> b</p>", "<p>A <!-- x --> B</p>"),
        ("", None),
    ],
)
def test_blocks_and_attributes_are_translated_and_nothing_else(page: str, expected: str | None) -> None:
    assert html(page) == (page if expected is None else expected)
    assert html(page, same) == page


def test_texts_have_their_markup_as_tags_and_blocks_are_one_text() -> None:
    heard: list[str] = []
    html(
        '<h1>A <em>b</em></h1><p>c <a href="x">d <b>e</b></a>, f<br>g <code>h</code> i.</p>',
        lambda texts: (heard.extend(texts), texts)[1],
    )
    assert heard == ["A <g1>b</g1>", 'c <g1>d <g2>e</g2></g1>, f<br id="3"/>g <x4/> i.']


def test_words_that_change_their_order_take_their_tags_with_them() -> None:
    page = '<p>the <a href="x">red</a> <b>car</b></p>'
    assert html(page, lambda texts: ["la <g2>voiture</g2> <g1>rouge</g1>"]) == (
        '<p>la <b>voiture</b> <a href="x">rouge</a></p>'
    )


def test_markup_that_is_lost_stands_at_the_end_and_is_told() -> None:
    page = "<p>\na <a href='x'>b</a></p>"
    done = translate_document(page.encode(), "html", without_tags, name="a.html")
    assert done.content.decode() == "<p>\nA B<a href='x'></a></p>"
    assert done.warnings == (
        "a.html:2: lost: <a href='x'> (in the source 1, in the output 0)",
        "a.html:2: lost: </a> (in the source 1, in the output 0)",
    )


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        # Pairs that cross: the one that is closed first stays.
        ("<g1>x <g2>y</g1> z</g2>", "<p><b>x y</b> z<i></i></p>"),
        ("</g1>x<g1> y</g2>", "<p>x y<b></b><i></i></p>"),
        ("<g1>x</g1> <g1>y</g1> <g2>z", "<p><b>x</b> y z<i></i></p>"),
        ("<g7>x</g7>", "<p>&lt;g7&gt;x&lt;/g7&gt;<b></b><i></i></p>"),
    ],
)
def test_markup_is_nested_whatever_comes_back(output: str, expected: str) -> None:
    assert html("<p><b>one</b> <i>two</i></p>", lambda texts: [output]) == expected


def test_a_link_that_no_word_came_into_is_told() -> None:
    page = b"<p>a <a href='x'>b</a></p>"
    done = translate_document(page, "html", lambda texts: ["x <g1></g1>"], name="a.html")
    assert done.warnings == ("a.html:1: no word came of what stood in <a href='x'>",)


def test_a_text_that_looks_like_a_marker_is_none() -> None:
    page = "<p>write &lt;g1&gt; or <b>x</b></p>"
    assert html(page) == "<p>WRITE &lt;g1&gt; OR <b>X</b></p>"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"<meta charset=iso-8859-1><p>caf\xe9", b"<meta charset=iso-8859-1><p>CAF\xc9"),
        (b"<p>caf\xe9 \x80", b"<p>CAF\xc9 \x80"),
        (b"\xef\xbb\xbf<p>caf\xc3\xa9", b"\xef\xbb\xbf<p>CAF\xc3\x89"),
        (b"<meta charset=ascii><p>ab", b"<meta charset=ascii><p>AB"),
    ],
)
def test_encodings_stay(content: bytes, expected: bytes) -> None:
    assert translate_document(content, "html", upper).content == expected


def test_a_letter_that_the_encoding_lacks_is_written_as_a_reference() -> None:
    page = b"<meta charset=iso-8859-2><p>a"
    assert translate_document(page, "html", lambda texts: ["ж ł"]).content == page[:-1] + b"&#1078; \xb3"


PIECES = [
    ("<p>", False), ("</p>", False), ("<div class='a b'>", False), ("</div>", False), ("<br>", False),
    ("<b>", False), ("</b>", False), ('<a href="x">', False), ("</a>", False), ("<i/>", False),
    ("<script>var a = '<p>no</p>';</script>", False), ("<style>p { a: b }</style>", False),
    ("<!-- no -->", False), ("<code>no</code>", False), ("<pre>no\n\n no</pre>", False), ("<hr/>", False),
    ("<span translate='no'>no</span>", False), ("&amp;", False), ("&nbsp;", False), ("<li>", False),
    ("yes", True), ("aß", True), (" ", False), ("é", True), ("<img src='no'>", False), ("<wbr>", False),
]  # fmt: skip
PAGES = st.lists(st.sampled_from(PIECES), max_size=16)


@settings(max_examples=150, deadline=None)
@given(PAGES)
def test_all_bytes_but_the_letters_of_texts_stay(pieces: list[tuple[str, bool]]) -> None:
    def swap(texts: list[str]) -> list[str]:
        return [text.replace("yes", "YES").replace("aß", "AẞA").replace("é", "É") for text in texts]

    page = "".join(piece for piece, _ in pieces)
    wanted = "".join(swap([piece])[0] if is_text else piece for piece, is_text in pieces)
    # Spaces in a row are one in what is translated; everything else is exact.
    import re

    assert re.sub(" +", " ", html(page, swap)) == re.sub(" +", " ", wanted)
    assert html(page, same) == page


@settings(max_examples=80, deadline=None)
@given(PAGES, st.sampled_from([*HOSTILE, backwards]))
def test_no_tag_is_lost_or_doubled_whatever_the_translator_says(
    pieces: list[tuple[str, bool]], function: Any
) -> None:
    page = "".join(piece for piece, _ in pieces)
    new = html(page, function)
    kinds = ("open", "close")

    def tags(text: str) -> list[str]:
        return sorted(text[t.begin : t.end] for t in tokens(text, 0, len(text)) if t.kind in kinds)

    assert tags(new) == tags(page)


@settings(max_examples=150, deadline=None)
@given(st.text(st.sampled_from("<>/!?-a \"'=&;p[]sCDAT\n"), max_size=40))
def test_tokens_follow_one_another_without_gaps(text: str) -> None:
    at = 0
    for token in tokens(text, 0, len(text)):
        assert token.begin == at < token.end
        for begin, end in token.attributes.values():
            assert token.begin < begin <= end <= token.end
        at = token.end
    assert at == len(text)
