"""Memory that runs out on one of several workers: all skip that update together, count it and go on."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from fleet import Call, ended, fleet, seen
from several import HOW, alone, assert_same_weights, call_of, events
from shortage import Shortage, run_out

# Before and after DDP has regrouped its buckets; before, within and after the pass whose gradients it sums;
# on either worker and on both.
SHORTAGES = [
    Shortage(1, part=-1, rank=1, backward=True),
    Shortage(3, part=0, rank=1),
    Shortage(4, part=-1, rank=0, backward=True),
    Shortage(6, part=-1, rank=1),
    Shortage(8, part=0, rank=1, backward=True),
    Shortage(8, part=-1, rank=0, backward=True),
]


def _short(call: Call, shortages: list[Shortage], **more: Any) -> Call:
    return {**call, "shortages": [dataclasses.asdict(short) for short in shortages], **more}


def test_all_skip_the_update_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two = call_of(tmp_path, "two", HOW)
    calls = [
        _short(two, SHORTAGES, bucket_mb=0.01),  # some sums are under way when memory runs out
        _short(call_of(tmp_path, "ahead", HOW), SHORTAGES, ahead=True),
        _short(call_of(tmp_path, "three", HOW), [Shortage(step, rank=1) for step in (3, 4, 5)]),
    ]
    with fleet(tmp_path, calls, 2) as processes:
        for code, said in ended(processes):
            assert code == 1, said
            assert "memory ran out in 3 updates in a row, up to step 5; lower training.micro_batch" in said
    with monkeypatch.context() as patch:
        run_out(patch, [dataclasses.replace(short, rank=0) for short in SHORTAGES])
        one = alone(call_of(tmp_path, "one", HOW), patch)
    for name in ("two", "ahead"):
        assert_same_weights(tmp_path / name, one)
        assert seen(tmp_path / name) == seen(one)
        found = [
            (event["step"], event["count"], event["workers"])
            for event in events(tmp_path / name, "out-of-memory")
        ]
        assert found == [(1, 1, 1), (3, 2, 1), (4, 3, 1), (6, 4, 1), (8, 5, 2)]
        state = max((tmp_path / name / "checkpoints").iterdir()) / "state.json"
        assert json.loads(state.read_bytes())["progress"]["out_of_memory"] == 5
    shapes = [event["shape"] for event in events(one, "out-of-memory")]
    assert shapes == [event["shape"] for event in events(tmp_path / "two", "out-of-memory")]
    assert max((tmp_path / "three" / "checkpoints").glob("*"), default=None) is None


def test_a_sharded_run_ends_on_all(tmp_path: Path) -> None:
    call = call_of(tmp_path, "run", {**HOW, "parallel": "sharded"})
    with fleet(tmp_path, [_short(call, [Shortage(3, rank=1)])], 2) as processes:
        (first, told), (second, said) = ended(processes, limit=60)
    assert "memory ran out on worker 1, and an update of a sharded model cannot be left out" in said
    assert "memory ran out on worker 1" in told
    assert (first, second) == (1, 1)
