"""Accelerators: found where they are, left alone in addresses, never put into a placeholder."""

from __future__ import annotations

import pytest

from transduce.documents.accelerators import with_accelerator, without_accelerator


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("&Open file", ("Open file", "&", "O")),
        ("Save _as", ("Save as", "_", "a")),
        ("E&xit", ("Exit", "&", "x")),
        ("Q&A", ("Q&A", "", "")),
        ("See http://x.org/?a=1&b of %s", ("See http://x.org/?a=1&b of %s", "", "")),
        ("Two %d dogs: a?b=c&d", ("Two %d dogs: a?b=c&d", "", "")),
        ("www.x.org/a&b", ("www.x.org/a&b", "", "")),
        ("&Open http://x.org/a", ("Open http://x.org/a", "&", "O")),
    ],
)
def test_what_is_an_accelerator(text: str, found: tuple[str, str, str]) -> None:
    assert without_accelerator(text) == found


@pytest.mark.parametrize(
    ("output", "letter", "placed"),
    [
        ("Datei offen", "o", "Datei &offen"),
        ("Zwei %d Hunde", "d", "Zwei %d Hun&de"),
        ("%s", "s", "%s(&S)"),
        ("{name} da", "n", "{name} &da"),
        ("%(name)s neu", "n", "%(name)s &neu"),
        ("%1$d Dinge", "d", "%1$d &Dinge"),
        ("100 %", "x", "&100 %"),
        ("http://n.org neu", "n", "http://n.org &neu"),
        ("<b>neu</b>", "b", "<b>&neu</b>"),
        ("&amp; an", "a", "&amp; &an"),
    ],
)
def test_where_it_is_put(output: str, letter: str, placed: str) -> None:
    assert with_accelerator(output, "&", letter) == placed
