"""The best continuations against a sort of every continuation that there is."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import torch

from transduce.decoding.candidates import BLOCK, Scored, continuations

SENTENCES, SLOTS = 3, 4


def alive(seed: int) -> npt.NDArray[np.float64]:
    """Log P of four hypotheses of each of three sentences; some are dead, and all of the last."""
    log_p = -np.random.default_rng(seed).integers(0, 30, (SENTENCES, SLOTS)) / 10.0
    log_p[1, 2:] = log_p[2] = -np.inf
    return log_p


@pytest.mark.parametrize("blocks", [2, 10, 40])
@pytest.mark.parametrize("decimals", [1, 9])
@pytest.mark.parametrize("beam", [1, 2, 4])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_they_are_the_first_of_all_when_sorted(blocks: int, decimals: int, beam: int, seed: int) -> None:
    draw, before = torch.Generator().manual_seed(seed), alive(seed)
    logits = torch.randn(SENTENCES * SLOTS, blocks * BLOCK, generator=draw, dtype=torch.float64)
    logits = (5 * logits).round(decimals=decimals)  # one decimal: equals everywhere, at the cut too
    logits[:, 7] = 30.0  # held back, but it keeps its share
    logits[-1] = torch.nan  # of a dead hypothesis
    log_sum = logits.logsumexp(1, keepdim=True)
    # Whole tenths but for what the sum takes away, which is the same in all rows.
    log_sum[:-1] = 30.0
    totals = (before.reshape(-1, 1) + logits.numpy() - log_sum.numpy()).reshape(SENTENCES, SLOTS, -1)
    best = continuations(
        Scored(logits, log_sum, blocks * BLOCK), before, beam=beam, never=torch.tensor([]).long(), not_yet=7
    )
    assert best is not None
    for sentence in range(SENTENCES - 1):
        every = sorted(
            (-round(float(total), 6), token, parent)
            for parent, row in enumerate(totals[sentence])
            for token, total in enumerate(row)
            if token != 7 and total > -np.inf
        )
        found = zip(-best.log_p[sentence], best.tokens[sentence], best.parents[sentence], strict=True)
        wanted = every[: 2 * beam if beam > 1 else 1]
        assert [(round(float(a), 6), int(b), int(c)) for a, b, c in found] == wanted
    assert np.isneginf(best.log_p[-1]).all()


def test_scores_of_a_hypothesis_that_is_alive_must_be_numbers() -> None:
    before, logits = np.array([[0.0, -np.inf]]), torch.randn(2, BLOCK)
    asked = {"beam": 2, "never": torch.tensor([1]), "not_yet": None}
    logits[1, 5] = torch.nan
    assert continuations(logits.clone(), before, **asked) is not None  # type: ignore[arg-type]
    logits[0, 5] = torch.inf
    assert continuations(logits.clone(), before, **asked) is None  # type: ignore[arg-type]
