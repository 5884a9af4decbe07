"""Losses and gradients that are not finite: skipped, counted, named, and after three in a row the end."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from toy import toy_call, toy_settings, write_toy

from transduce.cli.main import main
from transduce.errors import TrainingError
from transduce.model.transformer import Transformer
from transduce.training import step as step_module
from transduce.training.config import TrainingConfig
from transduce.training.finite import first_offender
from transduce.training.optimizer import adam
from transduce.training.run import train
from transduce.training.step import Batch, update
from transduce.training.trainer import Trainer

CONFIG = TrainingConfig(device="cpu", precision="fp32")


def _batch(token: int = 5) -> Batch:
    ids = torch.full((3, 4), token)
    return Batch(ids, ids, ids, 12, 12)


def _offender(model: Transformer, *batches: Batch) -> str:
    return first_offender(model, batches or (_batch(),), CONFIG, precision="fp32")


@pytest.mark.parametrize(
    ("parameter", "named"),
    [
        ("encoder.layers.1.feed_forward.w_2.weight", "the output of encoder.layers.1.feed_forward.w_2"),
        ("encoder.layers.0.self_attention.qkv.weight", "the output of encoder.layers.0.self_attention.qkv"),
        ("decoder.layers.0.cross_attention.kv.weight", "the output of decoder.layers.0.cross_attention.kv"),
        ("decoder.layers.1.add_norm_3.norm.bias", "the output of decoder.layers.1.add_norm_3.norm"),
        ("embeddings.target", "the parameter embeddings.target"),
    ],
)
@pytest.mark.parametrize("poison", [math.inf, math.nan])
def test_the_poisoned_module_is_named(
    small_model: Callable[..., Transformer], parameter: str, named: str, poison: float
) -> None:
    model = small_model().train()
    with torch.no_grad():
        model.get_parameter(parameter)[5] = poison
    seen = update(model, adam(model, CONFIG), [_batch()], CONFIG, rate=1e-3, precision="fp32")
    assert not seen.finite
    assert _offender(model) == named


def test_the_first_in_forward_order_is_named(small_model: Callable[..., Transformer]) -> None:
    model = small_model().train()
    with torch.no_grad():
        for name in ("decoder.layers.0.feed_forward.w_1.weight", "encoder.layers.1.feed_forward.w_1.weight"):
            model.get_parameter(name)[0, 0] = math.inf
    assert _offender(model) == "the output of encoder.layers.1.feed_forward.w_1"


def test_a_row_that_only_the_softmax_reads(small_model: Callable[..., Transformer]) -> None:
    model = small_model().train()
    with torch.no_grad():
        model.embeddings.target[9] = math.inf  # no batch holds 9: all outputs are finite, the loss is not
    assert _offender(model) == "the parameter embeddings.target"


def test_a_gradient_that_overflows(small_model: Callable[..., Transformer]) -> None:
    model = small_model().train()

    def overflow(gradient: torch.Tensor) -> torch.Tensor:
        return gradient * math.inf

    handle = model.decoder.layers[1].feed_forward.w_1.weight.register_hook(overflow)
    assert _offender(model) == "the gradient of decoder.layers.1.feed_forward.w_1.weight"
    handle.remove()
    assert _offender(model) == "nothing that a second pass over the same pairs shows"


def test_looking_changes_nothing(small_model: Callable[..., Transformer]) -> None:
    model = small_model(dropout=0.3).train()
    random = torch.get_rng_state()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    _offender(model, _batch(), _batch(6))
    assert torch.equal(torch.get_rng_state(), random)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not any(module._forward_hooks for module in model.modules())


# --- in a run


def _toy(folder: Path, **training: Any) -> dict[str, Any]:
    call = toy_call(folder, **{"max_steps": 8, **training})
    del call["stream"]  # these tests read what is said
    return call


def _events(folder: Path, event: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_bytes().splitlines()]
    return [line for line in lines if line["event"] == event]


def _poison(monkeypatch: pytest.MonkeyPatch, at: int, *, mend: bool) -> None:
    """One weight is infinite from update ``at`` on; with ``mend`` only in that update."""
    one = Trainer._one

    def poisoned(self: Trainer, ids: Any) -> None:
        weight = self.model.encoder.layers[0].feed_forward.w_1.weight
        kept, bad = float(weight.detach()[0, 0]), self.progress.step + 1 == at
        with torch.no_grad():
            weight[0, 0] = math.inf if bad else kept
        one(self, ids)
        if mend and bad:
            with torch.no_grad():
                weight[0, 0] = kept

    monkeypatch.setattr(Trainer, "_one", poisoned)


def test_one_is_skipped_counted_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _poison(monkeypatch, 5, mend=True)
    with (tmp_path / "said").open("w", encoding="utf-8") as stream:
        assert train(tmp_path / "run", **_toy(tmp_path), stream=stream).steps == 8
    (event,) = _events(tmp_path / "run", "non-finite")
    assert (event["step"], event["count"]) == (5, 1)
    assert "encoder.layers.0.feed_forward.w_1" in event["first"]
    said = (tmp_path / "said").read_text("utf-8")
    assert "step 5: loss or gradient is not finite, first the " in said
    assert "feed_forward.w_1" in said
    # no report averages over what was skipped
    reports = _events(tmp_path / "run", "train")
    assert [line["step"] for line in reports] == [1, 2, 3, 4, 6, 7, 8]
    assert all(line["nll"] is not None and math.isfinite(line["nll"]) for line in reports)


def test_three_in_a_row_end_the_run_and_the_last_good_checkpoint_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def digest(folder: Path) -> dict[str, str]:
        return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.iterdir()}

    seen: list[dict[str, str]] = []
    _poison(monkeypatch, 5, mend=False)
    work = Trainer._one

    def spied(self: Trainer, ids: Any) -> None:
        if self.progress.step == 4:
            seen.append(digest(tmp_path / "run" / "checkpoints" / "step-00000004"))
        work(self, ids)

    monkeypatch.setattr(Trainer, "_one", spied)
    with (
        (tmp_path / "said").open("w", encoding="utf-8") as stream,
        pytest.raises(TrainingError, match=r"not finite in 3 updates in a row, up to step 7.*step-00000004"),
    ):
        train(tmp_path / "run", **_toy(tmp_path, average=1), stream=stream)
    assert TrainingError.exit_code == 1
    # an update of 6 was due to be saved, but the weights were broken by then
    assert [path.name for path in (tmp_path / "run" / "checkpoints").iterdir()] == ["step-00000004"]
    assert digest(tmp_path / "run" / "checkpoints" / "step-00000004") == seen[0]
    assert len(_events(tmp_path / "run", "non-finite")) == 3


def test_three_in_a_row_across_a_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loss = step_module.batch_loss

    def broken(*arguments: Any, **named: Any) -> Any:
        smoothed, plain = loss(*arguments, **named)
        return smoothed * math.nan, plain

    call = _toy(tmp_path)
    with (tmp_path / "said").open("w", encoding="utf-8") as stream:
        with monkeypatch.context() as patch:
            work = Trainer._update

            def stopping(self: Trainer, *arguments: Any) -> Any:
                if self.progress.step == 5:
                    self._caught = 15
                if self.progress.step == 4:
                    patch.setattr(step_module, "batch_loss", broken)
                return work(self, *arguments)

            patch.setattr(Trainer, "_update", stopping)
            assert train(tmp_path / "run", **call, stream=stream).steps == 6
        monkeypatch.setattr("transduce.training.step.batch_loss", broken)
        monkeypatch.setattr("transduce.training.trial.Trial.fits", lambda *_: True)
        with pytest.raises(TrainingError, match=r"3 updates in a row, up to step 7"):
            train(tmp_path / "run", **call, resume=True, stream=stream)


def test_the_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _poison(monkeypatch, 3, mend=False)
    write_toy(tmp_path, 200)
    call = ["train", "--source", str(tmp_path / "toy.en"), "--target", str(tmp_path / "toy.de")]
    for section, values in toy_settings(save_every=2, max_steps=8, valid_lines=1).items():
        for name, value in values.items():
            call += ["--set", f"{section}.{name}={value}"]
    assert main([*call, "--output", str(tmp_path / "run")]) == 1
    error = capsys.readouterr().err
    assert "transduce: error: loss or gradient was not finite in 3 updates in a row, up to step 5" in error
