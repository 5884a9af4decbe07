"""Section 3.5, and the three other kinds of positions."""

from __future__ import annotations

import copy
import io
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from oracles import position, rotate, t2t_position
from transduce.errors import DataError
from transduce.model.config import ModelConfig
from transduce.model.positional_encoding import PositionalEncoding, Rotary, sinusoids, t2t_sinusoids
from transduce.model.transformer import Transformer

Build = Callable[..., Transformer]
CPU = torch.device("cpu")


def encoding(positions: str = "sinusoid", d_model: int = 16, max_length: int = 16) -> PositionalEncoding:
    config = ModelConfig(vocabulary=9, d_model=d_model, positions=positions, max_length=max_length, heads=2)
    return PositionalEncoding(config)


def near(row: Tensor, expected: list[float]) -> bool:
    return bool((row - torch.tensor(expected, dtype=row.dtype)).abs().max() < 1e-6)


def test_printed_values() -> None:
    table = sinusoids(51, 512)
    assert torch.equal(table[0], torch.tensor([0.0, 1.0] * 256, dtype=torch.float64))
    assert near(table[1][:4], [0.841471, 0.540302, 0.821856, 0.569695])
    assert near(table[1][254:258], [0.010366, 0.999946, 0.010000, 0.999950])
    assert near(table[1][510:], [0.000104, 1.000000])
    assert near(table[10][:4], [-0.544021, -0.839072, -0.220023, -0.975495])
    assert near(table[50][:4], [-0.262375, 0.964966, -0.895339, -0.445386])


def test_printed_values_of_tensor2tensor() -> None:
    row = t2t_sinusoids(2, 512)[1]
    assert near(row[:4], [0.841471, 0.821779, 0.801805, 0.781650])
    assert near(row[255:258], [0.000100, 0.540302, 0.569807])


@pytest.mark.parametrize(("table", "oracle"), [(sinusoids, position), (t2t_sinusoids, t2t_position)])
@pytest.mark.parametrize("d_model", [4, 10, 64])
def test_whole_table_is_the_formula(
    table: Callable[[int, int], Tensor], oracle: Callable[[int, int], list[float]], d_model: int
) -> None:
    expected = torch.tensor([oracle(pos, d_model) for pos in range(300)], dtype=torch.float64)
    assert (table(300, d_model) - expected).abs().max() < 1e-11


def test_norms_and_products() -> None:
    table = sinusoids(500, 512)
    assert ((table**2).sum(1) - 256).abs().max() < 1e-9
    assert ((table[:-5] * table[5:]).sum(1) - 189.596668).abs().max() < 1e-6


@pytest.mark.parametrize("k", [1, 7, 100])
def test_an_offset_is_one_fixed_rotation(k: int) -> None:
    table = sinusoids(400 + k, 512)
    angles = torch.tensor([k / 10000 ** (2 * i / 512) for i in range(256)], dtype=torch.float64)
    sine, cosine = table[:400, 0::2], table[:400, 1::2]
    turned_sine = sine * angles.cos() + cosine * angles.sin()
    turned_cosine = cosine * angles.cos() - sine * angles.sin()
    assert (turned_sine - table[k:, 0::2]).abs().max() < 1e-12
    assert (turned_cosine - table[k:, 1::2]).abs().max() < 1e-12


def test_wavelengths_run_from_2_pi_to_10000_times_2_pi() -> None:
    angles = torch.atan2(sinusoids(2, 512)[1, 0::2], sinusoids(2, 512)[1, 1::2])
    waves = 2 * math.pi / angles
    assert waves[0] == pytest.approx(2 * math.pi)
    assert waves[-1] == pytest.approx(2 * math.pi * 10000 ** (510 / 512))
    assert bool((waves.diff() > 0).all())


@pytest.mark.parametrize(("pos", "difference"), [(1, 0.0014), (10, 0.0142), (50, 0.0719), (99, 0.1423)])
def test_distance_between_the_two_formulas(pos: int, difference: float) -> None:
    paper, theirs = sinusoids(100, 512), t2t_sinusoids(100, 512)
    reordered = torch.cat([paper[:, 0::2], paper[:, 1::2]], dim=1)
    assert (reordered[pos] - theirs[pos]).abs().max() == pytest.approx(difference, abs=6e-5)


@pytest.mark.parametrize(("kind", "oracle"), [("sinusoid", position), ("t2t", t2t_position)])
def test_positions_are_added_from_the_offset_on(kind: str, oracle: Callable[[int, int], list[float]]) -> None:
    x = torch.randn(2, 3, 16)
    added = encoding(kind)(x, 5) - x
    expected = torch.tensor([oracle(pos, 16) for pos in (5, 6, 7)])
    assert (added - expected).abs().max() < 1e-6


def test_first_token_stands_at_position_0(small_model: Build) -> None:
    model = small_model()
    seen: list[Tensor] = []
    for layer in (model.encoder.layers[0], model.decoder.layers[0]):
        layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0][:, 0]))
    model(torch.tensor([[7, 1]]), torch.tensor([[0, 7]]))
    first = torch.tensor([0.0, 1.0] * 8)
    assert torch.allclose(seen[0][0], model.embeddings.target[7] * 4 + first, atol=1e-6)
    assert torch.equal(seen[1][0], first)  # the zero start symbol: nothing but its position


@pytest.mark.parametrize("kind", ["sinusoid", "t2t"])
def test_sinusoids_grow_beyond_the_nominal_maximum(small_model: Build, kind: str) -> None:
    model = small_model(positions=kind, max_length=16)
    source = torch.randint(4, 23, (1, 40))
    logits, state = model.decode(torch.randint(4, 23, (1, 300)), model.start(source))
    assert bool(logits.isfinite().all())
    oracle = position if kind == "sinusoid" else t2t_position
    table = model.source_positions.rows(40, CPU)
    assert (table[39] - torch.tensor(oracle(39, 16))).abs().max() < 1e-6
    assert (model.target_positions.rows(300, CPU)[299] - torch.tensor(oracle(299, 16))).abs().max() < 1e-6
    assert state.length == 300


def test_growing_changes_no_row() -> None:
    module = encoding()
    before = module.rows(5, CPU).clone()
    module.rows(5_000, CPU)
    assert torch.equal(module.rows(5, CPU), before)


@pytest.mark.parametrize("kind", ["sinusoid", "t2t"])
def test_the_table_follows_the_model_to_another_device(kind: str) -> None:
    module = encoding(kind)
    before = module.rows(5, CPU)
    assert module.rows(5, torch.device("meta")).device.type == "meta"
    assert torch.equal(module.rows(5, CPU), before)


def test_learned_table_says_where_it_ends(small_model: Build) -> None:
    model = small_model(positions="learned", max_length=16)
    model.encode(torch.full((1, 80), 5))  # max_length + 64
    with pytest.raises(
        DataError, match=r"a sequence of 81 tokens is longer than this model's 80 learned positions .* = 16"
    ):
        model.encode(torch.full((1, 81), 5))
    _, state = model.decode(torch.full((1, 80), 5), model.start(torch.tensor([[5, 1]])))
    with pytest.raises(DataError, match=r"a sequence of 81 tokens .* split or truncate the line"):
        model.decode(torch.tensor([[5]]), state)


def test_learned_positions_are_trained_one_table_for_each_side(small_model: Build) -> None:
    model = small_model(positions="learned")
    assert model.source_positions.learned is not model.target_positions.learned
    model(torch.tensor([[5, 6, 1]]), torch.tensor([[0, 5]])).logsumexp(-1).sum().backward()
    for module, length in ((model.source_positions, 3), (model.target_positions, 2)):
        gradient = module.learned.grad
        assert gradient is not None
        assert bool(gradient[:length].abs().sum(1).gt(0).all())
        assert not bool(gradient[length:].any())


def test_rotary_turns_each_pair_by_its_angle() -> None:
    x = torch.randn(1, 1, 6, 8, dtype=torch.float64)
    expected = rotate(x[0, 0].numpy(), 3)
    assert np.abs(Rotary()(x, 3)[0, 0].numpy() - expected).max() < 1e-12


def test_rotary_products_depend_on_the_distance_alone() -> None:
    q, k = torch.randn(2, 1, 1, 1, 32, dtype=torch.float64)
    rotary = Rotary()
    at_0 = {d: (rotary(q, d) * rotary(k, 0)).sum() for d in (0, 1, 9)}
    for start in (1, 17, 400):
        for d, product in at_0.items():
            assert abs((rotary(q, start + d) * rotary(k, start)).sum() - product) < 1e-11
    assert abs(at_0[0] - (q * k).sum()) < 1e-12
    assert abs(at_0[1] - at_0[0]) > 1e-3


def test_rotary_adds_nothing_to_the_embeddings_and_leaves_cross_attention_alone(small_model: Build) -> None:
    model = small_model(positions="rotary")
    x = torch.randn(1, 3, 16)
    assert model.source_positions(x) is x
    layer: Any = model.decoder.layers[0]
    assert layer.self_attention.rotary is not None
    assert layer.cross_attention.rotary is None


@pytest.mark.parametrize("kind", ["sinusoid", "t2t", "learned", "rotary"])
def test_padding_on_either_side_gives_the_same(small_model: Build, kind: str) -> None:
    model = small_model(positions=kind)
    right = torch.tensor([[5, 6, 7, 8, 1], [9, 4, 1, 0, 0]])
    left = torch.tensor([[5, 6, 7, 8, 1], [0, 0, 9, 4, 1]])
    from_right, from_left = model.encode(right).output, model.encode(left).output
    assert torch.allclose(from_left[0], from_right[0], atol=1e-5)
    assert torch.allclose(from_left[1, 2:], from_right[1, :3], atol=1e-5)
    target = torch.tensor([[0, 5], [0, 6]])
    assert torch.allclose(model(left, target), model(right, target), atol=1e-5)


def test_half_and_back_leaves_the_table_exact(small_model: Build) -> None:
    model = small_model()
    source, target = torch.tensor([[5, 6, 1]]), torch.tensor([[0, 5]])
    model(source, target)
    model.half().float()
    model(source, target)
    assert torch.equal(model.source_positions.rows(3, CPU), sinusoids(3, 16).float())


def test_model_built_without_memory_works_once_loaded(small_model: Build) -> None:
    model = small_model()
    with torch.device("meta"):
        empty = Transformer(model.config).eval()
    empty.load_state_dict(model.state_dict(), assign=True)
    source, target = torch.tensor([[5, 6, 1]]), torch.tensor([[0, 5]])
    assert torch.equal(empty(source, target), model(source, target))


def test_table_is_no_part_of_the_state(small_model: Build) -> None:
    model = small_model()
    model.encode(torch.full((1, 200), 5))
    assert not [name for name in model.state_dict() if "positions" in name]
    assert not list(model.buffers())


def test_copies_and_pickles_agree(small_model: Build) -> None:
    model = small_model()
    source, target = torch.tensor([[5, 6, 1]]), torch.tensor([[0, 5]])
    expected = model(source, target)
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    for twin in (copy.deepcopy(model), torch.load(file, weights_only=False)):
        assert torch.equal(twin(source, target), expected)
