"""docs/guarantees.md names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
ROWS = [line for line in TEXT.split("\n") if line.startswith("| ") and not line.startswith("| promise")]


@pytest.mark.parametrize("row", ROWS)
def test_every_promise_names_tests_that_exist(row: str) -> None:
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", row)
    assert named
    for path, function in named:
        assert f"def {function}(" in (ROOT / "tests" / path).read_text(encoding="utf-8"), (path, function)
