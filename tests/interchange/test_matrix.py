"""The matrix in docs/interchange.md names tests that exist, and the bounds that are used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from transduce.interchange.formats import FORMATS
from transduce.interchange.verification import BOUNDS

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "interchange.md").read_text(encoding="utf-8")
ROWS = [
    line
    for line in TEXT.partition("## What was checked")[2].split("\n")
    if line.startswith("| ") and not line.startswith("| format")
]


@pytest.mark.parametrize("row", ROWS)
def test_every_row_names_tests_that_exist(row: str) -> None:
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", row)
    assert named
    for path, function in named:
        assert f"def {function}(" in (ROOT / "tests" / path).read_text(encoding="utf-8"), (path, function)


def test_the_bounds_are_those_that_are_used() -> None:
    rows = re.findall(r"^\| (\w+) \| ([\d.]+) \| ([\d.]+) \|$", TEXT, re.M)
    assert {name: (float(most), float(mean)) for name, most, mean in rows} == BOUNDS


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_told_of(name: str) -> None:
    assert f"--to {name}" in TEXT
