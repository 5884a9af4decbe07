"""Section 5.4: label smoothing, and the fused loss against the plain one."""

from __future__ import annotations

import math

import pytest
import torch

from transduce.training.loss import plain_smoothed_cross_entropy, smoothed_cross_entropy

P = torch.tensor([[0.1, 0.2, 0.4, 0.2, 0.1]])


def test_mass_is_on_the_other_classes_padding_included() -> None:
    # correctness: the true class keeps 0.9, each of the other four gets 0.025
    loss = plain_smoothed_cross_entropy(P.log(), torch.tensor([2]), 0.1)
    by_hand = -(0.9 * math.log(0.4) + 0.025 * (2 * math.log(0.1) + 2 * math.log(0.2)))
    assert loss.item() == pytest.approx(by_hand, abs=1e-6)
    assert loss.item() == pytest.approx(1.020263, abs=1e-6)


def test_gradient_of_the_logits_is_p_minus_q() -> None:
    logits = P.log().requires_grad_()
    plain_smoothed_cross_entropy(logits, torch.tensor([2]), 0.1).sum().backward()
    assert logits.grad is not None
    expected = torch.tensor([[0.075, 0.175, -0.5, 0.175, 0.075]])
    torch.testing.assert_close(logits.grad, expected, atol=1e-6, rtol=0)


def test_lowest_reachable_loss_at_the_papers_vocabulary() -> None:
    vocabulary, smoothing = 37_000, 0.1
    best = torch.full((1, vocabulary), smoothing / (vocabulary - 1), dtype=torch.float64)
    best[0, 5] = 1 - smoothing
    loss = plain_smoothed_cross_entropy(best.log(), torch.tensor([5]), smoothing)
    assert loss.item() == pytest.approx(1.376948, abs=1e-4)


def _random(vocabulary: int = 60) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(3, 7, 16, generator=generator, requires_grad=True)
    output = torch.randn(vocabulary, 16, generator=generator, requires_grad=True)
    targets = torch.randint(1, vocabulary, (3, 7), generator=generator)
    targets[0, 4:] = 0
    targets[2, 1:] = 0
    return features, output, targets


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("chunk", [1, 200, 1 << 22])
@pytest.mark.parametrize("compact", [("cpu",), ()])  # as on a CPU, and as on a GPU
def test_fused_loss_and_gradients_equal_the_plain_ones(
    smoothing: float, chunk: int, compact: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transduce.training.loss.CHUNK_LOGITS", chunk)
    monkeypatch.setattr("transduce.training.loss.COMPACT", compact)
    features, output, targets = _random()
    loss = smoothed_cross_entropy(features, output, targets, smoothing=smoothing, pad_id=0, scale=0.25)
    fused = torch.autograd.grad(loss.smoothed * 3, (features, output))
    real = targets.flatten() != 0
    logits = (features @ output.t()).flatten(0, 1)[real]
    plain = plain_smoothed_cross_entropy(logits, targets.flatten()[real], smoothing).sum() * 0.25
    expected = torch.autograd.grad(plain * 3, (features, output))
    torch.testing.assert_close(loss.smoothed, plain, atol=1e-4, rtol=1e-5)
    for one, other in zip(fused, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


def test_nll_is_not_smoothed_and_perplexity_does_not_depend_on_smoothing() -> None:
    # a model that gives 0.9 to every true token and spreads the rest: perplexity 1.1111 whatever epsilon
    vocabulary = 50
    logits = torch.full((1, 4, vocabulary), math.log(0.1 / (vocabulary - 1)))
    targets = torch.tensor([[3, 9, 4, 1]])
    logits.scatter_(2, targets.unsqueeze(-1), math.log(0.9))
    for smoothing in (0.0, 0.1, 0.5):
        loss = smoothed_cross_entropy(logits, torch.eye(vocabulary), targets, smoothing=smoothing, pad_id=0)
        assert math.exp(loss.nll.item() / 4) == pytest.approx(1 / 0.9, abs=1e-4)
    assert loss.smoothed.item() > loss.nll.item()


@pytest.mark.parametrize("compact", [("cpu",), ()])
def test_padding_adds_nothing_to_loss_or_gradient(
    compact: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transduce.training.loss.COMPACT", compact)
    features, output, targets = _random()
    loss = smoothed_cross_entropy(features, output, targets, smoothing=0.1, pad_id=0)
    d_features, d_output = torch.autograd.grad(loss.smoothed, (features, output))
    assert torch.all(d_features[targets == 0] == 0)
    wide = torch.cat([features, torch.randn(3, 5, 16)], 1).detach().requires_grad_()
    padded = torch.nn.functional.pad(targets, (0, 5))
    more = smoothed_cross_entropy(wide, output, padded, smoothing=0.1, pad_id=0)
    torch.testing.assert_close(more.smoothed, loss.smoothed)
    torch.testing.assert_close(torch.autograd.grad(more.smoothed, output)[0], d_output, atol=1e-6, rtol=1e-6)


def test_loss_of_a_fresh_tied_model_is_about_ln_v_plus_a_half() -> None:
    # features of variance 1 against N(0, 1 / d_model) embeddings: logits ~ N(0, 1), so log Z = ln V + 1/2
    generator = torch.Generator().manual_seed(2)
    vocabulary, d_model = 37_000, 512
    features = torch.nn.functional.layer_norm(torch.randn(2, 40, d_model, generator=generator), (d_model,))
    output = torch.randn(vocabulary, d_model, generator=generator) * d_model**-0.5
    targets = torch.randint(4, vocabulary, (2, 40), generator=generator)
    loss = smoothed_cross_entropy(features, output, targets, smoothing=0.0, pad_id=0)
    assert 10.7 < loss.nll.item() / 80 < 11.4


def test_bf16_autocast_keeps_the_loss_in_float32() -> None:
    features, output, targets = _random(vocabulary=300)
    exact = smoothed_cross_entropy(features, output, targets, smoothing=0.1, pad_id=0)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = smoothed_cross_entropy(features, output, targets, smoothing=0.1, pad_id=0)
    assert rounded.smoothed.dtype == rounded.nll.dtype == torch.float32
    torch.testing.assert_close(rounded.nll, exact.nll, rtol=0.02, atol=0)
