from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from table_models import EOS, START, Prefixes, markov, start, step_of
from torch import Tensor

from transduce.decoding import sampling
from transduce.decoding.config import SamplingOptions
from transduce.decoding.hypothesis import Hypothesis, length_penalty
from transduce.decoding.noise import gumbel, key_of, row_keys
from transduce.decoding.sampling import OutputIds, draw, sample, shaped
from transduce.errors import TransduceError

# From the start, 0 and 3 are as probable as 3 : 1; each goes on in its own way.
TABLE = torch.log(
    torch.tensor(
        [
            [0.2, 0.5, 1e-9, 0.3],
            [0.25, 0.25, 0.25, 0.25],
            [0.6, 0.2, 1e-9, 0.2],
            [0.1, 0.7, 1e-9, 0.2],
        ],
        dtype=torch.float64,
    )
)
IDS = OutputIds(START, EOS, (2,))
# Chi-square is higher once in a million times, by degrees of freedom. Seeds are fixed, so nothing is left
# to chance.
UNLIKELY = {8: 42.7, 15: 56.5}


def drawn(
    samples: int, *, sentences: int = 1, limit: int = 3, seed: int = 0, **options: Any
) -> list[list[Hypothesis]]:
    keys = torch.tensor([key_of(seed, (i,)) for i in range(sentences)])
    return sample(
        markov(TABLE),
        start(sentences),
        keys=keys,
        max_lengths=torch.full((sentences,), limit, dtype=torch.long),
        options=SamplingOptions(samples=samples, **options),
        ids=IDS,
    )


def every_output(limit: int, log_p: Tensor) -> dict[tuple[int, ...], float]:
    """The probability of each output of at most ``limit`` tokens, by walking all of them."""
    found, open_outputs = {}, {(): 1.0}
    for _ in range(limit):
        longer = {}
        for body, p in open_outputs.items():
            for token in (0, 1, 3):
                q = p * math.exp(log_p[body[-1] if body else START, token].item())
                (found if token == EOS else longer)[(*body, token)] = q
        open_outputs = longer
    return {**found, **open_outputs}


def chi_square(counts: Counter[Any], expected: dict[Any, float]) -> float:
    total = counts.total()
    assert not set(counts) - set(expected)
    return sum((counts[k] - total * p) ** 2 / (total * p) for k, p in expected.items())


def renormalised(log_p: Tensor) -> Tensor:
    without = log_p.clone()
    without[:, 2] = -torch.inf
    return without.log_softmax(1)


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_outputs_are_drawn_as_often_as_they_are_probable(temperature: float) -> None:
    (outputs,) = drawn(6_000, temperature=temperature)
    expected = every_output(3, renormalised(TABLE / temperature))
    assert sum(expected.values()) == pytest.approx(1)
    assert len(expected) == 15  # 1 + 2 + 4 that end and 8 that do not
    counts = Counter(output.tokens for output in outputs)
    assert chi_square(counts, expected) < UNLIKELY[15]
    wrong = every_output(3, renormalised(TABLE / (1.5 - temperature)))
    assert chi_square(counts, wrong) > 10 * UNLIKELY[15]


@pytest.mark.usefixtures("shapes_unchecked")
def test_lines_and_samples_are_drawn_independently() -> None:
    outputs = drawn(2, sentences=3_000, limit=1)
    pairs = Counter((one.tokens[0], two.tokens[0]) for one, two in outputs)
    p = {0: 0.6, 1: 0.2, 3: 0.2}
    assert chi_square(pairs, {(a, b): p[a] * p[b] for a in p for b in p}) < UNLIKELY[8]
    following = Counter((a[0].tokens[0], b[1].tokens[0]) for a, b in itertools.pairwise(outputs))
    assert chi_square(following, {(a, b): p[a] * p[b] for a in p for b in p}) < UNLIKELY[8]


def test_noise_is_that_of_gumbel_and_alike_in_half_the_precision() -> None:
    keys = row_keys(torch.tensor([key_of(1, (5, 6))]), 100).flatten()
    tokens = torch.arange(200)[None]
    noise = gumbel(keys, 3, tokens, torch.float64)
    uniform = torch.exp(-torch.exp(-noise))
    counts = torch.histc(uniform, 16, 0, 1)
    assert ((counts - 1250) ** 2 / 1250).sum() < UNLIKELY[15]
    assert torch.unique(noise).numel() == noise.numel()
    half = torch.exp(-torch.exp(-gumbel(keys, 3, tokens, torch.float32).double()))
    assert torch.allclose(half, uniform, rtol=0, atol=1e-6)
    # What a token gets does not depend on which others are asked for.
    some = torch.tensor([[7, 150, 3]])
    assert torch.equal(gumbel(keys, 3, some, torch.float64), noise[:, [7, 150, 3]])
    assert not torch.equal(gumbel(keys, 4, tokens, torch.float64), noise)


def test_top_k_top_p_and_temperature_by_hand() -> None:
    log_p = torch.log(torch.tensor([[0.1, 0.4, 0.2, 0.3]]))

    def kept(**options: Any) -> dict[int, float]:
        values, tokens = shaped(log_p.clone(), SamplingOptions(**options))
        p = values.softmax(1)
        return {t: round(q, 4) for t, q in zip(tokens[0].tolist(), p[0].tolist(), strict=True) if q > 0}

    assert kept() == {0: 0.1, 1: 0.4, 2: 0.2, 3: 0.3}
    assert kept(top_k=2) == {1: round(4 / 7, 4), 3: round(3 / 7, 4)}
    assert kept(top_k=9) == kept()
    assert kept(top_p=0.39) == {1: 1.0}
    assert kept(top_p=0.4) == {1: 1.0}
    assert kept(top_p=0.41) == {1: round(4 / 7, 4), 3: round(3 / 7, 4)}
    assert kept(top_p=0.9) == {1: round(4 / 9, 4), 3: round(3 / 9, 4), 2: round(2 / 9, 4)}
    assert kept(top_p=1e-9) == {1: 1.0}
    # Squared and normalised: 1, 16, 4, 9 of 30.
    assert kept(temperature=0.5) == {0: round(1 / 30, 4), 1: round(16 / 30, 4), 2: round(4 / 30, 4), 3: 0.3}
    # top_p is counted after the temperature, and within top_k: 16 of 25 reach 0.6, 4 of 7 do not.
    assert kept(temperature=0.5, top_k=2, top_p=0.6) == {1: 1.0}
    assert len(kept(top_k=2, top_p=0.6)) == 2


@pytest.mark.usefixtures("shapes_unchecked")
def test_what_is_cut_is_never_drawn_and_the_rest_in_proportion() -> None:
    (outputs,) = drawn(4_000, limit=1, top_p=0.8)
    counts = Counter(output.tokens for output in outputs)
    # 0.6 for token 0; of the two with 0.2 one is enough, and of equals it is always the same.
    assert counts[0,] / 4_000 == pytest.approx(0.75, abs=0.03)
    assert len(counts) == 2


@pytest.mark.usefixtures("shapes_unchecked")
def test_log_p_is_the_models_own_and_the_score_follows_the_formula() -> None:
    (outputs,) = drawn(50, temperature=2.0, top_k=2, alpha=0.8)
    log_p = renormalised(TABLE)
    for output in outputs:
        gains = [log_p[a, b].item() for a, b in zip((START, *output.tokens), output.tokens, strict=False)]
        assert output.token_log_probabilities == pytest.approx(gains)
        assert output.log_probability == pytest.approx(sum(gains))
        assert output.score == pytest.approx(sum(gains) / length_penalty(len(gains), 0.8))
        assert output.truncated == (EOS not in output.tokens)


@pytest.mark.usefixtures("shapes_unchecked")
def test_lengths_keep_their_limits() -> None:
    limits = torch.tensor([1, 5, 2, 9])
    options = SamplingOptions(samples=30, min_length=2)
    outputs = sample(
        markov(TABLE), start(4), keys=torch.arange(4), max_lengths=limits, options=options, ids=IDS
    )
    for limit, row in zip(limits.tolist(), outputs, strict=True):
        assert len(row) == 30
        for output in row:
            assert len(output.tokens) <= limit
            assert output.truncated == (EOS not in output.tokens)
            assert output.truncated == (len(output.tokens) == limit and output.tokens[-1] != EOS)
            assert EOS not in output.tokens[:2]
            assert 2 not in output.tokens
    assert any(not output.truncated for output in outputs[3])


@pytest.mark.usefixtures("shapes_unchecked")
def test_a_sentence_alone_is_drawn_as_among_others() -> None:
    def logits(prefix: tuple[int, ...], sentence: int) -> Tensor:
        return torch.log(torch.tensor([1.0 + sentence, 0.6, 0.0, 2.0 + len(prefix)]))

    limits, keys = torch.tensor([6, 3, 8, 4, 7]), torch.tensor([9, 8, 7, 6, 5])

    def of(some: list[int], samples: int) -> list[list[Hypothesis]]:
        state = Prefixes(torch.zeros((len(some), 0), dtype=torch.long), torch.tensor(some))
        return sample(
            step_of(logits),
            state,
            keys=keys[some],
            max_lengths=limits[some],
            options=SamplingOptions(samples=samples),
            ids=IDS,
        )

    whole = of([0, 1, 2, 3, 4], 3)
    assert len({tuple(h.tokens for h in row) for row in whole}) == 5
    for at in range(5):
        assert of([at], 3) == [whole[at]]
        assert of([at], 1)[0] == whole[at][:1]
    assert of([4, 2], 5)[1][:3] == whole[2]


@pytest.mark.usefixtures("shapes_unchecked")
def test_many_rows_are_drawn_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    log_p, keys = TABLE[[START]].float().repeat(40, 1), torch.arange(40)
    whole = draw(log_p, keys, 1, SamplingOptions())
    monkeypatch.setattr(sampling, "_NOISE", 12)
    assert torch.equal(draw(log_p, keys, 1, SamplingOptions()), whole)


@dataclass(frozen=True)
class Never:
    """A guide that forbids the token of the row's last choice."""

    last: Tensor

    def guided(self, log_p: Tensor) -> Tensor:
        changed = log_p.clone()
        changed[torch.arange(len(log_p)), self.last] = -torch.inf
        return changed

    def extended(self, rows: Tensor, tokens: Tensor) -> Never:
        assert len(rows) == len(tokens)
        assert int(rows.max()) < len(self.last)
        return Never(tokens)


@pytest.mark.usefixtures("shapes_unchecked")
def test_a_guide_forbids_and_follows_the_rows() -> None:
    limits = torch.tensor([4, 7, 5])
    outputs = sample(
        markov(TABLE),
        start(3),
        keys=torch.arange(3),
        max_lengths=limits,
        options=SamplingOptions(samples=40),
        ids=IDS,
        guide=Never(torch.tensor([0, 3, EOS])),
    )
    for row, first in zip(outputs, (0, 3, EOS), strict=True):
        assert len({output.tokens for output in row}) > 2
        for output in row:
            for before, after in zip((first, *output.tokens), output.tokens, strict=False):
                assert before != after


def test_scores_that_are_no_numbers_are_refused() -> None:
    table = TABLE.clone()
    table[START, 0] = torch.nan
    with pytest.raises(TransduceError, match="scores for output token 1 are not finite"):
        sample(
            markov(table),
            start(1),
            keys=torch.tensor([1]),
            max_lengths=torch.tensor([3]),
            options=SamplingOptions(),
            ids=IDS,
        )
    none = torch.zeros(0, dtype=torch.long)
    assert (
        sample(markov(TABLE), start(0), keys=none, max_lengths=none, options=SamplingOptions(), ids=IDS) == []
    )
