"""What is read from the logs of runs: killed, resumed, damaged, at work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from toy import toy_settings, write_toy

from run_logs import START, end, report, validation, write_run
from transduce.errors import DataError, UsageError
from transduce.training.folder import is_locked, locked
from transduce.training.history import BY, CURVES, find_runs, read_run
from transduce.training.log import RunLog
from transduce.training.run import train
from transduce.training.validation import Validation

STRAIGHT = [
    START,
    *(report(step, 9.0 - step / 50) for step in (50, 100)),
    validation(100, 6.5, 12.5),
    *(report(step, 9.0 - step / 50) for step in range(101, 201)),
    validation(200, 5.5, 20.0),
    end(200, bleu=21.5),
]


def _cut() -> list[dict[str, Any]]:
    """The log of the same run, killed after update 150 and resumed from the checkpoint of 100."""
    lost = [report(step, 77.0, target_tokens_per_second=1.0) for step in range(101, 151)]
    return [*STRAIGHT[:4], *lost, {**START, "time": 1490.0}, *STRAIGHT[4:]]


def test_what_was_trained_again_replaces_what_was_lost(tmp_path: Path) -> None:
    straight = read_run(write_run(tmp_path / "straight", *STRAIGHT))
    cut = read_run(write_run(tmp_path / "cut", *_cut()))
    assert cut.starts == 2
    for curve in CURVES:
        assert straight.curve(curve)
        for by in BY:
            assert cut.curve(curve, by) == straight.curve(curve, by)
    differing = {"run", "starts"}
    one, other = straight.summary(), cut.summary()
    assert {n for n in one if one[n] != other[n]} == differing


def test_a_log_can_break_off_at_any_byte(tmp_path: Path) -> None:
    events = [*STRAIGHT[:4], report(103, 7.0, note="größer"), *STRAIGHT[-2:]]
    folder = write_run(tmp_path / "run", *events)
    whole = (folder / "log.jsonl").read_bytes().replace(b"gr\\u00f6\\u00dfer", "größer".encode())
    full = read_run(folder).entries
    for size in range(len(whole) + 1):
        (folder / "log.jsonl").write_bytes(whole[:size])
        run = read_run(folder)
        ended = whole[:size].count(b"\n")
        assert run.damaged <= 1
        assert max(ended - 1, 0) <= len(run.entries) <= max(ended, 0)
        assert [e["step"] for e in run.entries] == [e["step"] for e in full[: len(run.entries)]]
        assert run.state == ("finished" if len(run.entries) == len(full) else "failed")
        json.dumps(run.summary(), allow_nan=False)


@pytest.mark.parametrize(
    "line",
    [
        b"\0" * 40,
        b"\xff\xfe",
        b"[1, 2]",
        b'"end"',
        b"{}",
        b'{"event": 3}',
        b'{"event": "train"}',
        b"[" * 9999,
        b'{"event": "end", "step": "9"}',
        b'{"event": "validation", "step": true}',
        b'{"event": "train", "step": 1.5}',
    ],
)
def test_lines_that_are_no_events_are_counted(tmp_path: Path, line: bytes) -> None:
    run = read_run(write_run(tmp_path / "run", *STRAIGHT[:4], tail=line + b"\n\n" + line))
    assert (run.damaged, len(run.entries), run.state) == (2, 3, "failed")


def test_numbers_that_are_none_are_left_out(tmp_path: Path) -> None:
    log = [START, report(1, None), report(2, "x"), report(3, 4.0), report(4, float("nan")), report(5, True)]
    log += [validation(5, 2.0, float("inf")), report(6, 3.0, seconds=None)]
    run = read_run(write_run(tmp_path / "run", *log))
    assert run.curve("training") == [(3.0, 4.0), (6.0, 3.0)]
    assert run.curve("training", "seconds") == [(6.0, 4.0)]
    assert run.curve("bleu") == []
    assert run.summary()["best_loss"] == 2.0
    assert run.summary()["seconds"] == 10.0


def test_tokens_are_counted_or_else_reckoned(tmp_path: Path) -> None:
    old = report(7, 4.0)
    del old["target_tokens"]
    run = read_run(write_run(tmp_path / "run", START, old, report(8, 3.0)))
    assert run.curve("training", "tokens") == [(7 * 200.0, 4.0), (8 * 210.0, 3.0)]
    with pytest.raises(
        UsageError, match="curves over 'epochs' are not known; choose updates, seconds or tokens"
    ):
        run.curve("training", "epochs")


def test_the_best_is_the_highest_bleu_and_the_lowest_loss_first_reached(tmp_path: Path) -> None:
    log = [
        START,
        validation(1, 5.0),
        validation(2, 3.0, 8.0),
        validation(3, 4.0, 9.0),
        validation(4, 3.0, 9.0),
    ]
    run = read_run(write_run(tmp_path / "run", *log))
    assert run.best("bleu") == (9.0, 3)
    assert run.best("validation") == (3.0, 2)
    empty = read_run(write_run(tmp_path / "empty"))
    assert empty.best("bleu") == (None, None)
    summary = empty.summary()
    assert (summary["step"], summary["epochs"], summary["preset"], summary["state"]) == (
        0,
        None,
        "",
        "failed",
    )
    assert summary["last_time"] == pytest.approx(time.time(), abs=60)  # of the file


def test_states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = write_run(tmp_path / "ended", *STRAIGHT)
    stopped = write_run(tmp_path / "stopped", *STRAIGHT[:4], end(100, "stopped by SIGTERM"))
    again = write_run(tmp_path / "again", *STRAIGHT, START)
    states = {path.name: read_run(path).state for path in (ended, stopped, again)}
    assert states == {"ended": "finished", "stopped": "stopped", "again": "failed"}
    assert read_run(stopped).reason == "stopped by SIGTERM"
    assert read_run(again).summary()["final_bleu"] is None
    monkeypatch.setattr("transduce.training.history.is_locked", lambda _: None)  # a system without locks
    assert read_run(again).state == "unfinished"
    assert read_run(ended).state == "finished"


HOLDER = """
import sys, time
from pathlib import Path
from transduce.training.folder import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_run_is_running_as_long_as_its_process_lives(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", *STRAIGHT)  # finished, and now being resumed
    assert is_locked(folder) is False
    command = [sys.executable, "-c", HOLDER, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        assert read_run(folder).state == "running"
        process.kill()  # nothing is tidied up
    assert (folder / ".lock").exists()
    assert read_run(folder).state == "finished"
    (folder / "log.jsonl").write_bytes(b"")
    assert read_run(folder).state == "failed"


def test_whoever_asks_does_not_keep_a_training_out(tmp_path: Path) -> None:
    import fcntl

    (tmp_path / ".lock").touch()
    file = (tmp_path / ".lock").open("rb")
    fcntl.flock(file, fcntl.LOCK_SH)
    timer = threading.Timer(0.05, file.close)
    timer.start()
    with locked(tmp_path):
        assert is_locked(tmp_path) is True
    timer.join()
    with locked(tmp_path), pytest.raises(UsageError, match="another process is training there"):
        locked(tmp_path).__enter__()


def test_runs_are_found_where_they_are(tmp_path: Path) -> None:
    wanted = [tmp_path / name for name in ("a", "a/averaged", "b/c/d")]
    for folder in [*wanted, tmp_path / "a/checkpoints/x", tmp_path / ".hidden/x", tmp_path / "1/2/3/4"]:
        write_run(folder)
    (tmp_path / "only-settings").mkdir()
    (tmp_path / "only-settings" / "settings.json").touch()
    os.symlink(tmp_path, tmp_path / "b" / "loop")
    assert find_runs(tmp_path) == wanted
    assert find_runs(tmp_path / "a", depth=0) == [tmp_path / "a"]
    assert find_runs(tmp_path / "only-settings") == []
    for name, why in (("none", "no such folder"), ("a/log.jsonl", "is a file")):
        with pytest.raises(UsageError, match=why):
            find_runs(tmp_path / name)
    with pytest.raises(DataError, match=r"only-settings/log.jsonl: no log of a run \(No such file"):
        read_run(tmp_path / "only-settings")


def test_the_next_line_after_a_half_one_stands_alone(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", START, tail='{"event": "train", "note": "gr\u00f6'.encode()[:-1])
    log = RunLog(folder / "log.jsonl", quiet=True)
    log.write("start", {})
    log.write("train", {"step": 4, "nll": 2.0})
    run = read_run(folder)
    assert (run.damaged, run.curve("training")) == (1, [(4.0, 2.0)])
    RunLog(folder / "log.jsonl", quiet=True).write("train", {"step": 5, "nll": 1.0})
    assert (folder / "log.jsonl").read_bytes().count(b"\n") == 5  # no line is empty
    RunLog(tmp_path / "new.jsonl", quiet=True).write("train", {"step": 5})
    assert (tmp_path / "new.jsonl").read_bytes().startswith(b"{")


FINAL = {"bleu": 2.5, "chrf": 20.0, "exact": 0.0, "signature": "signature"}


class _Killed(BaseException):
    """The process is gone: nothing catches this."""


def test_a_killed_run_that_goes_on_reads_as_if_nothing_had_been(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = write_toy(tmp_path)
    # Translating with a model that has learned nothing takes long.
    scores = Validation(6.0, 1.5, "signature", ())
    monkeypatch.setattr("transduce.training.composition.validate", lambda *_, **__: scores)
    monkeypatch.setattr("transduce.training.finish.final_scores", lambda *_, **__: FINAL)

    def run(name: str, **more: Any) -> None:
        settings = toy_settings(max_steps=20, save_every=8, valid_every=8, report_every=2)
        with (tmp_path / "said.txt").open("a", encoding="utf-8") as stream:
            train(tmp_path / name, source=source, target=target, settings=settings, stream=stream, **more)

    write, dying = RunLog.write, [True]

    def killed(self: RunLog, kind: str, values: dict[str, Any]) -> None:
        write(self, kind, values)
        if dying and values.get("step") == 14:
            with self.path.open("ab") as file:
                file.write(b'{"event": "tr')
            dying.clear()
            raise _Killed

    run("straight")
    monkeypatch.setattr(RunLog, "write", killed)
    with pytest.raises(_Killed):
        run("cut")
    assert read_run(tmp_path / "cut").state == "failed"
    assert read_run(tmp_path / "cut").step == 14
    run("cut", resume=True)
    straight, cut = read_run(tmp_path / "straight"), read_run(tmp_path / "cut")
    assert (cut.starts, cut.damaged, cut.state) == (2, 0, "finished")
    assert straight.curve("training")[-1][0] == 20.0
    for curve in CURVES:
        assert cut.curve(curve) == straight.curve(curve)
    assert cut.curve("training", "tokens") == straight.curve("training", "tokens")
    final = json.loads((tmp_path / "cut" / "training.json").read_bytes())
    assert cut.curve("training", "tokens")[-1][0] == final["target_tokens"]
    assert cut.curve("validation", "tokens")[-1][0] == final["target_tokens"]
    assert cut.entries[-2]["source_tokens"] == final["source_tokens"]
