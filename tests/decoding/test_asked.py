from __future__ import annotations

from typing import Any

import pytest

from tiny_translator import sentences, tiny_bundle
from transduce.decoding.glossary import Entry, Glossary
from transduce.decoding.terms import Term
from transduce.decoding.translation import Translation
from transduce.decoding.translator import Translator
from transduce.errors import UsageError


def translate(lines: list[str], **options: Any) -> list[Translation]:
    it = Translator(tiny_bundle(max_length=40))
    return it.translate_detailed(lines, **{"max_extra": 12, **options})


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize("beam", [1, 3])
def test_terms_are_there_whatever_they_are_and_whatever_the_neighbours(beam: int) -> None:
    lines = sentences(6, seed=1, words=(2, 4))
    terms: list[list[str | Term]] = [
        ["Zebra"],
        [],
        ["de", "ab gil"],
        ["\U0001f680", "d\u00e9j\u00e0 vu"],
        [Term("Ausnahmen", exact=False)],
        ["(\u2581)"],
    ]
    whole = translate(lines, terms=terms, beam=beam)
    for line, own, translation in zip(lines, terms, whole, strict=True):
        for term in own:
            sought = term if isinstance(term, Term) else Term(term)
            assert sought.found_in(translation.text), (term, translation.text)
        assert translation.warnings == ()
        assert translate([line], terms=[own], beam=beam)[0].text == translation.text
    assert whole[1].text == translate([lines[1]], beam=beam)[0].text
    assert "Ausnah" in whole[4].text


@pytest.mark.usefixtures("shapes_unchecked")
def test_what_does_not_fit_is_told_and_the_first_terms_are_kept() -> None:
    terms = [["ab", "Zyxwvu Zyxwvu Zyxwvu", "de"]]
    told = "the output lacks 'Zyxwvu Zyxwvu Zyxwvu', which was asked of it"
    (short,) = translate(["gil mn"], terms=terms, max_extra=4, first_line=7)
    assert short.warnings == (f"line 7: {told}",)
    assert Term("ab").found_in(short.text)
    assert Term("de").found_in(short.text)
    with pytest.warns(UserWarning, match=f"line 1: {told}"):
        Translator(tiny_bundle()).translate(["gil mn"], terms=terms, max_extra=4)
    (long,) = translate(["gil mn"], terms=terms, max_extra=60)
    assert long.warnings == ()


@pytest.mark.usefixtures("shapes_unchecked")
def test_prefix_and_terms_together() -> None:
    (both,) = translate(["gil mn"], terms=[["zut"]], prefixes=["de ab zu"], beam=2)
    assert both.text.startswith("de ab zu")
    assert Term("zut").found_in(both.text)


@pytest.mark.usefixtures("shapes_unchecked")
def test_a_glossary_asks_for_its_terms_in_each_part_of_a_split_line() -> None:
    parts = [s[:-1] for s in sentences(3, seed=3, words=(5, 5))]
    first, last = parts[0].split()[0], parts[2].split()[0]
    glossary = Glossary(
        [Entry(first, Term("Zebra")), Entry(last, Term("Yak")), Entry("nowhere", Term("Gnu"))]
    )
    lines = [parts[0], "! ".join(parts) + "!", "", "nothing"]
    one, split, empty, none = translate(lines, glossary=glossary, beam=2)
    assert Term("Zebra").found_in(one.text)
    assert "parts" in split.warnings[0]
    assert len(split.warnings) == 1
    assert split.text.index("Zebra") < split.text.index("Yak")
    assert empty.text == ""
    assert "Gnu" not in none.text


def test_wrong_calls_are_refused() -> None:
    for asked, message in (
        ({"terms": [["a"]]}, "1 term list for 2 lines; give one per line"),
        ({"terms": ["a", "b"]}, r"the terms of line 1 are one string; write \['a'\]"),
        ({"terms": [["a"], [" "]]}, "a term of line 2 is empty"),
        ({"terms": [["a"], ["b\nc"]]}, "the term of line 2 is"),
        ({"terms": [["a"], []], "samples": 2}, "terms are placed by the beam, not by samples"),
    ):
        with pytest.raises(UsageError, match=message):
            translate(["a", "b"], **asked)
