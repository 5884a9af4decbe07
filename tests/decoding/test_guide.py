from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from table_models import EOS, START, enumerated, markov, start, step_of
from torch import Tensor

from transduce.decoding.beam_search import beam_search
from transduce.decoding.config import SearchOptions
from transduce.decoding.guide import NEVER, Guide, Guides, guided_log_p, together
from transduce.decoding.hypothesis import Hypothesis

Condition = Callable[[tuple[int, ...]], bool]


def search(
    step: Callable[..., Any], guide: Guide | None, *, limits: list[int], **options: Any
) -> list[list[Hypothesis]]:
    return beam_search(
        step,
        start(len(limits)),
        max_lengths=torch.tensor(limits, dtype=torch.long),
        options=SearchOptions(**options),
        start_id=START,
        eos_id=EOS,
        guide=guide,
    )


def table(seed: int, symbols: int = 4, scale: float = 1.5) -> Tensor:
    return torch.randn(symbols, symbols, generator=torch.Generator().manual_seed(seed)) * scale


@dataclass(frozen=True)
class Remembering:
    """Forbids what ``condition`` refuses of a row's tokens and the next one; slow and plain."""

    condition: Condition
    rows: tuple[tuple[int, ...], ...]

    def guided(self, log_p: Tensor) -> Tensor:
        assert len(log_p) == len(self.rows)
        allowed = [[self.condition((*row, token)) for token in range(log_p.shape[1])] for row in self.rows]
        return log_p.masked_fill(~torch.tensor(allowed), NEVER)

    def extended(self, rows: Tensor, tokens: Tensor) -> Remembering:
        pairs = zip(rows.tolist(), tokens.tolist(), strict=True)
        return Remembering(self.condition, tuple((*self.rows[row], token) for row, token in pairs))


def forgetful(condition: Condition, sentences: int = 1) -> Remembering:
    return Remembering(condition, ((),) * sentences)


def no_double(tokens: tuple[int, ...]) -> bool:
    return all(a != b for a, b in itertools.pairwise(tokens))


def short_of_threes(tokens: tuple[int, ...]) -> bool:
    return tokens.count(3) <= 1


@pytest.mark.parametrize("seed", range(4))
def test_a_wide_beam_finds_the_best_output_of_those_that_the_guide_allows(seed: int) -> None:
    model = table(seed)
    (found,) = search(markov(model), forgetful(no_double), limits=[6], beam=3**6, n_best=5)
    every = [(score, tokens) for score, tokens in enumerated(model, 6, 0.6) if no_double(tokens)]
    assert [h.tokens for h in found] == [tokens for _, tokens in every[:5]]
    # What is forbidden keeps its probability: scores are the model's own.
    assert [h.score for h in found] == pytest.approx([score for score, _ in every[:5]], abs=1e-5)


def test_guides_work_together_also_when_nested() -> None:
    model = table(7)
    one, other = forgetful(no_double), forgetful(short_of_threes)
    expected = [
        tokens for _, tokens in enumerated(model, 6, 0.6) if no_double(tokens) and short_of_threes(tokens)
    ]
    for guide in (Guides((one, other)), Guides((other, Guides((one,)))), together([one, other])):
        (found,) = search(markov(model), guide, limits=[6], beam=3**6, n_best=4)
        assert [h.tokens for h in found] == expected[:4]
    assert together([]) is None


@pytest.mark.parametrize("options", [{"beam": 1}, {"beam": 4, "n_best": 3}, {"beam": 3, "min_length": 3}])
def test_a_guide_that_allows_everything_changes_nothing(options: dict[str, Any]) -> None:
    limits = [3, 20, 1, 9, 14]
    model = table(11, symbols=7)
    free = search(markov(model), None, limits=limits, **options)
    guided = search(markov(model), forgetful(lambda _: True, len(limits)), limits=limits, **options)
    for one, other in zip(free, guided, strict=True):
        assert [h.tokens for h in one] == [h.tokens for h in other]
        assert [h.score for h in one] == pytest.approx([h.score for h in other], abs=1e-5)


def test_the_guide_follows_the_rows_when_sentences_end_at_different_times() -> None:
    def logits(prefix: tuple[int, ...], sentence: int) -> Tensor:
        seed = hash((sentence, prefix)) % 2**31
        return torch.randn(6, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 2

    limits = [3, 20, 1, 9, 14, 2, 30, 5]
    together = search(step_of(logits), forgetful(no_double, 8), limits=limits, beam=4, n_best=3)
    for sentence, limit in enumerate(limits):
        (alone,) = search(
            step_of(lambda prefix, _, s=sentence: logits(prefix, s)),
            forgetful(no_double),
            limits=[limit],
            beam=4,
            n_best=3,
        )
        assert alone == together[sentence]
        assert all(no_double(h.tokens) for h in alone)


def test_a_guide_that_would_leave_a_row_nothing_is_ignored_there() -> None:
    model = table(5)
    deaf = Guides((forgetful(no_double), forgetful(lambda tokens: len(tokens) <= 2)))
    (found,) = search(markov(model), deaf, limits=[5], beam=4, min_length=3)
    assert len(found[0].tokens) >= 4
    assert no_double(found[0].tokens)


def test_what_is_forbidden_keeps_its_share_and_what_never_comes_does_not() -> None:
    logits = torch.tensor([[1.0, 2.0, 0.0, 3.0]])
    none = torch.tensor([], dtype=torch.long)
    guide = forgetful(lambda tokens: tokens[-1] != 3)
    whole = logits.log_softmax(1)
    (row,) = guided_log_p(logits.clone(), guide, never=none).tolist()
    assert row == pytest.approx([*whole[0, :3].tolist(), NEVER])
    (row,) = guided_log_p(logits.clone(), guide, never=torch.tensor([0]), not_yet=1).tolist()
    assert row == pytest.approx([NEVER, NEVER, logits[0, 1:].log_softmax(0)[1].item(), NEVER])
