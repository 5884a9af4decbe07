"""Whole runs on a toy corpus, through the public `train`."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from toy import Said, toy_settings, write_toy

from transduce.decoding.translator import Translator
from transduce.errors import ConfigError, DataError, TrainingError, UsageError
from transduce.training.averaging import average_folders
from transduce.training.run import TrainingResult, train
from transduce.training.validation import Validation


def _train(folder: Path, name: str = "run", pairs: int = 200, **training: Any) -> TrainingResult:
    source, target = write_toy(folder, pairs)
    resume, overwrite = training.pop("resume", False), training.pop("overwrite", False)
    with (folder / "said.txt").open("a", encoding="utf-8") as stream:
        return train(
            folder / name,
            source=source,
            target=target,
            settings=toy_settings(**training),
            resume=resume,
            overwrite=overwrite,
            stream=stream,
        )


def _log(folder: Path, event: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_bytes().split(b"\n") if line]
    return [line for line in lines if line["event"] == event]


def _weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def test_a_toy_task_is_learned_and_reported(tmp_path: Path) -> None:
    source, target = write_toy(tmp_path, 1000, longest=4, reverse=False)
    settings = toy_settings(max_steps=300, batch_tokens=400, rate=1e-2, warmup=30, report_every=20)
    settings["model"]["dropout"] = 0.0
    result = train(tmp_path / "run", source=source, target=target, settings=settings)
    assert result.reason == "300 updates are done"
    assert result.scores["exact"] >= 0.5
    training = json.loads((result.folder / "training.json").read_bytes())
    assert training["steps"] == 300
    assert len(training["averaged"]) == 3
    assert training["scores"]["signature"].startswith("nrefs:1|case:mixed|eff:no|tok:13a")
    reports = _log(result.folder, "train")
    assert reports[-1]["step"] == 300
    assert {"loss", "nll", "perplexity", "rate", "target_tokens_per_second", "wait_data"} <= set(reports[0])
    assert reports[-1]["nll"] < reports[0]["nll"] / 2
    assert reports[0]["perplexity"] == pytest.approx(math.exp(reports[0]["nll"]))
    assert len(_log(result.folder, "validation")[-1]["samples"]) == 3


def test_the_log_says_the_real_tokens_of_an_update(tmp_path: Path) -> None:
    result = _train(tmp_path, max_epochs=1, max_steps=0)
    start = _log(result.folder, "start")[0]
    # one epoch sees every kept pair once: the sums by hand, end of sentence counted
    data = start["data"]
    assert start["target_tokens_per_update"] * start["updates_per_epoch"] == pytest.approx(
        data["target_tokens"]
    )
    assert start["source_tokens_per_update"] * start["updates_per_epoch"] == pytest.approx(
        data["source_tokens"]
    )
    end = json.loads((result.folder / "training.json").read_bytes())
    assert (end["source_tokens"], end["target_tokens"]) == (data["source_tokens"], data["target_tokens"])
    assert f"{start['target_tokens_per_update']:,.0f} target tokens" in (tmp_path / "said.txt").read_text(
        "utf-8"
    )


def test_a_resumed_run_is_the_same_run(tmp_path: Path) -> None:
    # dropout on, three micro-batches an update, cut in the middle of an epoch
    how = {
        "batch_tokens": 300,
        "micro_batch_tokens": 100,
        "save_every": 7,
        "average": 2,
        "schedule": "paper",
        "warmup": 9,
    }
    _train(tmp_path, "straight", max_steps=24, **how)
    _train(tmp_path, "cut", max_steps=11, **how)
    _train(tmp_path, "cut", max_steps=24, resume=True, **how)
    one, other = (
        load_file(tmp_path / name / "checkpoints" / "step-00000024" / "model.safetensors")
        for name in ("straight", "cut")
    )
    assert all(torch.equal(one[name], other[name]) for name in one)

    def losses(name: str) -> list[tuple[int, float]]:
        return [(r["step"], r["nll"]) for r in _log(tmp_path / name, "train") if r["step"] > 15]

    assert losses("straight") == losses("cut")


BEFORE_THE_FIRST_UPDATE = (
    "transduce.data.preparation.clean_once",
    "transduce.data.preparation.Preparation.tokenizer",
    "transduce.data.preparation.write_shards",
    "transduce.training.composition.try_largest",
)


def test_a_run_that_was_killed_before_its_first_update_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        """What no part of the program handles."""

    def kill(*_: Any, **__: Any) -> None:
        raise Killed

    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    source, target = write_toy(tmp_path / "here", 60)
    settings = toy_settings(max_steps=2)
    settings["data"] |= {"source": [source.name], "target": [target.name], "clean": True}
    settings["cleaning"] = {"mojibake": False}
    train("straight", settings=settings, stream=Said())
    how: dict[str, Any] = {"settings": settings}
    for when in BEFORE_THE_FIRST_UPDATE:
        with monkeypatch.context() as patch:
            patch.setattr(when, kill)
            with pytest.raises(Killed):
                train("../here/cut", stream=Said(), **how)
        how = {"resume": True}
        monkeypatch.chdir(tmp_path / "there")  # its files are found from anywhere
    train("../here/cut", stream=Said(), **how)
    one, other = (_weights(tmp_path / "here" / name) for name in ("straight", "cut"))
    assert all(torch.equal(one[name], other[name]) for name in one)
    names = [sorted(p.name for p in (tmp_path / "here" / name).iterdir()) for name in ("straight", "cut")]
    assert names[0] == names[1]
    assert "begun.json" not in names[1]


def test_a_run_from_a_model_that_was_killed_before_its_first_update_starts_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = write_toy(tmp_path, 60)
    first = _train(tmp_path, "first", 60, max_steps=1).folder
    how: dict[str, Any] = {"source": source, "target": target, "start": first}
    settings = {"training": toy_settings(max_steps=1)["training"]}
    train(tmp_path / "straight", settings=settings, stream=Said(), **how)
    with monkeypatch.context() as patch:
        patch.setattr("transduce.data.preparation.write_shards", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            train(tmp_path / "cut", settings=settings, stream=Said(), **how)
    train(tmp_path / "cut", resume=True, stream=Said())
    one, other = (_weights(tmp_path / name) for name in ("straight", "cut"))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_the_same_seed_gives_the_same_model_and_another_does_not(tmp_path: Path) -> None:
    runs = [
        _train(tmp_path, name, max_steps=4, seed=seed).folder for name, seed in (("a", 1), ("b", 1), ("c", 2))
    ]
    a, b, c = map(_weights, runs)
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert not all(torch.equal(a[name], c[name]) for name in a)


def test_which_checkpoints_are_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # save_every 10, an epoch of 10 updates, 30 updates, keep 2, best at 10: the files are 10, 20 and 30
    scores = iter([30.0, 20.0, 10.0])
    monkeypatch.setattr(
        "transduce.training.composition.validate",
        lambda *_, **__: Validation(1.0, next(scores), "signature", ()),
    )
    result = _train(tmp_path, max_steps=30, save_every=10, average=2)
    found = sorted(path.name for path in (result.folder / "checkpoints").iterdir())
    assert found == ["step-00000010", "step-00000020", "step-00000030"]


def test_the_last_update_is_saved_whatever_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "transduce.training.composition.validate", lambda *_, **__: Validation(1.0, 5.0, "signature", ())
    )
    result = _train(
        tmp_path, patience=2, save_every=1000, valid_every=3, warmup=4, schedule="paper", metric="bleu"
    )
    assert result.reason == "no better bleu in 2 validations"
    assert result.steps == 9  # best at 3; 6 and 9 are after the warm-up and no better
    assert (result.folder / "checkpoints" / "step-00000009").is_dir()


def test_patience_does_not_count_before_the_warm_up_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "transduce.training.composition.validate", lambda *_, **__: Validation(7.0, 0.1, "signature", ())
    )
    result = _train(tmp_path, patience=1, save_every=1000, valid_every=2, warmup=9, schedule="paper")
    assert result.steps == 10


def test_three_updates_that_are_not_finite_stop_the_run(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"not finite in 3 updates in a row.*last good: .*step-"):
        _train(
            tmp_path, rate=1e30, warmup=1, schedule="constant", save_every=1, valid_every=1000, max_steps=50
        )
    assert len(_log(tmp_path / "run", "non-finite")) == 3


def test_minutes_end_a_run(tmp_path: Path) -> None:
    result = _train(tmp_path, max_minutes=0.01)
    assert result.reason == "0.01 minutes are over"
    assert result.seconds >= 0.6


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"training.max_step": 5},
            "there is no setting 'training.max_step'; did you mean 'training.max_steps'?",
        ),
        ({"trainin.max_steps": 5}, "there is no section 'trainin'; did you mean 'training'?"),
        ({"training.max_steps": "five"}, "training.max_steps is 'five'; it must be a whole number"),
        (
            {"training.schedule": "cosine"},
            "training.schedule is 'cosine'; choose one of paper, linear, constant",
        ),
        ({"training.max_minutes": math.nan}, "training.max_minutes is nan; it must be a finite number"),
        ({"training.seed": 10**23}, "it must be below 2^63"),
        ({"model.vocabulary": 5}, "set data.vocabulary instead"),
        ({"model.norm": "both"}, "model.norm is 'both'; choose one of post, pre"),
        ({"preset": "tinny"}, "there is no preset 'tinny'; did you mean 'tiny'?"),
    ],
)
def test_settings_that_make_no_sense_are_refused_before_any_file_is_read(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        train(tmp_path / "run", source="missing.en", target="missing.de", settings=settings)
    assert message in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_a_run_is_never_overwritten_by_accident(tmp_path: Path) -> None:
    _train(tmp_path, max_steps=2)
    with pytest.raises(UsageError, match=r"already holds a run.*--resume.*--overwrite"):
        _train(tmp_path, max_steps=2)
    with pytest.raises(ConfigError, match=r"another run.*training.seed was 1, is 2"):
        _train(tmp_path, max_steps=4, seed=2, resume=True)
    assert _train(tmp_path, max_steps=3, overwrite=True).steps == 3


def test_resume_needs_a_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no run"):
        _train(tmp_path, resume=True)


def test_unequal_files_refuse_to_start(tmp_path: Path) -> None:
    source, target = write_toy(tmp_path, 5)
    target.write_bytes(target.read_bytes() + b"sechs\n")
    with pytest.raises(DataError, match=r"toy\.en.*5.*toy\.de.*6"):
        train(tmp_path / "run", source=source, target=target, settings=toy_settings(max_steps=2))


def test_what_is_not_said_is_chosen_and_said(tmp_path: Path) -> None:
    source, target = write_toy(tmp_path, 60)
    settings = {
        "training": {"max_steps": 2, "device": "cpu"},
        "model": {"encoder_layers": 1, "decoder_layers": 1},
    }
    with (tmp_path / "said.txt").open("w", encoding="utf-8") as stream:
        train(tmp_path / "run", source=source, target=target, settings=settings, stream=stream)
    said = (tmp_path / "said.txt").read_text("utf-8")
    assert "chosen: preset tiny, for 60 pairs on cpu" in said
    assert "choosing 3 of 60 pairs for validation" in said
    assert "free" in said


def test_a_model_folder_is_self_contained(tmp_path: Path) -> None:
    import shutil

    result = _train(tmp_path, max_steps=20)
    away = tmp_path / "away"
    away.mkdir()
    for name in ("model.safetensors", "config.json", "tokenizer.model", "training.json"):
        shutil.copy(result.folder / name, away)
    lines = ["one two", "nine", "", "three three three"]
    here = Translator.load(result.folder, device="cpu").translate(lines)
    shutil.rmtree(result.folder)
    assert Translator.load(away, device="cpu").translate(lines) == here


def test_nothing_is_lost_to_a_typo(tmp_path: Path) -> None:
    result = _train(tmp_path, max_steps=2)
    (result.folder / "data" / "mine.txt").write_text("mine", encoding="utf-8")
    before = _weights(result.folder)
    with pytest.raises(DataError, match="nosuch"):
        train(result.folder, source="nosuch.en", target="nosuch.de", settings=toy_settings(), overwrite=True)
    assert all(torch.equal(before[name], weight) for name, weight in _weights(result.folder).items())
    _train(tmp_path, max_steps=2, seed=2, overwrite=True)
    assert (result.folder / "data" / "mine.txt").read_text("utf-8") == "mine"


def test_resume_refuses_other_data(tmp_path: Path) -> None:
    result = _train(tmp_path, max_steps=2)
    write_toy(tmp_path, 200, seed=9)
    with (tmp_path / "said.txt").open("a", encoding="utf-8") as stream:
        with pytest.raises(DataError, match=r"began with other data: train changed"):
            train(result.folder, settings={"training.max_steps": 4}, resume=True, stream=stream)
        write_toy(tmp_path, 200)
        with pytest.raises(DataError, match=r"began with other data: vocabulary changed"):
            train(result.folder, settings={"data.vocabulary": 330}, resume=True, stream=stream)
        assert train(result.folder, settings={"training.max_steps": 4}, resume=True, stream=stream).steps == 4


def test_two_processes_cannot_train_in_one_folder(tmp_path: Path) -> None:
    from transduce.training.folder import locked

    (tmp_path / "run").mkdir()
    with locked(tmp_path / "run"), pytest.raises(UsageError, match="another process is training there"):
        _train(tmp_path, max_steps=2)


def test_divergence_is_said(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"diverged at step 5.*lower training.rate"):
        _train(tmp_path, rate=1e3, warmup=1, schedule="constant", max_steps=50, save_every=1000)


def test_a_model_is_there_before_it_is_scored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("transduce.training.finish.final_scores", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _train(tmp_path, max_steps=2)
    assert len(Translator.load(tmp_path / "run", device="cpu").translate(["one two"])) == 1


@pytest.mark.parametrize("lines", [[], ["one two"], ["one two"] * 30])
def test_a_corpus_that_leaves_nothing_to_train_on(tmp_path: Path, lines: list[str]) -> None:
    for name in ("a.en", "a.de"):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    with pytest.raises(DataError, match=r"a\.en: (no pairs at all|none of \d+ pairs? is left to train)"):
        train(tmp_path / "run", source=tmp_path / "a.en", target=tmp_path / "a.de")


def test_a_finished_run_says_so_when_it_is_resumed(tmp_path: Path) -> None:
    _train(tmp_path, "run", max_steps=3)
    _train(tmp_path, "run", max_steps=3, resume=True)
    said = (tmp_path / "said.txt").read_text("utf-8")
    assert "nothing is left to train: 3 updates are done; raise that limit to go on" in said


def test_another_preset_is_another_run(tmp_path: Path) -> None:
    _train(tmp_path, "run", max_steps=3)
    with pytest.raises(ConfigError, match=r"another run .*: preset was tiny, is small"):
        train(tmp_path / "run", preset="small", resume=True)


def test_checkpoints_are_averaged_once_each(tmp_path: Path) -> None:
    _train(tmp_path, "run", max_steps=4, save_every=2, average=2)
    one, other = (tmp_path / "run" / "checkpoints" / f"step-{step:08d}" for step in (2, 4))
    with pytest.raises(UsageError, match="step-00000002: is named twice"):
        average_folders([one, other, one], tmp_path / "mean")
    with pytest.warns(UserWarning, match="only 2 checkpoints are there, not 9"):
        assert average_folders([tmp_path / "run"], tmp_path / "mean", last=9) == [one, other]
