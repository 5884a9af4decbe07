import math
import sys
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.errors import DataError, UsageError
from transduce.evaluation.paper_bleu import multi_bleu, paper_bleu, split_compounds
from transduce.evaluation.scores import score


@pytest.mark.parametrize(
    ("text", "split"),
    [
        ("rich-text format", "rich ##AT##-##AT## text format"),
        ("a-b-c", "a ##AT##-##AT## b-c"),
        ("ab-cd-ef", "ab ##AT##-##AT## cd ##AT##-##AT## ef"),
        ("a - b", "a - b"),
        ("-a b-", "-a b-"),
        ("a--b", "a ##AT##-##AT## -b"),
        ("10-20-jährige", "10 ##AT##-##AT## 20 ##AT##-##AT## jährige"),
    ],
)
def test_compounds_are_split_in_one_pass_without_overlap(text, split):
    assert split_compounds(text) == split


def plain_multi_bleu(hypotheses: list[str], references: list[list[str]]) -> float:
    """BLEU by its definition: clipped n-gram precisions, closest reference length, no smoothing."""
    correct, total, length, closest = [0] * 4, [0] * 4, 0, 0
    for hypothesis, *alternatives in zip(hypotheses, *references, strict=True):
        words, others = hypothesis.split(), [other.split() for other in alternatives]
        length += len(words)
        closest += min((abs(len(other) - len(words)), len(other)) for other in others)[1]
        for n in range(1, 5):
            mine = Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
            limits: Counter[tuple[str, ...]] = Counter()
            for other in others:
                limits |= Counter(tuple(other[i : i + n]) for i in range(len(other) - n + 1))
            correct[n - 1] += (mine & limits).total()
            total[n - 1] += mine.total()
    if not all(correct):
        return 0.0
    penalty = min(1.0, math.exp(1 - closest / length))
    return 100 * penalty * math.prod(c / t for c, t in zip(correct, total, strict=True)) ** 0.25


sentences = st.lists(st.sampled_from(["a", "b", "c"]), max_size=9).map(" ".join)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(sentences, sentences, sentences), min_size=1, max_size=4))
def test_multi_bleu_equals_its_definition(rows):
    hypotheses, first, second = (list(column) for column in zip(*rows, strict=True))
    assert multi_bleu(hypotheses, [first])[0] == pytest.approx(plain_multi_bleu(hypotheses, [first]))
    both = plain_multi_bleu(hypotheses, [first, second])
    assert multi_bleu(hypotheses, [first, second])[0] == pytest.approx(both)


def test_without_a_common_4_gram_the_score_is_0():
    assert multi_bleu(["a b c x e f"], [["a b c d e f"]])[0] == 0
    assert score(["a b c x e f"], ["a b c d e f"], ter=False).bleu > 0


def test_three_lines_by_hand():
    pytest.importorskip("sacremoses")
    # After tokenisation and splitting, hypotheses against references:
    #   Das ist eine E ##AT##-##AT## Mail .    the same                       7 words
    #   Er sagte : &quot; Ja . &quot;          the same, from straight quotes 7
    #   Ein Hund bellt laut .                  Der Hund bellt laut .          5, one word differs
    hypotheses = ["Das ist eine E-Mail.", "Er sagte: “Ja.”", "Ein Hund bellt laut."]
    references = ["Das ist eine E-Mail.", 'Er sagte: "Ja."', "Der Hund bellt laut."]
    result = paper_bleu(hypotheses, references)
    expected = 100 * (18 / 19 * 15 / 16 * 12 / 13 * 9 / 10) ** 0.25
    assert result.bleu == pytest.approx(expected)
    assert result.bleu == pytest.approx(92.6814, abs=1e-4)
    assert result.brevity_penalty == 1


def test_unicode_punctuation_is_replaced_in_the_hypotheses_only():
    pytest.importorskip("sacremoses")
    straight, curly = ['Er sagte: "Ja, gern."'], ["Er sagte: “Ja, gern.”"]
    assert paper_bleu(curly, straight).bleu == pytest.approx(100)
    assert paper_bleu(straight, curly).bleu < 100


def test_compounds_are_split_for_german_only():
    pytest.importorskip("sacremoses")
    line = ["un porte-avions russe"]
    assert "compounds:split" in paper_bleu(line, line).signature
    assert "compounds:whole" in paper_bleu(line, line, language="fr").signature
    # Three words are too few for a 4-gram; with the compound split there are five.
    assert paper_bleu(line, line, language="fr").bleu == 0
    assert paper_bleu(line, line).bleu == pytest.approx(100)


def test_the_signature_forbids_the_comparison():
    pytest.importorskip("sacremoses")
    assert "not comparable with sacreBLEU" in paper_bleu(["a"], ["a"]).signature


def test_different_numbers_of_lines_are_refused():
    with pytest.raises(DataError, match="x has 1 line and y has 2"):
        paper_bleu(["a"], ["a", "b"], names=["x", "y"])


@pytest.mark.parametrize("language", ["german", "DE", ""])
def test_a_language_that_is_no_code_is_refused(language):
    with pytest.raises(UsageError, match=r"unknown language .*two letters"):
        paper_bleu(["a"], ["a"], language=language)


def test_without_the_extra_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    with pytest.raises(UsageError, match=r"pip install 'transduce\[paper-bleu\]'"):
        paper_bleu(["a"], ["a"])


def test_on_a_real_system_it_lies_above_sacrebleu(newstest):
    pytest.importorskip("sacremoses")
    system = "newstest2014.en-de.bergamot-base-memory.de"
    output, reference, published = newstest(system, "newstest2014.en-de.filtered2737.de")
    assert float(published) < paper_bleu(output, reference).bleu < float(published) + 2
