"""OpenVINO's steps against those of the model, which is the reference."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from typing import Any

import pytest
import torch
from tests.tiny_translator import sentences, tiny_bundle, tiny_model

from transduce.bundle import save_bundle
from transduce.decoding import engines
from transduce.decoding.candidates import BLOCK
from transduce.decoding.translator import Translator
from transduce.errors import UsageError
from transduce.model.transformer import Transformer

needs_openvino = pytest.mark.skipif(
    importlib.util.find_spec("openvino") is None, reason="needs openvino: pip install 'transduce[fast]'"
)
BEAM = 3
SHAPES: list[dict[str, Any]] = [
    {},
    {"norm": "pre", "positions": "rotary", "attention_bias": True},
    {"positions": "t2t", "tying": "none", "decoder_start": "bos"},
    {"positions": "learned", "tying": "decoder", "d_k": 6, "d_v": 10, "decoder_layers": 1},
    {"activation": "swish", "output_bias": True, "scale_embeddings": False, "attention_bias": True},
    {"activation": "gelu", "output_bias": True, "tying": "none"},
    {"positions": "rotary", "d_k": 8, "d_v": 16, "encoder_layers": 1, "decoder_start": "eos"},
]


def engine(model: Transformer, precision: str = "fp32", workers: int = 1) -> Any:
    from transduce.decoding.openvino_engine import OpenVinoEngine

    return OpenVinoEngine(model, precision=precision, workers=workers, forbidden=(0, 2, 3))


def sources(model: Transformer) -> torch.Tensor:
    """Three padded sentences that end in eos."""
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(4, model.config.vocabulary, (3, 6), generator=generator)
    for row, length in enumerate((5, 3, 4)):
        ids[row, length], ids[row, length + 1 :] = model.config.eos_id, model.config.pad_id
    return ids


def walk(fast: Any, model: Transformer) -> float:
    """The largest difference of log P from the model's in seven steps that copy, drop and reorder rows."""
    generator = torch.Generator().manual_seed(5)
    worst = 0.0
    with torch.inference_mode():
        quick, slow = fast.start(sources(model)), model.start(sources(model))
        tokens = torch.full((3,), model.config.start_id)
        for length in range(7):
            scored, quick = fast.step(tokens, quick)
            logits, slow = model.decode(tokens[:, None], slow)
            logits[:, 0, [0, 2, 3]] = float("-inf")
            allowed = torch.isfinite(logits[0, 0])
            found, expected = scored.log_p(), logits[:, 0].log_softmax(1)
            assert scored.logits.shape[1] % BLOCK == 0
            assert scored.logits[:, model.config.vocabulary :].isneginf().all()
            assert found[:, ~allowed].isneginf().all()
            worst = max(worst, float((found - expected)[:, allowed].abs().max()))
            sentences, slots = len(quick.bias), len(tokens) // len(quick.bias)
            keep = torch.tensor([0, 2]) if length == 3 else torch.arange(sentences)
            parents = torch.randint(0, slots, (len(keep), BEAM), generator=generator)
            rows = (keep[:, None] * slots + parents).flatten()
            dropped = keep if length == 3 else None
            quick, slow = quick.rows(rows, dropped), slow.rows(rows, dropped)
            tokens = torch.randint(4, model.config.vocabulary, (len(rows),), generator=generator)
    return worst


@needs_openvino
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "-".join(map(str, shape.values())) or "paper")
def test_steps_equal_those_of_the_model(shape: dict[str, Any]) -> None:
    model = tiny_model(**shape)
    assert walk(engine(model), model) < 2e-5


@needs_openvino
@pytest.mark.parametrize("factor", [60.0, 400.0])
def test_logits_whose_exponentials_float32_cannot_hold_are_no_less_exact(factor: float) -> None:
    model = tiny_model()
    with torch.no_grad():
        model.embeddings.own_output = torch.nn.Parameter(model.embeddings.output * factor)
    with torch.inference_mode():
        logits, _ = model.decode(torch.full((3, 1), model.config.start_id), model.start(sources(model)))
    assert logits.max() > 60  # e^89 is beyond float32
    assert walk(engine(model), model) < 2e-5 * factor


@needs_openvino
def test_int8_is_the_model_with_its_matrices_rounded() -> None:
    model, rounded = tiny_model(norm="pre"), tiny_model(norm="pre")
    with torch.no_grad():
        for name, tensor in rounded.named_parameters():
            # The table of the embeddings stays as it is, so the products' matrix must be parted from it.
            if tensor.dim() == 2 and "embeddings" not in name:
                step = tensor.abs().amax(1, keepdim=True) / 127
                tensor.copy_((tensor / step).round() * step)
        table = rounded.embeddings.target
        step = table.abs().amax(1, keepdim=True) / 127
        rounded.embeddings.own_output = torch.nn.Parameter((table / step).round() * step)
    fast = engine(model, "int8")
    assert walk(fast, rounded) < 2e-4
    assert walk(fast, model) > 1e-3


@needs_openvino
def test_text_is_the_same_for_every_engine_batch_and_number_of_threads() -> None:
    bundle, lines = tiny_bundle(), sentences(40, words=(1, 12))
    reference = Translator(bundle).translate_detailed(lines)
    for workers, batch_tokens in ((1, 0), (2, 60), (2, 1)):
        threads = torch.get_num_threads()
        torch.set_num_threads(workers)
        fast = Translator(bundle, engine="openvino")
        outputs = fast.translate_detailed(lines, batch_tokens=batch_tokens)
        assert [a.tokens for o in outputs for a in o.alternatives] == [
            a.tokens for o in reference for a in o.alternatives
        ]
        for output, expected in zip(outputs, reference, strict=True):
            assert output.alternatives[0].score == pytest.approx(expected.alternatives[0].score, abs=1e-4)
        assert torch.get_num_threads() == workers
        torch.set_num_threads(threads)


@needs_openvino
def test_a_place_in_a_search_is_continued_once() -> None:
    model = tiny_model()
    fast = engine(model)
    tokens = torch.full((3,), model.config.start_id)
    begin = fast.start(sources(model))
    fast.step(tokens, begin)
    with pytest.raises(AssertionError, match="once"):
        fast.step(tokens, begin)


@needs_openvino
def test_searches_at_the_same_time_do_not_share_memory_and_give_it_back() -> None:
    model = tiny_model()
    fast = engine(model, workers=2)
    tokens = torch.full((3,), model.config.start_id)
    one, other = fast.start(sources(model)), fast.start(sources(model).flip(0))
    first, one = fast.step(tokens, one)
    kept = first.log_p()
    second, other = fast.step(tokens, other)
    torch.testing.assert_close(second.log_p(), kept.flip(0))
    used = {id(one.session.decoder), id(other.session.decoder)}
    assert len(used) == 2
    del one, other, first, second
    assert id(fast.start(sources(model)).session.decoder) in used


@needs_openvino
def test_translating_speaks_to_nobody(tmp_path: Any) -> None:
    bundle = tiny_bundle()
    save_bundle(tmp_path / "model", bundle.model, bundle.model.config, bundle.tokenizer, {})
    code = f"""
import multiprocessing.process, os, socket, subprocess, sys
def refuse(*_, **__): raise SystemExit("a connection or a process was asked for")
socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
# OpenVINO's telemetry sends from a process of its own, where the above would go unnoticed.
os.fork = multiprocessing.process.BaseProcess.start = subprocess.Popen.__init__ = refuse
from transduce import Translator
print(Translator.load({str(tmp_path / "model")!r}, engine="openvino").translate(["a b"]) != [""])
print("openvino" in sys.modules, [name for name in sys.modules if name.startswith("openvino_telemetry")])
"""
    environment = {**os.environ, "HOME": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment
    )
    assert run.stdout.split("\n") == ["True", "True []", ""], run.stderr
    assert not (tmp_path / "intel").exists()  # where the telemetry keeps its counts


def test_auto_is_openvino_where_it_can_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    near = tiny_model(neighbourhood=2)
    pick = {"device": "cpu", "precision": "fp32", "forbidden": (0, 2, 3)}
    assert isinstance(engines.pick_engine("auto", near, **pick), engines.TorchEngine)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="neighbourhood"):
        engines.pick_engine("openvino", near, **pick)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="choose one of auto, torch, openvino"):
        engines.pick_engine("quick", near, **pick)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="int8 needs the engine openvino"):
        engines.pick_engine("torch", near, **{**pick, "precision": "int8"})  # type: ignore[arg-type]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    model = tiny_model()
    assert isinstance(engines.pick_engine("auto", model, **pick), engines.TorchEngine)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"pip install 'transduce\[fast\]'"):
        engines.pick_engine("openvino", model, **pick)  # type: ignore[arg-type]


@needs_openvino
def test_what_the_runtime_refuses_costs_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    from transduce.decoding import openvino_engine

    def refuse(*_: Any, **__: Any) -> None:
        raise RuntimeError("no such kernel")

    monkeypatch.setattr(openvino_engine, "OpenVinoEngine", refuse)
    pick: dict[str, Any] = {"device": "cpu", "precision": "fp32", "forbidden": (0, 2, 3)}
    with pytest.warns(UserWarning, match="PyTorch is: no such kernel"):
        assert isinstance(engines.pick_engine("auto", tiny_model(), **pick), engines.TorchEngine)
    with pytest.raises(UsageError, match="no such kernel; use the engine torch"):
        engines.pick_engine("openvino", tiny_model(), **pick)
