"""Section 3.2.3: what may be seen, as masks and as what they must bring about: nothing leaks, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from transduce.model.masks import causal_mask, neighbourhood_mask, source_mask
from transduce.model.stacks import EncoderLayer
from transduce.model.transformer import Transformer

Build = Callable[..., Transformer]
CPU = torch.device("cpu")
SETTINGS: list[dict[str, Any]] = [
    {},
    {"norm": "pre", "attention_bias": True},
    {"positions": "learned", "tying": "none"},
    {"positions": "rotary", "neighbourhood": 2},
    {"decoder_start": "bos", "heads": 1, "tying": "decoder"},
]


def shapes(**settings: Any) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items()) or "paper"


every_setting = pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: shapes(**s))
# With gradients wanted, another way of attention is taken than without.
both_ways = pytest.mark.parametrize("gradients", [False, True], ids=["inference", "gradients"])


def test_source_mask_is_true_at_real_tokens() -> None:
    mask = source_mask(torch.tensor([[4, 5, 9], [4, 9, 9]]), pad_id=9)
    assert mask.shape == (2, 1, 1, 3)
    assert mask[:, 0, 0].tolist() == [[True, True, False], [True, False, False]]


def test_causal_mask_lets_a_position_see_itself_and_all_before_it() -> None:
    assert causal_mask(3, 0, CPU).tolist() == [[True, False, False], [True, True, False], [True, True, True]]
    assert causal_mask(2, 2, CPU).tolist() == [[True, True, True, False], [True, True, True, True]]
    assert causal_mask(1, 4, CPU).tolist() == [[True] * 5]


def test_neighbourhood_mask_reaches_r_to_either_side() -> None:
    assert neighbourhood_mask(4, 0, 1, CPU).tolist() == [
        [True, True, False, False],
        [True, True, True, False],
        [False, True, True, True],
        [False, False, True, True],
    ]
    assert neighbourhood_mask(1, 4, 2, CPU).tolist() == [[False, False, True, True, True]]


@every_setting
@both_ways
def test_the_future_never_leaks(small_model: Build, settings: dict[str, Any], gradients: bool) -> None:
    model = small_model(**settings)
    source = torch.randint(4, 23, (3, 6))
    target = torch.randint(4, 23, (3, 7))
    with torch.set_grad_enabled(gradients):
        before = model(source, target)
        for j in range(7):
            changed = target.clone()
            changed[:, j] = (changed[:, j] - 4 + 1) % 19 + 4
            after = model(source, changed)
            assert torch.equal(after[:, :j], before[:, :j])
            # A token sees itself, or the model could not read what it wrote last.
            assert not torch.allclose(after[:, j], before[:, j], atol=1e-4)


def test_no_gradient_comes_from_the_future(small_model: Build) -> None:
    model = small_model()
    embedded: list[Tensor] = []
    model.decoder.layers[0].register_forward_pre_hook(lambda _, inputs: embedded.append(inputs[0]))
    logits = model(torch.randint(4, 23, (1, 4)), torch.randint(4, 23, (1, 6)))
    for i in range(6):
        (gradient,) = torch.autograd.grad(logits[:, i].logsumexp(-1).sum(), embedded[0], retain_graph=True)
        assert not bool(gradient[:, i + 1 :].any())
        assert bool(gradient[:, : i + 1].abs().sum(-1).gt(0).all())


@every_setting
@both_ways
def test_padding_of_the_source_never_leaks(
    small_model: Build, settings: dict[str, Any], gradients: bool
) -> None:
    model = small_model(**settings)
    source = torch.randint(4, 23, (3, 6))
    source[1, 3:] = source[2, 5:] = 0
    target = torch.randint(4, 23, (3, 5))
    with torch.set_grad_enabled(gradients):
        before = model(source, target)
        with torch.no_grad():
            model.embeddings.source[0] = 1e3
        after = model(source, target)
    assert torch.equal(after[..., 1:], before[..., 1:])  # the tied matrix also makes the score of padding


@every_setting
def test_more_padding_changes_nothing(small_model: Build, settings: dict[str, Any]) -> None:
    model = small_model(**settings)
    source, target = torch.randint(4, 23, (3, 6)), torch.randint(4, 23, (3, 5))
    padded = torch.cat([source, torch.zeros(3, 7, dtype=torch.long)], dim=1)
    assert torch.allclose(model(padded, target), model(source, target), atol=1e-5)
    # An encoder that drops columns in which all is padding would break what indexes by position.
    assert model.encode(padded).output.shape == (3, 13, 16)


@every_setting
def test_a_sentence_does_not_know_its_neighbours(small_model: Build, settings: dict[str, Any]) -> None:
    model = small_model(**settings)
    source, target = torch.randint(4, 23, (4, 6)), torch.randint(4, 23, (4, 5))
    source[0, 1:] = source[1, 4:] = target[1, 2:] = 0
    together = model(source, target)
    for row, (length, out) in enumerate([(1, 5), (4, 2), (6, 5), (6, 5)]):
        alone = model(source[row : row + 1, :length], target[row : row + 1, :out])
        assert torch.allclose(together[row, :out], alone[0], atol=1e-5)


def test_padding_of_the_target_never_leaks(small_model: Build) -> None:
    model = small_model(decoder_start="bos")
    source, target = torch.randint(4, 23, (2, 6)), torch.randint(4, 23, (2, 5))
    target[1, 3:] = 0
    before = model(source, target)
    with torch.no_grad():
        model.embeddings.target[0] = 1e3
    after = model(source, target)
    assert torch.equal(after[0, :, 1:], before[0, :, 1:])
    assert torch.equal(after[1, :3, 1:], before[1, :3, 1:])


def test_padding_gets_no_gradient_from_real_tokens(small_model: Build) -> None:
    model = small_model()
    source, target = torch.randint(4, 23, (2, 6)), torch.randint(4, 23, (2, 5))
    source[1, 3:] = target[1, 3:] = 0
    logits = model(source, target)
    real = torch.cat([logits[0, :, 1:], logits[1, :3, 1:]])
    (gradient,) = torch.autograd.grad(real.logsumexp(-1).sum(), model.embeddings.target)
    assert not bool(gradient[0].any())
    assert bool(gradient[1:].ne(0).any())


def test_after_training_the_padding_row_still_changes_nothing(small_model: Build) -> None:
    model = small_model().train()
    source, target = torch.randint(4, 23, (4, 6)), torch.randint(4, 23, (4, 6))
    source[1, 3:] = source[2, 5:] = target[1, 4:] = 0
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(10):
        optimizer.zero_grad()
        logits = model(source, target[:, :-1])
        loss = nn.functional.cross_entropy(logits.transpose(1, 2), target[:, 1:], ignore_index=0)
        torch.autograd.backward(loss)
        optimizer.step()
    model.eval()
    before = model(source, target)
    with torch.no_grad():
        model.embeddings.target[0] = 1e3
    after = model(source, target)
    real = target != 0
    assert torch.equal(after[real][:, 1:], before[real][:, 1:])


@both_ways
def test_what_lies_outside_the_neighbourhood_has_no_influence(small_model: Build, gradients: bool) -> None:
    r, length = 2, 9
    layer = small_model(neighbourhood=r).encoder.layers[0]
    assert isinstance(layer, EncoderLayer)
    x = torch.randn(2, length, 16)
    near = neighbourhood_mask(length, 0, r, CPU)
    with torch.set_grad_enabled(gradients):
        before = layer(x, near)
        for j in range(length):
            changed = x.clone()
            changed[:, j] += 1.0
            after = layer(changed, near)
            for i in range(length):
                same = torch.equal(after[:, i], before[:, i])
                assert same == (abs(i - j) > r)


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_each_layer_reaches_one_neighbourhood_further(small_model: Build, side: str) -> None:
    # Table 1: the longest path of restricted self-attention is O(n / r).
    r, layers, length = 2, 2, 12
    model = small_model(neighbourhood=r, encoder_layers=layers, decoder_layers=layers)
    source, target = torch.randint(4, 22, (1, length)), torch.randint(4, 22, (1, length))

    def outputs(ids: Tensor) -> Tensor:
        return model.encode(ids).output if side == "encoder" else model(source, ids)

    start = source if side == "encoder" else target
    before, changed = outputs(start), start.clone()
    changed[0, 5] += 1
    after = outputs(changed)
    same = [torch.equal(after[0, i], before[0, i]) for i in range(length)]
    first = 5 if side == "decoder" else 5 - r * layers
    assert same == [not first <= i <= 5 + r * layers for i in range(length)]


def test_a_neighbourhood_as_wide_as_the_sentence_is_no_restriction(small_model: Build) -> None:
    model, wide = small_model(), small_model(neighbourhood=20)
    source, target = torch.randint(4, 23, (2, 6)), torch.randint(4, 23, (2, 5))
    source[1, 4:] = 0
    assert torch.allclose(model(source, target), wide(source, target), atol=1e-6)


def test_cross_attention_is_not_restricted(small_model: Build) -> None:
    model = small_model(neighbourhood=1, encoder_layers=1)
    source, target = torch.randint(4, 22, (1, 12)), torch.randint(4, 23, (1, 1))
    changed = source.clone()
    changed[0, 11] += 1
    assert not torch.allclose(model(source, target), model(changed, target), atol=1e-5)


def test_permuting_the_source_with_its_mask_changes_nothing_without_positions(small_model: Build) -> None:
    model = small_model()

    class Nothing(nn.Module):
        def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
            return x

    model.source_positions = Nothing()  # type: ignore[assignment]
    source = torch.tensor([[5, 6, 7, 8, 1], [9, 4, 1, 0, 0]])
    target = torch.tensor([[0, 5, 6], [0, 6, 7]])
    order = torch.tensor([3, 0, 4, 2, 1])
    out = model(source, target)
    assert out.shape[1] == target.shape[1]
    assert torch.allclose(model(source[:, order], target), out, atol=1e-5)
    assert not torch.allclose(model(source + (source == 9).long(), target)[1], out[1], atol=1e-4)


def test_the_decoder_reads_the_last_encoder_layer_alone(small_model: Build) -> None:
    model = small_model(encoder_layers=6, decoder_layers=6)
    third: list[Tensor] = []
    model.encoder.layers[2].register_forward_hook(lambda _, __, output: third.append(output))
    source, target = torch.randint(4, 23, (1, 5)), torch.randint(4, 23, (1, 4))
    total = model(source, target).logsumexp(-1).sum()
    assert bool(torch.autograd.grad(total, third[0])[0].abs().sum(-1).gt(0).all())
    model.encoder.layers[3].register_forward_pre_hook(lambda _, inputs: (inputs[0].detach(), *inputs[1:]))
    total = model(source, target).logsumexp(-1).sum()
    gradients: tuple[Tensor | None, ...] = torch.autograd.grad(total, third[1], allow_unused=True)
    assert gradients == (None,)
