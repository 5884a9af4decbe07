"""When a search leaves a sentence: `SearchOptions.stop`."""

from __future__ import annotations

import torch
from table_models import EOS, START, Prefixes, markov, start, step_of
from torch import Tensor

from transduce.decoding.beam_search import beam_search
from transduce.decoding.config import SearchOptions


def test_stop_full_leaves_a_sentence_when_a_beam_of_outputs_has_ended() -> None:
    """Two outputs end at once; the long one that would win comes later."""

    def logits(prefix: tuple[int, ...], _: int) -> Tensor:
        # 1 ends; 3 goes on. After the start both cost log 2; from then on 3 is almost free, and the end too.
        if len(prefix) == 0:
            p = [0.0, 0.30, 0.0, 0.40, 0.30]
        elif len(prefix) == 1:
            p = [0.0, 0.45, 0.0, 0.55, 0.0]
        else:
            p = [0.0, 0.99 if len(prefix) == 6 else 0.001, 0.0, 0.01 if len(prefix) == 6 else 0.999, 0.0]
        return torch.tensor(p, dtype=torch.float64).log()

    found = {}
    for stop in ("exact", "full"):
        steps = []

        def counted(tokens: Tensor, state: Prefixes, steps: list[int] = steps) -> tuple[Tensor, Prefixes]:
            steps.append(len(tokens))
            return step_of(logits)(tokens, state)

        (outputs,) = beam_search(
            counted,
            start(1),
            max_lengths=torch.tensor([30]),
            options=SearchOptions(beam=2, alpha=1.0, stop=stop),
            start_id=START,
            eos_id=EOS,
        )
        found[stop] = outputs[0], len(steps)
    exact, full = found["exact"], found["full"]
    assert exact[0].tokens == (3, 3, 3, 3, 3, 3, EOS)
    assert full[0].tokens in {(EOS,), (3, EOS), (4, EOS)}
    assert full[0].score < exact[0].score
    assert full[1] == 2
    assert exact[1] > full[1]


def test_stop_full_changes_nothing_for_a_greedy_search() -> None:
    table = torch.randn(7, 7, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    both = [
        beam_search(
            markov(table),
            start(1),
            max_lengths=torch.tensor([20]),
            options=SearchOptions(beam=1, stop=stop),
            start_id=START,
            eos_id=EOS,
        )
        for stop in ("exact", "full")
    ]
    assert both[0] == both[1]
