"""Damaged files of every format: either one clear line says so, or every unit is accounted for."""

from __future__ import annotations

import random
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from mutations import FORMATS, PAIRS, UNITS, mutated, sound

from transduce.data.formats.pair_file import read_pair_file
from transduce.data.formats.po import read_entries
from transduce.data.formats.sides import Wanted
from transduce.data.formats.subtitles import read_cues
from transduce.data.formats.tally import Tally
from transduce.errors import DataError, TransduceError


def accounted(kind: str, path: Path) -> int:
    """How many units the reader hands out or counts as left out."""
    tally = Tally()
    if kind in ("srt", "vtt"):
        return len(read_cues(path))
    if kind == "po":
        entries = list(read_entries(path, tally))
        list(read_pair_file(path, Wanted("en", "de"), Tally()))
        return len(entries) + tally.count()
    pairs = list(read_pair_file(path, Wanted("en", "de"), tally))
    if kind == "csv":
        named = any("names no columns" in line for line in tally.lines())
        return len(pairs) + (not named and path.stat().st_size > 0)
    if kind == "mo":
        return len({pair.line for pair in pairs}) + tally.count() + 1
    if kind in ("sgm", "wmt-xml"):
        return 2 * len(pairs) + tally.count()
    if kind == "tbx":
        return len({(pair.line, pair.target) for pair in pairs}) + tally.count()
    return len(pairs) + tally.count()


def check(kind: str, folder: Path, seed: int) -> bool:
    """Whether the reader took the file; what it said otherwise names it and is one line."""
    draw = random.Random(f"{kind} {seed}")
    content = mutated(SOUND.setdefault(kind, sound(kind, folder)), draw)
    if not content:
        return True  # such a file holds no pairs in any format: test_empty_files
    path = folder / f"m{FORMATS[kind]}"
    path.write_bytes(content)
    try:
        found = accounted(kind, path)
    except TransduceError as error:
        message = str(error)
        assert message.startswith(str(path)), (seed, message)
        assert ";" in message or ":" in message.removeprefix(str(path)), (seed, message)
        assert len(message) < 2000, (seed, message)
        return False
    expected = UNITS[kind](content) if kind in UNITS else len(PAIRS)
    assert found == expected, (seed, content)
    return True


SOUND: dict[str, bytes] = {}


def _skip(kind: str) -> None:
    if kind == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow (extra formats) is not installed")
    if kind == "mo" and not shutil.which("msgfmt"):
        pytest.skip("gettext's tools are not installed")


@pytest.mark.parametrize("kind", FORMATS)
def test_damaged_files(kind: str, tmp_path: Path) -> None:
    _skip(kind)
    taken = sum(check(kind, tmp_path, seed) for seed in range(100))
    assert taken < 100, "no damage was ever noticed"


@pytest.mark.slow
@pytest.mark.parametrize("kind", FORMATS)
def test_ten_thousand_damaged_files(kind: str, tmp_path: Path) -> None:
    _skip(kind)
    for seed in range(10_000):
        check(kind, tmp_path, seed)


@pytest.mark.parametrize("kind", FORMATS)
def test_the_sound_file_is_read_whole(kind: str, tmp_path: Path) -> None:
    _skip(kind)
    path = tmp_path / f"s{FORMATS[kind]}"
    path.write_bytes(sound(kind, tmp_path))
    assert accounted(kind, path) == (UNITS[kind](path.read_bytes()) if kind in UNITS else len(PAIRS))


@pytest.mark.parametrize("kind", FORMATS)
def test_noise_is_refused_in_one_line(kind: str, tmp_path: Path) -> None:
    _skip(kind)
    draw = random.Random(3)
    for size in (1, 10, 1000, 100_000):
        path = tmp_path / f"n{FORMATS[kind]}"
        path.write_bytes(draw.randbytes(size))
        if size > 10:
            with pytest.raises(DataError, match=rf"n\{FORMATS[kind]}"):
                accounted(kind, path)
            continue
        with suppress(TransduceError):
            accounted(kind, path)
