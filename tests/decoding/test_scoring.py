from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from tiny_translator import sentences, tiny_bundle, tokenizer
from transduce.data.tokenizer import EOS_ID, PAD_ID
from transduce.decoding.scoring import PairScore, Total, token_log_probabilities
from transduce.decoding.translator import Translator
from transduce.errors import DataError, TransduceError, UsageError


def translator(**settings: Any) -> Translator:
    return Translator(tiny_bundle(**settings))


def close(one: list[PairScore], other: list[PairScore]) -> bool:
    return [score.tokens for score in one] == [score.tokens for score in other] and all(
        a.token_log_probabilities == pytest.approx(b.token_log_probabilities, abs=1e-4)
        for a, b in zip(one, other, strict=True)
    )


def test_log_p_of_three_tokens_by_hand() -> None:
    # Probabilities 1/4, 1/2, 1/4; the last id is forbidden and takes no part, however high its logit.
    logits = torch.log(torch.tensor([[[1.0, 2.0, 1.0, 9.0], [1.0, 2.0, 1.0, 9.0]]]))
    (found,) = token_log_probabilities(logits, torch.tensor([[1, 0]]), [2], [3])
    assert found == pytest.approx([math.log(1 / 2), math.log(1 / 4)])


def test_what_is_behind_the_end_does_not_count_and_what_is_no_number_is_refused() -> None:
    logits = torch.zeros(1, 2, 3)
    logits[0, 1] = torch.nan
    assert token_log_probabilities(logits, torch.tensor([[1, 0]]), [1], [])[0] == pytest.approx(
        [-math.log(3)]
    )
    with pytest.raises(TransduceError, match="output token 2 are not finite"):
        token_log_probabilities(logits, torch.tensor([[1, 0]]), [2], [])


@pytest.mark.usefixtures("shapes_unchecked")
def test_outputs_of_the_search_have_the_log_p_that_it_gave_them() -> None:
    it, lines = translator(), sentences(8, seed=3, words=(1, 5))
    found = it.translate_detailed(lines, n_best=4, max_extra=12)
    pairs = [(t.source, a.tokens) for t in found for a in t.alternatives]
    scores = it.score(pairs, batch_tokens=200)
    alternatives = [a for t in found for a in t.alternatives]
    assert len(scores) == len(alternatives) > 20
    for score, alternative in zip(scores, alternatives, strict=True):
        assert score.log_probability == pytest.approx(alternative.log_probability, abs=1e-4)
        assert (score.length, score.tokens) == (alternative.length, alternative.tokens)
        assert score.target == alternative.text


@pytest.mark.usefixtures("shapes_unchecked")
def test_an_output_in_parts_has_the_log_p_of_its_parts() -> None:
    it = translator(max_length=40)
    line = "! ".join(s[:-1] for s in sentences(3, seed=3, words=(4, 5))) + "!"
    (whole,) = it.translate_detailed([line], n_best=2, max_extra=5)
    pairs = [(line, a.tokens) for a in whole.alternatives]
    for score, alternative in zip(it.score(pairs), whole.alternatives, strict=True):
        assert score.tokens.count(EOS_ID) > 1
        assert score.log_probability == pytest.approx(alternative.log_probability, abs=1e-4)
        assert score.warnings[0].startswith("line ")


@pytest.mark.usefixtures("shapes_unchecked")
def test_scores_depend_on_neither_batch_nor_order_nor_neighbours() -> None:
    it = translator()
    pairs = list(zip(sentences(40, seed=1), sentences(40, seed=2), strict=True))
    whole = it.score(pairs, batch_tokens=10**6)
    assert close(whole, it.score(pairs, batch_tokens=1))
    assert close(whole, it.score(pairs, batch_tokens=300))
    assert close(whole, it.score(pairs[::-1])[::-1])


def test_the_end_is_counted_and_perplexity_is_the_inverse_geometric_mean() -> None:
    (score,) = translator().score([("ab de", " gh il ")])
    assert score.target == "gh il"
    assert score.tokens == (*tokenizer().encode("gh il"), EOS_ID)
    assert score.length == len(score.token_log_probabilities)
    assert score.log_probability == pytest.approx(sum(score.token_log_probabilities))
    product = math.prod(math.exp(gain) for gain in score.token_log_probabilities)
    assert score.perplexity == pytest.approx(product ** (-1 / score.length))


def test_empty_sides() -> None:
    both, no_source, no_target, real = translator().score(
        [("", " "), ("\u2003", "ab"), ("ab", ""), ("ab", "de")], first_line=5
    )
    assert (both.log_probability, both.tokens, both.perplexity, both.warnings) == (0.0, (), None, ())
    assert (no_source.log_probability, no_source.tokens) == (-math.inf, ())
    assert no_source.perplexity == math.inf
    assert no_source.warnings == ("line 6: an empty source has no translation: this pair has probability 0",)
    assert no_target.tokens == (EOS_ID,)
    assert -math.inf < no_target.log_probability < 0
    total = Total().plus([both, no_source]).plus([no_target, real])
    assert (total.lines, total.impossible, total.tokens) == (4, 1, 1 + real.length)
    assert total.perplexity == pytest.approx(
        math.exp(-(no_target.log_probability + real.log_probability) / total.tokens)
    )
    assert Total().plus([both]).perplexity is None
    assert translator().score([]) == []


@pytest.mark.usefixtures("shapes_unchecked")
def test_long_sides_are_split_where_both_have_as_many_sentences() -> None:
    it = translator(max_length=16)
    parts = [("ab!", "de!"), ("gh!", "il mn!"), ("o!", "ab!"), ("de ab gh!", "o n!"), ("ab!", "gh de!")] * 2
    source, target = (" ".join(side) for side in zip(*parts, strict=True))
    (score,) = it.score([(source, target)], first_line=3)
    # As many sentences at a time as fit.
    groups: list[tuple[str, str]] = [("", "")]
    for one, other in parts:
        longer = (f"{groups[-1][0]} {one}".strip(), f"{groups[-1][1]} {other}".strip())
        if len(tokenizer().encode(longer[0])) <= 15:
            groups[-1] = longer
        else:
            groups.append((one, other))
    assert 1 < len(groups) < 6
    alone = it.score(groups, long_lines="error")
    assert score.tokens == tuple(token for part in alone for token in part.tokens)
    assert score.log_probability == pytest.approx(sum(part.log_probability for part in alone), abs=1e-4)
    told = f"the model takes 15 and 79; scored in {len(groups)} parts (long lines: split)"
    assert score.warnings[0].startswith("line 3: its sides have ")
    assert score.warnings[0].endswith(told)


@pytest.mark.usefixtures("shapes_unchecked")
def test_long_sides_are_cut_or_refused_otherwise() -> None:
    it, line = translator(max_length=16, positions="learned"), ("ab " * 45).strip()
    with pytest.raises(
        DataError, match=r"line 2: its sides have \d+ and 2 tokens, the model takes 15 and 79; .* use split"
    ):
        it.score([("ab", "ab"), (line, "ab")], long_lines="error")
    for policy, told in (("truncate", r"(long lines: truncate)"), ("split", "have 1 and 1 sentence")):
        (score,) = it.score([(line, "ab")], long_lines=policy)
        assert told in score.warnings[0]
        assert score.tokens[-1] == EOS_ID
    # What is cut has no end; as much as the model has positions for is kept.
    (cut,) = it.score([("ab", "ab " * 100)])
    assert EOS_ID not in cut.tokens
    assert cut.length == 79
    (whole,) = it.score([("ab", "ab de")], long_lines="error")
    assert whole.warnings == ()


def test_wrong_calls_are_refused_with_a_remedy() -> None:
    it: Any = translator()
    for pairs, message in (
        ([("ab", (PAD_ID, EOS_ID))], "line 1: the target's token 0 is no subword of this model"),
        ([("ab", (5, EOS_ID, 5, EOS_ID))], "line 1: the target has 2 outputs for 1 part"),
    ):
        with pytest.raises(UsageError, match=message):
            it.score(pairs)
    with pytest.raises(UsageError, match="long_lines is 'drop'"):
        it.score([], long_lines="drop")
    with pytest.raises(UsageError, match="batch_tokens is -1"):
        it.score([], batch_tokens=-1)


def test_the_model_is_in_evaluation_mode_meanwhile_and_progress_ends_at_the_last() -> None:
    bundle = tiny_bundle(dropout=0.5)
    bundle.model.train()
    it, calls = Translator(bundle), []
    pairs = [("ab de", "gh il"), ("", ""), *zip(sentences(9, seed=1), sentences(9, seed=2), strict=True)]
    first = it.score(pairs, progress=lambda done, total: calls.append((done, total)), batch_tokens=60)
    assert close(first, it.score(pairs))
    assert bundle.model.training
    assert calls[-1] == (11, 11)
    assert len(calls) > 1


def test_half_precision_gives_about_the_same() -> None:
    pairs = [("ab de", "gh il"), ("gh", "ab")]
    half = Translator(tiny_bundle(), precision="bf16").score(pairs)
    for one, other in zip(half, translator().score(pairs), strict=True):
        assert one.log_probability == pytest.approx(other.log_probability, rel=0.2, abs=0.5)
