"""`training.compile`: the same result within float error, only in training; one line where it cannot be."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from toy import toy_call

from transduce.errors import ConfigError
from transduce.model.transformer import Transformer
from transduce.training.compiled import CompiledLayers, compiled
from transduce.training.run import train

needs_a_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("g++", "clang++"))), reason="torch.compile needs a C++ compiler on a CPU"
)


def test_where_it_fails_one_line_says_why_and_nothing_is_left(
    small_model: Callable[..., Transformer], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(forward: Any, *, dynamic: bool) -> Any:
        def compiled(*inputs: Any) -> Any:
            forward(*inputs)
            raise RuntimeError("backend='inductor' raised:\nInvalidCxxCompiler: No working C++ compiler")

        return compiled

    monkeypatch.setattr(torch, "compile", fails)
    model, random = small_model(), torch.get_rng_state()
    with pytest.raises(ConfigError) as caught:
        compiled(model, device="cpu", precision="fp32")
    message = str(caught.value)
    assert message.startswith(
        "training.compile is on, but torch.compile fails here: backend='inductor' raised: "
    )
    assert message.endswith("install a C++ compiler (g++), or set training.compile=false")
    assert torch.equal(torch.get_rng_state(), random)
    assert not model.training
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not any("forward" in vars(module) for module in model.modules())


@pytest.mark.usefixtures("unscored")
@pytest.mark.parametrize("recompute", [False, True])
def test_layers_are_compiled_where_they_are_trained_and_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recompute: bool
) -> None:
    """With a compiler that changes nothing the run is the same bit for bit."""
    how = {"max_steps": 2, "micro_batch_tokens": 100, "recompute_layers": recompute}
    train(tmp_path / "plain", **toy_call(tmp_path, **how))
    calls: list[bool] = []

    def compile_nothing(forward: Any, *, dynamic: bool) -> Any:
        def counted(*inputs: Any) -> Any:
            calls.append(torch.is_grad_enabled())
            return forward(*inputs)

        assert dynamic
        return counted

    monkeypatch.setattr(torch, "compile", compile_nothing)
    call = toy_call(tmp_path, **how, compile=True)
    train(tmp_path / "compiled", **call)
    one, other = ((tmp_path / n / "model.safetensors").read_bytes() for n in ("plain", "compiled"))
    assert one == other
    said = call["stream"].getvalue()
    assert "update sees" in said
    assert calls
    assert all(calls)  # validation takes no gradients


def test_what_is_translated_is_not_compiled(
    small_model: Callable[..., Transformer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "compile", lambda _, **__: len)
    model = small_model()
    layers = CompiledLayers(model)
    own = model.encoder.layers[0].forward
    with layers.in_place():
        assert model.encoder.layers[0].forward is len
    assert model.encoder.layers[0].forward == own


# In a process of its own: the compiler would also read what checks shapes in tests.
COMPILED = """
import sys
import torch
from transduce.errors import ConfigError
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer
from transduce.training.compiled import compiled
from transduce.training.config import TrainingConfig
from transduce.training.optimizer import adam
from transduce.training.step import Batch, Learner, update

torch.set_num_threads(1)
config = TrainingConfig(device="cpu")
shape = {"d_model": 32, "d_ff": 64, "heads": 2, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}

def batch(rows, source, target, seed):
    torch.manual_seed(seed)
    source_ids, target_ids = (torch.randint(4, 100, (rows, length)) for length in (source, target))
    source_ids[0, -2:] = 0
    shifted = torch.nn.functional.pad(target_ids[:, :-1], (1, 0))
    return Batch(source_ids, shifted, target_ids, rows * source, rows * target)

def weights(wanted):
    torch.manual_seed(1)
    model = Transformer(ModelConfig.named("tiny", vocabulary=100, **shape)).train()
    learner, optimizer = Learner(model), adam(model, config)
    if wanted:
        learner.compiled = compiled(model, device="cpu", precision="fp32")
    for seed, (rows, source, target) in enumerate([(3, 7, 5), (4, 9, 12), (2, 30, 28), (7, 12, 12)]):
        update(model, optimizer, [batch(rows, source, target, seed)], config, rate=1e-3, precision="fp32",
               learner=learner)
    return list(model.parameters())

try:
    pairs = list(zip(weights(True), weights(False)))
except ConfigError as error:
    print(error)
    sys.exit(2)
print(max(float((one - other).detach().abs().max()) for one, other in pairs))
from torch._dynamo.utils import counters
print(counters["stats"]["unique_graphs"], len(counters["graph_break"]))
"""


def _run(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name != "CXX"}
    return subprocess.run(
        [sys.executable, "-c", COMPILED],
        capture_output=True,
        text=True,
        check=False,
        env={**kept, "OMP_NUM_THREADS": "1", "TORCHINDUCTOR_CACHE_DIR": str(folder), **environment},
    )


@pytest.mark.slow
@needs_a_compiler
def test_the_result_is_the_same_within_float_error(tmp_path: Path) -> None:
    done = _run(tmp_path)
    assert done.returncode == 0, done.stderr
    difference, graphs = done.stdout.splitlines()
    assert float(difference) < 2e-6  # the updates move weights by 1e-3
    # one for each kind of layer, however many there are and whatever the shapes
    assert graphs == "2 0"


@pytest.mark.slow
def test_without_a_compiler(tmp_path: Path) -> None:
    done = _run(tmp_path, PATH=str(tmp_path))
    assert done.returncode == 2, done.stderr
    assert done.stdout.count("\n") == 1
    assert "training.compile is on, but torch.compile fails here: " in done.stdout
    assert "compiler" in done.stdout
