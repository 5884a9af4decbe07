"""A file of no bytes holds no pairs, whatever its format, and that is told."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest

from transduce.data.conversion import Inputs
from transduce.data.corpora import count_pairs
from transduce.data.formats.pair_file import FORMATS
from transduce.data.formats.sides import Wanted
from transduce.data.formats.tally import Tally
from transduce.data.formats.two_files import read_side
from transduce.errors import DataError

ENDINGS = [ending for endings, _ in FORMATS.values() for ending in endings] + [".xml"]
FROM_DISK = (".parquet", ".arrow")


@pytest.mark.parametrize("ending", ENDINGS)
def test_of_both_sides(ending: str, tmp_path: Path) -> None:
    contents = {f"e{ending}": b""}
    if ending not in FROM_DISK:
        contents |= {f"e{ending}.gz": gzip.compress(b""), f"z{ending}.gz": b""}
    for name, content in contents.items():
        path, tally = tmp_path / name, Tally()
        path.write_bytes(content)
        assert list(Inputs(pairs=(str(path),)).read(tally)) == []
        assert tally.lines() == [f"{path}: is empty: no pairs"]


@pytest.mark.parametrize("kind", [kind for kind in FORMATS if kind not in ("parquet", "arrow")])
def test_of_standard_input(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO())))
    tally = Tally()
    assert list(Inputs(pairs=("-",), kind=kind).read(tally)) == []
    assert tally.lines() == ["standard input: is empty: no pairs"]


@pytest.mark.parametrize("ending", [".txt", ".en.gz", ".srt", ".vtt", ".sgm", ".xml"])
def test_of_one_side(ending: str, tmp_path: Path) -> None:
    source, target = (str(tmp_path / f"{side}{ending}") for side in ("s", "t"))
    for path in (source, target):
        Path(path).write_bytes(b"")
        assert list(read_side(path)) == []
    tally = Tally()
    assert list(Inputs(source=(source,), target=(target,)).read(tally)) == []
    assert tally.lines() == [f"{path}: is empty: no pairs" for path in (source, target)]


def test_in_a_folder_it_keeps_no_other_from_being_read(tmp_path: Path) -> None:
    for ending in ENDINGS:
        (tmp_path / f"e{ending}").write_bytes(b"")
    for name in ("text.en", "text.de"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "some.tsv").write_text("a\tb\n")
    tally = Tally()
    assert [
        pair.source for pair in Inputs(pairs=(str(tmp_path),), wanted=Wanted("en", "de")).read(tally)
    ] == ["a"]
    assert sum("is empty: no pairs" in line for line in tally.lines()) == len(ENDINGS) + 2


def test_training_is_told_and_nothing_aligned_is_missed(tmp_path: Path) -> None:
    for name, content in (("s", ""), ("t", ""), ("u", "x\n"), ("e.tsv", ""), ("e.tmx", "")):
        (tmp_path / name).write_text(content)
    s, t, u, tsv, tmx = (str(tmp_path / name) for name in ("s", "t", "u", "e.tsv", "e.tmx"))
    tally = Tally()
    assert count_pairs([s], [t], [tsv], [tmx], tally=tally) == 0
    assert tally.lines() == [f"{path}: is empty: no pairs" for path in (s, t, tsv, tmx)]
    with pytest.raises(DataError, match=r"has 0 lines but .* has 1"):
        count_pairs([s], [u])
