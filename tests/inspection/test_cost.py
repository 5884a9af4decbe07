"""Costs: parameters by hand and from the paper, operations counted by torch itself, and Table 2's unit."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from tiny_translator import tiny_bundle
from transduce.decoding.translator import Translator
from transduce.errors import UsageError
from transduce.inspection.cost import (
    arithmetic_cost,
    cache_bytes_per_token,
    forward_operations,
    measured_rate,
    parameters_by_part,
    run_cost,
    shape_of,
    sustained_rate,
    training_operations,
    translation_operations,
)
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer

SHAPES: list[dict[str, Any]] = [
    {},
    {"d_k": 3, "d_v": 5, "encoder_layers": 1, "decoder_layers": 3},
    {"norm": "pre", "attention_bias": True, "tying": "none", "positions": "learned"},
]


def test_the_paper_base_by_part() -> None:
    d, ff, vocabulary = 512, 2048, 37_000
    found = parameters_by_part(shape_of(ModelConfig.named("paper-base", vocabulary=vocabulary)))
    assert found == {
        "embeddings": vocabulary * d,
        "encoder self-attention": 6 * 4 * d * d,
        "encoder feed-forward": 6 * (2 * d * ff + ff + d),
        "encoder norms": 6 * 2 * 2 * d,
        "decoder self-attention": 6 * 4 * d * d,
        "decoder cross-attention": 6 * 4 * d * d,
        "decoder feed-forward": 6 * (2 * d * ff + ff + d),
        "decoder norms": 6 * 3 * 2 * d,
    }
    assert sum(found.values()) == 63_045_632


@pytest.mark.parametrize("settings", SHAPES)
def test_the_parts_are_the_whole(settings: dict[str, Any]) -> None:
    model = tiny_bundle(**settings).model
    assert sum(parameters_by_part(model).values()) == model.parameter_count()
    assert ("positions" in parameters_by_part(model)) == (settings.get("positions") == "learned")


@pytest.mark.parametrize("settings", SHAPES)
def test_operations_of_teacher_forcing_are_those_that_torch_counts(settings: dict[str, Any]) -> None:
    model = tiny_bundle(**settings).model
    source, target = torch.full((1, 7), 5), torch.full((1, 11), 6)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(source, target)
    assert counter.get_total_flops() == forward_operations(model.config, 7, 11).total


def test_the_backward_pass_costs_twice_the_forward_pass() -> None:
    model = tiny_bundle().model
    source, target = torch.full((1, 7), 5), torch.full((1, 11), 6)
    with FlopCounterMode(display=False) as counter:
        model(source, target).sum().backward()
    counted = counter.get_total_flops()
    said = training_operations(model.config, 7, 11).total
    # Where the first layers' inputs need no gradient torch saves a product that is counted here.
    assert counted == pytest.approx(said, rel=0.02)


@pytest.mark.parametrize("beam", [1, 4])
def test_operations_of_a_search_are_those_that_torch_counts(beam: int) -> None:
    bundle = tiny_bundle()
    translator = Translator(bundle)
    text = "a small house"
    with FlopCounterMode(display=False) as counter:
        (found,) = translator.translate_detailed([text], beam=beam, max_extra=6, min_length=99)
    source = len(bundle.tokenizer.encode(text)) + 1
    steps = source - 1 + 6  # the limit is reached, since no shorter output may be formed
    assert found.alternatives[0].truncated
    said = translation_operations(bundle.model.config, source, steps, beam)
    assert counter.get_total_flops() == said.total


def test_the_cache_of_a_token() -> None:
    config = ModelConfig(vocabulary=50, d_model=8, heads=2, d_k=3, d_v=5, decoder_layers=3)
    assert cache_bytes_per_token(config) == 4 * 3 * 2 * (3 + 5)


@pytest.mark.parametrize(
    ("name", "steps", "printed"), [("paper-base", 1e5, 9.45e17), ("paper-big", 3e5, 9.63e18)]
)
def test_arithmetic_of_the_papers_runs(name: str, steps: float, printed: float) -> None:
    model = shape_of(ModelConfig.named(name, vocabulary=37_000))
    assert arithmetic_cost(model, 25_000 * steps, 25_000 * steps) == pytest.approx(printed, rel=0.002)


def test_arithmetic_is_the_forward_pass_three_times_but_for_attention() -> None:
    model: Transformer = tiny_bundle(d_k=3, d_v=5, decoder_layers=3).model
    config = model.config
    attention = 2 * config.heads * (config.d_k + config.d_v)
    attention *= config.encoder_layers * 49 + config.decoder_layers * (121 + 77)
    whole = 3 * (forward_operations(config, 7, 11).total - attention)
    assert arithmetic_cost(model, 7.0, 11.0) == whole


def test_a_run_in_the_papers_unit() -> None:
    model = shape_of(ModelConfig.named("paper-base", vocabulary=37_000))
    training = {"seconds": 12 * 3600, "source_tokens": 25e8, "target_tokens": 25e8, "workers": 8}
    run = run_cost(model, training, sustained_rate("p100"))
    assert run is not None
    assert run.paper_unit == pytest.approx(3.2832e18)
    assert run.utilisation == pytest.approx(9.45e17 / 3.2832e18, rel=0.002)
    assert run_cost(model, {"steps": 5}, 1e12) is None


def test_rates() -> None:
    assert sustained_rate("K80") == 2.8e12
    assert sustained_rate("0.5") == 5e11
    for wrong in ("fast", "0", "-1", "nan", "inf"):
        with pytest.raises(UsageError, match=f"--rate {wrong}: expected TFLOP/s"):
            sustained_rate(wrong)
    assert measured_rate(64, 0.01) > 1e6
