"""The moving average of the weights: the formula, going on with it, and what it costs when it is off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from toy import toy_settings, write_toy

from transduce.bundle import load_bundle
from transduce.errors import ConfigError, TrainingError
from transduce.evaluation.evaluate import evaluate
from transduce.training.config import TrainingConfig
from transduce.training.ema import FILE, MovingAverage, decay_at
from transduce.training.run import TrainingResult, train
from transduce.training.step import Learner, begin_update
from transduce.training.validation import Validation


def _train(folder: Path, name: str, *, resume: bool = False, **training: Any) -> TrainingResult:
    source, target = write_toy(folder)
    with (folder / f"{name}.txt").open("a", encoding="utf-8") as stream:
        return train(
            folder / name,
            source=source,
            target=target,
            settings=toy_settings(**training),
            resume=resume,
            stream=stream,
        )


def _stored(folder: Path, step: int, name: str) -> dict[str, torch.Tensor]:
    return load_file(folder / "checkpoints" / f"step-{step:08d}" / name)


def _equal(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("decay", [0.3, 0.9, 0.999])
def test_the_closed_formula(decay: float) -> None:
    """weights_0 x d_1 d_2 ... d_T + the sum of weights_t (1 - d_t) d_(t+1) ... d_T, in double precision."""
    torch.manual_seed(3)
    model = nn.Linear(4, 3)
    history = [{n: p.detach().double() for n, p in model.named_parameters()}]
    average = MovingAverage(model, decay)
    for step in range(1, 61):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter))
        history.append({n: p.detach().double() for n, p in model.named_parameters()})
        average.update(step)
    decays = [min(decay, (1 + t) / (10 + t)) for t in range(61)]
    for name, found in average.tensors.items():
        left, expected = 1.0, torch.zeros_like(history[0][name])
        for t in range(60, 0, -1):
            expected += left * (1 - decays[t]) * history[t][name]
            left *= decays[t]
        expected += left * history[0][name]
        assert found.dtype == torch.float32
        torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-6)


def test_the_warm_up_ends_where_the_decay_is_reached() -> None:
    assert decay_at(0.999, 1) == 2 / 11
    assert decay_at(0.999, 8989) < 0.999 == decay_at(0.999, 8991)
    assert decay_at(0.1, 1) == 0.1


def test_the_models_weights_come_back_bit_for_bit() -> None:
    model = nn.Linear(3, 2)
    average = MovingAverage(model, 0.5)
    with torch.no_grad():
        model.weight.add_(1.0)
    average.update(1)
    weights, means = model.weight.detach().clone(), average.tensors["weight"].clone()
    address = model.weight.data_ptr()

    def interrupted() -> None:
        with average.in_place():
            assert torch.equal(model.weight, means)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert torch.equal(model.weight, weights)
    assert torch.equal(average.tensors["weight"], means)
    assert model.weight.data_ptr() == address


def test_the_average_is_validated_and_becomes_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, torch.Tensor]] = []

    def look(model: nn.Module, *_: object, **__: object) -> Validation:
        seen.append({name: p.detach().clone() for name, p in model.named_parameters()})
        return Validation(1.0, 1.0, "signature", ())

    monkeypatch.setattr("transduce.training.composition.validate", look)
    result = _train(tmp_path, "run", max_steps=6, save_every=3, ema=0.9)
    means = [_stored(result.folder, step, FILE) for step in (3, 6)]
    weights = [_stored(result.folder, step, "model.safetensors") for step in (3, 6)]
    assert all(_equal(a, b) for a, b in zip(seen, means, strict=True))
    assert not any(_equal(a, b) for a, b in zip(seen, weights, strict=True))
    final = {n: p.detach() for n, p in load_bundle(result.folder).model.named_parameters()}
    assert _equal(final, means[-1])
    training = json.loads((result.folder / "training.json").read_bytes())
    assert (training["averaged"], training["ema"]) == ([], 0.9)
    said = (tmp_path / "run.txt").read_text("utf-8")
    assert "model, the moving average of the weights with decay 0.9: " in said


@pytest.mark.usefixtures("unscored")
def test_it_changes_no_update_and_a_resumed_run_is_the_same_run(tmp_path: Path) -> None:
    how = {"save_every": 4, "micro_batch_tokens": 100, "schedule": "paper", "warmup": 9, "ema": 0.95}
    _train(tmp_path, "straight", max_steps=12, **how)
    _train(tmp_path, "cut", max_steps=5, **how)
    _train(tmp_path, "cut", max_steps=12, resume=True, **how)
    _train(tmp_path, "without", max_steps=12, **{**how, "ema": 0.0})
    straight, cut, without = (tmp_path / name for name in ("straight", "cut", "without"))
    assert _equal(_stored(straight, 12, FILE), _stored(cut, 12, FILE))
    assert not _equal(_stored(straight, 12, FILE), _stored(straight, 8, FILE))
    for name in ("model.safetensors", "optimizer.safetensors"):
        assert _equal(_stored(straight, 12, name), _stored(without, 12, name))
    assert not (without / "checkpoints" / "step-00000012" / FILE).exists()
    with pytest.raises(ConfigError, match=r"another run.*training.ema was 0.95, is 0.5"):
        _train(tmp_path, "cut", max_steps=14, resume=True, **{**how, "ema": 0.5})
    (cut / "checkpoints" / "step-00000012" / FILE).unlink()
    with pytest.raises(TrainingError, match=r"ema.safetensors: cannot be used"):
        _train(tmp_path, "cut", max_steps=14, resume=True, **how)


@pytest.mark.usefixtures("unscored")
def test_an_update_that_is_not_finite_does_not_move_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The third update is poisoned and so skipped: the average stays as it was after the second."""
    count = 0

    def poisoned(learner: Learner, *rest: Any, **more: Any) -> Any:
        nonlocal count
        count += 1
        bias = next(p for n, p in learner.model.named_parameters() if n.endswith("bias")).detach()
        kept = bias.clone()
        if count == 3:
            bias.fill_(float("inf"))
        result = begin_update(learner, *rest, **more)
        if count == 3:
            assert not result.read().finite
            bias.copy_(kept)
        return result

    monkeypatch.setattr("transduce.training.trainer.begin_update", poisoned)
    result = _train(tmp_path, "run", max_steps=4, save_every=1, average=9, ema=0.9)
    after = [_stored(result.folder, step, FILE) for step in (1, 2, 3, 4)]
    assert _equal(after[1], after[2])
    assert not _equal(after[0], after[1])
    assert not _equal(after[2], after[3])


@pytest.mark.parametrize("decay", [-0.1, 1.0, float("nan")])
def test_a_decay_that_makes_no_sense(decay: float) -> None:
    with pytest.raises(ConfigError, match=r"training\.ema is"):
        TrainingConfig(ema=decay)


@pytest.mark.usefixtures("unscored")
def test_a_score_of_the_model_says_that_it_is_a_moving_average(tmp_path: Path) -> None:
    result = _train(tmp_path, "run", max_steps=1, ema=0.99)
    line = tmp_path / "line"
    line.write_text("one two\n", encoding="utf-8")
    recipe = evaluate(result.folder, line, line, beam=1, device="cpu").recipe
    assert " | 1 update | moving average with decay 0.99 | cpu" in recipe
