"""The largest shape is tried before step 1, leaves no trace, and what would fit is said or found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from shortage import limit_memory
from toy import toy_call, toy_settings, write_toy

from transduce import machine
from transduce.cli.main import main
from transduce.data.batching import Batching
from transduce.errors import ConfigError
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer
from transduce.training.config import TrainingConfig
from transduce.training.memory import out_of_memory
from transduce.training.optimizer import adam
from transduce.training.run import train
from transduce.training.trial import (
    Trial,
    fitting_micro_batch,
    largest_that_fits,
    try_largest,
)

LENGTHS = [3, 3, 4, 5, 8, 8, 9, 30, 31, 40] * 40


def _batching(budget: int = 400, batch_tokens: int = 2000) -> Batching:
    return Batching(LENGTHS, LENGTHS[::-1], batch_tokens=batch_tokens, micro_batch_tokens=budget, seed=1)


def _trial(model: Transformer, **batching: int) -> Trial:
    config = TrainingConfig(device="cpu", precision="fp32")
    return Trial(model, adam(model, config), _batching(**batching), config, precision="fp32")


@pytest.mark.parametrize("budget", [40, 60, 400, 1999, 10**6])
def test_no_micro_batch_exceeds_the_shape_that_is_tried(
    small_model: Callable[..., Transformer], budget: int
) -> None:
    trial = _trial(small_model(), budget=budget, batch_tokens=10**6)
    batching = trial.batching
    rows, s, t = trial.shape(budget)
    for micro in (ids for epoch in range(3) for update in batching.epoch(epoch) for ids in update):
        r, x, y = (
            len(micro),
            int(batching.source_lengths[micro].max()),
            int(batching.target_lengths[micro].max()),
        )
        # what memory grows with: what the layers keep of each side, and the three attentions
        assert r * x <= rows * s
        assert r * y <= rows * t
        assert r * x * x <= rows * s * s
        assert r * y * y <= rows * t * t
        assert r * x * y <= rows * s * t


def test_a_trial_leaves_no_trace(small_model: Callable[..., Transformer]) -> None:
    model = small_model(dropout=0.3)
    trial = _trial(model)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    random = torch.get_rng_state()
    try_largest(trial, 400)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), random)
    assert not trial.optimizer.state
    assert all(parameter.grad is None for parameter in model.parameters())


def test_forward_backward_and_update_are_tried(
    small_model: Callable[..., Transformer], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, tried = small_model(), []
    trial = _trial(model)
    step = trial.optimizer.step

    def spied(*arguments: Any) -> Any:
        tried.append(all(parameter.grad is not None for parameter in model.parameters()))
        return step(*arguments)

    monkeypatch.setattr(trial.optimizer, "step", spied)
    assert trial.attempt(trial.shape(400), repeated=False)
    assert tried == [True, True]  # the first one makes the moments


def test_what_does_not_fit_is_said_with_what_would(
    small_model: Callable[..., Transformer], monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = _trial(small_model())
    limit_memory(monkeypatch, 200)
    with pytest.raises(ConfigError) as caught:
        try_largest(trial, 400)
    message = str(caught.value)
    assert "training.micro_batch_tokens is 400, but an update of 10 pairs of 40 and 40 tokens" in message
    assert "use training.micro_batch_tokens=200 (or --batch auto), which fits" in message


def test_not_even_one_pair_fits(
    small_model: Callable[..., Transformer], monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_memory(monkeypatch, 39)
    for call in (lambda t: try_largest(t, 400), fitting_micro_batch):
        with pytest.raises(ConfigError, match="not even one pair of 40 tokens fits: use a smaller model"):
            call(_trial(small_model()))


@pytest.mark.parametrize(("limit", "least", "most"), [(10**9, 2000, 2000), (777, 700, 777), (41, 40, 41)])
def test_auto_finds_the_largest_up_to_the_tokens_of_an_update(
    small_model: Callable[..., Transformer],
    monkeypatch: pytest.MonkeyPatch,
    limit: int,
    least: int,
    most: int,
) -> None:
    limit_memory(monkeypatch, limit)
    assert least <= fitting_micro_batch(_trial(small_model())) <= most


@pytest.mark.parametrize("fitting", [1, 7, 8, 100, 511, 512, 9999, 10_000, 50_000])
def test_the_search_is_right_to_a_sixteenth_and_soon_done(fitting: int) -> None:
    asked: list[int] = []

    def fits(value: int) -> bool:
        asked.append(value)
        return value <= fitting

    found = largest_that_fits(fits, 7, 10_000)
    if fitting < 7:
        assert found == 0
    else:
        assert min(fitting, 10_000) - max(1, found // 16) <= found <= fitting
    assert len(asked) <= 20


def test_on_a_cpu_the_need_is_foretold_before_it_is_too_late(
    small_model: Callable[..., Transformer], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = limit_memory(monkeypatch, 10**9)
    trial = _trial(small_model(), budget=4000, batch_tokens=4000)
    free = int(trial.needed(1700))
    monkeypatch.setattr(machine, "free_memory", lambda: free)
    with pytest.raises(ConfigError, match=r"use training.micro_batch_tokens=(1[67]\d\d) \(or"):
        try_largest(trial, 4000)
    assert max(sizes) < 1800  # nothing that would have been too much was ever begun


# In a process of its own: what other tests left of the memory would be part of the figures.
MEASURED = """
import resource
from pathlib import Path
import torch
from transduce import machine
from transduce.data.batching import Batching
from transduce.errors import ConfigError
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer
from transduce.training.config import TrainingConfig
from transduce.training.memory import out_of_memory
from transduce.training.optimizer import adam
from transduce.training.trial import Trial, try_largest

def status(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name))

torch.set_num_threads(1)
model = Transformer(ModelConfig.named("tiny", vocabulary=2000, encoder_layers=2, decoder_layers=2))
config = TrainingConfig()
batching = Batching([60] * 200, [60] * 200, batch_tokens=9600, micro_batch_tokens=9600, seed=1)
trial = Trial(model, adam(model, config), batching, config, precision="fp32")
before = status("VmRSS")
foretold = trial.needed(2000)
assert trial.fits(2000)
print(foretold / (status("VmHWM") - before))
resource.setrlimit(resource.RLIMIT_AS, (status("VmSize") + 90 * 2**20, resource.RLIM_INFINITY))
print(machine.free_memory() / 2**20)
machine.free_memory = lambda: None  # only the refusal itself is left
try:
    try_largest(trial, 9600)
except ConfigError as error:
    print(error)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="tells what memory a process takes")
def test_real_memory() -> None:
    """What is foretold is about what is taken; a real refusal to allocate is understood."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    ratio, free, refusal = done.stdout.splitlines()
    assert 0.7 < float(ratio) < 1.6
    assert 80 < float(free) <= 90
    assert "does not fit in the memory of cpu; use training.micro_batch_tokens=" in refusal


def test_it_costs_no_more_than_a_few_updates() -> None:
    """Under two seconds for tiny and its batch on any machine that does three updates in that time."""
    model = Transformer(ModelConfig.named("tiny", vocabulary=4000))
    config = TrainingConfig(device="cpu", precision="fp32")
    lengths = [length for length in range(2, 101) for _ in range(20)]
    batching = Batching(lengths, lengths, batch_tokens=1024, micro_batch_tokens=1024, seed=1)
    trial = Trial(model, adam(model, config), batching, config, precision="fp32")
    trial.attempt((1, 9, 9), repeated=False)
    times = []
    for work in (lambda: try_largest(trial, 1024), lambda: trial.attempt((10, 100, 100), repeated=False)):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    assert times[0] < 3 * times[1]


@pytest.mark.parametrize(
    ("error", "is_one"),
    [
        (MemoryError(), True),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried 5 bytes."), True),
        (RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_what_counts_as_out_of_memory(error: Exception, is_one: bool) -> None:
    assert out_of_memory(error) == is_one


# --- in a run


def _toy(folder: Path, **training: Any) -> dict[str, Any]:
    return toy_call(folder, **{"save_every": 4, "report_every": 2, "max_steps": 6, **training})


def test_the_trial_comes_before_step_1_and_changes_no_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(tmp_path / "tried", **_toy(tmp_path))
    monkeypatch.setattr(Trial, "fits", lambda *_: True)
    train(tmp_path / "untried", **_toy(tmp_path))
    one, other = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("tried", "untried"))
    assert one == other
    monkeypatch.undo()
    limit_memory(monkeypatch, 100)
    begin = time.monotonic()
    with pytest.raises(ConfigError, match=r"micro_batch_tokens is 300, .* use training.micro_batch_tokens="):
        train(tmp_path / "refused", **_toy(tmp_path))
    assert time.monotonic() - begin < 10
    assert not (tmp_path / "refused" / "checkpoints").exists()


def test_batch_auto(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit_memory(monkeypatch, 100)
    write_toy(tmp_path, 200)
    call = ["train", "--source", str(tmp_path / "toy.en"), "--target", str(tmp_path / "toy.de")]
    for section, values in toy_settings(max_steps=3, valid_lines=1).items():
        for name, value in values.items():
            call += ["--set", f"{section}.{name}={value}"]
    assert main([*call, "--batch", "auto", "--output", str(tmp_path / "run")]) == 0
    recipe = json.loads((tmp_path / "run" / "training.json").read_bytes())["recipe"]["training"]
    assert 80 <= recipe["micro_batch_tokens"] <= 100
    assert (recipe["batch_tokens"], recipe["fit_micro_batch"]) == (300, False)
    # the run goes on with what was found, whatever fits by then
    assert (
        main(["train", "--resume", "--output", str(tmp_path / "run"), "--set", "training.max_steps=4"]) == 0
    )
    assert main([*call, "--batch", "60", "--output", str(tmp_path / "other")]) == 0
    assert main([*call, "--batch", "much", "--output", str(tmp_path / "none")]) == 2
