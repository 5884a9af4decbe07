"""The benchmarks of large corpora, on small ones: what they make up can be read, what they count is right."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from transduce.data.shards import TokenShards

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def large_corpora() -> Iterator[ModuleType]:
    sys.path.insert(0, str(BENCHMARKS))
    spec = importlib.util.spec_from_file_location("large_corpora", BENCHMARKS / "large_corpora.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(BENCHMARKS))


def test_the_shards_are_like_real_ones(
    large_corpora: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_corpora, "CHUNK", 700)
    size = large_corpora.make(tmp_path, 2000)
    shards = TokenShards.open(tmp_path)
    assert len(shards) == 2000
    assert size == sum(path.stat().st_size for path in tmp_path.iterdir() if path.suffix != ".json")
    for place in (0, 699, 700, 1999):
        for ids, lengths in (
            (shards.source(place), shards.source_lengths),
            (shards.target(place), shards.target_lengths),
        ):
            assert len(ids) == lengths[place]
            assert ids[-1] == 1
            assert (ids[:-1] >= 260).all()
    assert 20 < shards.source_lengths.mean() < 30


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
@pytest.mark.parametrize(
    ("script", "arguments"),
    [("preparation", ["--pairs", "1500"]), ("large_corpora", ["--pairs", "1500", "--updates", "3"])],
)
def test_they_print_a_table_and_one_line_of_json(script: str, arguments: list[str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / f"{script}.py"), *arguments, "--folder", str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    (row,) = json.loads(done.stdout.splitlines()[-1])["rows"]
    assert row["pairs"] == 1500
    assert "1,500 " in done.stdout
    assert list(tmp_path.iterdir()) == []  # nothing of it stays
    if script == "preparation":
        assert row["kept"] > 1400
        assert 20 < row["peak_anonymous_mib"] <= row["peak_mib"] < 2000
        assert [line for line, _ in row["steps"]][-1] == "turning 1,500 pairs into tokens"
    else:
        assert row["blocks"] == 1
        assert row["anonymous_mib"] >= row["before_mib"] > 20
