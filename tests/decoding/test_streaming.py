"""Pieces of a translation while it is searched for: what is given out is certain, and as early as it is."""

from __future__ import annotations

import functools
from collections.abc import Generator
from typing import Any

import pytest
import torch
from engines import ENGINES
from hypothesis import given, settings
from hypothesis import strategies as st

from tiny_translator import Echo, sentences, tiny_bundle, tokenizer
from transduce.data.tokenizer import EOS_ID
from transduce.decoding.glossary import Entry, Glossary
from transduce.decoding.hypothesis import Hypothesis
from transduce.decoding.segmentation import Part
from transduce.decoding.sources import Source
from transduce.decoding.streaming import pieces_of_line
from transduce.decoding.terms import Term
from transduce.decoding.translation import assemble
from transduce.decoding.translator import Translator
from transduce.errors import DataError, UsageError

LINES = [*sentences(10, seed=1, words=(1, 4)), "\U0001f680 d\u00e9j\u00e0", "", " \t"]
FAST: dict[str, Any] = {"max_extra": 8}


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("beam", [1, 4])
def test_pieces_joined_are_the_translation(engine: str, beam: int) -> None:
    it = Translator(tiny_bundle(), engine=engine)
    for line, whole in zip(LINES, it.translate(LINES, beam=beam, **FAST), strict=True):
        pieces = list(it.stream(line, beam=beam, **FAST))
        assert "".join(pieces) == whole
        assert all(pieces)
    assert len(list(it.stream(LINES[0], beam=1, **FAST))) > 3


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize("beam", [1, 4])
def test_pieces_come_while_it_is_searched(beam: int) -> None:
    it, steps = Translator(tiny_bundle()), []
    step = it.searcher.engine.step
    it.searcher.engine.step = lambda *given: (steps.append(1), step(*given))[1]  # type: ignore[method-assign]
    came = [len(steps) for _ in it.stream(LINES[1], prefix="ab de gil", beam=beam, max_extra=20)]
    assert came[0] < came[-1] / 2
    if beam == 1:
        assert len(set(came)) > 5


@pytest.mark.usefixtures("shapes_unchecked")
def test_what_is_returned_in_the_end_is_the_whole_translation() -> None:
    it = Translator(tiny_bundle(max_length=40))
    parts = [s.replace(".", "!") for s in sentences(3, seed=3, words=(4, 5))]
    for line, options in (
        (LINES[0], {"confidence": True, "alignments": True}),
        (" ".join(parts), {"flag_unusual": True}),
        (LINES[2], {"samples": 1, "seed": 3}),
    ):
        settings_ = {"beam": 2, **FAST, **options}
        pieces = it.stream_detailed(line, first_line=7, **settings_)
        text = ""
        while True:
            try:
                text += next(pieces)
            except StopIteration as end:
                found = end.value
                break
        (whole,) = it.translate_detailed([line], first_line=7, batch_tokens=1, **settings_)
        assert found == whole
        assert text == whole.text
    assert (
        it.translate_detailed([" ".join(parts)], first_line=7, **FAST)[0].warnings[0].startswith("line 7 has")
    )


echo_of = functools.cache(Echo)


@pytest.mark.usefixtures("shapes_unchecked")
@settings(max_examples=80, deadline=None)
@given(
    st.text(st.sampled_from("ab. !?\u00a0\t\u3002\u00e9\u20ac\U0001f600\ue000\u2581,"), max_size=50),
    st.sampled_from([6, 9, 400]),
    st.booleans(),
)
def test_no_character_is_cut_and_no_space_lost_however_a_line_is_split(
    text: str, longest: int, document: bool
) -> None:
    if document:
        pytest.importorskip("sentencex", reason="the extra `documents` is not installed")
    echo = echo_of(max_length=longest)
    (whole,) = echo.translate_detailed([text], document=document)
    pieces, translation = [], None
    stream = echo.stream_detailed(text, document=document)
    while translation is None:
        try:
            pieces.append(next(stream))
        except StopIteration as end:
            translation = end.value
    assert "".join(pieces) == whole.text
    assert translation == whole
    assert all(pieces)
    assert all("\ufffd" not in piece for piece in pieces)
    said = ""
    for piece in pieces[:-1] if document else pieces:
        said += piece
        assert said == said.rstrip() or not said.strip()


def test_parts_are_joined_as_in_a_whole_output() -> None:
    """A part without a space after it, of which the output ends in another mark."""
    it = tokenizer()
    source = Source("x", (Part("\u96ea\u3002", ""), Part("ab", "  "), Part("ab", "")), ((5,), (6,), (7,)))
    outputs = [
        Hypothesis((*it.encode(text), EOS_ID), -1.0, -1.0, False, ()) for text in ("de.", " gh ", "il")
    ]

    def tokens(output: Hypothesis) -> Generator[list[int], None, Hypothesis]:
        yield list(output.tokens)
        return output

    whole = assemble(source, [[output] for output in outputs], it, alpha=0.6).text
    assert whole == "de. gh  il"
    assert "".join(pieces_of_line(source, map(tokens, outputs), it)) == whole


def test_a_character_of_several_bytes_comes_as_a_whole() -> None:
    assert [piece for piece in Echo().stream("\U0001f600 ab") if "\U0001f600" in piece]
    assert "".join(Echo().stream("a\U0001f600\u20acb")) == "a\U0001f600\u20acb"


@pytest.mark.usefixtures("shapes_unchecked")
def test_what_is_asked_of_an_output_is_there_in_its_stream_too() -> None:
    it = Translator(tiny_bundle(max_length=40))
    line = LINES[1]
    prefixed = "".join(it.stream(line, prefix="zut ab", beam=2, **FAST))
    assert prefixed.startswith("zut ab")
    assert prefixed == it.translate([line], prefixes=["zut ab"], beam=2, **FAST)[0]
    glossary = Glossary([Entry(line.split()[0].strip("."), Term("Zebra"))])
    told = "".join(it.stream(line, terms=["Yak"], glossary=glossary, beam=2, max_extra=20))
    assert Term("Zebra").found_in(told)
    assert Term("Yak").found_in(told)
    with pytest.warns(UserWarning, match="line 1: the output lacks 'Zyxwvu Zyxwvu Zyxwvu'"):
        list(it.stream("ab", terms=["Zyxwvu Zyxwvu Zyxwvu"], max_extra=2))


@pytest.mark.usefixtures("shapes_unchecked")
def test_protected_items_come_with_the_whole_line_and_other_lines_as_ever() -> None:
    it = Translator(tiny_bundle())
    (piece,) = it.stream("<b>ab</b> de {x}", protect="all", **FAST)
    assert piece == it.translate(["<b>ab</b> de {x}"], protect="all", **FAST)[0]
    pieces = list(it.stream(LINES[0], protect="all", beam=1, **FAST))
    assert len(pieces) > 3
    assert "".join(pieces) == it.translate([LINES[0]], protect="all", beam=1, **FAST)[0]


def test_between_two_pieces_everything_is_as_before() -> None:
    bundle = tiny_bundle(dropout=0.5)
    it = Translator(bundle)
    expected = it.translate([LINES[0]], beam=1, **FAST)
    bundle.model.train()
    pieces = it.stream(LINES[0], beam=1, **FAST)
    text = next(pieces)
    assert bundle.model.training
    assert not torch.is_inference_mode_enabled()
    assert [text + "".join(pieces)] == expected
    assert bundle.model.training
    del pieces
    next(it.stream(LINES[0], beam=1, **FAST))  # left in the middle
    assert bundle.model.training


def test_long_lines_are_refused_or_cut_as_they_are_set_to_be() -> None:
    echo, line = Echo(max_length=16), "ab " * 45
    with pytest.raises(DataError, match=r"line 1 has .* tokens"):
        list(echo.stream(line, long_lines="error"))
    with pytest.warns(UserWarning, match="cut off"):
        cut = "".join(echo.stream(line, long_lines="truncate"))
    with pytest.warns(UserWarning, match="cut off"):
        assert [cut] == echo.translate([line], long_lines="truncate")


@pytest.mark.parametrize("options", [{"n_best": 2}, {"samples": 2}, {"samples": 8, "mbr": "chrf"}])
def test_several_outputs_are_no_stream(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="a stream is one output"):
        Translator(tiny_bundle()).stream("ab", **options)
