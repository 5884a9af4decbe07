from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from table_models import EOS, START, enumerated, markov, start
from torch import Tensor

from tiny_translator import sentences, tiny_bundle, tokenizer
from transduce.data.tokenizer import EOS_ID
from transduce.decoding.asked import Asker
from transduce.decoding.beam_search import beam_search
from transduce.decoding.config import SearchOptions
from transduce.decoding.guide import NEVER
from transduce.decoding.hypothesis import Hypothesis
from transduce.decoding.prefix import Prefix, PrefixGuide
from transduce.decoding.spelling import Spelling
from transduce.decoding.translation import Translation
from transduce.decoding.translator import Translator
from transduce.errors import UsageError

# A vocabulary of five: what each token spells. Token 2 is the start as well, in the table's rows only.
TEXTS = (" a", "", " ab", "b", "a")
SPELLING = Spelling(TEXTS)


def table(seed: int) -> Tensor:
    return torch.randn(5, 5, generator=torch.Generator().manual_seed(seed)) * 1.5


def search(model: Tensor, guide: PrefixGuide, **options: Any) -> list[Hypothesis]:
    (found,) = beam_search(
        markov(model),
        start(1),
        max_lengths=torch.tensor([5]),
        options=SearchOptions(**{"beam": 4**5, **options}),
        start_id=START,
        eos_id=EOS,
        guide=guide,
    )
    return found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("text", "ids"), [("a", [0]), ("ab", [0, 3]), ("aba", [0, 3, 4]), ("a a", [0, 0])])
def test_a_wide_beam_finds_the_best_output_that_begins_with_the_text(
    seed: int, text: str, ids: list[int]
) -> None:
    # The tokenizer's subwords are the shortest here, so that any subwords are allowed.
    prefix = Prefix(text, ids, SPELLING, EOS)
    found = search(table(seed), PrefixGuide.start([prefix]), n_best=5)
    every = [
        (score, tokens)
        for score, tokens in enumerated(table(seed), 5, 0.6)
        if SPELLING.of_ids(tokens).startswith(" " + text)
    ]
    assert [h.tokens for h in found] == [tokens for _, tokens in every[:5]]
    assert [h.score for h in found] == pytest.approx([score for score, _ in every[:5]], abs=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_white_space_at_the_end_completes_the_word(seed: int) -> None:
    prefix = Prefix("a ", [0], SPELLING, EOS)
    found = search(table(seed), PrefixGuide.start([prefix]), n_best=5)
    every = [
        tokens
        for _, tokens in enumerated(table(seed), 5, 0.6)
        if SPELLING.of_ids(tokens) == " a" or SPELLING.of_ids(tokens).startswith(" a ")
    ]
    assert [h.tokens for h in found] == every[:5]


def test_subwords_shorter_than_the_tokenizers_are_not_offered() -> None:
    prefix = Prefix("aba", [2, 4], SPELLING, EOS)
    assert prefix.next(0) == {2: 3}  # " ab", and not " a" with "b" after it
    assert prefix.next(3) == {4: 4}
    assert Prefix("a", [0], SPELLING, EOS).next(0) == {0: 2, 2: 2}  # " ab" reaches beyond


def test_a_factor_favours_what_follows_the_prefix_and_nothing_once_it_is_left() -> None:
    prefix = Prefix("ab", [0, 3], SPELLING, EOS)
    guide = PrefixGuide.start([prefix], 3.0)
    p = torch.tensor([[0.2, 0.5, 0.1, 0.1, 0.1]])
    (row,) = guide.guided(p.log()).exp().tolist()
    assert row == pytest.approx([x / 1.6 for x in (0.6, 0.5, 0.3, 0.1, 0.1)])
    follow = guide.extended(torch.tensor([0, 0, 0]), torch.tensor([0, 3, 2]))
    on, left, through = follow.guided(p.log().repeat(3, 1)).exp().tolist()
    assert on == pytest.approx([x / 1.2 for x in (0.2, 0.5, 0.1, 0.3, 0.1)])
    assert left == through == pytest.approx(p[0].tolist())


def test_a_factor_of_1_is_free_and_a_huge_one_is_hard() -> None:
    model, prefix = table(4), Prefix("aba", [0, 3, 4], SPELLING, EOS)
    free = search(model, PrefixGuide.start([None]), n_best=3)
    assert [h.tokens for h in search(model, PrefixGuide.start([prefix], 1.0), n_best=3)] == [
        h.tokens for h in free
    ]
    hard = search(model, PrefixGuide.start([prefix]))
    assert search(model, PrefixGuide.start([prefix], 1e30))[0].tokens == hard[0].tokens
    assert hard[0].tokens != free[0].tokens


def test_a_hard_prefix_keeps_the_models_probabilities() -> None:
    log_p = torch.tensor([[0.2, 0.5, 0.1, 0.1, 0.1]]).log()
    guided = PrefixGuide.start([Prefix("a", [0], SPELLING, EOS)]).guided(log_p)
    assert guided[0, [0, 2]].tolist() == log_p[0, [0, 2]].tolist()
    assert guided[0, [1, 3, 4]].tolist() == [NEVER] * 3


def translate(lines: list[str], prefixes: list[str], **options: Any) -> list[Translation]:
    it = Translator(tiny_bundle(max_length=40))
    return it.translate_detailed(lines, prefixes=prefixes, **{"max_extra": 8, **options})


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize("beam", [1, 4])
def test_outputs_begin_with_their_prefix_whatever_it_is_and_whatever_the_neighbours(beam: int) -> None:
    lines = sentences(7, seed=1, words=(1, 4))
    prefixes = [
        "de",
        "",
        "Zebra \U0001f680 d\u00e9j\u00e0",
        lines[3][: len(lines[3]) // 2],
        "  ab  de ",
        "(\u2581x",
        "a" * 40,
    ]
    whole = translate(lines, prefixes, beam=beam)
    for line, prefix, translation in zip(lines, prefixes, whole, strict=True):
        assert translation.text.startswith(prefix.strip()), prefix
        (alone,) = translate([line], [prefix], beam=beam)
        assert alone.text == translation.text
    free = translate([lines[1]], [""], beam=beam)[0]
    assert free.text == whole[1].text
    assert Translator(tiny_bundle(max_length=40)).translate([lines[1]], beam=beam, max_extra=8) == [free.text]


@pytest.mark.usefixtures("shapes_unchecked")
def test_a_word_may_go_on_where_the_prefix_ends_unless_a_space_says_that_it_is_complete() -> None:
    spelling, subwords = Asker(tokenizer()).spelling, tokenizer()
    word = max((text for text in spelling.texts if text.startswith(" ")), key=len)[1:]
    assert len(word) > 2
    part = Prefix.of(word[:-1], subwords, spelling, EOS_ID)
    assert part is not None
    reached, at = {}, 0
    for index in subwords.encode(word[:-1]):
        reached |= {spelling.texts[token]: at for token in part.next(at)}
        at = part.next(at)[index]
    assert " " + word in reached
    complete = Prefix.of(word[:-1] + "\t", subwords, spelling, EOS_ID)
    assert complete is not None
    assert " " + word not in {spelling.texts[token] for token in complete.next(0)}
    assert EOS_ID in complete.next(len(word))


@pytest.mark.usefixtures("shapes_unchecked")
def test_a_prefix_longer_than_the_source_is_no_reason_to_cut() -> None:
    long = " ".join(sentences(3, seed=2, words=(6, 6)))
    (only,) = translate(["ab"], [long], max_extra=1, beam=2)
    assert only.text.startswith(long)
    (none,) = translate([""], ["de"])
    assert none.text == ""


@pytest.mark.usefixtures("shapes_unchecked")
def test_a_line_that_is_split_begins_with_its_prefix() -> None:
    line = "! ".join(s[:-1] for s in sentences(3, seed=3, words=(4, 5))) + "!"
    (split,) = translate([line], ["gil mn"], beam=2)
    assert split.text.startswith("gil mn")
    assert "parts" in split.warnings[0]


@pytest.mark.usefixtures("shapes_unchecked")
def test_a_factor_in_a_translator() -> None:
    lines = sentences(8, seed=5, words=(3, 3))
    prefixes = ["dehu"] * 8
    free, hard = translate(lines, [""] * 8), translate(lines, prefixes)
    assert [t.text for t in translate(lines, prefixes, prefix_factor=1.0)] == [t.text for t in free]
    assert [t.text for t in translate(lines, prefixes, prefix_factor=math.inf)] == [t.text for t in hard]
    strong = translate(lines, prefixes, prefix_factor=1e300)
    ended = [(a.text, b.text) for a, b in zip(strong, hard, strict=True) if not b.truncated]
    assert len(ended) > 2
    assert all(a.startswith("dehu") for a, _ in ended)
    assert not any(t.text.startswith("dehu") for t in free)


def test_counts_and_kinds_are_checked() -> None:
    for prefixes, message in (
        (["a"], "1 prefix for 2 lines; give one per line"),
        ("ab", "one string for 2 lines"),
        (["a", "b\nc"], r"the prefix of line 2 is 'b\\nc'; it must be a string of one line"),
    ):
        with pytest.raises(UsageError, match=message):
            Translator(tiny_bundle()).translate(["a", "b"], prefixes=prefixes)
    for more in ({}, {"protect": "all"}):
        with pytest.raises(UsageError, match=r"prefix_factor is 2, but no output is told how to begin"):
            Translator(tiny_bundle()).translate(["a"], prefix_factor=2.0, **more)
