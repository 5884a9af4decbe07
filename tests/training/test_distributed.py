"""Several workers make one run: the same updates, weights and files as one worker.

Real processes on this machine, joined by gloo. Each fleet makes several runs, for starting one takes seconds.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from fleet import run_fleet, seen, written
from several import HOW, ROWS, SHARDED, alone, assert_same_weights, call_of, events


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the runs of one worker and of two."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        alone(call_of(folder, "one", HOW), patch)
        alone(call_of(folder, "one-rows", ROWS), patch)
    two = [
        call_of(folder, "two", HOW),
        call_of(folder, "two-sharded", {**HOW, **SHARDED}),
        call_of(folder, "two-ahead", {**HOW, **SHARDED, "ema": 0.9}, ahead=True),
        call_of(folder, "two-rows", ROWS),
        call_of(folder, "cut", {**HOW, "max_steps": 4}),
    ]
    run_fleet(folder, two, 2)
    for name in ("to-one", "to-four"):
        shutil.copytree(folder / "cut", folder / name)
    return folder


@pytest.fixture(scope="module")
def four(runs: Path) -> Path:
    """The same folder with the runs of four workers."""
    calls = [
        call_of(runs, "four", HOW),
        call_of(runs, "four-rows", {**ROWS, **SHARDED}),
        call_of(runs, "to-four", {**HOW, **SHARDED}, resume=True),
        # about three sentences an update for four workers
        call_of(runs, "few", {**HOW, "batch_tokens": 30, "micro_batch_tokens": 30}, pairs=24),
    ]
    run_fleet(runs, calls, 4)
    return runs


@pytest.mark.parametrize("name", ["two", "two-sharded", "two-ahead"])
def test_two_workers_reach_the_same_weights_as_one(runs: Path, name: str) -> None:
    assert seen(runs / name) == seen(runs / "one")
    assert_same_weights(runs / name, runs / "one")
    assert len(seen(runs / name)) == 8


def test_where_micro_batches_are_few_their_rows_are_divided(runs: Path) -> None:
    assert seen(runs / "two-rows") == seen(runs / "one-rows")
    assert_same_weights(runs / "two-rows", runs / "one-rows")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "reference"), [("four", "one"), ("four-rows", "one-rows")])
def test_four_workers_reach_the_same_weights_as_one(four: Path, name: str, reference: str) -> None:
    assert seen(four / name) == seen(four / reference)
    assert_same_weights(four / name, four / reference)


def _each_pair_once(run: Path) -> None:
    updates, start = seen(run), events(run, "start")[0]
    assert len(updates) == start["updates_per_epoch"]
    assert sorted(i for ids in updates.values() for i in ids) == list(range(start["data"]["kept"]))


def test_every_pair_is_used_once_an_epoch(runs: Path) -> None:
    for name in ("one", "two", "two-sharded", "two-rows"):
        _each_pair_once(runs / name)


@pytest.mark.slow
def test_updates_with_fewer_sentences_than_workers_end(four: Path) -> None:
    _each_pair_once(four / "few")
    assert min(len(ids) for ids in seen(four / "few").values()) < 4
    assert json.loads((four / "few" / "training.json").read_bytes())["ended"] == "1 epoch is done"


def test_a_run_of_two_workers_goes_on_with_one(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(call_of(runs, "to-one", HOW, resume=True), monkeypatch)
    _assert_same_run_from(4, runs / "to-one", runs / "one")


@pytest.mark.slow
def test_a_run_of_two_workers_goes_on_with_four_that_share_the_model(four: Path) -> None:
    _assert_same_run_from(4, four / "to-four", four / "one")


def _assert_same_run_from(step: int, run: Path, reference: Path) -> None:
    assert seen(run) == {number: ids for number, ids in seen(reference).items() if number >= step}
    assert_same_weights(run, reference)


def test_worker_0_alone_writes(runs: Path) -> None:
    for name in ("two", "two-sharded", "cut"):
        assert any("checkpoints" in line for line in written(runs / name, 0))
        assert written(runs / name, 1) == []


def test_the_log_counts_what_all_workers_saw(runs: Path) -> None:
    one, two = (events(runs / name, "train") for name in ("one", "two-sharded"))
    for mine, other in zip(one, two, strict=True):
        assert mine["step"] == other["step"]
        for name in ("loss", "nll", "gradient_norm", "rate"):
            assert mine[name] == pytest.approx(other[name], rel=1e-4)
    assert len(one) == 1
    tokens = [
        json.loads((runs / name / "training.json").read_bytes())["target_tokens"] for name in ("one", "two")
    ]
    assert tokens[0] == tokens[1] == events(runs / "one", "start")[0]["data"]["target_tokens"]


def test_the_model_folder_says_how_many_worked_on_it(runs: Path) -> None:
    told = {
        name: json.loads((runs / name / "training.json").read_bytes())["workers"] for name in ("one", "two")
    }
    assert told == {"one": 1, "two": 2}  # what the cost of a run is reckoned by
