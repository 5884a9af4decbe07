from __future__ import annotations

import html
from pathlib import Path
from typing import Any

import pytest
from fakes import HOSTILE, same, upper
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("markdown_it", reason="the extra `documents` is not installed")
from transduce.documents.markdown_inline import parser
from transduce.documents.translate import translate_document
from transduce.errors import DataError

ROOT = Path(__file__).parents[2]
REAL = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


def markdown(text: str, function: Any = upper) -> str:
    return translate_document(text.encode(), "markdown", function).content.decode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# a *b*\n\nc **d** `e f` g\n", "# A *B*\n\nC **D** `e f` G\n"),
        ("a\n=\n\nb\n---\n", "A\n=\n\nB\n---\n"),
        ("```\na\n```\n\n    b\n\n~~~ c\nd\n~~~\n", None),
        ("---\ntitle: a\n---\nb\n", "---\ntitle: a\n---\nB\n"),
        ("- a\n- [ ] b\n  - c\n\n1. d\n", "- A\n- [ ] B\n  - C\n\n1. D\n"),
        ("> a\n> > b\n", "> A\n> > B\n"),
        ('[a b](x_y.md "c d") ![e](f.png)\n', '[A B](x_y.md "C D") ![E](f.png)\n'),
        (
            "[a][r] [b][] [r] <http://x.y> ![c][r]\n\n[r]: /u 'no'\n[b]: /v\n",
            "[A][r] [B][] [R] <http://x.y> ![C][r]\n\n[r]: /u 'no'\n[b]: /v\n",
        ),
        (
            "| a | b \\| c |\n|---|:-:|\n| `d\\|e` | *f* |\nnext\n",
            "| A | B \\| C |\n|---|:-:|\n| `d\\|e` | *F* |\nNEXT\n",
        ),
        ("a \\* b &amp; c\\\\ d\n", "A \\* B & C\\\\ D\n"),
        ("a<br>b <kbd>c</kbd> <i>d</i>\n", "A<br>B <kbd>c</kbd> <i>D</i>\n"),
        ("a  \nb\\\nc\n", "A  \nB\\\nC\n"),
        ("see[^1] it\n\n[^1]: the note here\n", "SEE[^1] IT\n\n[^1]: THE NOTE HERE\n"),
        ("<p align=center>\n<b>a</b>\n</p>\n\nb\n", "<p align=center>\n<b>A</b>\n</p>\n\nB\n"),
        ("~~a~~ b_c __d__ 2 * 3\n", "~~A~~ B_C __D__ 2 \\* 3\n"),
        ("", None),
        ("***\n\n42\n", None),
    ],
)
def test_what_readers_read_is_translated_and_nothing_else(text: str, expected: str | None) -> None:
    assert markdown(text) == (text if expected is None else expected)
    assert markdown(text, same) == text
    crlf = text.replace("\n", "\r\n")
    assert markdown(crlf, same) == crlf
    assert markdown("\ufeff" + crlf) == "\ufeff" + (text if expected is None else expected).replace(
        "\n", "\r\n"
    )


def test_a_paragraph_of_several_lines_is_one_text_and_broken_again_behind_its_marks() -> None:
    text = "> one two three\n> four *five*\n> six\n"
    heard: list[str] = []
    new = markdown(text, lambda texts: (heard.extend(texts), [f"{text} und noch etwas" for text in texts])[1])
    assert heard == ["one two three four <g1>five</g1> six"]
    assert new == "> one two three\n> four *five*\n> six und noch\n> etwas\n"


def test_links_and_code_are_never_broken() -> None:
    text = "aaa [b c](d 'e f')\n`g  h` i\n"
    new = markdown(text, lambda texts: [f"wort {text}" if "<" in text else text for text in texts])
    assert "`g  h`" in new
    assert "[b c](d 'e f')" in new.replace("\n", " ")


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("# a", "\\# a"),
        ("1. a", "1\\. a"),
        ("- a", "\\- a"),
        ("> a", "\\> a"),
        ("* a", "\\* a"),
        ("a [b](c) <d> `e` &amp; f_g _h_", "a \\[b\\](c) \\<d> \\`e\\` \\&amp; f_g \\_h\\_"),
        ("===", "\\==="),
    ],
)
def test_what_would_be_markup_in_an_output_is_escaped(output: str, expected: str) -> None:
    new = markdown("word\n", lambda texts: [output])
    assert new == f"{expected}\n"
    (inline,) = [token for token in parser().parse(new) if token.type == "inline"]
    assert "".join(child.content for child in inline.children) == output


def test_emphasis_and_line_breaks_without_words_are_left_out_and_links_are_not() -> None:
    text = "a **b** ~~c~~ [d](e)  \nf\n"
    done = translate_document(text.encode(), "markdown", lambda texts: ["x <g1></g1>"])
    assert done.content.decode() == "x [](e)\n"
    assert len(done.warnings) == 6


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_real_files_keep_their_shape(path: Path) -> None:
    text = path.read_bytes().decode()
    assert markdown(text, same) == text
    assert shape(markdown(text)) == shape(text)


def test_control_characters_are_refused() -> None:
    with pytest.raises(DataError, match="x: holds control characters"):
        translate_document(b"a\0b", "markdown", same, name="x")


PIECES = st.sampled_from(
    [
        "aa",
        "bb",
        " ",
        " ",
        "*",
        "**",
        "_",
        "`",
        "``",
        "[",
        "]",
        "](x)",
        "](x 'y z')",
        "![",
        "<b>",
        "</b>",
        "<!-- c -->",
        "\\",
        "\\*",
        "&amp;",
        "&",
        "<http://a.b>",
        "|",
        "~~",
        "\n",
        "\n\n",
        "\n> ",
        "\n- ",
        "\n    ",
        "\n1. ",
        "# ",
        "\n```\n",
        "[^1]",
        "\t",
        "  \n",
        "---",
        "\n|-|-|\n",
        "<br>",
        "<div>",
        "[r]: /u\n",
        "[r]",
        "é",
    ]
)
TEXTS = st.lists(PIECES, max_size=24).map("".join)


@settings(max_examples=150, deadline=None)
@given(TEXTS)
def test_nothing_changes_where_the_translator_changes_nothing(text: str) -> None:
    assert markdown(text, same) == text


def shape(text: str) -> list[str]:
    """The blocks of a text, and the markup within each, whatever its order."""
    found = []
    for token in parser().parse(text):
        if token.type in ("fence", "code_block", "html_block"):
            found.append(f"{token.type} {' '.join(html.unescape(token.content).lower().split())}")
        elif token.type == "inline":
            found.append(
                " ".join(
                    sorted(
                        one.type
                        for one in token.children
                        if one.type not in ("text", "text_special", "softbreak")
                    )
                )
            )
        else:
            found.append(token.type)
    return found


@settings(max_examples=150, deadline=None)
@given(TEXTS)
def test_blocks_and_markup_stay_what_they_are(text: str) -> None:
    new = markdown(text)
    assert shape(new) == shape(text)


@settings(max_examples=80, deadline=None)
@given(TEXTS, st.sampled_from(HOSTILE))
def test_code_and_blocks_stay_whatever_the_translator_says(text: str, function: Any) -> None:
    new = markdown(text, function)
    kinds = ("fence", "code_block")
    assert [t.content for t in parser().parse(new) if t.type in kinds] == [
        t.content for t in parser().parse(text) if t.type in kinds
    ]
