from __future__ import annotations

import itertools
import re
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from table_models import EOS, START, enumerated, markov, start, step_of
from torch import Tensor

from transduce.decoding.beam_search import beam_search
from transduce.decoding.config import SearchOptions
from transduce.decoding.constraints import ConstraintGuide, Constraints
from transduce.decoding.guide import Guide, Guides
from transduce.decoding.hypothesis import Hypothesis
from transduce.decoding.prefix import Prefix, PrefixGuide
from transduce.decoding.repetition import NoRepeatedNgram
from transduce.decoding.spelling import Spelling
from transduce.decoding.terms import Sought, Term, Way

pytestmark = pytest.mark.usefixtures("shapes_unchecked")
# A vocabulary of five: what each token spells. Token 2 is the start as well, in the table's rows only.
TEXTS = (" a", "", " b", "a", "b")
SPELLING = Spelling(TEXTS)


def table(seed: int) -> Tensor:
    return torch.randn(5, 5, generator=torch.Generator().manual_seed(seed)) * 1.5


def constraints(*terms: Term) -> Constraints:
    return Constraints([Way(Sought(term, list), SPELLING) for term in terms], EOS)


def search(step: Any, guide: Guide | None, limits: list[int], **options: Any) -> list[list[Hypothesis]]:
    return beam_search(
        step,
        start(len(limits)),
        max_lengths=torch.tensor(limits, dtype=torch.long),
        options=SearchOptions(**options),
        start_id=START,
        eos_id=EOS,
        guide=guide,
    )


def as_written(term: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(term)}(?!\w)", text) is not None


SETS = [["a"], ["ab"], ["a b"], ["aa", "b"], ["a b", "b a"], ["ab b"], ["a", "b", "ab"]]


@pytest.mark.parametrize("terms", SETS, ids="+".join)
@pytest.mark.parametrize("seed", [0])
def test_a_wide_beam_finds_the_best_output_that_contains_all_terms(seed: int, terms: list[str]) -> None:
    guide = ConstraintGuide.start([constraints(*map(Term, terms))], [5])
    (found,) = search(markov(table(seed)), guide, [5], beam=4**5, n_best=4)
    every = [
        (score, tokens)
        for score, tokens in enumerated(table(seed), 5, 0.6)
        if all(as_written(term, SPELLING.of_ids(tokens)) for term in terms)
    ]
    assert [h.score for h in found] == pytest.approx([score for score, _ in every[:4]], abs=1e-5)
    scores = {tokens: score for score, tokens in every}
    assert [scores[h.tokens] for h in found] == pytest.approx([h.score for h in found], abs=1e-5)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    terms=st.sampled_from(SETS),
    limit=st.integers(2, 6),
    beam=st.integers(1, 5),
    exact=st.booleans(),
)
def test_every_term_is_there_whenever_the_limit_allows_it(
    seed: int, terms: list[str], limit: int, beam: int, exact: bool
) -> None:
    sought = [Term(term, exact) for term in terms]
    possible = any(
        all(term.found_in(SPELLING.of_ids(tokens)) for term in sought)
        for length in range(limit)
        for tokens in itertools.product((0, 2, 3, 4), repeat=length)
    )
    asked = constraints(*sought)
    assert asked.fits(asked.start, limit - 1) == possible
    if possible:
        (found,) = search(markov(table(seed)), ConstraintGuide.start([asked], [limit]), [limit], beam=beam)
        assert all(term.found_in(SPELLING.of_ids(found[0].tokens)) for term in sought)


def test_a_prefix_and_the_guard_against_repetition_do_not_keep_terms_out() -> None:
    for seed in range(4):
        asked = constraints(Term("a b"), Term("ab ab"))
        prefix = Prefix("b", [2], SPELLING, EOS)
        guides = (
            PrefixGuide.start([prefix]),
            ConstraintGuide.start([asked], [9]),
            NoRepeatedNgram.start(1, 1),
        )
        (found,) = search(markov(table(seed)), Guides(guides), [9], beam=3)
        text = SPELLING.of_ids(found[0].tokens)
        assert text.startswith(" b")
        assert as_written("a b", text)
        assert as_written("ab ab", text)


def test_neighbours_with_other_terms_or_none_change_nothing() -> None:
    def logits(prefix: tuple[int, ...], sentence: int) -> Tensor:
        seed = hash((sentence, prefix)) % 2**31
        return torch.randn(5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 2

    limits = [3, 12, 1, 9, 7, 2, 10, 6]
    terms = [["a"], [], ["b a"], ["ab", "b"], ["a b", "b a"], [], ["aa bb"], ["b"]]
    asked = [constraints(*map(Term, one)) if one else None for one in terms]
    together = search(step_of(logits), ConstraintGuide.start(asked, limits), limits, beam=4, n_best=3)
    for sentence, limit in enumerate(limits):
        (alone,) = search(
            step_of(lambda prefix, _, s=sentence: logits(prefix, s)),
            ConstraintGuide.start([asked[sentence]], [limit]) if asked[sentence] else None,
            [limit],
            beam=4,
            n_best=3,
        )
        assert [h.tokens for h in alone] == [h.tokens for h in together[sentence]]


def test_a_term_comes_where_it_is_likely_and_not_at_the_limit() -> None:
    # "b" is a little less likely than others after two tokens, where they would fill the beam alone, and
    # hopeless everywhere else.
    def logits(prefix: tuple[int, ...], _: int) -> list[float]:
        return [2.0, 3.0 if len(prefix) > 4 else -9.0, 1.0 if len(prefix) == 2 else -9.0, 1.9, -9.0]

    guide = ConstraintGuide.start([constraints(Term("b"))], [30])
    (found,) = search(step_of(logits), guide, [30], beam=2)
    assert found[0].tokens == (0, 0, 2, 0, 0, EOS)


@pytest.mark.parametrize(
    ("term", "exact", "yes", "no"),
    [
        ("Hund", True, ["Ein Hund.", "Hund", "(Hund)", "Hund Hunde"], ["Hunde", "hund", "Schosshund"]),
        ("Hund", False, ["Hund", "Hunde", "viele Hunden da"], ["hunde", "Schosshunde", "Hun d"]),
        ("rote Karte", False, ["die roten Karten", "rotes Karten"], ["rot Karte", "rote  Karte"]),
        ("rote Karte", True, ["Die rote Karte", "Rote Karte!"], ["die roten Karten", "die Rote Karte"]),
        ("Computer", False, ["Computers", "Compute"], ["Compu", "Combuter"]),
        ("C++", True, ["in C++", "(C++)", "C++11"], ["C+", "aC++"]),
        ("犬", True, ["この犬が好き", "犬"], ["猫"]),
        ("5 km", True, ["nur 5 km weit"], ["15 km", "5 kmh"]),
        ("naïve", True, ["a naïve idea"], ["naïvely", "naive"]),
    ],
)  # fmt: skip
def test_what_counts_as_the_term(term: str, exact: bool, yes: list[str], no: list[str]) -> None:
    assert [text for text in yes if not Term(term, exact).found_in(text)] == []
    assert [text for text in no if Term(term, exact).found_in(text)] == []


@given(text=st.text("ab .", max_size=12), term=st.text("ab ", min_size=1, max_size=4))
@settings(deadline=None)
def test_an_exact_term_is_what_a_regular_expression_finds(text: str, term: str) -> None:
    if term.strip() and "  " not in term.strip():
        expected = re.search(rf"(?<!\w){re.escape(term.strip())}(?!\w)", text) is not None
        assert Term(term).found_in(text) == expected
