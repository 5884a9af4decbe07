"""Section 3.4: one matrix, three uses; what it is multiplied by; the start symbol; and that the tie holds."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from transduce.model.config import ModelConfig
from transduce.model.embeddings import Embeddings
from transduce.model.transformer import Transformer

Build = Callable[..., Transformer]
V = 37_000


@pytest.fixture(scope="module")
def fresh() -> Embeddings:
    """The embeddings of a fresh model of the paper's width and vocabulary."""
    config = ModelConfig(vocabulary=V, encoder_layers=1, decoder_layers=1, d_ff=8)
    return Transformer(config).embeddings


def three(model: Transformer) -> tuple[Tensor, Tensor, Tensor]:
    return model.embeddings.source, model.embeddings.target, model.embeddings.output


def test_scaled_embeddings_have_deviation_1(fresh: Embeddings) -> None:
    ids = torch.randint(1, V, (1, 1000))
    for embed in (fresh.embed_source, fresh.embed_target):
        assert float(embed(ids).detach().std()) == pytest.approx(1.0, abs=0.02)


def test_loss_of_a_fresh_tied_model(fresh: Embeddings) -> None:
    # For normalised states the scores are N(0, 1), so the loss is near ln V + 1/2 = 11.02. Xavier would
    # give 10.52, N(0, 1) embeddings more than 90.
    states = nn.functional.layer_norm(torch.randn(800, 512), (512,))
    loss = nn.functional.cross_entropy(fresh.logits(states), torch.randint(0, V, (800,)))
    assert float(loss.detach()) == pytest.approx(math.log(V) + 0.5, abs=0.1)


def test_only_the_embeddings_are_scaled() -> None:
    config = ModelConfig(vocabulary=9, d_model=16, heads=2)
    module = Embeddings(config)
    table = torch.randn(9, 16)
    with torch.no_grad():
        module.target.copy_(table)
    ids = torch.tensor([[4, 0, 7]])
    assert torch.allclose(module.embed_source(ids), 4 * table[ids])
    expected = 4 * table[ids]
    expected[0, 1] = 0  # id 0 opens the decoder's input, and its embedding is zero
    assert torch.allclose(module.embed_target(ids), expected)
    x = torch.randn(2, 3, 16)
    assert torch.allclose(module.logits(x), x @ table.T, atol=1e-5)


@pytest.mark.parametrize(("tying", "count"), [("three-way", 1), ("decoder", 2), ("none", 3)])
def test_tying(small_model: Build, tying: str, count: int) -> None:
    source, target, output = three(small_model(tying=tying))
    assert len({x.data_ptr() for x in (source, target, output)}) == count
    assert (source is target) == (tying == "three-way")
    assert (target is output) == (tying != "none")


@pytest.mark.parametrize("tying", ["three-way", "decoder", "none"])
def test_each_matrix_has_its_use(small_model: Build, tying: str) -> None:
    model = small_model(tying=tying)
    module, ids, x = model.embeddings, torch.tensor([[4, 7]]), torch.randn(1, 2, 16)
    assert torch.allclose(module.embed_source(ids), 4 * module.source[ids])
    assert torch.allclose(module.embed_target(ids), 4 * module.target[ids])
    assert torch.allclose(module.logits(x), x @ module.output.T, atol=1e-6)


def assert_tied(model: Transformer) -> None:
    source, target, output = three(model)
    assert source.data_ptr() == target.data_ptr() == output.data_ptr()
    assert torch.equal(source, target)
    assert torch.equal(target, output)


def test_tie_survives_save_load_cast_and_a_training_step(small_model: Build, tmp_path: Path) -> None:
    first = small_model()
    assert_tied(first)
    file = tmp_path / "model.safetensors"
    save_file(first.state_dict(), file)  # refuses shared storage, so there is one copy
    with safe_open(file, "pt") as saved:
        assert [name for name in saved.keys() if "embed" in name] == ["embeddings.target"]  # noqa: SIM118
    for assign in (False, True):
        model = Transformer(first.config)
        model.load_state_dict(load_file(file), assign=assign)
        assert_tied(model)
        assert torch.equal(model.embeddings.target, first.embeddings.target)
        for cast in (model.half, lambda model=model: model.to(torch.bfloat16), model.float):
            cast()
            assert_tied(model)
            before = model.embeddings.source.detach().clone()
            optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
            model(torch.tensor([[5, 6, 1]]), torch.tensor([[0, 5]])).float().logsumexp(-1).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            assert not torch.equal(model.embeddings.source, before)
            assert_tied(model)


def test_gradient_of_the_tied_matrix_is_the_sum_of_its_three_uses(small_model: Build) -> None:
    tied, apart = small_model(), small_model(tying="none")
    state = dict(tied.state_dict())
    table = state["embeddings.target"]
    apart.load_state_dict({**state, "embeddings.own_source": table, "embeddings.own_output": table})
    for model in (tied, apart):
        model(torch.tensor([[5, 6, 1]]), torch.tensor([[0, 5]])).logsumexp(-1).sum().backward()
    parts = [matrix.grad for matrix in three(apart)]
    total = torch.stack([part for part in parts if part is not None]).sum(0)
    assert tied.embeddings.target.grad is not None
    assert len(parts) == 3
    assert torch.allclose(tied.embeddings.target.grad, total, atol=1e-5)


@pytest.mark.parametrize("start", ["zero", "bos", "eos", "pad"])
def test_start_symbol(small_model: Build, start: str) -> None:
    model = small_model(decoder_start=start)
    seen: list[Tensor] = []
    model.decoder.layers[0].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    state = model.start(torch.tensor([[5, 1]]))
    logits, _ = model.decode(torch.tensor([[model.config.start_id]]), state)
    row = {"zero": None, "bos": 2, "eos": 1, "pad": 0}[start]
    embedding = torch.zeros(16) if row is None else 4 * model.embeddings.target[row]
    assert torch.allclose(seen[0][0, 0], embedding + torch.tensor([0.0, 1.0] * 8), atol=1e-6)
    # What stands in the table under the zero start symbol cannot matter.
    with torch.no_grad():
        model.embeddings.target[model.config.start_id] += 1.0
    again, _ = model.decode(torch.tensor([[model.config.start_id]]), state)
    assert torch.equal(again[..., 3:], logits[..., 3:]) == (start == "zero")
