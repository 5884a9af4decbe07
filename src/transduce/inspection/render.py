"""Attention as text: a grid of shades for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from transduce.counts import counted

SHADES = " ░▒▓█"
_MARKS = {"\u2581": "·"}


def attention_grid(
    weights: Float[Tensor, "rows columns"], rows: Sequence[str], columns: Sequence[str], *, width: int = 100
) -> str:
    """A grid with one shade per weight: rows look at columns, whose labels stand on end above them.

    A shade stands for a quarter of the whole: blank below 1/8, full from 7/8. Beyond ``width`` characters
    columns are cut off with a note.
    """
    rows, columns = [_label(r) for r in rows], [_label(c) for c in columns]
    margin = max(len(row) for row in rows) + 1
    shown = max(1, min(len(columns), (width - margin) // 2))
    height = max(len(column) for column in columns[:shown])
    lines = []
    for level in range(height):
        letters = [column.rjust(height)[level] for column in columns[:shown]]
        lines.append(" " * margin + " ".join(letters).rstrip())
    for row, values in zip(rows, weights.tolist(), strict=True):
        cells = "".join(SHADES[min(4, int(value * 4 + 0.5))] * 2 for value in values[:shown])
        lines.append(f"{row:>{margin - 1}} {cells}".rstrip())
    if shown < len(columns):
        lines.append(
            f"({counted(len(columns) - shown, 'more column', 'do')} not fit in {counted(width, 'character')})"
        )
    return "\n".join(lines)


def _label(piece: str) -> str:
    for mark, shown in _MARKS.items():
        piece = piece.replace(mark, shown)
    return "".join(c if c.isprintable() else "?" for c in piece)
