"""What CTranslate2 itself computes with an exported model, against ours."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from tiny_translator import save_tiny, tiny_bundle, tiny_model, tokenizer
from transduce import TransduceError, export_model, verify
from transduce.bundle import Bundle, load_bundle, save_bundle
from transduce.data.tokenizer import Tokenizer
from transduce.decoding import ctranslate2_model
from transduce.decoding.ctranslate2_model import nearest_penalty, read_tensors, write_model
from transduce.errors import BundleError, UsageError
from transduce.interchange.ctranslate2_format import forbidden_ids
from transduce.interchange.native import Native
from transduce.interchange.verification import BOUNDS, built_in_pairs
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("ctranslate2") is None,
    reason="needs ctranslate2: pip install 'transduce[export]'",
)
SHAPES: dict[str, dict[str, Any]] = {
    "paper": {},
    "pre-rotary-untied-biased": {
        "norm": "pre", "positions": "rotary", "tying": "none", "attention_bias": True, "norm_epsilon": 1e-2,
    },
    "t2t-bos": {"positions": "t2t", "decoder_start": "bos", "norm_epsilon": 1e-2, "encoder_layers": 1},
    "learned-eos-narrow-heads": {
        "positions": "learned", "tying": "decoder", "decoder_start": "eos", "heads": 2, "d_k": 8, "d_v": 8,
    },
    "pad-pre": {"norm": "pre", "decoder_start": "pad", "decoder_layers": 1},
    "imported": {"activation": "swish", "output_bias": True, "decoder_start": "pad", "norm_epsilon": 1e-5},
    "unscaled-gelu": {"activation": "gelu", "scale_embeddings": False, "encoder_layers": 1},
}  # fmt: skip


def by_the_library(folder: Path, bundle: Bundle) -> tuple[float, int]:
    """The largest difference of log P on the built-in pairs, by nothing but the library; and their tokens."""
    import ctranslate2

    ours = Native(bundle)
    pairs = built_in_pairs(ours, most=bundle.model.config.max_length)
    pieces = [bundle.tokenizer.piece(i) for i in range(bundle.tokenizer.vocabulary)]
    scored = ctranslate2.Translator(str(folder), compute_type="float32").score_batch(
        [[pieces[i] for i in source] for source, _ in pairs],
        [[pieces[i] for i in target[:-1]] for _, target in pairs],
        max_input_length=0,
    )
    expected = ours.forced([source for source, _ in pairs], [target for _, target in pairs])
    differences = [
        abs(a - b)
        for one, row in zip(scored, expected, strict=True)
        for a, b in zip(one.log_probs, row, strict=True)
    ]
    return max(differences), len(differences)


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_gives_our_log_probabilities(tmp_path: Path, name: str) -> None:
    save_tiny(tmp_path / "model", **SHAPES[name])
    with torch.no_grad():  # biases are zero at the start: a forgotten one would not be noticed
        bundle = load_bundle(tmp_path / "model")
        for parameter, tensor in bundle.model.named_parameters():
            if parameter.endswith("bias"):
                tensor.add_(torch.randn(tensor.shape, generator=torch.Generator().manual_seed(3)) / 4)
        save_bundle(tmp_path / "model", bundle.model, bundle.model.config, bundle.tokenizer, {})
    found = export_model(tmp_path / "model", tmp_path / "out", to="ctranslate2").comparison
    assert found.largest < 1e-4 < found.bound
    assert by_the_library(tmp_path / "out", bundle) == (pytest.approx(found.largest, abs=1e-5), 724)


def test_an_odd_vocabulary_and_d_model_512_far_beyond_position_80(tmp_path: Path) -> None:
    odd = Tokenizer.train(["ab de " * 3, "ba ed", "d e a b bad dab"], 277, strict=False)
    assert odd.vocabulary % 8
    torch.manual_seed(1)
    model = Transformer(ModelConfig.named("C1", vocabulary=odd.vocabulary))
    write_model(
        Bundle(model=model.eval(), tokenizer=odd, training={}),
        tmp_path / "out", precision="float32", forbidden=[0, 2, 3],
    )  # fmt: skip
    largest, _ = by_the_library(tmp_path / "out", Bundle(model=model, tokenizer=odd, training={}))
    assert largest < 1e-4


def flat_model(**settings: Any) -> Transformer:
    """As it is drawn: its log P are about those of a real model, so roundings have their usual effect."""
    torch.manual_seed(2)
    values = {"d_model": 64, "d_ff": 128, "heads": 4, "encoder_layers": 2, "decoder_layers": 2, **settings}
    return Transformer(ModelConfig(**{"vocabulary": tokenizer().vocabulary, **values})).eval()


@pytest.mark.parametrize(("precision", "share"), [("float16", 0.51), ("bfloat16", 0.51), ("int8", 0.32)])
def test_smaller_precisions_keep_their_bounds_and_their_size(
    tmp_path: Path, precision: str, share: float
) -> None:
    model = flat_model(positions="rotary")
    save_bundle(tmp_path / "model", model, model.config, tokenizer(), {})
    export_model(tmp_path / "model", tmp_path / "whole", to="ctranslate2")
    found = export_model(
        tmp_path / "model", tmp_path / "out", to="ctranslate2", precision=precision
    ).comparison
    assert (found.bound, found.mean_bound) == BOUNDS[precision]
    assert 0 < found.mean < found.mean_bound
    sizes = [(tmp_path / name / "model.bin").stat().st_size for name in ("out", "whole")]
    assert sizes[0] < share * sizes[1]
    # The model itself is not rounded meanwhile.
    for name, tensor in load_bundle(tmp_path / "model").model.state_dict().items():
        assert torch.equal(tensor, model.state_dict()[name])
    found = verify(tmp_path / "whole", tmp_path / "out")
    assert found.good
    assert found.mean > 0


def test_writing_in_int8_leaves_the_model_as_it_is(tmp_path: Path) -> None:
    bundle = tiny_bundle()
    before = {name: tensor.clone() for name, tensor in bundle.model.state_dict().items()}
    write_model(bundle, tmp_path / "out", precision="int8", forbidden=forbidden_ids(bundle))
    assert all(torch.equal(tensor, before[name]) for name, tensor in bundle.model.state_dict().items())


def test_tied_matrices_are_stored_once(tmp_path: Path) -> None:
    bundle = tiny_bundle(positions="rotary")
    write_model(bundle, tmp_path / "out", precision="float32", forbidden=[0, 2, 3])
    values = bundle.model.parameter_count() + bundle.tokenizer.vocabulary  # and the bias of the output
    assert 4 * values < (tmp_path / "out" / "model.bin").stat().st_size < 4 * values + 10_000


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8"])
def test_what_is_stored_is_read_back_under_our_names(tmp_path: Path, precision: str) -> None:
    bundle = tiny_bundle(**SHAPES["learned-eos-narrow-heads"])
    write_model(bundle, tmp_path / "out", precision=precision, forbidden=[0, 2, 3])
    read = dict(read_tensors(tmp_path / "out", bundle.model.config))
    state = bundle.model.state_dict()
    assert read.keys() == state.keys()
    for name, tensor in state.items():
        steps = {"float32": 0.0, "bfloat16": 2**-8, "int8": 1 / 250}[precision]
        assert float((read[name] - tensor).abs().max()) <= steps * float(tensor.abs().max()), name


def test_a_wrong_tensor_is_named_and_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = ctranslate2_model._set

    def wrong(spec: Any, name: str, value: Any) -> None:
        damaged = name.startswith("decoder/layer_1/ffn/linear")
        real(spec, name, -value if damaged else value)

    monkeypatch.setattr(ctranslate2_model, "_set", wrong)
    save_tiny(tmp_path / "model")
    with pytest.raises(TransduceError, match=r"differs is decoder\.layers\.1\.feed_forward\.w_1\.weight, by"):
        export_model(tmp_path / "model", tmp_path / "out", to="ctranslate2")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_forgotten_setting_is_told_from_a_wrong_tensor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = ctranslate2_model._specification

    def forgetful(config: ModelConfig) -> Any:
        spec = real(config)
        spec.decoder.start_from_zero_embedding = False
        return spec

    monkeypatch.setattr(ctranslate2_model, "_specification", forgetful)
    with pytest.raises(TransduceError, match="no stored tensor differs: settings or arithmetic do"):
        export_model(save_tiny(tmp_path / "model"), tmp_path / "out", to="ctranslate2")


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"neighbourhood": 3}, "attention to a neighbourhood"), ({"d_k": 4, "d_v": 8}, r"d_k = 4 and d_v = 8")],
)
def test_what_it_cannot_compute_is_refused(tmp_path: Path, settings: dict[str, Any], said: str) -> None:
    save_tiny(tmp_path / "model", **settings)
    with pytest.raises(UsageError, match=f"CTranslate2 .*{said}"):
        export_model(tmp_path / "model", tmp_path / "out", to="ctranslate2")
    assert not (tmp_path / "out").exists()


def test_what_its_search_does_otherwise_is_said(tmp_path: Path) -> None:
    told: list[str] = []
    found = export_model(save_tiny(tmp_path / "model"), tmp_path / "out", to="ctranslate2", say=told.append)
    assert found.remarks == told[: len(found.remarks)]
    assert "length_penalty=0.45 is nearest to alpha 0.6" in told[0]
    assert any("positions are written out up to 1,088" in line for line in told)


def test_the_nearest_length_penalty() -> None:
    assert nearest_penalty(0.0) == 0
    assert nearest_penalty(1.2) == pytest.approx(2 * nearest_penalty(0.6), abs=0.015)
    # Where both penalties grow from 10 to 30 tokens by about the same factor.
    assert (29 / 9) ** nearest_penalty(0.6) == pytest.approx(((5 + 30) / (5 + 10)) ** 0.6, rel=0.03)


def test_a_damaged_export_is_refused(tmp_path: Path) -> None:
    export_model(save_tiny(tmp_path / "model"), tmp_path / "out", to="ctranslate2")
    whole = (tmp_path / "out" / "model.bin").read_bytes()
    (tmp_path / "out" / "model.bin").write_bytes(whole[:-9] + b"X" + whole[-8:])
    with pytest.raises(BundleError, match=r"model\.bin: is damaged, or of another model"):
        verify(tmp_path / "out", tmp_path / "model")
    (tmp_path / "out" / "model.bin").write_bytes(whole)
    assert verify(tmp_path / "out", tmp_path / "model").good
    shutil.copy(save_other_tokenizer(tmp_path), tmp_path / "out" / "tokenizer.model")
    with pytest.raises(BundleError, match=r"tokenizer\.model: is damaged, or of another model"):
        verify(tmp_path / "out", tmp_path / "model")


def save_other_tokenizer(folder: Path) -> Path:
    tokenizer(321).save(folder / "other.model")
    return folder / "other.model"


def test_a_model_in_training_is_written_as_it_is_then(tmp_path: Path) -> None:
    model = tiny_model(dropout=0.5).train()
    write_model(
        Bundle(model=model, tokenizer=tokenizer(), training={}), tmp_path / "out", precision="float32",
        forbidden=[0, 2, 3],
    )  # fmt: skip
    assert model.training
    assert by_the_library(tmp_path / "out", Bundle(model=model, tokenizer=tokenizer(), training={}))[0] < 1e-4
