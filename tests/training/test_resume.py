"""A run that was stopped and goes on is the run that was never stopped, or is refused by name."""

from __future__ import annotations

import hashlib
import json
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from toy import toy_settings, write_toy

from transduce.cli.main import main
from transduce.data.tokenizer import Tokenizer
from transduce.errors import ConfigError, DataError, TrainingError, UsageError
from transduce.training import step as step_module
from transduce.training.resume import rewind
from transduce.training.run import TrainingResult, train
from transduce.training.trainer import Trainer
from transduce.training.validation import Validation, validation_loss

STEPS = 20
# Dropout is on, an update gathers three micro-batches, an epoch has nine updates.
HOW: dict[str, Any] = {
    "batch_tokens": 300,
    "micro_batch_tokens": 100,
    "save_every": 7,
    "valid_every": 5,
    "report_every": 4,
    "average": 2,
    "max_steps": STEPS,
    "warmup": 9,
}
# What a log says of the clock.
TIMES = {"time", "seconds", "wait_data", "source_tokens_per_second", "target_tokens_per_second"}


class Killed(BaseException):
    """The process is gone."""


def _quick_validate(model: Any, _: Any, shards: Any, *__: Any, **how: Any) -> Validation:
    loss = validation_loss(model, shards, **how)
    return Validation(loss, 10_000 * loss % 7, "signature", (("source", "reference", str(loss)),))


@pytest.fixture(scope="module", autouse=True)
def _without_translating() -> Iterator[None]:
    """Validations measure the loss, their BLEU rises and falls with its digits; nothing is translated."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("transduce.training.composition.validate", _quick_validate)
        scores = {"bleu": 0.0, "chrf": 0.0, "exact": 0.0, "signature": "signature"}
        patch.setattr("transduce.training.finish.final_scores", lambda *_, **__: scores)
        yield


def _train(folder: Path, name: str, *, device: str = "cpu", **how: Any) -> TrainingResult:
    source, target = folder / "toy.en", folder / "toy.de"
    if not source.exists():
        write_toy(folder, 200)
    data = how.pop("data", {})
    call = {key: how.pop(key) for key in ("resume", "accept_changes") if key in how}
    settings = toy_settings(**{**HOW, "device": device, **how})
    settings["data"].update(data)
    with (folder / f"{name}.said").open("a", encoding="utf-8") as stream:
        return train(folder / name, source=source, target=target, settings=settings, stream=stream, **call)


def _said(folder: Path, name: str) -> str:
    return (folder / f"{name}.said").read_text("utf-8")


def _log(folder: Path) -> list[dict[str, Any]]:
    """The lines about updates and validations, without the clock's figures."""
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_bytes().splitlines()]
    wanted = [line for line in lines if line["event"] not in ("start", "end")]
    return [{name: value for name, value in line.items() if name not in TIMES} for line in wanted]


def _tensors(folder: Path) -> dict[str, str]:
    files = [*folder.glob("checkpoints/*/*.safetensors"), folder / "model.safetensors"]
    return {str(f.relative_to(folder)): hashlib.sha256(f.read_bytes()).hexdigest() for f in sorted(files)}


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> dict[int, list[list[int]]]:
    """The pair ids of each update's micro-batches, by the update's number; one that is done again is one."""
    updates: dict[int, list[list[int]]] = {}
    one = Trainer._one

    def spied(self: Trainer, ids: tuple[Any, ...]) -> None:
        updates[self.progress.step + 1] = [part.tolist() for part in ids]
        one(self, ids)

    monkeypatch.setattr(Trainer, "_one", spied)
    return updates


def _stop(monkeypatch: pytest.MonkeyPatch, how: str, step: int) -> None:
    """From now on a run is stopped while it works on its update ``step``: asked to, or with a kill.

    A kill comes in the second micro-batch, when gradients of the first are there; updates are counted from
    the run's start or resumption.
    """
    work, loss = Trainer._update, step_module.batch_loss
    updates = micro_batches = 0

    def counted(self: Trainer, *arguments: Any) -> Any:
        nonlocal updates, micro_batches
        updates, micro_batches = updates + 1, 0
        if how == "signal" and self.progress.step + 1 == step:
            self._caught = signal.SIGTERM
        return work(self, *arguments)

    def cut(*arguments: Any, **named: Any) -> Any:
        nonlocal micro_batches
        micro_batches += 1
        if how == "kill" and (updates, micro_batches) == (step, 2):
            raise Killed
        return loss(*arguments, **named)

    monkeypatch.setattr(Trainer, "_update", counted)
    monkeypatch.setattr(step_module, "batch_loss", cut)


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[int, list[list[int]]]]:
    """A run that was never stopped, and the pairs that it saw."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("straight")
    updates: dict[int, list[list[int]]] = {}
    one = Trainer._one

    def spied(self: Trainer, ids: tuple[Any, ...]) -> None:
        updates[self.progress.step + 1] = [part.tolist() for part in ids]
        one(self, ids)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "_one", spied)
        _train(folder, "run")
    return folder / "run", updates


@pytest.mark.parametrize(
    "stops",
    [
        pytest.param([("signal", 3)], id="before anything is due"),
        pytest.param([("signal", 10)], id="where a validation is due"),
        pytest.param([("signal", 14), ("signal", 15)], id="where a checkpoint is due, and right after"),
        pytest.param([("signal", STEPS)], id="at the last update"),
        pytest.param([("kill", 2)], id="killed before there is a checkpoint"),
        pytest.param([("kill", 13), ("signal", 17), ("kill", 3)], id="killed in the middle of updates"),
    ],
)
def test_a_run_that_was_stopped_is_the_same_run(
    tmp_path: Path,
    straight: tuple[Path, dict[int, list[list[int]]]],
    seen: dict[int, list[list[int]]],
    stops: list[tuple[str, int]],
) -> None:
    resume = False
    for how, step in stops:
        with pytest.MonkeyPatch.context() as patch, suppress(Killed):
            _stop(patch, how, step)
            result = _train(tmp_path, "run", resume=resume)
            assert how == "signal"
            assert result.reason == "stopped by SIGTERM"
        resume = True
    _train(tmp_path, "run", resume=True)
    folder, updates = straight
    assert max(len(parts) for parts in updates.values()) == 3
    assert seen == updates
    assert _tensors(tmp_path / "run") == _tensors(folder)
    assert _log(tmp_path / "run") == _log(folder)


@pytest.mark.cuda
def test_on_a_gpu_with_deterministic_kernels_it_is_the_same_run(tmp_path: Path) -> None:
    how = {"device": "cuda", "deterministic": True}
    _train(tmp_path, "straight", **how)
    with pytest.MonkeyPatch.context() as patch:
        _stop(patch, "signal", 11)
        _train(tmp_path, "cut", **how)
    _train(tmp_path, "cut", resume=True, **how)
    assert _tensors(tmp_path / "straight") == _tensors(tmp_path / "cut")
    assert _log(tmp_path / "straight") == _log(tmp_path / "cut")


def test_deterministic_kernels_are_on_for_the_run_and_no_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[bool] = []
    work = Trainer._update

    def spied(self: Trainer, *arguments: Any) -> Any:
        found.append(torch.are_deterministic_algorithms_enabled())
        return work(self, *arguments)

    monkeypatch.setattr(Trainer, "_update", spied)
    _train(tmp_path, "run", deterministic=True, max_steps=1)
    assert found == [True]
    assert not torch.are_deterministic_algorithms_enabled()


def test_a_late_run_goes_on_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _train(tmp_path, "run", max_steps=0, max_epochs=10**9, save_every=7, patience=1, warmup=1)
    state_file = max((tmp_path / "run" / "checkpoints").iterdir()) / "state.json"
    state = json.loads(state_file.read_bytes())
    state["progress"].update(step=1_000_000, epoch=200_000, position=2, without_better=0)
    state_file.write_text(json.dumps(state), encoding="utf-8")
    begun: list[float] = []

    def first(self: Trainer, _: Any) -> None:
        begun.append(time.monotonic())
        assert self.progress.step == 1_000_000
        raise Killed

    monkeypatch.setattr(Trainer, "_one", first)
    asked = time.monotonic()
    with pytest.raises(Killed):
        _train(tmp_path, "run", resume=True, max_steps=0, max_epochs=10**9, patience=1, warmup=1)
    assert begun[0] - asked < 5


def test_a_log_says_nothing_twice(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    lines = [{"event": "start"}, *({"event": "train", "step": step} for step in (5, 10, 15))]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"event": "tr', encoding="utf-8")
    rewind(log, 10)
    assert [json.loads(line) for line in log.read_bytes().splitlines()] == lines[:3]


# --- what has changed


def _begun(folder: Path, steps: int = 7) -> None:
    _train(folder, "run", max_steps=steps)


def _recipe(folder: Path) -> dict[str, Any]:
    recipe: dict[str, Any] = json.loads((folder / "run" / "training.json").read_bytes())["recipe"]
    return recipe


def test_another_corpus_is_refused_by_name_and_accepted_by_flag(
    tmp_path: Path, seen: dict[int, list[list[int]]]
) -> None:
    _begun(tmp_path)
    tokenizer = (tmp_path / "run" / "data" / "tokenizer.model").read_bytes()
    write_toy(tmp_path, 260, seed=5)
    with pytest.raises(DataError, match=r"train changed \(toy.de, toy.en\).*--accept-changes"):
        _train(tmp_path, "run", resume=True, max_steps=9)
    seen.clear()
    assert _train(tmp_path, "run", resume=True, accept_changes=True, max_steps=9).steps == 9
    assert "accepted: data changed; going on at the beginning of epoch 1" in _said(tmp_path, "run")
    prepared = json.loads((tmp_path / "run" / "data" / "train" / "meta.json").read_bytes())
    assert prepared["report"]["pairs"] == 260
    assert (tmp_path / "run" / "data" / "tokenizer.model").read_bytes() == tokenizer
    # the epoch anew, in the order of the new data
    from transduce.data.batching import Batching
    from transduce.data.shards import TokenShards

    shards = TokenShards.open(tmp_path / "run" / "data" / "train")
    order = Batching(
        shards.source_lengths, shards.target_lengths, batch_tokens=300, micro_batch_tokens=100, seed=1
    ).epoch(0)
    assert list(seen.values()) == [[part.tolist() for part in update] for update in order[:2]]
    # and from now on that is the run's data
    assert _train(tmp_path, "run", resume=True, max_steps=10).steps == 10


def test_a_kill_while_changed_data_are_prepared_does_not_smuggle_them_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _begun(tmp_path)
    tokenizer = (tmp_path / "run" / "data" / "tokenizer.model").read_bytes()
    write_toy(tmp_path, 260, seed=5)

    def killed(*_: Any, **__: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("transduce.data.preparation.write_shards", killed)
        with pytest.raises(Killed):
            _train(tmp_path, "run", resume=True, accept_changes=True, max_steps=9)
    with pytest.raises(TrainingError, match=r"another basis: data changed.*--accept-changes"):
        _train(tmp_path, "run", resume=True, max_steps=9)
    assert _train(tmp_path, "run", resume=True, accept_changes=True, max_steps=9).steps == 9
    assert (tmp_path / "run" / "data" / "tokenizer.model").read_bytes() == tokenizer


def _tokenizer(folder: Path, vocabulary: int) -> str:
    lines = [f"{a} {b}" for a in ("uno", "due", "tre") for b in ("quattro", "cinque", "sei")] * 9
    Tokenizer.train(lines, vocabulary).save(folder / f"{vocabulary}.model")
    return str(folder / f"{vocabulary}.model")


def test_another_tokenizer(tmp_path: Path) -> None:
    _begun(tmp_path)
    vocabulary = Tokenizer.load(tmp_path / "run" / "data" / "tokenizer.model").vocabulary
    fits, odd = (_tokenizer(tmp_path, size) for size in (vocabulary, 301))
    how: dict[str, Any] = {"resume": True, "max_steps": 9}
    with pytest.raises(DataError, match=r"tokenizer.* changed \(\d+\.model\).*--accept-changes"):
        _train(tmp_path, "run", data={"tokenizer": fits, "vocabulary": 0}, **how)
    before = _tensors(tmp_path / "run")
    for data, message in (
        ({"tokenizer": odd, "vocabulary": 0}, rf"with 301 pieces, but .* with {vocabulary}: .*cannot"),
        ({"vocabulary": 330}, r"data.vocabulary was 320, is 330: .*cannot be accepted"),
        ({"subwords": "unigram"}, r"data.subwords was 'bpe', is 'unigram': .*cannot be accepted"),
    ):
        with pytest.raises(ConfigError, match=message):
            _train(tmp_path, "run", data=data, accept_changes=True, **how)
    assert _tensors(tmp_path / "run") == before
    assert _train(tmp_path, "run", max_steps=8, resume=True).steps == 8  # nothing was lost by asking
    _train(tmp_path, "run", data={"tokenizer": fits, "vocabulary": 0}, accept_changes=True, **how)
    assert (tmp_path / "run" / "tokenizer.model").read_bytes() == Path(fits).read_bytes()
    assert "accepted: data, tokenizer changed" in _said(tmp_path, "run")


@pytest.mark.parametrize(
    ("name", "value", "restarts"),
    [
        ("label_smoothing", 0.2, False),
        ("rate", 1e-4, False),
        ("schedule", "paper", False),
        ("batch_tokens", 200, True),
        ("seed", 3, True),
    ],
)
def test_another_setting_is_refused_by_name_and_accepted_by_flag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: Any, restarts: bool
) -> None:
    _begun(tmp_path)
    with pytest.raises(ConfigError, match=rf"training.{name} was .*, is {value}; use --accept-changes"):
        _train(tmp_path, "run", resume=True, max_steps=9, **{name: value})
    used: list[Any] = []
    work = Trainer._update

    def spied(self: Trainer, *arguments: Any) -> Any:
        used.append(getattr(self.config, name))
        return work(self, *arguments)

    monkeypatch.setattr(Trainer, "_update", spied)
    _train(tmp_path, "run", resume=True, accept_changes=True, max_steps=9, **{name: value})
    assert used == [value, value]
    assert _recipe(tmp_path)["training"][name] == value
    said = _said(tmp_path, "run")
    assert f"accepted: training.{name} was " in said
    assert ("going on at the beginning of epoch" in said) == restarts
    # it is the run's setting now: nobody need say it again
    settings = {"training.max_steps": 10}
    with (tmp_path / "run.said").open("a", encoding="utf-8") as stream:
        assert train(tmp_path / "run", settings=settings, resume=True, stream=stream).steps == 10


def test_what_a_model_is_cannot_be_accepted_and_its_dropout_can(tmp_path: Path) -> None:
    _begun(tmp_path)
    with (tmp_path / "run.said").open("a", encoding="utf-8") as stream:

        def go_on(**call: Any) -> TrainingResult:
            return train(tmp_path / "run", resume=True, accept_changes=True, stream=stream, **call)

        for settings in ({"model.d_ff": 128}, {"model.norm": "post"}, {"model.positions": "t2t"}):
            name = next(iter(settings))
            with pytest.raises(ConfigError, match=rf"{name} was .*this cannot be accepted"):
                go_on(settings=settings)
        with pytest.raises(ConfigError, match=r"preset was tiny, is small.*cannot be accepted"):
            go_on(preset="small")
        go_on(settings={"model.dropout": 0.4, "training.max_steps": 9})
    config = json.loads((tmp_path / "run" / "config.json").read_bytes())
    assert config["model"]["dropout"] == 0.4


def test_the_flag_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _begun(tmp_path)
    call = ["train", "--resume", "--output", str(tmp_path / "run"), "--set", "training.max_steps=8"]
    assert main([*call, "--set", "training.clip_norm=1.0"]) == 2
    assert "training.clip_norm was 0.0, is 1.0; use --accept-changes" in capsys.readouterr().err
    assert main([*call, "--set", "training.clip_norm=1.0", "--accept-changes"]) == 0
    assert "accepted: training.clip_norm was 0.0, is 1.0" in capsys.readouterr().err


def test_there_must_be_a_run_to_accept_changes_of(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="give --resume as well"):
        _train(tmp_path, "run", accept_changes=True)
