"""What a search tells before its end: what all that may still win begins with, as early as it is certain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from table_models import EOS, START, Prefixes, start, step_of
from torch import Tensor

from transduce.decoding.back_trace import back_trace
from transduce.decoding.beam_search import beam_search, beam_search_steps
from transduce.decoding.config import SearchOptions
from transduce.decoding.shared_prefix import SharedPrefix


def common_beginning(sequences: list[list[int]]) -> list[int]:
    longest = min(map(len, sequences))
    return next(
        sequences[0][:count]
        for count in range(longest, -1, -1)
        if all(one[:count] == sequences[0][:count] for one in sequences)
    )


def table_logits(table: Tensor) -> Any:
    """Logits that depend on the last two tokens."""

    def logits(prefix: tuple[int, ...], _: int) -> Tensor:
        last, before = (*(START, START), *prefix)[-1], (*(START, START), *prefix)[-2]
        return table[last] + table[before].roll(1)

    return logits


@pytest.mark.usefixtures("shapes_unchecked")
@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from([1, 2, 3, 5]),
    st.sampled_from([0.0, 0.6, 2.0]),
    st.sampled_from(["exact", "full"]),
    st.integers(1, 9),
)
def test_what_is_told_is_what_all_that_may_still_win_begin_with(
    seed: int, beam: int, alpha: float, stop: str, limit: int
) -> None:
    table = torch.randn(6, 6, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 2
    alive: list[list[tuple[int, ...]]] = []

    def step(tokens: Tensor, state: Prefixes) -> tuple[Tensor, Prefixes]:
        logits, state = step_of(table_logits(table))(tokens, state)
        alive.append([tuple(row[1:]) for row in state.tokens.tolist()])
        return logits, state

    options = SearchOptions(beam=beam, alpha=alpha, stop=stop)
    given_out: dict[str, Any] = {
        "max_lengths": torch.tensor([limit]),
        "options": options,
        "start_id": START,
        "eos_id": EOS,
        "forbidden": [START],
    }
    steps, shared = beam_search_steps(step, start(1), **given_out), SharedPrefix()
    told: list[list[int]] = []
    history, expected = [], []
    while True:
        try:
            standing = next(steps)
        except StopIteration as end:
            ((best,),) = end.value
            break
        history.append(standing.last)
        told.append([*(told[-1] if told else []), *shared.after(standing)])
        finished = back_trace(history, standing.ended, np.array([limit]), options, EOS)[0]
        expected.append(([*finished[0].tokens] if finished and not finished[0].truncated else None, standing))
    for at, (ended, standing) in enumerate(expected):
        # The next step was asked about every hypothesis that is alive now; dead ones have no probability.
        rows = zip(alive[at + 1], standing.last.log_p[0].tolist(), strict=True)
        possible = [list(row) for row, total in rows if total > float("-inf")]
        possible += [] if ended is None else [ended]
        assert told[at] == common_beginning(possible)
        assert list(best.tokens[: len(told[at])]) == told[at]
        if beam == 1:
            assert len(told[at]) == at + 1
    assert [[best]] == beam_search(step, start(1), **given_out)


def test_a_search_that_is_sure_tells_tokens_long_before_its_end() -> None:
    """Four tokens that are almost certain, and then two that are equally likely."""

    def logits(prefix: tuple[int, ...], _: int) -> Tensor:
        wanted = (0, 3, 4, 0)
        if len(prefix) < 4:
            return torch.full((5,), -9.0, dtype=torch.float64).scatter(
                0, torch.tensor(wanted[len(prefix)]), 5.0
            )
        return torch.tensor([-9.0, 0.0 if len(prefix) > 6 else -9.0, -9.0, 1.0, 1.0], dtype=torch.float64)

    steps = beam_search_steps(
        step_of(logits),
        start(1),
        max_lengths=torch.tensor([12]),
        options=SearchOptions(beam=3, alpha=0.0),
        start_id=START,
        eos_id=EOS,
    )
    shared, told = SharedPrefix(), []
    for standing in steps:
        told += shared.after(standing)
        if standing.length == 6:
            assert told[:4] == [0, 3, 4, 0]
    assert len(told) >= 4
