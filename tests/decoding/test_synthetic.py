"""Text that a model makes for training: one line for each, in order, and what is chosen of several."""

from __future__ import annotations

import functools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu import sentence_bleu

from tiny_translator import sentences, tiny_bundle
from transduce.decoding import synthetic
from transduce.decoding.synthetic import (
    BackTranslation,
    Distillation,
    back_translate,
    closest,
    distill,
    noised,
)
from transduce.decoding.translator import Translator
from transduce.errors import DataError, UsageError

LINES = ["", *sentences(7, seed=3), "  ", *sentences(4, seed=4)]


@functools.cache
def translator() -> Translator:
    return Translator(tiny_bundle())


@pytest.mark.parametrize("options", [{}, {"beam": 1}, {"method": "sample"}, {"method": "sample", "top_k": 3}])
def test_each_line_has_its_own_translation(
    options: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(synthetic, "CHUNK", 4)
    chosen = BackTranslation(**options)  # type: ignore[arg-type]
    found = list(back_translate(translator(), iter(LINES), chosen))
    as_asked = {name: value for name, value in options.items() if name != "method"}
    if "method" in options:
        as_asked["samples"] = 1
    expected = translator().translate_detailed(LINES, **as_asked)
    assert len(found) == len(LINES)
    for line, made, translation in zip(LINES, found, expected, strict=True):
        problem = "empty" if not line.strip() else "unfinished" if translation.truncated else ""
        assert (made.text, made.problem) == ("" if problem else translation.text, problem)
    assert "empty" in {made.problem for made in found}


def test_an_output_without_an_end_makes_no_pair() -> None:
    endless = Translator(tiny_bundle(ends=-50.0))
    found = list(back_translate(endless, LINES[1:3]))
    assert [(made.text, made.problem) for made in found] == [("", "unfinished")] * 2
    assert [made.problem for made in distill(endless, LINES[:2])] == ["empty", "unfinished"]
    for kept in (
        back_translate(endless, LINES[:3], BackTranslation(unfinished="keep")),
        distill(endless, LINES[:3], options=Distillation(unfinished="keep")),
    ):
        assert [made.text for made in kept] == endless.translate(LINES[:3])


def test_lines_are_read_as_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthetic, "CHUNK", 4)
    lines = iter(LINES)
    made = back_translate(translator(), lines)
    assert next(lines) == LINES[0]
    next(made)
    assert next(lines) == LINES[5]


@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=12), st.integers(0, 4), st.integers(0, 99))
def test_words_move_by_no_more_than_they_may(words: list[str], places: int, seed: int) -> None:
    named = [f"{word}{place}" for place, word in enumerate(words)]
    moved = noised(" ".join(named), "line", BackTranslation(shuffle_words=places, seed=seed)).split()
    assert sorted(moved) == sorted(named)
    assert all(abs(moved.index(word) - place) <= places for place, word in enumerate(named))


def test_a_share_of_the_words_is_left_out_and_never_all() -> None:
    text = " ".join(f"w{i}" for i in range(4000))
    kept = noised(text, "line", BackTranslation(drop_words=0.1)).split()
    assert abs(len(kept) / 4000 - 0.9) < 0.02
    assert kept == sorted(kept, key=lambda word: int(word[1:]))
    options = [BackTranslation(drop_words=0.99, seed=seed) for seed in range(50)]
    assert all(noised("a b", "line", one) in ("a", "b", "a b") for one in options)
    assert noised("", "line", options[0]) == ""


def test_noise_follows_from_seed_and_line_alone() -> None:
    options = BackTranslation(drop_words=0.3, shuffle_words=2)
    text = " ".join(f"w{i}" for i in range(40))
    assert noised(text, "one", options) == noised(text, "one", options)
    assert noised(text, "one", options) != noised(text, "other", options)
    assert noised(text, "one", options) != noised(text, "one", replace(options, seed=1))
    together = [made.text for made in back_translate(translator(), LINES, options)]
    assert [next(back_translate(translator(), [line], options)).text for line in LINES] == together


def test_the_closest_of_the_n_best_is_taken() -> None:
    options = Distillation(beam=6, n_best=6)
    found = translator().translate_detailed(LINES, beam=6, n_best=6)
    references = [t.alternatives[min(3, len(t.alternatives) - 1)].text for t in found]
    made = list(distill(translator(), LINES, references, options))
    assert [one.text for one in made] == [
        text if line.strip() else "" for line, text in zip(LINES, references, strict=True)
    ]
    for translation in found[1:4]:
        for reference in sentences(5, seed=8):
            scores = [sentence_bleu(a.text, [reference]).score for a in translation.alternatives]
            assert closest(translation, reference) == scores.index(max(scores))


def test_an_output_that_has_an_end_goes_before_a_closer_one_that_has_none() -> None:
    (found,) = translator().translate_detailed(LINES[1:2], beam=3, n_best=3)
    first, *others = found.alternatives
    cut = replace(found, alternatives=(replace(first, truncated=True), *others))
    assert closest(found, first.text) == 0
    assert closest(cut, first.text) != 0


def test_what_does_not_go_together_is_refused() -> None:
    for values, message in (
        ({"method": "greedy"}, "method is 'greedy'; choose one of beam, sample"),
        ({"top_k": 5}, "top_k and temperature are of sampling; set method to sample"),
        ({"drop_words": 1.0}, "drop_words is 1; it must be at least 0 and below 1"),
        ({"shuffle_words": -1}, "shuffle_words is -1"),
        ({"beam": 0}, "beam is 0"),
        ({"unfinished": "cut"}, "unfinished is 'cut'; choose one of drop, keep"),
    ):
        with pytest.raises(UsageError, match=message):
            BackTranslation(**values)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="n_best is 4, but there are no references"):
        list(distill(translator(), LINES, options=Distillation(n_best=4)))
    with pytest.raises(UsageError, match="n_best is 1 and there are references"):
        list(distill(translator(), LINES, LINES))
    with pytest.raises(DataError, match="1 reference is there for 13 sources or more"):
        list(distill(translator(), LINES, ["one"], Distillation(n_best=2)))
