"""Pairs that vary from update to update: which, how, and that nothing else decides it."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiny_translator import sentences
from transduce.data.changed_text import LETTERS_PER_TYPO, title_case, with_typos
from transduce.data.formats.pair import Pair
from transduce.data.report import Report
from transduce.data.shard_writer import write_shards
from transduce.data.shards import TokenShards
from transduce.data.tokenizer import EOS_ID, Tokenizer
from transduce.data.variation import Shares, Variation

SOURCES = [f"{line[:-1].capitalize()} Und <b> 12 ü." for line in sentences(60, seed=1)]
TARGETS = [line.capitalize() for line in sentences(60, seed=2)]
IDS = np.arange(60)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    lines = [*sentences(300), *SOURCES, *(line.upper() for line in SOURCES)]
    return Tokenizer.train(lines, 400, tags=["<2de>", "<talk>"])


@pytest.fixture(scope="module")
def shards(tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> TokenShards:
    pairs = [
        Pair(s, t, "f", n, languages="en:de", domain="talk")
        for n, (s, t) in enumerate(zip(SOURCES, TARGETS, strict=True), 1)
    ]
    return write_shards(pairs, tokenizer, tmp_path_factory.mktemp("shards"), Report(limit=200))


def _vary(shards: TokenShards, tokenizer: Tokenizer, ids=IDS, update=0, longest=200, seed=1, **shares: float):  # type: ignore[no-untyped-def]
    variation = Variation(shards, tokenizer, Shares(**shares), longest=longest, seed=seed)
    sources, targets = variation.pairs(np.asarray(ids), update)
    tags = tokenizer.tag_ids(["<2de>", "<talk>"])
    for row in sources:
        assert (row[:2].tolist(), int(row[-1])) == (tags, EOS_ID)
    return [row.tolist() for row in sources], [row.tolist() for row in targets]


@pytest.mark.parametrize(
    ("name", "source", "target"),
    [
        ("lower_case", str.lower, str),
        ("upper_case", str.upper, str.upper),
        ("title_case", title_case, title_case),
    ],
)
def test_case(shards: TokenShards, tokenizer: Tokenizer, name: str, source, target) -> None:  # type: ignore[no-untyped-def]
    sources, targets = _vary(shards, tokenizer, **{name: 1.0})
    assert [tokenizer.decode(row) for row in sources] == [source(text) for text in SOURCES]
    assert [tokenizer.decode(row) for row in targets] == [target(text) for text in TARGETS]


def test_nothing_varies_at_0(shards: TokenShards, tokenizer: Tokenizer) -> None:
    sources, targets = _vary(shards, tokenizer)
    assert sources == [shards.source(i).tolist() for i in IDS]
    assert targets == [shards.target(i).tolist() for i in IDS]


def test_typing_errors_are_in_the_source_alone(shards: TokenShards, tokenizer: Tokenizer) -> None:
    sources, targets = _vary(shards, tokenizer, typos=1.0)
    texts = [tokenizer.decode(row) for row in sources]
    assert sum(one != other for one, other in zip(texts, SOURCES, strict=True)) >= 50
    assert targets == [shards.target(i).tolist() for i in IDS]


def test_everything_at_once_keeps_the_text_apart_from_what_was_asked(
    shards: TokenShards, tokenizer: Tokenizer
) -> None:
    sources, targets = _vary(shards, tokenizer, lower_case=1.0, sample_source=0.3, sample_target=0.3)
    assert [tokenizer.decode(row) for row in sources] == [text.lower() for text in SOURCES]
    assert [tokenizer.decode(row) for row in targets] == TARGETS
    assert targets != [shards.target(i).tolist() for i in IDS]
    only_source, same_targets = _vary(shards, tokenizer, sample_source=0.3)
    assert same_targets == [shards.target(i).tolist() for i in IDS]
    assert only_source != [shards.source(i).tolist() for i in IDS]


ALL = {
    "lower_case": 0.2, "upper_case": 0.2, "title_case": 0.2, "typos": 0.3,
    "sample_source": 0.2, "sample_target": 0.2,
}  # fmt: skip


def test_seed_update_and_pair_decide_and_nothing_else(shards: TokenShards, tokenizer: Tokenizer) -> None:
    sources, targets = _vary(shards, tokenizer, **ALL)
    some = [41, 3, 59]
    again = _vary(shards, tokenizer, ids=some, **ALL)
    assert again == ([sources[i] for i in some], [targets[i] for i in some])
    assert _vary(shards, tokenizer, update=1, **ALL)[0] != sources
    assert _vary(shards, tokenizer, seed=2, **ALL)[0] != sources


def test_shares_are_shares_of_the_pairs(shards: TokenShards, tokenizer: Tokenizer) -> None:
    lower = upper = 0
    for update in range(30):
        sources, _ = _vary(shards, tokenizer, update=update, lower_case=0.2, upper_case=0.3)
        texts = [tokenizer.decode(row) for row in sources]
        lower += sum(text == full.lower() for text, full in zip(texts, SOURCES, strict=True))
        upper += sum(text == full.upper() for text, full in zip(texts, SOURCES, strict=True))
    assert abs(lower / 1800 - 0.2) < 0.04
    assert abs(upper / 1800 - 0.3) < 0.04


def test_what_would_be_too_long_stays_on_both_sides(shards: TokenShards, tokenizer: Tokenizer) -> None:
    free = _vary(shards, tokenizer, upper_case=1.0)
    usual = [shards.source(i).tolist() for i in IDS], [shards.target(i).tolist() for i in IDS]
    limit = max(map(len, [*usual[0], *usual[1]]))
    bound = _vary(shards, tokenizer, upper_case=1.0, longest=limit)
    stayed = 0
    for at in IDS:
        fits = max(len(free[0][at]), len(free[1][at])) <= limit
        stayed += not fits
        assert (bound[0][at], bound[1][at]) == tuple(side[at] for side in (free if fits else usual))
    assert stayed


@given(st.text(st.sampled_from("abcdef .12ü-<>"), max_size=60), st.integers(0, 99))
def test_typing_errors_are_few_and_between_letters(text: str, seed: int) -> None:
    changed = with_typos(text, random.Random(seed))
    words, new = text.split(), changed.split()
    assert len(words) == len(new)
    wrong = sum(one != other for one, other in zip(words, new, strict=True))
    assert wrong <= max(1, round(len(text) / LETTERS_PER_TYPO))
    assert [c for c in text if not c.isalpha()] == [c for c in changed if not c.isalpha()]
    assert abs(len(text) - len(changed)) <= wrong
    assert with_typos(text, random.Random(seed)) == changed


def test_headlines() -> None:
    assert title_case("the dog's  house isn't über-old, 3rd") == "The Dog's  House Isn't Über-old, 3rd"
