from __future__ import annotations

import itertools
from collections import defaultdict

import pytest
import torch
from table_models import EOS, START, markov, start
from torch import Tensor

from tiny_translator import sentences, tiny_bundle
from transduce.decoding.beam_search import beam_search
from transduce.decoding.config import SearchOptions
from transduce.decoding.next_words import ForcedGuide, WordGuide, words_found
from transduce.decoding.prefix import Prefix
from transduce.decoding.spelling import Spelling, joins
from transduce.decoding.translator import Translator
from transduce.errors import DataError, UsageError

# A vocabulary of five: what each token spells. Token 2 is the start as well, in the table's rows only.
TEXTS = (" a", "", " b", "a", ".")
SPELLING = Spelling(TEXTS)


def table(seed: int) -> Tensor:
    return torch.randn(5, 5, generator=torch.Generator().manual_seed(seed)) * 1.5


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("text", "ids"), [("", []), ("b ", [2]), ("b a", [2, 0]), ("b", [2])])
def test_probabilities_of_words_are_those_of_all_outputs_that_have_them(
    seed: int, text: str, ids: list[int]
) -> None:
    log_p = table(seed).double().log_softmax(1)
    prefix = Prefix(text, ids, SPELLING, EOS) if ids else None
    longest = 4
    (found,) = beam_search(
        markov(table(seed)),
        start(1),
        max_lengths=torch.tensor([len(ids) + longest + 1]),
        options=SearchOptions(beam=500, n_best=500, alpha=0.0),
        start_id=START,
        eos_id=EOS,
        guide=WordGuide.start(prefix, SPELLING, EOS),
    )
    words = {word: p for _, word, p in words_found(found, prefix, SPELLING, 500)}
    # By hand: after the words before, each way to spell a word and then anything that does not go on with it.
    complete = text.endswith(" ") or not text
    before = ids if complete else ids[:-1]
    expected: dict[str, list[float]] = defaultdict(list)
    for length in range(1, longest + 1):
        for body in itertools.product((0, 2, 3, 4), repeat=length):
            spelled = SPELLING.of_ids(body)
            if not complete and body[0] != ids[-1]:
                continue
            if text and not spelled.startswith(" "):
                continue
            word = spelled.strip()
            if " " in word or not all(map(joins, word[:-1])) or (len(word) > 1 and not joins(word[-1])):
                continue
            path = [START, *before, *body]
            gain = sum(log_p[a, b].item() for a, b in itertools.pairwise(path[len(before) :]))
            over = [t for t in range(5) if not TEXTS[t] or not joins(word[-1]) or not joins(TEXTS[t][0])]
            expected[word].append(gain + log_p[body[-1], over].logsumexp(0).item())
    if text and complete:
        expected[""] = [log_p[before[-1], EOS].item()]
    short = {word for word in expected if len(word) < longest}
    assert {word: words[word] for word in short} == pytest.approx(
        {word: max(expected[word]) for word in short}, abs=1e-4
    )
    assert list(words.values()) == sorted(words.values(), reverse=True)


def test_forced_tokens_come_first_and_then_the_word_ends() -> None:
    row = torch.zeros((1, 5))
    guide = ForcedGuide(((2, 3),), 0, SPELLING)
    allowed = []
    for token in (2, 3, 0):
        allowed.append((guide.guided(row)[0] == 0).nonzero().flatten().tolist())
        guide = guide.extended(torch.tensor([0]), torch.tensor([token]))
    assert allowed == [[2], [3], [0, 1, 2, 4]]
    assert (guide.guided(row) == 0).all()


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize("prefix", ["", "de ab ", "de ab", "gi", "\U0001f680 d\u00e9j "])
def test_each_alternative_goes_on_with_another_word(prefix: str) -> None:
    it, line = Translator(tiny_bundle(max_length=40)), sentences(1, seed=1, words=(3, 3))[0]
    found = it.alternatives(line, prefix, count=4, max_extra=10, beam=2)
    assert len(found) == 4
    assert len({one.word for one in found}) == 4
    assert [one.probability for one in found] == sorted((one.probability for one in found), reverse=True)
    assert 0 < sum(one.probability for one in found) <= 1.0001
    head = prefix.rpartition(" ")[0]
    for one in found:
        assert one.completion.text.startswith(f"{head} {one.word}".strip())
        assert one.word.startswith(prefix.rpartition(" ")[2])
    best = it.translate([line], prefixes=[prefix], max_extra=10, beam=2)[0]
    firsts = it.alternatives(line, prefix, count=12, max_extra=10, beam=2)
    assert best.startswith(prefix.strip())
    assert any(best.startswith(f"{head} {one.word}".strip()) for one in firsts)


def test_wrong_calls_are_refused() -> None:
    it = Translator(tiny_bundle(max_length=10))
    assert it.alternatives(" ") == []
    with pytest.raises(UsageError, match="count is 0; it must be at least 1"):
        it.alternatives("ab", count=0)
    with pytest.raises(DataError, match="line 1 has"):
        it.alternatives("ab de " * 20)
    with pytest.raises(DataError, match="line 7 has"):
        it.alternatives("ab de " * 20, first_line=7)
    with pytest.raises(
        UsageError, match=r"samples is 2, which has no say in alternatives; leave it out \(they"
    ):
        it.alternatives("ab", samples=2)
    with pytest.raises(UsageError, match="the prefix of line 1 is"):
        it.alternatives("ab", "a\nb")
