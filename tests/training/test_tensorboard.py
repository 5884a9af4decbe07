"""TensorBoard's event files say what the log says, also after a run was killed and went on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from toy import toy_settings, write_toy

from run_logs import end, report, validation
from transduce.errors import ConfigError
from transduce.training.folder import make_room
from transduce.training.history import read_run
from transduce.training.log import RunLog
from transduce.training.run import train
from transduce.training.tensorboard import SCALARS, TensorBoard
from transduce.training.validation import Validation

pytest.importorskip("tensorboard")


def _scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard itself shows of a folder."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    events.Reload()
    return {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


@pytest.fixture(autouse=True)
def _without_translations(monkeypatch: pytest.MonkeyPatch) -> None:
    """No translating with models that have learned nothing: it takes long."""
    scores = iter(Validation(6.0 - i, 1.5 * i or None, "signature", ()) for i in range(9))
    monkeypatch.setattr("transduce.training.composition.validate", lambda *_, **__: next(scores))
    final = {"bleu": 2.5, "chrf": 20.0, "exact": 0.0, "loss": 5.5, "signature": "signature"}
    monkeypatch.setattr("transduce.training.finish.final_scores", lambda *_, **__: final)


def _train(folder: Path, **more: Any) -> None:
    source, target = write_toy(folder)
    resume = more.pop("resume", False)
    settings = toy_settings(**{"save_every": 8, "report_every": 2, **more})
    with (folder / "said.txt").open("a", encoding="utf-8") as stream:
        train(folder / "run", source=source, target=target, settings=settings, resume=resume, stream=stream)


def test_the_event_files_say_what_the_log_says(tmp_path: Path) -> None:
    _train(tmp_path, max_steps=12, tensorboard=True)
    scalars = _scalars(tmp_path / "run" / "tensorboard")
    run = read_run(tmp_path / "run")
    expected: dict[str, list[tuple[int, float]]] = {}
    for entry in run.entries:
        heading, names = SCALARS[entry["event"]]
        for name in names:
            value = entry["scores"].get(name) if entry["event"] == "end" else entry[name]
            if value is not None:
                expected.setdefault(f"{heading}/{name}", []).append((entry["step"], pytest.approx(value)))
    assert scalars == expected
    assert [step for step, _ in scalars["training/nll"]] == [2, 4, 6, 8, 10, 12]
    assert {"training/rate", "training/gradient_norm", "validation/loss", "final/bleu"} <= set(scalars)
    assert {"training/loss", "training/perplexity", "training/target_tokens_per_second"} <= set(scalars)


def test_updates_that_were_lost_are_hidden(tmp_path: Path) -> None:
    killed = TensorBoard(tmp_path)
    for step in (50, 100, 120, 150):
        killed.write(report(step, float(step)))
    killed.write(validation(100, 6.0, 10.0))
    killed.close()
    resumed = TensorBoard(tmp_path, after=100)
    resumed.write(report(150, 3.0))
    resumed.write(validation(150, 5.0))
    resumed.write(end(150, bleu=12.0))
    resumed.close()
    scalars = _scalars(tmp_path)
    assert scalars["training/nll"] == [(50, 50.0), (100, 100.0), (150, 3.0)]
    assert scalars["validation/loss"] == [(100, 6.0), (150, 5.0)]
    assert scalars["validation/bleu"] == [(100, 10.0)]
    assert scalars["final/bleu"] == [(150, 12.0)]


def test_a_killed_run_that_goes_on_shows_no_update_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, dying = RunLog.write, [True]

    def failing(self: RunLog, kind: str, values: dict[str, Any]) -> None:
        write(self, kind, values)
        if dying and values.get("step") == 14:
            dying.clear()
            raise MemoryError

    monkeypatch.setattr(RunLog, "write", failing)
    with pytest.raises(MemoryError):
        _train(tmp_path, max_steps=20, tensorboard=True)
    folder = tmp_path / "run" / "tensorboard"
    assert [step for step, _ in _scalars(folder)["training/nll"]] == [2, 4, 6, 8, 10, 12, 14]
    _train(tmp_path, max_steps=20, report_every=6, tensorboard=True, resume=True)  # from 8
    scalars, run = _scalars(folder), read_run(tmp_path / "run")
    assert [step for step, _ in scalars["training/nll"]] == [2, 4, 6, 8, 12, 18]
    assert scalars["training/nll"] == [(int(x), pytest.approx(y)) for x, y in run.curve("training")]
    assert scalars["validation/loss"] == [(int(x), pytest.approx(y)) for x, y in run.curve("validation")]


def test_it_can_be_turned_on_when_a_run_goes_on_and_is_replaced_with_the_run(tmp_path: Path) -> None:
    _train(tmp_path, max_steps=10)
    assert not (tmp_path / "run" / "tensorboard").exists()
    _train(tmp_path, max_steps=14, resume=True, tensorboard=True)
    folder = tmp_path / "run" / "tensorboard"
    assert [step for step, _ in _scalars(folder)["training/nll"]] == [12, 14]
    (folder / "mine.txt").touch()
    make_room(tmp_path / "run")
    assert [path.name for path in folder.iterdir()] == ["mine.txt"]


def test_a_missing_package_is_said_before_anything_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [n for n in sys.modules if n.split(".")[0] == "tensorboard" or ".tensorboard" in n]:
        if not name.startswith("transduce"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(
        ConfigError, match=r"pip install tensorboard \(the extra 'transduce\[tensorboard\]'\), or leave"
    ):
        _train(tmp_path, max_steps=12, tensorboard=True)
    assert not (tmp_path / "run").exists()
    _train(tmp_path, max_steps=2)
