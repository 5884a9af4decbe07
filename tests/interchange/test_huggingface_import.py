"""Marian models of transformers as models of ours, against transformers itself."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from tiny_translator import sentences
from transduce.bundle import load_bundle
from transduce.cli.main import main
from transduce.data.imported_tokenizer import ImportedTokenizer
from transduce.data.tokenizer import EOS_ID, UNK_ID
from transduce.decoding.translator import Translator
from transduce.errors import BundleError, TransduceError
from transduce.interchange import huggingface_import
from transduce.interchange.importing import import_model

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None,
    reason="needs transformers: pip install 'transduce[export]'",
)
ODD = [
    "",
    "  two  spaces ",
    "Café ﬁne ½",
    "emoji 😀 x",
    "日本語",
    "a\tb",
    "x" * 300,
    "\u200b",
]
LINES = sentences(12, seed=5, words=(1, 9))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A folder of transformers, and the same model as ours."""
    from opus import opus_folder

    base = tmp_path_factory.mktemp("opus")
    import_model(opus_folder(base / "hf"), base / "ours", origin="huggingface")
    return base / "hf", base / "ours"


def theirs(folder: Path) -> tuple[Any, Any]:
    import transformers

    model = transformers.MarianMTModel.from_pretrained(folder).float().eval()
    return model, transformers.MarianTokenizer.from_pretrained(folder)


SHAPES: list[dict[str, Any]] = [
    {},
    {"pickled": True, "activation_function": "relu"},
    {"separate": True},
    {"codes": True, "scale_embedding": False},
    {"tie_word_embeddings": False, "activation_function": "gelu"},
    {"decoder_start_token_id": 0, "bad_words": [[7], [8, 9]]},
    {"decoder_start_token_id": 12},
    {"d_model": 512, "encoder_attention_heads": 8, "decoder_attention_heads": 8, "encoder_layers": 1},
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "-".join(map(str, shape)) or "usual")
def test_log_p_is_that_of_transformers(tmp_path: Path, shape: dict[str, Any]) -> None:
    from opus import opus_folder

    imported = import_model(opus_folder(tmp_path / "hf", **shape), tmp_path / "ours", origin="huggingface")
    assert imported.comparison is not None
    assert imported.comparison.largest < 2e-4
    config = load_bundle(tmp_path / "ours").model.config
    assert config.norm_epsilon == 1e-5
    assert config.max_length == 128
    if shape.get("bad_words"):
        assert any("[8, 9]" in remark for remark in imported.remarks)
    starts = {0: "eos", 12: "bos"}
    assert config.decoder_start == starts.get(shape.get("decoder_start_token_id", -1), "zero")


def test_a_language_code_in_the_text_is_text(folders: tuple[Path, Path]) -> None:
    ours = load_bundle(folders[1]).tokenizer
    assert len(ours.encode(">>xyz<< word")) > len(ours.encode("word")) + 1


def test_tokens_are_those_of_transformers(folders: tuple[Path, Path]) -> None:
    _, tokenizer = theirs(folders[0])
    vocabulary = huggingface_import.read_folder(folders[0]).vocabulary
    ours = load_bundle(folders[1]).tokenizer
    for text in [*ODD, *LINES]:
        expected = tokenizer(text).input_ids
        assert [vocabulary.source[i] for i in (*ours.encode(text), EOS_ID)] == expected
        expected = tokenizer(text_target=text).input_ids
        assert [vocabulary.target[i] for i in (*ours.encode_target(text), EOS_ID)] == expected


@pytest.mark.parametrize("beam", [1, 4])
def test_outputs_are_those_of_transformers(folders: tuple[Path, Path], beam: int) -> None:
    model, tokenizer = theirs(folders[0])
    translator = Translator.load(folders[1], engine="torch")
    batch = tokenizer(LINES, return_tensors="pt", padding=True)
    # Without penalties both look for the highest log P; <unk> is barred there as it is here.
    barred = [[model.config.pad_token_id], [tokenizer.unk_token_id]]
    outputs = model.generate(
        **batch, num_beams=beam, length_penalty=0.0, early_stopping="never" if beam > 1 else False,
        max_new_tokens=60, min_new_tokens=1, bad_words_ids=barred,
    )  # fmt: skip
    vocabulary = huggingface_import.read_folder(folders[0]).vocabulary
    found = translator.translate_detailed(LINES, beam=beam, alpha=0.0, max_extra=60, min_length=1)
    ended = 0
    for line, output in zip(found, outputs.tolist(), strict=True):
        own = [vocabulary.target[i] for i in line.alternatives[0].tokens]
        expected = [i for i in output[1:] if i != model.config.pad_token_id]
        if expected[-1] == 0:  # of what is cut off, the two choose otherwise
            ended += 1
            assert own == expected
    assert ended >= 6


def test_unknown_text_is_translated_and_scored(folders: tuple[Path, Path]) -> None:
    translator = Translator.load(folders[1], engine="torch")
    assert UNK_ID in translator.bundle.tokenizer.encode("日本語")
    assert translator.translate(["日本語", ""])[1] == ""
    (score,) = translator.score([("日本語 a", "語")])
    assert UNK_ID in score.tokens
    assert -100 < score.log_probability < 0
    alone, beside = translator.score([("a", "b")])[0], translator.score([("a", "b"), ("c", "語")])[0]
    assert alone.log_probability == pytest.approx(beside.log_probability, abs=1e-5)


def test_language_codes_are_asked_for_by_name(tmp_path: Path) -> None:
    from opus import opus_folder

    import_model(opus_folder(tmp_path / "hf", codes=True), tmp_path / "ours", origin="huggingface")
    model, tokenizer = theirs(tmp_path / "hf")
    translator = Translator.load(tmp_path / "ours", engine="torch")
    assert set(translator.languages) == {"fra", "deu_Latn"}
    batch = tokenizer([f">>fra<< {LINES[0]}"], return_tensors="pt")
    output = model.generate(
        **batch, num_beams=1, max_new_tokens=6, bad_words_ids=[[model.config.pad_token_id], [1]]
    )
    vocabulary = huggingface_import.read_folder(tmp_path / "hf").vocabulary
    (found,) = translator.translate_detailed(LINES[:1], to="fra", beam=1, min_length=0)
    own = [vocabulary.target[i] for i in found.alternatives[0].tokens]
    assert own[:6] == output[0, 1:].tolist()[: len(own)]


def test_an_imported_model_is_fine_tuned_inspected_and_used(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    for side, seed in (("a", 1), ("b", 2)):
        (tmp_path / f"text.{side}").write_text("\n".join(sentences(60, seed=seed, words=(1, 5))) + "\n")
    arguments = [
        "--source",
        f"{tmp_path}/text.a",
        "--target",
        f"{tmp_path}/text.b",
        "--output",
        f"{tmp_path}/run",
    ]
    settings = ["training.max_steps=3", "data.valid_pairs=5", "training.batch_tokens=256"]
    sets = [word for setting in settings for word in ("--set", setting)]
    main(["train", "--from", str(folders[1]), *arguments, *sets])
    tuned = load_bundle(tmp_path / "run")
    assert isinstance(tuned.tokenizer, ImportedTokenizer)
    assert tuned.model.config == load_bundle(folders[1]).model.config
    before = load_bundle(folders[1]).model.state_dict()
    moved = {n for n, tensor in tuned.model.state_dict().items() if not torch.equal(tensor, before[n])}
    assert "embeddings.output_bias" in moved
    main(["attention", str(tmp_path / "run"), "--text", LINES[0]])


def test_every_engine_translates_it(folders: tuple[Path, Path]) -> None:
    if importlib.util.find_spec("openvino") is None:
        pytest.skip("needs openvino: pip install 'transduce[fast]'")
    outputs = [
        Translator.load(folders[1], engine=engine).translate(LINES) for engine in ("torch", "openvino")
    ]
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("config.json", {"activation_function": "tanh"}, "activation_function is 'tanh'; known are relu"),
        ("config.json", {"model_type": "bart"}, "model_type is 'bart'; models of marian and pegasus"),
        ("config.json", {"decoder_ffn_dim": 49}, "encoder_ffn_dim is 48 and decoder_ffn_dim 49"),
        ("config.json", {"pad_token_id": None}, "pad_token_id is None, expected an id"),
        ("config.json", {"d_model": 30}, "cannot be shared out evenly|has the shape"),
        ("vocab.json", {"▁new": 9999}, "the vocabulary has an id 9999, but the model has"),
    ],
)
def test_what_does_not_fit_is_refused(
    folders: tuple[Path, Path], tmp_path: Path, name: str, change: dict[str, Any], message: str
) -> None:
    copy = tmp_path / "hf"
    copy.mkdir()
    for file in folders[0].iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    values = json.loads((copy / name).read_text())
    (copy / name).write_text(json.dumps({**values, **change}))
    with pytest.raises(TransduceError, match=message):
        import_model(copy, tmp_path / "ours", origin="huggingface")
    assert not (tmp_path / "ours").exists()


def test_pickles_with_more_than_tensors_are_refused(folders: tuple[Path, Path], tmp_path: Path) -> None:
    copy = tmp_path / "hf"
    copy.mkdir()
    for file in folders[0].iterdir():
        if file.name != "model.safetensors":
            (copy / file.name).write_bytes(file.read_bytes())
    torch.save({"a": Path("x")}, copy / "pytorch_model.bin")
    with pytest.raises(BundleError, match="holds more than tensors, which could run code"):
        import_model(copy, tmp_path / "ours", origin="huggingface")


def test_a_wrong_order_of_dimensions_is_noticed(
    folders: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(huggingface_import, "reordered", lambda state, _: dict(state))
    with pytest.raises(TransduceError, match="is not kept: log P differs"):
        import_model(folders[0], tmp_path / "ours", origin="huggingface")
    assert not (tmp_path / "ours").exists()
