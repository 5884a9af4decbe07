"""Corpora whose weights change on the way, and corpora of several blocks: exact shares, exact resumption."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from toy import Said, toy_settings, write_toy

from transduce.data.config import DataConfig
from transduce.errors import ConfigError, TrainingError
from transduce.training.run import TrainingResult, train
from transduce.training.trainer import Trainer
from transduce.training.validation import Validation

SIZES = (150, 50)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is translated."""
    monkeypatch.setattr(
        "transduce.training.composition.validate", lambda *_, **__: Validation(1.0, 5.0, "signature", ())
    )
    scores = {"bleu": 0.0, "chrf": 0.0, "exact": 0.0, "signature": "signature"}
    monkeypatch.setattr("transduce.training.finish.final_scores", lambda *_, **__: scores)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, list[list[int]]]]:
    """Each update's number, epoch and pairs; one that is done again is there again."""
    updates: list[tuple[int, int, list[list[int]]]] = []
    one = Trainer._one

    def spied(self: Trainer, ids: tuple[Any, ...]) -> None:
        updates.append((self.progress.step + 1, self.progress.epoch, [part.tolist() for part in ids]))
        one(self, ids)

    monkeypatch.setattr(Trainer, "_one", spied)
    return updates


def run(
    folder: Path, name: str, *, data: dict[str, Any], said: Said | None = None, **how: Any
) -> TrainingResult:
    files: dict[str, list[Path]] = {"source": [], "target": []}
    for number, size in enumerate(SIZES):
        part = folder / str(number)
        if not part.exists():
            part.mkdir()
            write_toy(part, size, seed=number)
        for side, path in zip(files, (part / "toy.en", part / "toy.de"), strict=True):
            files[side].append(path)
    call = {key: how.pop(key) for key in ("resume", "accept_changes", "prepare_only") if key in how}
    usual: dict[str, Any] = {
        "save_every": 2, "report_every": 1, "batch_tokens": 200, "micro_batch_tokens": 100,
        "schedule": "paper", "warmup": 9,  # a rate that does not depend on when the run ends
    }  # fmt: skip
    settings = toy_settings(**{**usual, **how})
    settings["data"] = {
        "vocabulary": 320,
        "valid_source": [str(files["source"][0])],
        "valid_target": [str(files["target"][0])],
        **data,
    }
    return train(folder / name, **files, settings=settings, stream=said or Said(), **call)


def shares(updates: list[tuple[int, int, list[list[int]]]], epoch: int) -> Counter[str]:
    return Counter(
        "first" if i < SIZES[0] else "second"
        for _, of, parts in updates
        for part in parts
        for i in part
        if of == epoch
    )


def digest(folder: Path) -> str:
    newest = max((folder / "checkpoints").iterdir())
    return hashlib.sha256((newest / "model.safetensors").read_bytes()).hexdigest()


def logged(folder: Path, event: str) -> list[dict[str, Any]]:
    lines = map(json.loads, (folder / "log.jsonl").read_bytes().splitlines())
    return [
        {name: value for name, value in line.items() if name not in ("time", "event")}
        for line in lines
        if line["event"] == event
    ]


def test_by_epochs(tmp_path: Path, seen: list[Any]) -> None:
    data = {"weights": [1.0, 0.0], "weights_after_epochs": [[1, 1, 3], [2, 0, 1]]}
    said = Said()
    result = run(tmp_path, "run", data=data, said=said, max_epochs=3, max_steps=0)
    assert [shares(seen, epoch) for epoch in range(3)] == [
        {"first": 200},
        {"first": 50, "second": 150},
        {"second": 200},
    ]
    second = Counter(i for _, epoch, parts in seen if epoch > 0 for part in parts for i in part if i >= 150)
    assert set(second.values()) == {7}  # 150 and 200 times 50 pairs: the ring goes on
    first_updates = [next(step for step, of, _ in seen if of == epoch) for epoch in (1, 2)]
    assert logged(result.folder, "weights") == [
        {"step": first_updates[0], "epoch": 1, "weights": [1.0, 3.0]},
        {"step": first_updates[1], "epoch": 2, "weights": [0.0, 1.0]},
    ]
    lines = said.getvalue()
    assert "0/toy.en: 100.0% of every epoch, 200 of 200 pairs; each of its 150 pairs" in lines
    assert "after 1 epoch: corpus " in lines
    assert f"from update {first_updates[1]:,}, epoch 3: corpus " in lines
    assert "0/toy.en: 0.0% of every epoch, 0 of 200 pairs; none of its 150 pairs is seen" in lines


@pytest.mark.parametrize("data", [
    {"weights_after_updates": [[5, 1, 4], [9, 0, 1]]},
    {"weights": [3.0, 1.0], "weights_after_epochs": [[1, 1, 4]]},
    {},
])  # fmt: skip
@pytest.mark.parametrize("block", [10**6, 64])
def test_a_run_that_was_stopped_anywhere_is_the_same_run(
    tmp_path: Path, seen: list[Any], monkeypatch: pytest.MonkeyPatch, data: dict[str, Any], block: int
) -> None:
    monkeypatch.setattr("transduce.data.batching.BLOCK", block)
    steps = 21
    straight = run(tmp_path, "straight", data=data, max_steps=steps)
    whole = list(seen)
    assert max(epoch for _, epoch, _ in whole) >= 1
    for stop in (4, 5, 13) if data else (13,):
        seen.clear()
        run(tmp_path, f"cut-{stop}", data=data, max_steps=stop)
        cut = run(tmp_path, f"cut-{stop}", data=data, max_steps=steps, resume=True)
        assert seen == whole, stop
        assert digest(cut.folder) == digest(straight.folder)
        assert logged(cut.folder, "weights") == logged(straight.folder, "weights")


def test_by_updates_the_epoch_ends_and_each_corpus_goes_on_along_its_ring(
    tmp_path: Path, seen: list[Any]
) -> None:
    result = run(tmp_path, "run", data={"weights_after_updates": [[5, 1, 4], [9, 0, 1]]}, max_steps=30)
    assert [epoch for step, epoch, _ in seen if step in (5, 6, 9, 10)] == [0, 1, 1, 2]
    assert shares(seen, 2) == {"second": 200}
    assert [event["step"] for event in logged(result.folder, "weights")] == [6, 10]
    third = [i for _, epoch, parts in seen if epoch == 3 for part in parts for i in part]
    assert third  # and after the last change epochs follow upon epochs
    assert min(third) >= 150


def test_other_weights_later_are_noticed_and_can_be_accepted(tmp_path: Path) -> None:
    run(tmp_path, "run", data={"weights_after_updates": [[3, 1, 4]]}, max_steps=4)
    with pytest.raises(ConfigError, match=r"data\.weights_after_updates was .*--accept-changes"):
        run(tmp_path, "run", data={"weights_after_updates": [[5, 1, 4]]}, max_steps=8, resume=True)
    changed = {"weights_after_updates": [[5, 0, 1]]}
    result = run(tmp_path, "run", data=changed, max_steps=8, resume=True, accept_changes=True)
    assert [event["step"] for event in logged(result.folder, "weights")] == [4, 6]


def test_a_checkpoint_of_a_version_with_another_order_is_not_gone_on_with_silently(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path, "run", data={}, max_steps=4)
    monkeypatch.setattr("transduce.data.batching.BLOCK", 64)
    with pytest.raises(TrainingError, match="another basis: order changed"):
        run(tmp_path, "run", data={}, max_steps=6, resume=True)
    assert run(tmp_path, "run", data={}, max_steps=6, resume=True, accept_changes=True).steps == 6


def test_data_that_were_prepared_before_are_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = Said()
    result = run(tmp_path, "run", data={}, said=said, max_steps=2, prepare_only=True)
    assert (result.steps, result.reason) == (0, "the data are prepared")
    assert "the data are prepared in " in said.getvalue()
    assert not (tmp_path / "run" / "settings.json").exists()
    monkeypatch.setattr("transduce.data.preparation.read_corpora", None)
    assert run(tmp_path, "run", data={}, max_steps=2).steps == 2


@pytest.mark.parametrize(("data", "message"), [
    ({"weights_after_epochs": ((1, 1, 1),), "weights_after_updates": ((1, 1, 1),)}, "both given"),
    ({"weights_after_epochs": ((0, 1, 1),)}, "after 0; these are whole numbers from 1 on"),
    ({"weights_after_epochs": ((1.5, 1, 1),)}, r"after 1\.5; these are whole numbers"),
    ({"weights_after_updates": ((5, 1, 1), (5, 2, 1))}, "each larger than the one before"),
    ({"weights_after_updates": ((5, 1),)}, "after 5 holds 1 number for 2 corpora"),
    ({"weights_after_updates": ((5,),)}, r"holds \[5\.0\]; expected when, and a weight for each corpus"),
    ({"weights_after_updates": ((),)}, r"holds \[\]; expected when"),
    ({"weights_after_epochs": ((2, 0, 0),)}, "holds only zeros"),
    ({"weights_after_epochs": ((2, 1, -1),)}, "holds -1; a weight is a finite number"),
    ({"weights": (1, 0)}, "holds 0; a weight is a finite number above 0"),
])  # fmt: skip
def test_settings_that_make_no_sense(data: dict[str, Any], message: str) -> None:
    data = {
        name: tuple(tuple(map(float, row)) if isinstance(row, tuple) else float(row) for row in rows)
        for name, rows in data.items()
    }
    with pytest.raises(ConfigError, match=message):
        DataConfig(source=("a.en", "b.en"), target=("a.de", "b.de"), **data)


def test_epochs_that_are_cut_short_do_not_count_the_length_of_a_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ends by training\.max_epochs = 3; set training\.max_steps"):
        run(tmp_path, "run", data={"weights_after_updates": [[5, 1, 4]]}, max_epochs=3, max_steps=0)
