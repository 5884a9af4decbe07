"""Models exported to ONNX: verified, of the size that their parameters have, and translating as before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.tiny_translator import save_tiny, sentences, tiny_bundle, tiny_model, tokenizer

from transduce import Translator, export_model, verify
from transduce.bundle import save_bundle
from transduce.cli.main import main
from transduce.data.tokenizer import Tokenizer
from transduce.decoding.engines import pick_engine
from transduce.errors import BundleError, TransduceError, UsageError
from transduce.interchange import onnx_weights
from transduce.interchange.onnx_format import Onnx

pytest.importorskip("onnxruntime", reason="needs onnxruntime: pip install 'transduce[export]'")
pytest.importorskip("onnx", reason="needs onnx: pip install 'transduce[export]'")

LINES = [*sentences(5, seed=4, words=(1, 5)), "", "  Ä 😀\u2581\ue000 "]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, and its exports in float32 and int8."""
    folder = tmp_path_factory.mktemp("onnx")
    save_tiny(folder / "model")
    for precision in ("float32", "int8"):
        export_model(folder / "model", folder / precision, to="onnx", precision=precision)
    return folder


@pytest.mark.parametrize(
    "shape",
    [
        {"tying": "three-way"},
        {"tying": "none", "norm": "pre", "positions": "rotary", "d_k": 16, "d_v": 24},
        {"tying": "decoder", "positions": "learned", "decoder_start": "bos"},
    ],
    ids=lambda shape: "-".join(map(str, shape.values())),
)
def test_what_is_exported_agrees_and_holds_each_tensor_once(shape: dict[str, Any], tmp_path: Path) -> None:
    """With d_model 512 at positions up to 90, and a vocabulary that is no multiple of 8."""
    odd = Tokenizer.train(sentences(300), 317)
    wide = {"vocabulary": odd.vocabulary, "d_model": 512, "d_ff": 64, "heads": 8}
    model = tiny_model(**wide, encoder_layers=1, decoder_layers=1, max_length=92, **shape)
    save_bundle(tmp_path / "model", model, model.config, odd, {})
    for precision, width in (("float32", 4), ("int8", 1)):
        found = export_model(
            tmp_path / "model", tmp_path / precision, to="onnx", precision=precision
        ).comparison
        assert found.good
        assert found.tokens == 724  # pairs of up to 90 tokens
        if precision == "float32":
            assert found.largest < 1e-4
        stored = (tmp_path / precision / "weights.bin").stat().st_size
        described = json.loads((tmp_path / precision / "config.json").read_bytes())
        # Positions stay as they are: one table of a formula, or two learned ones, which are parameters.
        tables = {"sinusoid": 4, "rotary": 0, "learned": 2 * (4 - width)}[described["model"]["positions"]]
        assert stored < 1.05 * (width * model.parameter_count() + tables * 512 * described["positions"])


def test_a_rounded_export_is_told_apart_and_still_the_same_model(folders: Path) -> None:
    found = verify(folders / "float32", folders / "int8")
    assert found.good
    assert found.largest > 1e-3
    assert found.sizes[1] < 0.75 * found.sizes[0]
    assert verify(folders / "model", folders / "float32").largest < 1e-4


@pytest.mark.parametrize(
    "options", [{}, {"beam": 1}, {"beam": 3, "n_best": 2, "alpha": 1.0}, {"samples": 2, "seed": 5}]
)
def test_text_is_the_same_as_from_the_model(options: dict[str, Any], folders: Path) -> None:
    options = {**options, "max_extra": 3}
    expected = Translator(tiny_bundle()).translate_detailed(LINES, **options)
    threads = torch.get_num_threads()
    try:
        for workers, batch_tokens in ((1, 0), (2, 60)):
            fast = Translator.load(folders / "float32", device="cpu", threads=workers)
            assert (fast.searcher.engine_name, fast.precision, fast.searcher.engine.workers) == (
                "onnx",
                "fp32",
                workers,
            )
            found = fast.translate_detailed(LINES, batch_tokens=batch_tokens, **options)
            assert [[a.tokens for a in one.alternatives] for one in found] == [
                [a.tokens for a in one.alternatives] for one in expected
            ]
            assert [one.text for one in found] == [one.text for one in expected]
    finally:
        torch.set_num_threads(threads)


def test_what_the_graphs_do_not_compute_comes_from_the_stored_weights(folders: Path) -> None:
    ours, fast = Translator(tiny_bundle()), Translator.load(folders / "float32", engine="onnx")
    found, expected = (it.translate_detailed(LINES[:3], max_extra=3, alignments=True) for it in (fast, ours))
    assert [one.alignment for one in found] == [one.alignment for one in expected]
    pairs = [(line, line) for line in LINES[:5]]
    for one, other in zip(fast.score(pairs), ours.score(pairs), strict=True):
        assert one.log_probability == pytest.approx(other.log_probability, abs=1e-3)
    rounded = Translator.load(folders / "int8", engine="torch", precision="fp32")
    assert rounded.translate(LINES[:1], max_extra=3) != [""]


def test_the_engine_is_refused_where_it_cannot_be_used(folders: Path) -> None:
    with pytest.raises(UsageError, match=r"engine onnx computes models that were exported.*--to onnx"):
        Translator.load(folders / "model", engine="onnx")
    with pytest.raises(UsageError, match=r"precision is bf16, but .*float32 holds float32"):
        Translator.load(folders / "float32", engine="onnx", precision="bf16")
    assert Translator.load(folders / "int8", device="cpu").precision == "int8"
    with pytest.raises(UsageError, match=r"computes on the CPU here, and the device is cuda"):
        pick_engine(
            "onnx", tiny_model(), device="cuda", precision="fp32", forbidden=(), folder=folders / "float32"
        )


def test_a_missing_runtime_is_one_line(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"needs onnxruntime.*pip install 'transduce\[export\]'"):
        Translator.load(folders / "float32", engine="onnx")


def test_a_graph_that_cannot_be_loaded_is_one_line(folders: Path, tmp_path: Path) -> None:
    import hashlib
    import shutil

    shutil.copytree(folders / "float32", tmp_path / "broken")
    (tmp_path / "broken" / "decoder.onnx").write_bytes(b"no graph")
    described = json.loads((tmp_path / "broken" / "config.json").read_bytes())
    described["files"]["decoder.onnx"] = hashlib.sha256(b"no graph").hexdigest()
    (tmp_path / "broken" / "config.json").write_text(json.dumps(described), encoding="utf-8")
    with pytest.raises(BundleError, match=r"decoder\.onnx: onnxruntime cannot load it \(.*export the model"):
        Translator.load(tmp_path / "broken", engine="onnx")


def test_the_commands_take_an_export(
    folders: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, reference = tmp_path / "lines", tmp_path / "reference"
    source.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    expected = Translator(tiny_bundle()).translate(LINES, max_extra=3)
    reference.write_text("".join(f"{line}\n" for line in expected), encoding="utf-8")
    exported = str(folders / "float32")
    options = ["--engine", "onnx", "--max-extra", "3"]
    assert main(["translate", exported, "--input", str(source), *options]) == 0
    assert capsys.readouterr().out == reference.read_text(encoding="utf-8")
    source.write_text(f"{LINES[0]}\n", encoding="utf-8")
    test_set = ["--source", str(source), "--reference", str(source)]
    assert main(["evaluate", exported, *test_set, "--engine", "onnx", "--beam", "1"]) == 0
    assert "cpu fp32 onnx" in capsys.readouterr().out


def test_a_wrong_tensor_is_named_and_nothing_is_kept(
    folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Wrong(onnx_weights.Weights):
        def plain(self, name: str) -> str:
            if name == "decoder.layers.1.feed_forward.w_2.weight":
                self._state[name] = self._state[name].copy()
                self._state[name][3, 5] += 1.0
            return super().plain(name)

    monkeypatch.setattr("transduce.interchange.onnx_graph.Weights", Wrong)
    with pytest.raises(TransduceError, match=r"tensor that differs is decoder\.layers\.1\.feed_forward\.w_2"):
        export_model(folders / "model", tmp_path / "out", to="onnx")
    assert not list(tmp_path.iterdir())


def test_a_tokenizer_that_javascript_cannot_have_is_told(
    folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sentencepiece import sentencepiece_model_pb2

    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString(tokenizer().model_bytes)
    model.normalizer_spec.name, model.normalizer_spec.remove_extra_whitespaces = "nfkc", True
    bundle = tiny_bundle()
    object.__setattr__(bundle, "tokenizer", Tokenizer(model.SerializeToString()))
    remarks = Onnx().write(bundle, tmp_path / "out", "float32")
    assert remarks[-1] == "the tokenizer is not written for JavaScript: it normalises text (nfkc)"
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == [
        "config.json", "decoder.onnx", "encoder.onnx", "tokenizer.model", "weights.bin",
    ]  # fmt: skip
