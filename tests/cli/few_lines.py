"""Lines that tests of `transduce translate` share, one of them empty, and flags for short outputs."""

from __future__ import annotations

from tiny_translator import sentences

LINES = [*sentences(3, seed=1, words=(1, 4)), "", *sentences(2, seed=2, words=(1, 4))]
FAST = ["--beam", "2", "--max-extra", "3"]
