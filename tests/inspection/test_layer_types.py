"""Table 1: counted operations, paths by gradient, restricted attention, and fits by arithmetic."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from transduce.cli.main import main
from transduce.inspection.layer_costs import crossing, exponent, measure
from transduce.inspection.layer_types import (
    LAYER_TYPES,
    NEIGHBOURHOOD,
    LayerType,
    Recurrent,
    SelfAttention,
    longest_path,
)
from transduce.inspection.restricted_attention import restricted_attention
from transduce.model.attention import attention
from transduce.model.masks import neighbourhood_mask

BY_NAME = {kind.name: kind for kind in LAYER_TYPES}


@pytest.mark.parametrize("n", [1, 5, 8, 9, 40])
@pytest.mark.parametrize("r", [1, 3, 8, 50])
def test_restricted_attention_is_the_equation_with_a_mask(n: int, r: int) -> None:
    q, k, v = (torch.randn(2, 3, n, d, dtype=torch.float64, requires_grad=True) for d in (4, 4, 5))
    mask = neighbourhood_mask(n, 0, r, torch.device("cpu"))
    found, plain = restricted_attention(q, k, v, r), attention(q, k, v, mask)
    torch.testing.assert_close(found, plain)
    weight = torch.randn_like(plain)
    gradients = [torch.autograd.grad((y * weight).sum(), (q, k, v)) for y in (found, plain)]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)


def test_its_cost_grows_with_n_alone() -> None:
    def counted(n: int) -> int:
        x = torch.randn(1, 2, n, 8)
        with FlopCounterMode(display=False) as counter:
            restricted_attention(x, x, x, 16)
        return counter.get_total_flops()

    assert counted(1024) == 4 * counted(256)
    assert counted(1024) == 2 * 2 * 1024 * 3 * 16 * 2 * 8


@pytest.mark.parametrize("kind", [k for k in LAYER_TYPES if k.steps(2) == 1], ids=lambda kind: kind.name)
def test_operations_are_those_that_torch_counts(kind: LayerType) -> None:
    n, d = 48, 16
    layer = kind.make(d, 0)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        layer(torch.randn(1, n, d))
    assert counter.get_total_flops() == kind.operations(n, d)


def test_operations_of_recurrent_layers_are_their_matrices() -> None:
    for name, gates in (("recurrent, LSTM", 4), ("recurrent, GRU", 3)):
        kind = BY_NAME[name]
        matrices = [p for p in kind.make(16, 0).parameters() if p.dim() == 2]
        assert sum(p.numel() for p in matrices) == 2 * gates * 16 * 16
        assert kind.operations(10, 16) == 10 * 2 * 2 * gates * 16 * 16


def test_printed_orders_are_those_of_the_operations() -> None:
    sizes = [512, 1024, 2048]
    for kind in LAYER_TYPES:
        assert exponent(sizes, [kind.operations(n, 64) for n in sizes]) == pytest.approx(kind.time_n)
        assert exponent(sizes, [kind.operations(512, d) for d in sizes]) == pytest.approx(kind.time_d)


@pytest.mark.parametrize("kind", LAYER_TYPES, ids=lambda kind: kind.name)
@pytest.mark.parametrize("n", [9, 40, 41])
def test_the_longest_path_is_the_printed_one(kind: LayerType, n: int) -> None:
    assert longest_path(kind, n) == kind.path(n)


def test_paths_by_hand() -> None:
    assert longest_path(BY_NAME["self-attention"], 30) == 1
    assert longest_path(BY_NAME["recurrent, GRU"], 30) == 30
    assert longest_path(BY_NAME["convolution, k = 3"], 30) == 29
    # 1 + 3 + 9 = 13 positions to a side for three layers, 40 for four
    assert longest_path(BY_NAME["convolution, dilated"], 14) == 3
    assert longest_path(BY_NAME["convolution, dilated"], 15) == 4
    assert longest_path(BY_NAME[f"self-attention, r = {NEIGHBOURHOOD}"], NEIGHBOURHOOD + 2) == 2


def test_layers_keep_the_shape() -> None:
    x = torch.randn(2, 10, 16)
    for kind in LAYER_TYPES:
        assert kind.make(16, 2)(x).shape == x.shape


def test_a_recurrent_layer_never_sees_ahead() -> None:
    layer = Recurrent(8, torch.nn.LSTM)
    x = torch.randn(1, 6, 8)
    changed = x.clone()
    changed[:, 4:] += 1
    torch.testing.assert_close(layer(x)[:, :4], layer(changed)[:, :4])


def test_fits_by_arithmetic() -> None:
    assert exponent([10, 20, 40], [3.0, 12.0, 48.0]) == pytest.approx(2)
    assert crossing([10, 20, 40], [1.0, 2.0, 9.0], [3.0, 3.0, 3.0]) == pytest.approx(
        math.exp(math.log(20) + math.log(3 / 2) / math.log(9 / 2) * math.log(2))
    )
    assert crossing([10, 20], [1.0, 2.0], [3.0, 3.0]) is None
    assert crossing([10, 20], [4.0, 5.0], [3.0, 3.0]) is None


def test_memory_that_is_kept() -> None:
    # A linear layer and a ReLU keep the ReLU's output; the input and the weight are not counted.
    layer = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
    assert measure(layer, 5, 8, seconds=0.0).bytes_kept == 5 * 8 * 4
    weights = measure(SelfAttention(8), 64, 8, seconds=0.0).bytes_kept
    assert weights >= 8 * 64 * 64 * 4


def test_the_command(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transduce.machine.tune_allocator", lambda: "")
    monkeypatch.setattr("transduce.machine.set_threads", lambda threads: 1)
    call = [
        "paper",
        "table1",
        "--lengths",
        "8,16",
        "--widths",
        "8,16",
        "--d",
        "16",
        "--n",
        "16",
        "--seconds",
        "0",
    ]
    assert main([*call, "--json", str(tmp_path / "t.json")]) == 0
    text = capsys.readouterr().out
    rows = json.loads((tmp_path / "t.json").read_text())["rows"]
    assert [row["layer"] for row in rows] == [kind.name for kind in LAYER_TYPES]
    assert all(row["layer"] in text for row in rows)
    assert "self-attention takes longer than recurrent, LSTM" in text
    assert rows[0]["printed_exponents"] == {"n": 2, "d": 1}
    for wrong, said in (
        (["--lengths", "8"], "--lengths 8: expected two or more"),
        (["--d", "12"], "multiples of 8"),
    ):
        assert main([*call, *wrong]) == 2
        assert said in capsys.readouterr().err
