"""Our models as folders of transformers, against transformers itself."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from tiny_translator import save_tiny, sentences, tiny_bundle
from transduce.bundle import load_bundle, save_bundle
from transduce.data.tokenizer import Tokenizer
from transduce.decoding.config import SearchOptions
from transduce.decoding.translator import Translator
from transduce.errors import TransduceError, UsageError
from transduce.interchange import huggingface
from transduce.interchange.exporting import export_model
from transduce.interchange.importing import import_model
from transduce.interchange.layout import halves, reordered
from transduce.model.positional_encoding import sinusoids

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None,
    reason="needs transformers: pip install 'transduce[export]'",
)
LINES = sentences(10, seed=5, words=(1, 9))
ODD = ["", "Ünïcode ﬁne", "emoji 😀 here", "</s> <unk> <pad> <s>", "a\tb  c ", "日本語", "\u200b", ">> x"]
SHAPES: list[dict[str, Any]] = [
    {},
    {"norm": "pre"},
    {"tying": "decoder", "decoder_start": "bos", "activation": "swish", "output_bias": True},
    {"tying": "none", "decoder_start": "eos", "attention_bias": True},
    {"positions": "t2t", "norm": "pre", "decoder_start": "pad", "scale_embeddings": False},
    {"positions": "learned", "max_length": 100},
    {"d_model": 512, "heads": 8, "encoder_layers": 1, "decoder_layers": 1},
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A model of ours, and the same as a folder of transformers."""
    base = tmp_path_factory.mktemp("ours")
    save_tiny(base / "ours")
    export_model(base / "ours", base / "hf", to="huggingface")
    return base / "ours", base / "hf"


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "-".join(map(str, shape.values())) or "paper")
def test_log_p_is_ours_and_the_way_back_gives_the_same_model(tmp_path: Path, shape: dict[str, Any]) -> None:
    save_tiny(tmp_path / "ours", **shape)
    exported = export_model(tmp_path / "ours", tmp_path / "hf", to="huggingface")
    assert exported.comparison.largest < 5e-4
    import_model(tmp_path / "hf", tmp_path / "back", origin="huggingface")
    ours, back = load_bundle(tmp_path / "ours"), load_bundle(tmp_path / "back")
    assert back.tokenizer.sha256 == ours.tokenizer.sha256
    stored = back.model.state_dict()
    for name, tensor in ours.model.state_dict().items():
        if name in stored and not name.startswith("embeddings."):
            assert torch.equal(stored[name], tensor), name
    assert torch.equal(stored["embeddings.target"][4:], ours.model.embeddings.target[4:])


def test_tokens_and_text_are_those_of_the_tokenizer(folders: tuple[Path, Path]) -> None:
    import transformers

    theirs, ours = transformers.AutoTokenizer.from_pretrained(folders[1]), load_bundle(folders[0]).tokenizer
    assert isinstance(theirs, transformers.MarianTokenizer)
    for text in [*ODD, *LINES]:
        ids = ours.encode(text)
        assert theirs(text).input_ids == [*ids, 1]
        assert theirs.decode([*ids, 1], skip_special_tokens=True) == ours.decode(ids).strip()


@pytest.mark.parametrize("beam", [1, 4])
def test_outputs_are_ours(folders: tuple[Path, Path], beam: int) -> None:
    import transformers

    model = transformers.MarianMTModel.from_pretrained(folders[1]).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders[1])
    batch = tokenizer(LINES, return_tensors="pt", padding=True)
    outputs = model.generate(
        **batch, num_beams=beam, length_penalty=0.0, early_stopping="never" if beam > 1 else False
    )
    found = Translator.load(folders[0], engine="torch").translate_detailed(
        LINES, beam=beam, alpha=0.0, min_length=0
    )
    for line, output in zip(found, outputs.tolist(), strict=True):
        own = line.alternatives[0].tokens
        assert list(own) == [token for token in output[1:] if token != 0][: len(own)]


def test_the_pipeline_translates(folders: tuple[Path, Path]) -> None:
    import transformers

    version = importlib.metadata.version("transformers")
    if int(version.partition(".")[0]) >= 5:
        pytest.skip(f"transformers {version} has no translation pipeline any more")
    translate = transformers.pipeline("translation", model=str(folders[1]), device="cpu")
    found = translate(LINES[:2], length_penalty=0.0, num_beams=1, max_new_tokens=20)
    tokenizer = load_bundle(folders[0]).tokenizer
    ours = Translator.load(folders[0], engine="torch")
    for one, other in zip(found, ours.translate_detailed(LINES[:2], beam=1, min_length=0), strict=True):
        assert one["translation_text"] == tokenizer.decode(other.alternatives[0].tokens[:20]).strip()


def test_the_folder_says_how_the_model_is_searched_and_was_made(tmp_path: Path) -> None:
    bundle = tiny_bundle()
    scores = {
        "set": "validation",
        "lines": 9,
        "bleu": 31.25,
        "chrf": 50.0,
        "beam": 4,
        "alpha": 0.6,
        "signature": "s",
    }
    training = {"recipe": {"training": {"rate": 0.002, "patience": 0}}, "scores": scores}
    save_bundle(tmp_path / "ours", bundle.model, bundle.model.config, bundle.tokenizer, training)
    remarks = export_model(tmp_path / "ours", tmp_path / "hf", to="huggingface").remarks
    card = (tmp_path / "hf" / "README.md").read_text()
    assert "BLEU 31.25, chrF 50.00: validation set of 9 pairs, beam 4, alpha 0.6, s" in card
    assert "training.rate = 0.002" in card
    assert "patience" not in card
    assert all(remark in card for remark in remarks)
    said = json.loads((tmp_path / "hf" / "generation_config.json").read_text())
    assert (said["num_beams"], said["length_penalty"], said["early_stopping"]) == (4, 0.5, "never")
    assert any("length_penalty 0.5 is the nearest" in remark for remark in remarks)


def test_the_power_of_the_length_grows_like_the_penalty_at_a_usual_length() -> None:
    def paper(length: float) -> float:
        return ((5 + length) / 6) ** SearchOptions().alpha

    n, step = 25.0, 1e-4
    slope = (paper(n + step) - paper(n - step)) / (2 * step) / paper(n)
    assert slope == pytest.approx(huggingface.POWER / n, rel=1e-6)


def test_tags_become_language_codes_that_can_be_asked_for(tmp_path: Path) -> None:
    import transformers

    tokenizer = Tokenizer.train(sentences(300), 322, tags=("<2de>", "<2fr>"))
    bundle = tiny_bundle(vocabulary=tokenizer.vocabulary)
    save_bundle(tmp_path / "ours", bundle.model, bundle.model.config, tokenizer, {})
    remarks = export_model(tmp_path / "ours", tmp_path / "hf", to="huggingface").remarks
    assert any(">>de<<" in remark for remark in remarks)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    expected = [*tokenizer.tag_ids(["<2fr>"]), *tokenizer.encode(LINES[0]), 1]
    assert theirs(f">>fr<<{LINES[0]}").input_ids == expected
    import_model(tmp_path / "hf", tmp_path / "back", origin="huggingface")
    assert load_bundle(tmp_path / "back").tokenizer.sha256 == tokenizer.sha256


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ({"positions": "rotary"}, "model.positions is rotary: transformers has no translation model"),
        ({"neighbourhood": 2}, "model.neighbourhood is 2"),
        ({"d_k": 4, "d_v": 8}, "model.d_k and model.d_v are 4 and 8, not d_model / heads"),
        ({"norm": "pre", "tying": "none"}, "model.norm is pre and model.tying is none"),
    ],
)
def test_what_cannot_be_expressed_is_refused_by_name(
    tmp_path: Path, shape: dict[str, Any], message: str
) -> None:
    save_tiny(tmp_path / "ours", **shape)
    with pytest.raises(UsageError, match=message):
        export_model(tmp_path / "ours", tmp_path / "hf", to="huggingface")
    assert [file.name for file in tmp_path.iterdir()] == ["ours"]


@pytest.mark.parametrize("broken", ["epsilon", "order", "bias"])
def test_a_wrong_export_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    settings: dict[str, Any] = {"norm_epsilon": 0.05} if broken == "epsilon" else {}
    if broken == "order":
        monkeypatch.setattr(huggingface, "reordered", lambda state, _: dict(state))
    if broken == "bias":
        monkeypatch.setattr(huggingface, "NEVER", 0.0)
        settings["output_bias"] = True
    if broken == "bias":
        monkeypatch.setattr(huggingface, "given", _with_another_bias)
    save_tiny(tmp_path / "ours", **settings)
    with pytest.raises(TransduceError, match="is not kept: log P differs"):
        export_model(tmp_path / "ours", tmp_path / "hf", to="huggingface")
    assert [file.name for file in tmp_path.iterdir()] == ["ours"]


def _with_another_bias(state: dict[str, torch.Tensor], places: Any) -> dict[str, torch.Tensor]:
    from transduce.interchange.layout import given

    state["embeddings.output_bias"] = state["embeddings.output_bias"] * 0.5
    return given(state, places)


def test_a_model_in_another_order_of_dimensions_is_the_same_function_of_its_positions() -> None:
    bundle = tiny_bundle(positions="learned", max_length=20, attention_bias=True)
    model, order = bundle.model, torch.randperm(32, generator=torch.Generator().manual_seed(1))
    source, target = torch.tensor([[9, 20, 7, 1]]), torch.tensor([[0, 8, 30]])
    with torch.no_grad():
        expected = model(source, target)
        model.load_state_dict(reordered(model.state_dict(), order))
        torch.testing.assert_close(model(source, target), expected)


def test_halves_are_all_sines_then_all_cosines() -> None:
    table = sinusoids(5, 8)[:, halves(8)]
    assert torch.equal(table[:, :4], sinusoids(5, 8)[:, 0::2])
    assert torch.equal(table[:, 4:], sinusoids(5, 8)[:, 1::2])


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_other_precisions_are_stored(folders: tuple[Path, Path], tmp_path: Path, precision: str) -> None:
    exported = export_model(folders[0], tmp_path / "hf", to="huggingface", precision=precision)
    weights = {path.parent.name: path.stat().st_size for path in (tmp_path / "hf" / "model.safetensors",)}
    assert weights["hf"] < 0.6 * (folders[1] / "model.safetensors").stat().st_size
    assert exported.comparison.largest > 1e-4
