"""One token at a time equals all at once, whatever happens to the hypotheses in between."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from transduce.model.cache import CHUNK, DecoderState, KeysValues
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer

Build = Callable[..., Transformer]
STEPS = 40
SETTINGS: list[dict[str, Any]] = [
    {},
    {"norm": "pre", "attention_bias": True, "tying": "none"},
    {"positions": "learned", "decoder_start": "bos"},
    {"positions": "t2t", "heads": 4, "d_k": 3, "d_v": 5},
    {"positions": "rotary"},
    {"neighbourhood": 3},
    {"positions": "rotary", "neighbourhood": 2, "decoder_layers": 1},
]
every_setting = pytest.mark.parametrize(
    "config", SETTINGS, ids=lambda c: ", ".join(f"{k}={v}" for k, v in c.items()) or "paper"
)


def sources(sentences: int = 3) -> Tensor:
    source = torch.randint(4, 23, (sentences, 6))
    source[:, -1] = 1
    if sentences > 1:
        source[1, 3], source[1, 4:] = 1, 0
    return source


def one_by_one(model: Transformer, target: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
    logits = []
    for token in torch.split(target, 1, dim=1):
        step, state = model.decode(token, state)
        logits.append(step)
    return torch.cat(logits, dim=1), state


@every_setting
def test_one_token_at_a_time_equals_all_at_once(small_model: Build, config: dict[str, Any]) -> None:
    model, source = small_model(**config), sources()
    target = torch.randint(4, 23, (3, STEPS))
    target[:, 0] = model.config.start_id
    with torch.no_grad():
        stepwise, state = one_by_one(model, target, model.start(source))
        assert torch.allclose(stepwise, model(source, target), atol=1e-5)
    assert state.length == STEPS


def test_one_token_at_a_time_gives_the_same_gradients(small_model: Build) -> None:
    model, source = small_model().double(), sources()
    target = torch.randint(4, 23, (3, 8))
    upstream = torch.randn(3, 8, 23, dtype=torch.float64)
    stepwise, _ = one_by_one(model, target, model.start(source))
    got = torch.autograd.grad(stepwise, list(model.parameters()), upstream)
    wanted = torch.autograd.grad(model(source, target), list(model.parameters()), upstream)
    assert all(torch.allclose(a, b, atol=1e-9) for a, b in zip(got, wanted, strict=True))


@example(config={}, cuts=[1, 8], seed=0)
@settings(max_examples=15, deadline=None)
@given(
    config=st.sampled_from(SETTINGS),
    cuts=st.lists(st.integers(1, STEPS - 1), max_size=5),
    seed=st.integers(0, 99),
)
def test_any_way_of_cutting_the_target_gives_the_same(
    small_model: Build, config: dict[str, Any], cuts: list[int], seed: int
) -> None:
    model, source = small_model(seed=seed, **config), sources()
    target = torch.randint(4, 23, (3, STEPS))
    edges = [0, *sorted(set(cuts)), STEPS]
    with torch.no_grad():
        state, logits = model.start(source), []
        for first, last in itertools.pairwise(edges):
            part, state = model.decode(target[:, first:last], state)
            logits.append(part)
        assert torch.allclose(torch.cat(logits, dim=1), model(source, target), atol=1e-5)


@every_setting
def test_random_beams_equal_the_full_forward_pass(small_model: Build, config: dict[str, Any]) -> None:
    """Hypotheses of 3 sentences are permuted, copied and dropped for 40 steps, and one sentence ends."""
    model, source, beam = small_model(**config), sources(), 4
    with torch.no_grad():
        prefix = torch.full((3, 1), model.config.start_id)
        logits, state = model.decode(prefix, model.start(source))
        rows, kept = torch.arange(3).repeat_interleave(beam), None
        for step in range(STEPS):
            state, prefix, logits = state.rows(rows, kept), prefix[rows], logits[rows]
            token = torch.randint(4, 23, (len(prefix), 1))
            new, state = model.decode(token, state)
            prefix, logits = torch.cat([prefix, token], dim=1), torch.cat([logits, new], dim=1)
            if step % 10 == 9:
                full = model(source.repeat_interleave(beam, dim=0), prefix)
                assert torch.allclose(logits, full, atol=1e-5)
            # The next hypotheses of a sentence are drawn, with repetition, from its own.
            groups, kept = torch.arange(len(prefix)).view(-1, beam), None
            if step == STEPS // 2:
                kept = torch.tensor([2, 1])
                groups, source = groups[kept], source[kept]
            rows = groups.gather(1, torch.randint(0, beam, groups.shape)).flatten()


@every_setting
def test_hypotheses_of_a_sentence_share_its_memory(small_model: Build, config: dict[str, Any]) -> None:
    model, source = small_model(**config), sources()
    target = torch.randint(4, 23, (6, 5))  # two hypotheses for each of three sentences
    shared, state = model.decode(target, model.start(source))
    assert state.memory[0].keys.shape[0] == 3
    apart = model(source.repeat_interleave(2, dim=0), target)
    assert torch.allclose(shared, apart, atol=1e-5)


def test_hypotheses_that_cannot_be_shared_out_are_refused(small_model: Build) -> None:
    model = small_model()
    with pytest.raises(AssertionError, match="3 hypotheses cannot be shared out evenly among 2 sentences"):
        model.decode(torch.zeros(3, 2, dtype=torch.long), model.start(sources(2)))


def test_parent_stays_usable_and_its_children_do_not_meet(small_model: Build) -> None:
    model, source = small_model(), sources()

    def full(prefix: Tensor) -> Tensor:
        logits: Tensor = model(source, prefix)
        return logits[:, -1:]

    with torch.no_grad():
        prefix = torch.randint(4, 23, (3, 3))
        _, parent = one_by_one(model, prefix, model.start(source))
        tokens = [torch.full((3, 1), token) for token in (5, 9, 14)]
        children = [model.decode(token, parent) for token in tokens]
        for token, (logits, child) in zip(tokens, children, strict=True):
            longer = torch.cat([prefix, token], dim=1)
            assert torch.allclose(logits, full(longer), atol=1e-5)
            # Beyond the spare room too, and after the other children have gone on.
            tail = torch.randint(4, 23, (3, CHUNK + 3))
            _, child = one_by_one(model, tail[:, :2], child)
            tail_logits, _ = model.decode(tail[:, 2:], child)
            assert torch.allclose(tail_logits[:, -1:], full(torch.cat([longer, tail], dim=1)), atol=1e-5)
        again, _ = model.decode(tokens[0], parent)
        assert torch.equal(again, children[0][0])
        assert parent.length == 3


def test_start_can_be_used_twice(small_model: Build) -> None:
    model, source = small_model(), sources()
    with torch.no_grad():
        state = model.start(source)
        first = model.decode(torch.full((3, 1), 5), state)[0]
        model.decode(torch.full((3, 1), 6), state)
        assert torch.equal(model.decode(torch.full((3, 1), 5), state)[0], first)
    assert (state.length, state.self_attention) == (0, ())


def test_a_step_costs_one_token_and_the_memory_is_projected_once(small_model: Build) -> None:
    model, source = small_model(), sources(1)
    lengths: list[int] = []
    projections: list[int] = []
    layers: list[Any] = list(model.decoder.layers)
    for layer in layers:
        layer.register_forward_pre_hook(lambda _, inputs: lengths.append(inputs[0].shape[1]))
        layer.cross_attention.kv.register_forward_hook(lambda *_: projections.append(1))
    with torch.no_grad():
        one_by_one(model, torch.randint(4, 23, (1, 64)), model.start(source))
    assert lengths == [1] * 64 * 2
    assert len(projections) == 2


def test_a_late_step_costs_little_more_than_an_early_one() -> None:
    model = Transformer(ModelConfig.named("tiny", vocabulary=50, encoder_layers=1, decoder_layers=1)).eval()
    costs = {}
    with torch.no_grad():
        state = model.start(torch.randint(4, 50, (1, 20)))
        for length in (10, 200):
            _, state = model.decode(torch.full((1, length - state.length), 5), state)
            with FlopCounterMode(display=False) as counter:
                model.decode(torch.tensor([[5]]), state)
            costs[length] = counter.get_total_flops()
    assert costs[200] < 1.5 * costs[10]


def test_most_steps_copy_no_keys(small_model: Build) -> None:
    model, places = small_model(), set()
    with torch.no_grad():
        state = model.start(sources(1))
        for _ in range(2 * CHUNK):
            _, state = model.decode(torch.tensor([[5]]), state)
            places.add(state.self_attention[0].keys.data_ptr())
    assert len(places) <= 4


def test_a_source_of_one_token_is_as_good_alone_as_in_a_batch(small_model: Build) -> None:
    model = small_model()
    batch = torch.tensor([[1, 0, 0], [7, 1, 0], [5, 6, 1]])
    target = torch.tensor([[0, 5]]).expand(3, 2)
    together = model(batch, target)
    for row, length in enumerate((1, 2, 3)):
        assert torch.allclose(together[row], model(batch[row : row + 1, :length], target[:1])[0], atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_steps_in_low_precision_stay_near(small_model: Build, dtype: torch.dtype) -> None:
    model, source = small_model(), sources()
    target = torch.randint(4, 23, (3, 12))
    with torch.no_grad():
        expected = model(source, target)
        model.to(dtype)
        logits, state = one_by_one(model, target, model.start(source))
    assert logits.dtype == state.self_attention[0].keys.dtype == dtype
    assert float((logits.float() - expected).abs().mean()) < 0.02


def test_the_state_names_no_module(small_model: Build) -> None:
    # Values are handed in and handed back: two models, or two searches, can never disturb each other.
    model = small_model()
    before = {name for module in model.modules() for name in vars(module)}
    _, state = model.decode(torch.tensor([[5]]), model.start(sources(1)))
    assert {name for module in model.modules() for name in vars(module)} == before
    assert not [value for value in vars(state).values() if isinstance(value, nn.Module)]
    assert all(isinstance(layer, KeysValues) for layer in state.self_attention)
