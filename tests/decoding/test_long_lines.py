"""Lines that are longer than the model takes: split, cut or refused, and whole again afterwards."""

from __future__ import annotations

import warnings

import pytest

from tiny_translator import Echo, sentences, tiny_translator, tokenizer
from transduce.decoding.hypothesis import length_penalty
from transduce.errors import DataError


@pytest.mark.usefixtures("shapes_unchecked")
def test_a_long_line_is_split_at_sentence_ends_by_default() -> None:
    it = tiny_translator(max_length=40)
    parts = [s for s in sentences(40, seed=3, words=(4, 5)) if len(tokenizer().encode(s)) < 40][:4]
    line = " ".join(part.replace(".", "!") for part in parts)
    with pytest.warns(
        UserWarning, match=r"line 2 has \d+ tokens, the model takes 39 and the end; translated in 4"
    ):
        outputs = it.translate(["ab", line], max_extra=5, beam=2)
    alone = it.translate([part.replace(".", "!") for part in parts], max_extra=5, beam=2)
    assert outputs[1] == " ".join(alone)


@pytest.mark.usefixtures("shapes_unchecked")
def test_scores_of_a_split_line_follow_the_formula() -> None:
    it = tiny_translator(max_length=40)
    line = "! ".join(s[:-1] for s in sentences(3, seed=3, words=(4, 5))) + "!"
    (whole,) = it.translate_detailed([line], n_best=2, first_line=7, max_extra=5)
    assert whole.warnings[0].startswith("line 7 has ")
    assert len(whole.alternatives) == 2
    for alternative in whole.alternatives:
        assert alternative.length == len(alternative.tokens)
        assert alternative.score == pytest.approx(
            alternative.log_probability / length_penalty(alternative.length, 0.6)
        )
        assert alternative.explain(0.6).startswith(f"score {alternative.score:.6f} = log P")


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize("positions", ["sinusoid", "t2t", "learned", "rotary"])
def test_every_policy_for_long_lines_works_for_every_kind_of_positions(positions: str) -> None:
    it = tiny_translator(max_length=16, positions=positions)
    line = "ab " * 45
    count = len(tokenizer().encode(line.strip()))
    assert count >= 40
    with pytest.raises(
        DataError, match=rf"line 2 has {count} tokens, the model takes 15 .*use split or truncate"
    ):
        it.translate(["ab", line], long_lines="error")
    with pytest.warns(UserWarning, match=rf"line 1 has {count} tokens.*cut off"):
        assert it.translate([line], long_lines="truncate", beam=1)[0]
    with pytest.warns(UserWarning, match=r"line 1 has .* translated in \d+ parts"):
        assert it.translate([line], beam=1)[0]
    echo = Echo(max_length=16)
    with pytest.warns(UserWarning, match="cut off"):
        echo.translate([line], long_lines="truncate")
    assert [len(ids) for ids in echo.heard] == [15]


def test_a_split_line_is_whole_again() -> None:
    line = "ab de, gh; " * 20 + "x" * 60 + "  \u00e9\u0301 " + "\U0001f600" * 10
    with pytest.warns(UserWarning, match="split"):
        assert Echo(max_length=16).translate([line]) == [line]


def test_a_line_at_the_limit_is_left_alone() -> None:
    ids = tokenizer().encode("ab ab ab")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Echo(max_length=len(ids) + 1).translate(["ab ab ab"], long_lines="error")
    with pytest.raises(DataError, match="line 1 has"):
        Echo(max_length=len(ids)).translate(["ab ab ab"], long_lines="error")
