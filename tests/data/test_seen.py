from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from transduce.data import seen as module
from transduce.data.corpora import count_pairs, identity
from transduce.data.seen import Seen


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A file that has not been touched for an hour, as far as its times say."""
    path = tmp_path / "a.en"
    path.write_text("a\nb\n")
    return path


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    now = module.time.time_ns
    monkeypatch.setattr(module.time, "time_ns", lambda: now() + 3600 * 10**9)


def value(seen: Seen, path: Path, new: Any) -> Any:
    return seen.get(path, "value", lambda: new)


@pytest.mark.usefixtures("later")
def test_a_file_is_read_once_also_by_later_runs(tmp_path: Path, old: Path) -> None:
    seen = Seen()
    assert value(seen, old, 1) == value(seen, old, 2) == 1
    assert seen.get(old, "other", lambda: "x") == "x"
    seen.save(tmp_path)
    again = Seen(tmp_path)
    assert value(again, old, 3) == 1
    assert not again.changed


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("change", ["append", "same size", "times put back", "replaced"])
def test_whatever_touches_it_has_it_read_again(tmp_path: Path, old: Path, change: str) -> None:
    seen = Seen()
    assert value(seen, old, 1) == 1
    before = old.stat()
    if change == "append":
        old.write_text("a\nb\nc\n")
    elif change == "replaced":
        (tmp_path / "new").write_text("A\nB\n")
        (tmp_path / "new").replace(old)
    else:
        with old.open("r+b") as file:
            file.write(b"Q")
    if change != "same size":
        os.utime(
            old, ns=(before.st_atime_ns, before.st_mtime_ns)
        )  # which a program can do; not the other time
    assert value(seen, old, 2) == 2
    assert value(seen, old, 3) == 2


def test_a_file_that_was_just_written_is_not_trusted(old: Path) -> None:
    seen = Seen()
    assert value(seen, old, 1) == 1
    assert value(seen, old, 2) == 2


@pytest.mark.usefixtures("later")
def test_a_file_that_changes_while_it_is_read_is_not_trusted(old: Path) -> None:
    seen = Seen()

    def work_out() -> int:
        old.write_text("other")
        return 1

    assert seen.get(old, "value", work_out) == 1
    assert value(seen, old, 2) == 2


@pytest.mark.usefixtures("later")
def test_damage_costs_only_time(tmp_path: Path, old: Path) -> None:
    for damaged in (b"", b"{", b"[1]", b'{"%s": 3}' % str(old).encode()):
        (tmp_path / "files.json").write_bytes(damaged)
        assert value(Seen(tmp_path), old, 7) == 7


@pytest.mark.usefixtures("later")
def test_counts_and_checksums_are_of_the_file_that_is_there(tmp_path: Path, old: Path) -> None:
    seen = Seen()
    other = tmp_path / "a.de"
    other.write_text("x\ny\n")
    assert count_pairs([str(old)], [str(other)], seen=seen) == 2
    first = identity([str(old)], seen=seen)
    assert first == identity([str(old)]) == identity([str(old)], seen=seen)
    old.write_text("a\nb\nc\n")
    other.write_text("x\ny\nz\n")
    assert count_pairs([str(old)], [str(other)], seen=seen) == 3
    assert identity([str(old)], seen=seen) == identity([str(old)]) != first


@pytest.mark.usefixtures("later")
def test_only_files_that_were_asked_for_are_kept(tmp_path: Path, old: Path) -> None:
    seen = Seen()
    value(seen, old, 1)
    (tmp_path / "b").write_text("b")
    value(seen, tmp_path / "b", 2)
    seen.save(tmp_path)
    again = Seen(tmp_path)
    value(again, old, 1)
    again.save(tmp_path)
    assert "a.en" in (tmp_path / "files.json").read_text()
    assert '/b"' not in (tmp_path / "files.json").read_text()
