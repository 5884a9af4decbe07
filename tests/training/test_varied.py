"""Runs whose pairs vary from update to update: budgets, tokens, resuming and several workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fleet import run_fleet
from hypothesis import given
from hypothesis import strategies as st
from several import HOW, SHARDED, assert_same_weights, call_of, events
from toy import Said

from transduce.data.shards import TokenShards
from transduce.data.tokenizer import Tokenizer
from transduce.errors import ConfigError
from transduce.training.config import TrainingConfig
from transduce.training.run import train
from transduce.training.step import Batch
from transduce.training.varied import Varied, cut

VARYING = {
    **HOW, "sample_source": 0.3, "sample_target": 0.2, "upper_case": 0.2, "lower_case": 0.2, "typos": 0.3,
}  # fmt: skip


def _run(folder: Path, name: str, how: dict[str, Any], **more: Any) -> Path:
    call = call_of(folder, name, how, **more)
    return train(call.pop("output"), stream=Said(), **call).folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[list[Batch]]]:
    """A run of one epoch, and the batches of each of its updates."""
    made: list[list[Batch]] = []
    plain = Varied.batches

    def noting(*arguments: Any) -> Any:
        batches, totals = plain(*arguments)
        made.append(batches)
        assert totals == (
            sum(int((batch.source != 0).sum()) for batch in batches),
            sum(int((batch.target_out != 0).sum()) for batch in batches),
        )
        return batches, totals

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Varied, "batches", noting)
        folder = tmp_path_factory.mktemp("runs")
        return _run(folder, "whole", VARYING), made


def test_no_batch_exceeds_its_budget_and_every_pair_comes_once(whole: tuple[Path, list[list[Batch]]]) -> None:
    folder, updates = whole
    batches = [batch for update in updates for batch in update]
    assert all(side.numel() <= 50 for batch in batches for side in (batch.source, batch.target_out))
    tokenizer = Tokenizer.load(folder / "tokenizer.model")
    shards = TokenShards.open(folder / "data" / "train")

    def texts(rows: Any) -> list[str]:
        return [tokenizer.decode(row) for row in rows]

    # Whatever became of subwords and case, each target is there once.
    seen = [text.lower() for batch in batches for text in texts(batch.target_out.tolist())]
    assert sorted(seen) == sorted(texts(shards.target(i).tolist() for i in range(len(shards))))
    for batch in batches:
        assert (
            batch.target_in[:, 1:] == batch.target_out[:, :-1].masked_fill(batch.target_out[:, 1:] == 0, 0)
        ).all()
    seeds = [batch.seed for batch in batches]
    assert len(set(seeds)) == len(seeds)
    assert sum(int(batch.source_tokens) for batch in batches) > int(shards.source_lengths.sum())


def test_progress_counts_the_usual_subwords(whole: tuple[Path, list[list[Batch]]]) -> None:
    folder, _ = whole
    shards = TokenShards.open(folder / "data" / "train")
    assert events(folder, "train")[-1]["target_tokens"] <= int(shards.target_lengths.sum())
    assert events(folder, "end")[0]["reason"] == "1 epoch is done"


def test_a_run_that_was_stopped_is_the_same_run(
    whole: tuple[Path, list[list[Batch]]], tmp_path: Path
) -> None:
    _run(tmp_path, "parts", {**VARYING, "max_steps": 3})
    parts = _run(tmp_path, "parts", VARYING, resume=True)
    one, other = (max((run / "checkpoints").iterdir()) for run in (whole[0], parts))
    assert one.name == other.name
    for name in ("model.safetensors", "optimizer.safetensors"):
        assert (one / name).read_bytes() == (other / name).read_bytes()
    with pytest.raises(ConfigError, match=r"training\.typos was 0\.3, is 0\.1"):
        _run(tmp_path, "parts", {**VARYING, "typos": 0.1}, resume=True)


def test_two_workers_see_what_one_sees(whole: tuple[Path, list[list[Batch]]], tmp_path: Path) -> None:
    calls = [call_of(tmp_path, "two", VARYING), call_of(tmp_path, "sharded", {**VARYING, **SHARDED})]
    run_fleet(tmp_path, calls, 2)
    for name in ("two", "sharded"):
        assert_same_weights(tmp_path / name, whole[0])


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=20), st.integers(30, 90)
)
def test_groups_keep_the_budget_and_hold_each_row_once(lengths: list[tuple[int, int]], budget: int) -> None:
    sources, targets = ([np.zeros(pair[side]) for pair in lengths] for side in (0, 1))
    groups = [rows.tolist() for rows in cut(sources, targets, budget)]
    assert sorted(row for rows in groups for row in rows) == list(range(len(lengths)))
    for rows in groups:
        assert len(rows) * max(max(lengths[row]) for row in rows) <= budget
    if len(lengths) * max(map(max, lengths)) <= budget:
        assert groups == [list(range(len(lengths)))]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"sample_source": 1.1}, r"training\.sample_source is 1\.1; it must lie between 0 and 1"),
        ({"typos": -0.1}, r"training\.typos is -0\.1"),
        ({"lower_case": 0.6, "upper_case": 0.5}, r"upper_case and title_case are 1\.1 together; at most 1"),
    ],
)
def test_shares_that_cannot_be_are_refused(values: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TrainingConfig(**values)  # type: ignore[arg-type]
