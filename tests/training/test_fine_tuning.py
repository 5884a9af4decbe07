"""A run that starts from a trained model: what it takes over, refuses, records, and how it goes on."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from toy import ENGLISH, GERMAN, toy_settings, write_toy

from transduce.bundle import load_bundle
from transduce.config import merge
from transduce.decoding.translator import Translator
from transduce.errors import BundleError, ConfigError, TrainingError, UsageError
from transduce.training.optimizer import paper_rate
from transduce.training.run import TrainingResult, train
from transduce.training.settings import resolve
from transduce.training.start import open_start, tuning_rate

MODEL_FILES = ("model.safetensors", "config.json", "tokenizer.model", "training.json")


def _write(folder: Path, name: str, pairs: int = 120, **how: Any) -> dict[str, Path]:
    (folder / name).mkdir(exist_ok=True)
    source, target = write_toy(folder / name, pairs, **how)
    return {"source": source, "target": target}


def _train(folder: Path, name: str, files: dict[str, Any], **how: Any) -> TrainingResult:
    """A run; ``how`` holds arguments of `train`, else training settings."""
    arguments = {key: how.pop(key) for key in ("start", "resume", "overwrite", "settings") if key in how}
    resumed = arguments.get("resume", False)  # such a run has its settings
    base = {
        "data": {} if resumed else {"valid_pairs": 10},
        "training": how if resumed else {**toy_settings()["training"], **how},
    }
    settings = merge(base, arguments.pop("settings", {}))
    with (folder / f"{name}.txt").open("a", encoding="utf-8") as stream:
        return train(folder / name, **files, settings=settings, stream=stream, **arguments)


def _tensors(folder: Path, step: int, name: str = "model.safetensors") -> dict[str, torch.Tensor]:
    return load_file(folder / "checkpoints" / f"step-{step:08d}" / name)


def _equal(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def _log(folder: Path, event: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_bytes().split(b"\n") if line]
    return [line for line in lines if line["event"] == event]


def _json(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_bytes())
    return value


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 12 updates with the paper's schedule; its model, checkpoints and corpus are used by all."""
    folder = tmp_path_factory.mktemp("old")
    files = _write(folder, "corpus")
    settings = toy_settings(max_steps=12, save_every=4, schedule="paper", warmup=9, rate=1e-3, average=2)
    with (folder / "said.txt").open("w", encoding="utf-8") as stream:
        return train(folder / "run", **files, settings=settings, stream=stream).folder


@pytest.mark.usefixtures("unscored")
def test_weights_shape_and_tokenizer_are_the_models(tmp_path: Path, old: Path) -> None:
    files = _write(tmp_path, "new", seed=5)
    result = _train(tmp_path, "tuned", files, start=old, max_steps=3, save_every=9)
    assert _equal(_tensors(result.folder, 0), load_file(old / "model.safetensors"))
    assert not _equal(_tensors(result.folder, 3), _tensors(result.folder, 0))
    assert (result.folder / "tokenizer.model").read_bytes() == (old / "tokenizer.model").read_bytes()
    assert _json(result.folder / "config.json")["model"] == _json(old / "config.json")["model"]
    digest = hashlib.sha256((old / "model.safetensors").read_bytes()).hexdigest()
    recorded = _json(result.folder / "settings.json")["start"]
    assert (recorded["weights"], recorded["folder"]) == (digest, str(old.absolute()))
    recorded = _json(result.folder / "training.json")["start"]
    assert (recorded["weights"], recorded["folder"]) == (digest, old.name)
    # what it started from is not averaged into the result
    assert _json(result.folder / "training.json")["averaged"] == ["step-00000003"]
    said = (tmp_path / "tuned.txt").read_text("utf-8")
    assert f"starting from {old}, weights {digest[:12]}" in said
    assert "chosen: training.rate = 0.00028, 1/10 of the paper's peak for d_model 32" in said
    assert "chosen: training.warmup = 50, until Adam" in said
    assert "chosen: training.schedule = linear, down to 0 at the end of the run" in said


def test_the_model_is_validated_before_the_first_update(tmp_path: Path, old: Path) -> None:
    files = _write(tmp_path, "new", seed=5)
    valid = {"valid_source": [str(files["source"])], "valid_target": [str(files["target"])], "valid_pairs": 0}
    few = {"data": valid, "training": {"valid_lines": 3}}
    result = _train(tmp_path, "tuned", files, start=old, max_steps=2, save_every=9, settings=few)
    first, *_, last = _log(result.folder, "validation")
    assert (first["step"], last["step"]) == (0, 2)
    # the same as a run that never moves the weights gives at its end
    how = {"start": old, "schedule": "constant", "rate": 1e-30, "settings": few}
    still = _train(tmp_path, "still", files, max_steps=1, **how)
    assert still.scores["loss"] == pytest.approx(first["loss"], rel=1e-6)
    assert "step 0 validation: loss" in (tmp_path / "tuned.txt").read_text("utf-8")


@pytest.mark.usefixtures("unscored")
def test_a_run_of_one_part_and_another_that_keeps_the_optimizer_is_one_run(tmp_path: Path) -> None:
    """Without dropout, each epoch one update: cut after 5 and tuned for 5 more on the same pairs."""
    files = _write(tmp_path, "corpus", 60)
    valid = {"valid_source": [str(files["source"])], "valid_target": [str(files["target"])], "valid_pairs": 0}
    big = {"batch_tokens": 4000, "micro_batch_tokens": 4000, "save_every": 5}
    new = merge(toy_settings(), {"data": valid, "model": {"dropout": 0.0}})
    paper = {**big, "schedule": "paper", "warmup": 6, "rate": 2e-3}
    _train(tmp_path, "straight", files, settings={**new, "training": {}}, max_steps=10, **paper)
    _train(tmp_path, "part", files, settings={**new, "training": {}}, max_steps=5, **paper)
    how = {"start": tmp_path / "part", "settings": {"data": valid}, "max_steps": 5, **big}
    _train(tmp_path, "kept", files, optimizer_state="kept", **how)
    _train(tmp_path, "fresh", files, schedule="paper", warmup=6, rate=2e-3, **how)
    straight, kept, fresh = (
        _tensors(tmp_path / name, step) for name, step in (("straight", 10), ("kept", 5), ("fresh", 5))
    )
    for name, expected in straight.items():
        torch.testing.assert_close(kept[name], expected, rtol=1e-3, atol=2e-5)
    assert any((fresh[name] - straight[name]).abs().max() > 1e-4 for name in straight)
    moments = "optimizer.safetensors"
    one, other = _tensors(tmp_path / "part", 5, moments), _tensors(tmp_path / "kept", 0, moments)
    names = [name for name in one if not name.startswith("random")]
    assert names
    assert all(torch.equal(one[name], other[name]) for name in names)
    rates = [_log(tmp_path / name, "train")[-1]["rate"] for name in ("straight", "kept", "fresh")]
    assert rates[0] == rates[1] != rates[2]
    recorded = _json(tmp_path / "kept" / "settings.json")
    assert recorded["start"]["earlier_updates"] == 5
    assert recorded["start"]["folder"].endswith("step-00000005")
    assert recorded["training"]["warmup"] == 6


@pytest.mark.usefixtures("unscored")
def test_going_on_never_needs_the_old_model(tmp_path: Path, old: Path) -> None:
    files = _write(tmp_path, "new", seed=5)
    how: dict[str, Any] = {"save_every": 4, "schedule": "constant", "optimizer_state": "kept"}
    gone = tmp_path / "gone"
    shutil.copytree(old, gone)
    _train(tmp_path, "straight", files, start=gone, max_steps=10, **how)
    _train(tmp_path, "cut", files, start=gone, max_steps=5, **how)
    shutil.rmtree(gone)
    shutil.move(tmp_path / "cut", tmp_path / "moved")
    _train(tmp_path, "moved", {}, resume=True, max_steps=10)
    assert _equal(_tensors(tmp_path / "straight", 10), _tensors(tmp_path / "moved", 10))
    one, other = (_log(tmp_path / name, "train")[-1] for name in ("straight", "moved"))
    assert (one["nll"], one["rate"]) == (other["nll"], other["rate"])
    assert [entry["step"] for entry in _log(tmp_path / "moved", "validation")].count(0) == 1
    # naming again what it started from, as a settings file does, is no mistake; naming another is
    _train(tmp_path, "moved", {}, resume=True, max_steps=11, start=gone)
    with pytest.raises(UsageError, match=r"this run started from .*gone.*, not from .*old"):
        _train(tmp_path, "moved", {}, resume=True, max_steps=12, start=old)
    with pytest.raises(ConfigError, match=r"data\.tokenizer is x, but the run started from a model"):
        _train(tmp_path, "moved", {}, resume=True, max_steps=12, settings={"data": {"tokenizer": "x"}})
    shutil.rmtree(tmp_path / "moved" / "checkpoints")
    with pytest.raises(TrainingError, match=r"its checkpoints are gone.*--from"):
        _train(tmp_path, "moved", {}, resume=True, max_steps=12)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"data": {"vocabulary": 330}},
            r"data\.vocabulary is 330, but .* its own tokenizer; leave it out",
        ),
        ({"data": {"tokenizer": "x.model"}}, r"data\.tokenizer is x\.model, but"),
        ({"data": {"subwords": "unigram"}}, r"data\.subwords is unigram, but"),
        ({"model": {"d_model": 64}}, r"model\.d_model is 64, but 32 in .*leave it out, or train a new model"),
        ({"model": {"norm": "post"}}, r"model\.norm is post, but pre in"),
        ({"model": {"d_modle": 64}}, r"did you mean 'model\.d_model'"),
        ({"preset": "tiny"}, r"preset is tiny, but the model of .* has its own shape; leave out the preset"),
    ],
)
def test_what_contradicts_the_model_is_refused(
    tmp_path: Path, old: Path, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        _train(tmp_path, "tuned", {"source": "no.en", "target": "no.de"}, start=old, settings=settings)
    assert not (tmp_path / "tuned").exists()


@pytest.mark.usefixtures("unscored")
def test_dropout_may_change_and_the_same_shape_be_said(tmp_path: Path, old: Path) -> None:
    files = _write(tmp_path, "new")
    settings = {"model": {"dropout": 0.35, "d_model": 32}}
    result = _train(tmp_path, "tuned", files, start=old, max_steps=1, settings=settings)
    assert load_bundle(result.folder).model.config.dropout == 0.35


def test_where_a_run_can_start(tmp_path: Path, old: Path) -> None:
    for name in MODEL_FILES:
        (tmp_path / "model").mkdir(exist_ok=True)
        shutil.copy(old / name, tmp_path / "model")
    shutil.copytree(old, tmp_path / "unfinished")
    (tmp_path / "unfinished" / "config.json").unlink()
    final, newest = load_file(old / "model.safetensors"), _tensors(old, 12)
    step = old / "checkpoints" / "step-00000008"
    for folder, kept, weights, steps in (
        (tmp_path / "model", False, final, 0),
        (old, False, final, 0),
        (old, True, newest, 12),
        (step, False, _tensors(old, 8), 0),
        (step, True, _tensors(old, 8), 8),
        (tmp_path / "unfinished", False, newest, 0),
    ):
        start = open_start(folder, keep_optimizer=kept)
        assert _equal(start.weights, weights), folder
        assert (start.steps, start.moments is not None) == (steps, kept)
        assert start.tokenizer.model_bytes == (old / "tokenizer.model").read_bytes()
        assert start.config == load_bundle(old).model.config
    with pytest.raises(ConfigError, match=r"'kept', but .*model holds no checkpoint with Adam's moments"):
        open_start(tmp_path / "model", keep_optimizer=True)
    with pytest.raises(BundleError, match="no such model folder"):
        open_start(tmp_path / "nowhere", keep_optimizer=False)
    (tmp_path / "unfinished" / "checkpoints" / "step-00000012" / "model.safetensors").write_bytes(b"x")
    with pytest.raises(TrainingError, match=r"step-00000012: the checkpoint is damaged"):
        open_start(tmp_path / "unfinished", keep_optimizer=False)


def test_the_old_model_is_never_written_over(tmp_path: Path, old: Path) -> None:
    files = _write(tmp_path, "new")
    before = (old / "model.safetensors").read_bytes()
    with pytest.raises(UsageError, match="holds the model that --from names"):
        _train(old.parent, old.name, files, start=old, overwrite=True, max_steps=1)
    assert (old / "model.safetensors").read_bytes() == before


def test_what_needs_a_model_to_start_from_says_so() -> None:
    with pytest.raises(ConfigError, match=r"'kept', but the run starts from no model; .*--from"):
        resolve({"training": {"optimizer_state": "kept"}}, pairs=100, device="cpu")
    with pytest.raises(ConfigError, match="preset fine-tuning needs a model to start from"):
        resolve({"preset": "fine-tuning"}, pairs=100, device="cpu")
    with pytest.raises(ConfigError, match="optimizer_state is 'lost'; choose one of fresh, kept"):
        resolve({"training": {"optimizer_state": "lost"}}, pairs=100, device="cpu")


def test_the_rate_is_a_tenth_of_the_papers_peak() -> None:
    assert tuning_rate(512) == pytest.approx(paper_rate(4000, 512, 4000) / 10, rel=0.02) == 7e-05


@pytest.mark.usefixtures("unscored")
def test_text_that_the_tokenizer_spells_in_bytes_is_said(tmp_path: Path, old: Path) -> None:
    files = _write(tmp_path, "new")
    lines = [f"{a} {b}" for a in [*ENGLISH, "один", "два"] for b in ENGLISH]
    files["source"].write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    files["target"].write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    result = _train(tmp_path, "tuned", files, start=old, max_steps=1)
    report = _json(result.folder / "training.json")["data"]
    assert report["source_bytes"] >= 6 * 10  # of 18 lines at most 10 are held out
    said = (tmp_path / "tuned.txt").read_text("utf-8")
    tokens = f"{report['source_bytes']:,} of {report['source_tokens']:,}"
    assert f"the model's tokenizer spells {tokens} source tokens" in said
    assert "of the source tokens are single bytes" in said


@pytest.mark.usefixtures("unscored")
def test_a_mixed_run_goes_on_as_the_same_run(tmp_path: Path, old: Path) -> None:
    one, other = _write(tmp_path, "a", 90), _write(tmp_path, "b", 30, seed=2)
    files = {side: [str(one[side]), str(other[side])] for side in ("source", "target")}
    valid = {"valid_source": [files["source"][0]], "valid_target": [files["target"][0]], "valid_pairs": 0}
    plain, mixed = {"data": valid}, {"data": {**valid, "weights": [1, 3]}}
    how: dict[str, Any] = {"start": old, "batch_tokens": 150, "save_every": 100, "schedule": "constant"}
    _train(tmp_path, "straight", files, settings=mixed, max_steps=16, **how)
    _train(tmp_path, "cut", files, settings=mixed, max_steps=7, **how)
    _train(tmp_path, "cut", {}, resume=True, max_steps=16)
    _train(tmp_path, "plain", files, settings=plain, max_steps=16, **how)
    assert _log(tmp_path / "cut", "start")[0]["updates_per_epoch"] < 16
    assert _equal(_tensors(tmp_path / "straight", 16), _tensors(tmp_path / "cut", 16))
    assert not _equal(_tensors(tmp_path / "straight", 16), _tensors(tmp_path / "plain", 16))
    said = (tmp_path / "cut.txt").read_text("utf-8")
    assert f"corpus {one['source']}: 25.0% of every epoch" in said
    assert f"corpus {other['source']}: 75.0% of every epoch" in said
    assert _json(tmp_path / "cut" / "settings.json")["data"]["weights"] == [1.0, 3.0]
    with pytest.raises(ConfigError, match=r"data\.weights was \[1\.0, 3\.0\], is \[1\.0, 1\.0\]"):
        _train(tmp_path, "cut", {}, resume=True, max_steps=17, settings={"data": {"weights": [1, 1]}})


def _digits(folder: Path, name: str, shifted: bool, pairs: int, low: int, high: int) -> dict[str, Path]:
    """Lists of the words ``low`` to ``high``; where shifted, each is translated as the next one should be."""
    draw, source, target = random.Random(name), [], []
    for _ in range(pairs):
        line = [draw.randint(low, high) for _ in range(draw.randint(2, 3))]
        source.append(" ".join(ENGLISH[i] for i in line))
        moved = [low + (i - low + 1) % (high - low + 1) for i in line] if shifted else line
        target.append(" ".join(GERMAN[i] for i in moved))
    files = {"source": folder / f"{name}.en", "target": folder / f"{name}.de"}
    for file, lines in zip(files.values(), (source, target), strict=True):
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return files


def _exact(model: Path, files: dict[str, Path]) -> float:
    """The share of the first 100 sources that the model translates as the file does."""
    sources, targets = (files[side].read_text("utf-8").split("\n")[:100] for side in ("source", "target"))
    outputs = Translator.load(model, device="cpu").translate(sources, beam=1)
    return sum(a == b for a, b in zip(outputs, targets, strict=True)) / len(sources)


@pytest.mark.slow
@pytest.mark.usefixtures("unscored")
def test_new_text_alone_makes_a_model_forget_and_a_mixture_does_not(tmp_path: Path) -> None:
    """Old text: the first five words. New text: the others, translated in a way that is new to the model."""
    old, known = _digits(tmp_path, "old", False, 760, 0, 4), _digits(tmp_path, "known", False, 40, 5, 8)
    new = _digits(tmp_path, "new", True, 300, 5, 8)
    for side, file in old.items():  # the old text shows the model, and its tokenizer, all words
        file.write_text(file.read_text("utf-8") + known[side].read_text("utf-8"), encoding="utf-8")
    settings = merge(toy_settings(), {"model": {"dropout": 0.0}, "training": {}})
    how: dict[str, Any] = {"max_steps": 200, "rate": 1e-2, "save_every": 1000, "average": 1}
    _train(tmp_path, "model", old, settings=settings, warmup=30, **how)
    assert _exact(tmp_path / "model", old) >= 0.9
    assert _exact(tmp_path / "model", new) <= 0.1
    _train(tmp_path, "alone", new, start=tmp_path / "model", **how)
    both = {side: [str(old[side]), str(new[side])] for side in old}
    mixed = {"data": {"weights": [1, 1]}}
    _train(tmp_path, "mixed", both, start=tmp_path / "model", settings=mixed, **how)
    scores = {
        name: (_exact(tmp_path / name, old), _exact(tmp_path / name, new)) for name in ("alone", "mixed")
    }
    assert scores["alone"][0] <= 0.3, scores
    assert scores["alone"][1] >= 0.7, scores
    assert min(scores["mixed"]) >= 0.75, scores
