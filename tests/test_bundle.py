from __future__ import annotations

import json
import pickletools
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

import transduce
from tiny_translator import sentences, tiny_bundle, tiny_model, tokenizer
from transduce.bundle import load_bundle, save_bundle
from transduce.data.tokenizer import Tokenizer
from transduce.decoding.translator import Translator
from transduce.errors import BundleError

NAMES = {"config.json", "model.safetensors", "tokenizer.model", "training.json"}


def save(folder: Path, *, training: dict[str, Any] | None = None, **settings: Any) -> Path:
    bundle = tiny_bundle(**settings)
    save_bundle(folder, bundle.model, bundle.model.config, bundle.tokenizer, training or {"recipe": "none"})
    return folder


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("saved") / "model")


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    """A copy of the saved model, elsewhere: nothing outside it is needed, and it may be spoilt."""
    return Path(shutil.copytree(saved, tmp_path / "elsewhere"))


def edit(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    path = folder / "config.json"
    value = json.loads(path.read_bytes())
    change(value)
    path.write_text(json.dumps(value))


def test_a_saved_model_comes_back_whole(folder: Path) -> None:
    original, loaded = tiny_bundle(), load_bundle(folder)
    assert {path.name for path in folder.iterdir()} == NAMES
    assert loaded.model.config == original.model.config
    assert loaded.tokenizer.model_bytes == original.tokenizer.model_bytes
    assert loaded.training == {"recipe": "none"}
    assert loaded.path == folder
    assert not loaded.model.training
    states = original.model.state_dict(), loaded.model.state_dict()
    assert list(states[0]) == list(states[1])
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    lines = sentences(5, seed=4, words=(1, 5))
    assert Translator(loaded).translate(lines, max_extra=5) == Translator(original).translate(
        lines, max_extra=5
    )


@pytest.mark.parametrize(("tying", "copies"), [("three-way", 1), ("decoder", 2), ("none", 3)])
def test_tied_weights_are_stored_once(tmp_path: Path, tying: str, copies: int) -> None:
    path = save(tmp_path / "model", tying=tying) / "model.safetensors"
    table = (tokenizer().vocabulary, 32)
    tensors = safetensors.torch.load_file(path)
    assert sum(tensor.shape == table for tensor in tensors.values()) == copies
    numbers = tiny_model(tying=tying).parameter_count()
    assert numbers * 4 < path.stat().st_size < numbers * 4 * 1.1
    model = load_bundle(tmp_path / "model").model
    assert model.parameter_count() == numbers
    tied = model.embeddings.source.data_ptr() == model.embeddings.output.data_ptr()
    assert tied == (tying == "three-way")


@pytest.mark.parametrize("settings", [{"positions": "learned"}, {"norm": "pre"}, {"attention_bias": True}])
def test_every_kind_of_model_comes_back(tmp_path: Path, settings: dict[str, Any]) -> None:
    loaded = load_bundle(save(tmp_path, **settings)).model
    source, target = torch.tensor([[5, 6, 7, 1]]), torch.tensor([[0, 8, 9]])
    with torch.no_grad():
        assert torch.equal(loaded(source, target), tiny_model(**settings)(source, target))


def test_weights_are_stored_in_float32_and_a_plain_state_may_be_saved(tmp_path: Path) -> None:
    model = tiny_model()
    state = {name: tensor.bfloat16() for name, tensor in model.state_dict().items()}
    save_bundle(tmp_path, state, model.config, tokenizer(), {})
    tensors = safetensors.torch.load_file(tmp_path / "model.safetensors")
    assert {tensor.dtype for tensor in tensors.values()} == {torch.float32}
    assert all(torch.equal(tensors[name], state[name].float()) for name in state)


def test_loading_leaves_the_random_state_alone(folder: Path) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    load_bundle(folder)
    assert torch.equal(torch.rand(3), expected)


def test_no_file_can_run_code(folder: Path) -> None:
    for path in folder.iterdir():
        with pytest.raises(ValueError, match=r"opcode|argument|decode|exhausted|newline|bytes"):
            list(pickletools.genops(path.read_bytes()))
    package = Path(transduce.__file__).parent
    for path in [package / "bundle.py", *(package / "decoding").glob("*.py")]:
        assert not re.search(r"torch\.load\b|pickle", path.read_text().partition('"""\n\n')[2]), path


def test_another_tokenizer_is_refused_by_its_checksum_or_its_size(folder: Path) -> None:
    path = folder / "tokenizer.model"
    Tokenizer.train(sentences(300, seed=9), tokenizer().vocabulary).save(path)
    with pytest.raises(
        BundleError, match=r"tokenizer\.model: is not the tokenizer that this model was trained"
    ):
        load_bundle(folder)
    tokenizer(330).save(path)
    with pytest.raises(BundleError, match=r"has 330 pieces, but the model has 320 embeddings"):
        load_bundle(folder)
    path.write_bytes(b"rubbish")
    with pytest.raises(BundleError, match="not a sentencepiece model"):
        load_bundle(folder)
    path.unlink()
    with pytest.raises(
        BundleError, match=r"tokenizer\.model: no such tokenizer.*copy the whole folder again"
    ):
        load_bundle(folder)


def test_odd_tokens_come_back_as_they_were(tmp_path: Path) -> None:
    odd = ['tab\tx "q" \\n', "u\u2028y \u00a0z", "\u2581 \ue000 ab"] * 20
    special = Tokenizer.train(odd + sentences(50), 320)
    model = tiny_model()
    save_bundle(tmp_path, model, model.config, special, {})
    loaded = load_bundle(tmp_path).tokenizer
    assert [loaded.piece(i) for i in range(320)] == [special.piece(i) for i in range(320)]
    assert [loaded.decode(loaded.encode(text)) for text in odd] == odd


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(format=99, transduce="9.9"), r"format 99 is newer .* transduce 9\.9: upgrade"),
        (lambda c: c.update(format="1"), r"format is '1', expected a number"),
        (lambda c: c.pop("format"), r"format is None"),
        (lambda c: c.pop("model"), r"no section 'model'"),
        (lambda c: c["model"].pop("vocabulary"), r"no section 'model' with a vocabulary"),
        (lambda c: c["model"].update(head=4), r"no setting 'model\.head'; did you mean 'model\.heads'"),
        (lambda c: c["model"].update(heads="four"), r"model\.heads is 'four'; it must be a whole number"),
        (lambda c: c["model"].update(norm="middle"), r"model\.norm is 'middle'"),
        (lambda c: c["model"].update(d_model=-1), r"model\.d_model is -1"),
        (lambda c: c.pop("weights"), r"no checksum of the weights"),
        (lambda c: c.update(tokenizer=[]), r"no checksum of the tokenizer"),
        (lambda c: c["model"].update(d_ff=50), r"w_1\.weight has shape \[48, 32\], expected \[50, 32\]"),
        (lambda c: c["model"].update(encoder_layers=3), r"tensor encoder\.layers\.2\.\S+ is missing"),
        (lambda c: c["model"].update(encoder_layers=1), r"tensor encoder\.layers\.1\.\S+ does not belong"),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused(folder: Path, change: Any, message: str) -> None:
    edit(folder, change)
    with pytest.raises(BundleError, match=message):
        load_bundle(folder)


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xfe", b"[" * 100_000])
def test_a_configuration_that_is_no_json_object_is_refused(folder: Path, content: bytes) -> None:
    (folder / "config.json").write_bytes(content)
    with pytest.raises(BundleError, match=r"config\.json: (not valid JSON|holds a list)"):
        load_bundle(folder)


def test_damaged_weights_are_refused(folder: Path) -> None:
    path = folder / "model.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:-100] + bytes([whole[-100] ^ 1]) + whole[-99:])
    with pytest.raises(
        BundleError, match=r"model\.safetensors: is damaged, or of another save.*other checksum"
    ):
        load_bundle(folder)
    path.write_bytes(whole[:-100])
    with pytest.raises(BundleError, match=r"model\.safetensors: is damaged"):
        load_bundle(folder)
    path.unlink()
    with pytest.raises(BundleError, match=r"model\.safetensors: is missing; copy the whole folder again"):
        load_bundle(folder)


def test_what_is_no_model_folder_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"no such model folder; .*`transduce train`"):
        load_bundle(tmp_path / "nowhere")
    with pytest.raises(BundleError, match=r"is not a model folder \(config\.json is missing\)"):
        load_bundle(tmp_path)
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(
        BundleError, match=r"its training has not finished; continue it with `transduce train"
    ):
        load_bundle(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(BundleError, match=r"file: is a file; name the model folder"):
        load_bundle(tmp_path / "file")


def test_training_facts_may_be_missing(folder: Path) -> None:
    (folder / "training.json").unlink()
    assert load_bundle(folder).training == {}


def test_parts_that_do_not_fit_are_not_even_saved(tmp_path: Path) -> None:
    model = tiny_model()
    with pytest.raises(BundleError, match="has 330 pieces, but the model has 320 embeddings"):
        save_bundle(tmp_path / "a", model, model.config, tokenizer(330), {})
    with pytest.raises(
        BundleError, match=r"the weights to save: tensor embeddings\.target has shape \[320, 32\]"
    ):
        save_bundle(tmp_path / "b", model, tiny_model(d_model=64).config, tokenizer(), {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("renames", [0, 1, 2, 3, 4])
def test_a_save_that_is_cut_short_never_mixes_two_models(
    folder: Path, monkeypatch: pytest.MonkeyPatch, renames: int
) -> None:
    real, done = Path.replace, []

    def replace(path: Path, target: Path) -> Path:
        if len(done) == renames:
            raise OSError("the power is gone")
        done.append(target)
        return real(path, target)

    monkeypatch.setattr(Path, "replace", replace)
    old, new = (tiny_model(seed=seed).embeddings.target for seed in (1, 2))
    if renames < 4:
        with pytest.raises(OSError, match="the power is gone"):
            save(folder, seed=2, training={"recipe": "new"})
    else:
        save(folder, seed=2, training={"recipe": "new"})
        assert done[-1].name == "config.json"
    monkeypatch.undo()
    assert {path.name for path in folder.iterdir()} == NAMES
    if renames in (0, 4):
        bundle = load_bundle(folder)
        assert torch.equal(bundle.model.embeddings.target, old if renames == 0 else new)
        assert bundle.training == {"recipe": "none" if renames == 0 else "new"}
    else:
        with pytest.raises(BundleError, match="a save was interrupted, or files were mixed"):
            load_bundle(folder)
        save(folder, seed=2)
        assert torch.equal(load_bundle(folder).model.embeddings.target, new)


def test_other_files_of_a_run_stay_where_they_are(folder: Path) -> None:
    (folder / "checkpoints").mkdir()
    (folder / "log.jsonl").write_text("{}")
    save(folder, seed=2)
    assert {path.name for path in folder.iterdir()} == {*NAMES, "checkpoints", "log.jsonl"}
