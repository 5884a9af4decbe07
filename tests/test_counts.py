"""Counts with their nouns: 1 pair, 2 pairs, in every message."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import transduce
from transduce.counts import counted

SOURCE = Path(transduce.__file__).parent
NOUNS = (
    "pairs lines files texts words tokens sentences characters columns corpora checkpoints epochs updates "
    "heads layers models outputs parts processes references rows sources steps systems targets terms threads "
    "units weights workers"
)
PLURAL = re.compile(rf" (?:(?!of |and |source and |for |in )[a-z]+ )?(?:{NOUNS.replace(' ', '|')})\b(?!/)")
# Limits of ours, and what is told only where there are several.
SEVERAL = {"LONGEST", "MOST_LINES", "LIMIT", "PAPER_TOKENS", "_MOST", "_LONGEST", "len(runs)", "workers"}
SEVERAL |= {"sum(sizes)", "count", "subwords", "side"}
SEVERAL |= {"characters"}  # words of LibreTranslate's


@pytest.mark.parametrize(
    ("count", "noun", "verb", "text"),
    [
        (0, "pair", "", "0 pairs"),
        (1, "pair", "", "1 pair"),
        (1234, "source line", "", "1,234 source lines"),
        (1, "source line", "are", "1 source line is"),
        (2, "update", "are", "2 updates are"),
        (1, "worker", "run", "1 worker runs"),
        (1, "column", "do", "1 column does"),
        (1, "corpus", "", "1 corpus"),
        (3, "small corpus", "were", "3 small corpora were"),
        (2, "entry", "", "2 entries"),
        (0.5, "minute", "", "0.5 minutes"),
        (1.0, "minute", "are", "1 minute is"),
        (np.int64(1_000_000), "pair", "", "1,000,000 pairs"),
    ],
)
def test_a_count_with_its_noun(count: Any, noun: str, verb: str, text: str) -> None:
    assert counted(count, noun, verb) == text


def _uncounted(path: Path) -> Iterator[str]:
    """The places where a number stands in front of a noun that is always in the plural."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.JoinedStr):
            continue
        for value, following in zip(node.values, node.values[1:], strict=False):
            if not isinstance(value, ast.FormattedValue) or not isinstance(following, ast.Constant):
                continue
            spec = "" if value.format_spec is None else ast.unparse(value.format_spec)
            text = ast.unparse(value.value)
            is_count = value.conversion == -1 and "f" not in spec.removeprefix("f") and "g" not in spec
            if text in SEVERAL or text.startswith("counted(") or not is_count:
                continue
            if PLURAL.match(following.value):
                yield f"{path.name}:{node.lineno}: {text}{following.value[:30]}"


def test_no_message_counts_a_plural() -> None:
    # What model/ says is for programmers.
    paths = [path for path in sorted(SOURCE.rglob("*.py")) if path.parent.name != "model"]
    assert [found for path in paths for found in _uncounted(path)] == []
