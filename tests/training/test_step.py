"""One update: the gradient is that of the mean over all target tokens, however the batch is split."""

from __future__ import annotations

import pytest
import torch

from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer
from transduce.training.config import TrainingConfig
from transduce.training.loss import plain_smoothed_cross_entropy
from transduce.training.optimizer import adam
from transduce.training.step import Batch, batch_loss, update

CONFIG = TrainingConfig(device="cpu", precision="fp32")


def _model(**overrides: object) -> Transformer:
    torch.manual_seed(3)
    settings = {
        "d_model": 16,
        "d_ff": 32,
        "heads": 2,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "dropout": 0.0,
    }
    return Transformer(ModelConfig.from_mapping({**settings, "vocabulary": 40, **overrides}))


def _batch(lengths: list[int], seed: int, pad_to: int = 0) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    width = max(pad_to, *lengths)
    source = torch.randint(4, 40, (len(lengths), width), generator=generator)
    target = torch.randint(4, 40, (len(lengths), width), generator=generator)
    for row, length in enumerate(lengths):
        source[row, length - 1 :], target[row, length - 1 :] = 0, 0
        source[row, length - 1], target[row, length - 1] = 1, 1
    target_in = torch.cat([torch.zeros(len(lengths), 1, dtype=torch.long), target[:, :-1]], 1)
    target_in[target_in == 1] = 0
    return Batch(source, target_in, target, sum(lengths), sum(lengths))


def _merged(one: Batch, other: Batch) -> Batch:
    width = max(one.source.shape[1], other.source.shape[1])

    def both(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.cat([torch.nn.functional.pad(x, (0, width - x.shape[1])) for x in (a, b)])

    return Batch(
        both(one.source, other.source),
        both(one.target_in, other.target_in),
        both(one.target_out, other.target_out),
        one.source_tokens + other.source_tokens,
        one.target_tokens + other.target_tokens,
    )


def _updated(batches: list[Batch]) -> tuple[torch.Tensor, float, float]:
    model = _model()
    seen = update(model, adam(model, CONFIG), batches, CONFIG, rate=1e-3, precision="fp32")
    return (
        torch.cat([p.detach().flatten() for p in model.parameters()]),
        seen.nll / seen.target_tokens,
        seen.gradient_norm,
    )


def test_micro_batches_of_unequal_size_equal_the_merged_batch() -> None:
    one, other = _batch([3], seed=1), _batch([9, 9, 8, 9], seed=2)
    split, nll, norm = _updated([one, other])
    merged, merged_nll, merged_norm = _updated([_merged(one, other)])
    torch.testing.assert_close(split, merged, atol=2e-6, rtol=0)
    assert nll == pytest.approx(merged_nll, abs=1e-5)
    assert norm == pytest.approx(merged_norm, rel=1e-4)


def test_loss_of_a_model_with_an_output_bias_is_that_of_its_logits() -> None:
    model, batch = _model(output_bias=True, tying="decoder"), _batch([3, 9, 5], seed=1)
    with torch.no_grad():
        assert model.embeddings.output_bias is not None
        model.embeddings.output_bias.normal_()
    found, nll = batch_loss(model, batch, smoothing=0.1, scale=0.5)
    logits = model(batch.source, batch.target_in)
    real = batch.target_out != 0
    plain = plain_smoothed_cross_entropy(logits[real], batch.target_out[real], 0.1)
    torch.testing.assert_close(found, 0.5 * plain.sum())
    torch.testing.assert_close(
        nll, plain_smoothed_cross_entropy(logits[real], batch.target_out[real], 0.0).sum()
    )
    parameters = list(model.parameters())
    ours, theirs = (torch.autograd.grad(loss, parameters) for loss in (found, 0.5 * plain.sum()))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def test_padding_changes_nothing() -> None:
    narrow, _, norm = _updated([_batch([3, 5], seed=1)])
    wide = _batch([3, 5], seed=1)
    pad = torch.nn.functional.pad
    padded = Batch(pad(wide.source, (0, 6)), pad(wide.target_in, (0, 6)), pad(wide.target_out, (0, 6)), 8, 8)
    more, _, padded_norm = _updated([padded])
    torch.testing.assert_close(more, narrow, atol=2e-6, rtol=0)
    assert padded_norm == pytest.approx(norm, rel=1e-4)


def test_an_update_that_is_not_finite_moves_nothing() -> None:
    model = _model()
    before = [p.detach().clone() for p in model.parameters()]
    with torch.no_grad():
        model.encoder.layers[0].feed_forward.w_1.weight[0, 0] = float("inf")
        before = [p.detach().clone() for p in model.parameters()]
    seen = update(model, adam(model, CONFIG), [_batch([4, 4], seed=1)], CONFIG, rate=1e-3, precision="fp32")
    assert not seen.finite
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert all(p.grad is None for p in model.parameters())


def test_bf16_keeps_master_weights_in_float32_and_small_steps_are_not_lost() -> None:
    model = _model()
    optimizer = adam(model, CONFIG)
    norm = model.encoder.layers[0].add_norm_1.norm.weight
    assert torch.equal(norm, torch.ones_like(norm))
    update(model, optimizer, [_batch([4, 4], seed=1)], CONFIG, rate=7e-4, precision="bf16")
    assert all(p.dtype == torch.float32 for p in model.parameters())
    assert all(v.dtype == torch.float32 for s in optimizer.state.values() for v in s.values())
    moved = (norm - 1).abs().max().item()
    assert 0 < moved < 2**-7  # below bfloat16's spacing at 1, where it would have been rounded away


def test_the_pad_row_cannot_reach_a_real_token() -> None:
    model = _model()
    optimizer = adam(model, CONFIG)
    for step in range(10):
        update(model, optimizer, [_batch([3, 9], seed=step)], CONFIG, rate=1e-3, precision="fp32")
    model.eval()
    batch = _batch([4, 9], seed=50)
    with torch.no_grad():
        before = model(batch.source, batch.target_in)
        model.embeddings.target[0] = 1e3
        after = model(batch.source, batch.target_in)
    real = batch.target_out != 0
    assert torch.equal(before[..., 1:][real], after[..., 1:][real])


def test_clipping_bounds_the_gradient_that_adam_sees() -> None:
    model = _model()
    clipped = TrainingConfig(device="cpu", precision="fp32", clip_norm=1e-3)
    optimizer = adam(model, clipped)
    seen = update(model, optimizer, [_batch([4, 9], seed=1)], clipped, rate=0.0, precision="fp32")
    moments = torch.cat([optimizer.state[p]["exp_avg"].flatten() for p in model.parameters()]) / (1 - 0.9)
    assert seen.gradient_norm > 1e-2
    assert moments.norm().item() == pytest.approx(1e-3, rel=1e-3)
