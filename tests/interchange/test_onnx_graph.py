"""The ONNX graphs, run by onnxruntime, against the model that they were made of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.tiny_translator import tiny_bundle, tokenizer

from transduce.bundle import Bundle
from transduce.decoding.onnx_folder import OnnxFolder
from transduce.errors import BundleError, DataError
from transduce.interchange.onnx_format import Onnx
from transduce.model.transformer import Transformer

pytest.importorskip("onnxruntime", reason="needs onnxruntime: pip install 'transduce[export]'")
onnx = pytest.importorskip("onnx", reason="needs onnx: pip install 'transduce[export]'")

SHAPES: list[dict[str, Any]] = [
    {},
    {"norm": "pre", "positions": "rotary", "attention_bias": True},
    {"positions": "t2t", "tying": "none", "decoder_start": "bos", "norm_epsilon": 1e-3},
    {"positions": "learned", "tying": "decoder", "d_k": 6, "d_v": 10, "decoder_layers": 1},
    {"positions": "rotary", "d_k": 8, "d_v": 16, "encoder_layers": 1, "decoder_start": "eos"},
    {"neighbourhood": 2, "norm": "pre", "decoder_start": "pad"},
    {"neighbourhood": 3, "positions": "rotary", "activation": "gelu"},
    {"activation": "swish", "scale_embeddings": False, "output_bias": True, "decoder_start": "pad"},
]
Small = Callable[..., Transformer]


def engine(model: Transformer, folder: Path, precision: str = "float32") -> Any:
    from transduce.decoding.onnx_engine import OnnxEngine

    Onnx().write(Bundle(model=model, tokenizer=tokenizer(), training={}), folder, precision)
    for name in ("encoder.onnx", "decoder.onnx"):
        onnx.checker.check_model(folder / name, full_check=True)
    return OnnxEngine(OnnxFolder.read(folder), workers=1)


def pairs(model: Transformer, lengths: list[int], target: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Padded sources of these lengths, ends counted, and targets that begin with the start symbol."""
    config = model.config
    draw = torch.Generator().manual_seed(3)
    source = torch.randint(4, config.vocabulary, (len(lengths), max(lengths)), generator=draw)
    for row, length in enumerate(lengths):
        source[row, length - 1], source[row, length:] = config.eos_id, config.pad_id
    target_in = torch.randint(4, config.vocabulary, (len(lengths), target), generator=draw)
    target_in[:, 0] = config.start_id
    return source, target_in


def largest(found: torch.Tensor, expected: torch.Tensor) -> float:
    return float((found.log_softmax(-1) - expected.log_softmax(-1)).abs().max())


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "-".join(map(str, shape.values())) or "paper")
def test_graphs_say_what_the_model_says(shape: dict[str, Any], small_model: Small, tmp_path: Path) -> None:
    model = small_model(vocabulary=tokenizer().vocabulary + 1, **shape)
    fast = engine(model, tmp_path / "model")
    for lengths in ([1], [7], [33], [7, 1, 33]):
        source, target_in = pairs(model, lengths, 12)
        with torch.inference_mode():
            expected = model(source, target_in)
            assert largest(fast.forced(source, target_in), expected) < 1e-5
            state, found = fast.start(source), []
            for piece in target_in.split([1, 1, 4, 1, 5], 1):
                logits, state = fast.decode(piece, state)
                found.append(logits)
        assert largest(torch.cat(found, 1), expected) < 1e-5
    # Padding at the other end changes nothing.
    with torch.inference_mode():
        turned = torch.stack([row.roll(int((row == model.config.pad_id).sum())) for row in source])
        assert largest(fast.forced(turned, target_in), model(turned, target_in)) < 1e-5


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_hypotheses_are_copied_dropped_and_reordered(
    precision: str, small_model: Small, tmp_path: Path
) -> None:
    model = small_model(vocabulary=tokenizer().vocabulary)
    fast = engine(model, tmp_path / "model", precision)
    source, target_in = pairs(model, [5, 3, 4], 3)
    with torch.inference_mode():
        alone = torch.cat([fast.forced(source[[i, i]], target_in[[i, 0]])[:1] for i in range(3)])
        state, parents = fast.start(source), torch.tensor([0, 0, 1, 1, 2, 2])
        logits, state = fast.step(target_in[:, 0], state)
        state = state.rows(parents)
        tokens = target_in[parents, 1]
        tokens[1::2] = 9
        logits, state = fast.step(tokens, state)
        assert largest(logits[::2], alone[:, 1]) < 1e-5
        # The second sentence is done; of the others the hypotheses change places, and one is followed twice.
        state = state.rows(torch.tensor([1, 0, 4, 4]), torch.tensor([0, 2]))
        logits, after = fast.step(target_in[[0, 0, 2, 2], 2], state)
        assert largest(logits[[1, 2, 3]], alone[[0, 2, 2], 2]) < 1e-5
        # A state can be continued as often as one likes.
        again, _ = fast.step(target_in[[0, 0, 2, 2], 2], state)
    assert torch.equal(logits, again)
    assert (after.length, after.sentences) == (3, 2)


def rounded(x: torch.Tensor) -> torch.Tensor:
    """Each row in whole steps, 127 either side of 0."""
    step = x.abs().amax(-1, keepdim=True) / 127
    return (x / step).round() * step


def test_int8_is_the_model_with_what_it_multiplies_rounded(small_model: Small, tmp_path: Path) -> None:
    model = small_model(vocabulary=tokenizer().vocabulary, norm="pre")
    fast = engine(model, tmp_path / "model", "int8")
    source, target_in = pairs(model, [7, 1, 33], 12)
    with torch.inference_mode():
        plain = model(source, target_in)
        for name, tensor in model.named_parameters():
            if tensor.dim() == 2:
                tensor.copy_(rounded(tensor))
            assert torch.allclose(dict(fast.folder.weights())[name], tensor, atol=1e-7), name
        for module in model.modules():
            if isinstance(module, torch.nn.Linear):
                module.register_forward_pre_hook(lambda module, given: (rounded(given[0]),))
        logits = model.embeddings.logits
        model.embeddings.logits = lambda x: logits(rounded(x))  # type: ignore[method-assign]
        expected = model(source, target_in)
        found = fast.forced(source, target_in)
    # A value in the middle of two steps may be rounded either way.
    difference = (found.log_softmax(-1) - expected.log_softmax(-1)).abs()
    assert float(difference.median()) < 1e-5
    assert float(difference.max()) < 0.3 * largest(expected, plain)


def test_a_line_is_the_same_in_every_batch_also_in_int8(small_model: Small, tmp_path: Path) -> None:
    model = small_model(vocabulary=tokenizer().vocabulary)
    fast = engine(model, tmp_path / "model", "int8")
    source, target_in = pairs(model, [33, 7, 20], 6)
    with torch.inference_mode():
        together = fast.forced(source, target_in)
        alone = fast.forced(source[1:2, :7], target_in[1:2])
    torch.testing.assert_close(together[1:2], alone, atol=1e-5, rtol=0)


@pytest.mark.parametrize(("positions", "last"), [("learned", 84), ("sinusoid", 168), ("rotary", 168)])
def test_the_table_of_positions_ends_with_a_clear_line(
    positions: str, last: int, small_model: Small, tmp_path: Path
) -> None:
    model = small_model(vocabulary=tokenizer().vocabulary, positions=positions, max_length=20)
    fast = engine(model, tmp_path / "model")
    source, target_in = pairs(model, [last], last)
    with torch.inference_mode():
        assert largest(fast.forced(source, target_in), model(source, target_in)) < 1e-4
        _, state = fast.decode(target_in, fast.start(source))
        with pytest.raises(DataError, match=f"a sequence of {last + 1} tokens is longer than the {last} pos"):
            fast.step(target_in[:, -1], state)
        with pytest.raises(DataError, match="split or truncate the line"):
            fast.start(torch.full((1, last + 1), 5))


def test_a_damaged_folder_is_refused_with_the_remedy(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    Onnx().write(tiny_bundle(), folder, "float32")
    content = (folder / "weights.bin").read_bytes()
    (folder / "weights.bin").write_bytes(content[:100] + b"\0" + content[101:])
    with pytest.raises(BundleError, match=r"weights\.bin: is damaged.*export the model again"):
        OnnxFolder.read(folder)
    (folder / "weights.bin").unlink()
    with pytest.raises(BundleError, match=r"weights\.bin: cannot be read: No such file"):
        OnnxFolder.read(folder)
    described = folder / "config.json"
    text = described.read_text(encoding="utf-8")
    for wrong, said in (
        ("{", "is not valid JSON"),
        ("[]", "format is None"),
        (text.replace("onnx 1", "onnx 2"), r"format is 'onnx 2', this version reads 'onnx 1'.*upgrade"),
        ('{"format": "onnx 1"}', r"is damaged \(KeyError\('files'\)\)"),
    ):
        described.write_text(wrong, encoding="utf-8")
        with pytest.raises(BundleError, match=said):
            OnnxFolder.read(folder)
    described.unlink()
    with pytest.raises(BundleError, match="name a folder that `transduce export --to onnx` wrote"):
        OnnxFolder.read(folder)
