"""Loss and BLEU of runs as curves: as text for the terminal, and as PNG or SVG by matplotlib."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.text import Text

from transduce.errors import DataError, UsageError
from transduce.figures import check_plot, figure, write_figure
from transduce.training.history import Points, Run, printable
from transduce.training.log import duration

COLOURS = ("cyan", "yellow", "magenta", "green", "red", "blue")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
HEIGHT, NARROWEST = 14, 40
LOSS = "loss per target token, without smoothing (lines: training, {marks}: validation)"
BLEU = "BLEU of the validations"
AXES = {"updates": "updates", "seconds": "training time", "tokens": "target tokens"}
# The bits of a braille character's dots, by row and column.
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_BRAILLE = 0x2800


@dataclass(frozen=True, kw_only=True)
class Series:
    """One run in one diagram: a line through some points, its letter at others."""

    letter: str
    name: str
    colour: str
    line: Points
    marks: Points


def draw_curves(
    runs: Sequence[Run], *, by: str = "updates", width: int = 80, height: int = HEIGHT, plain: bool = False
) -> Text:
    """The curves of the runs as text, at most ``width`` characters wide: loss above, BLEU below.

    Lines are dots of braille, told apart by colour; ``plain`` takes small letters for them, and ASCII only.
    Raises DataError where no run has anything to draw.
    """
    drawn = Text()
    for title, series in diagrams(runs, by):
        if drawn:
            drawn.append("\n")
        drawn.append(f"{title.format(marks='letters')}\n", style="bold")
        drawn.append_text(_diagram(series, by, max(width, NARROWEST), height, plain))
    drawn.append("\n")
    for one in _legend(runs):
        drawn.append(f"{one.letter} {one.name}\n", style=one.colour)
    return drawn


def plot_curves(runs: Sequence[Run], path: str | Path, *, by: str = "updates") -> None:
    """Nothing; ``path``, whose ending is .png or .svg, holds the curves of the runs.

    Needs the extra ``plots``. Raises UsageError for other endings, DataError where nothing is there to draw.
    """
    path = Path(path)
    check_plot(path)
    shown = diagrams(runs, by)
    drawn = figure(8.0, 4.0 * len(shown))
    rows = drawn.subplots(len(shown), squeeze=False, sharex=True)[:, 0]
    for axes, (title, series) in zip(rows, shown, strict=True):
        for one in series:
            name = f"{one.letter} {one.name}".replace("$", r"\$")  # no formulas in names of folders
            colour, marked = f"C{LETTERS.index(one.letter) % 10}", {"marker": "o", "markersize": 4.0}
            if one.line != one.marks:
                axes.plot(*_columns(one.line), color=colour, label=name, linewidth=1.0)
                axes.plot(*_columns(one.marks), color=colour, linestyle="--", linewidth=1.0, **marked)
            else:
                axes.plot(*_columns(one.line), color=colour, label=name, linewidth=1.0, **marked)
        axes.set(title=title.format(marks="dots"))
        axes.grid(alpha=0.3)
        axes.legend()
    drawn.supxlabel(AXES[by] + (" in seconds" if by == "seconds" else ""))
    write_figure(drawn, path)


def diagrams(runs: Sequence[Run], by: str = "updates") -> list[tuple[str, list[Series]]]:
    """The diagrams of the runs, each with its title and what is in it; diagrams with nothing are left out."""
    if len(runs) > len(LETTERS):
        raise UsageError(f"{len(runs)} runs do not fit in one diagram; name at most {len(LETTERS)}")
    loss, bleu = [], []
    for series, run in zip(_legend(runs), runs, strict=False):
        training, validation, scores = (run.curve(name, by) for name in ("training", "validation", "bleu"))
        loss.append(replace(series, line=training, marks=validation))
        bleu.append(replace(series, line=scores, marks=scores))
    shown = [
        (title, [s for s in all_of_it if s.line or s.marks])
        for title, all_of_it in ((LOSS, loss), (BLEU, bleu))
    ]
    shown = [(title, series) for title, series in shown if series]
    if not shown:
        names = ", ".join(str(run.folder) for run in runs)
        raise DataError(f"{names}: nothing to draw yet; the log holds no training report and no validation")
    return shown


def _legend(runs: Sequence[Run]) -> list[Series]:
    return [
        Series(
            letter=LETTERS[index],
            name=printable(str(run.folder)),
            colour=COLOURS[index % len(COLOURS)],
            line=[],
            marks=[],
        )
        for index, run in enumerate(runs)
    ]


def _diagram(series: Sequence[Series], by: str, width: int, height: int, plain: bool) -> Text:
    """One diagram with its axes."""
    points = [point for one in series for point in (*one.line, *one.marks)]
    right = max(x for x, _ in points) or 1.0
    low, high = min(y for _, y in points), max(y for _, y in points)
    if low == high:
        low, high = low - 0.5, high + 0.5
    values = {0: high, height // 2: high - (high - low) * (height // 2) / (height - 1), height - 1: low}
    labels = {row: f"{value:.2f}" for row, value in values.items()}
    margin = max(map(len, labels.values())) + 1
    canvas = _Canvas(width - margin - 1, height, plain, (right, low, high))
    for one in series:
        canvas.line(one)
    for one in series:  # letters stand above every line
        canvas.marks(one)
    upright, corner, level = "|+-" if plain else "│└─"
    drawn = Text()
    for row, cells in enumerate(canvas.rows()):
        drawn.append(f"{labels.get(row, ''):>{margin}}{upright}").append_text(cells).append("\n")
    drawn.append(f"{'':{margin}}{corner}{level * canvas.columns}\n")
    return drawn.append(f"{'':{margin}}{_ticks(right, by, canvas.columns + 1)}\n")


def _ticks(right: float, by: str, width: int) -> str:
    """The labels under the axis: its begin, middle and end, where they fit."""
    begin, middle, end = (duration(x) if by == "seconds" else f"{x:,.0f}" for x in (0.0, right / 2, right))
    end = f"{end} {AXES[by]}"
    centred = f"{middle:^{width}}"
    room = width - len(end)
    if len(centred.rstrip()) >= room - 1:
        centred = " " * width
    return begin + centred[len(begin) : room] + end


class _Canvas:
    """Cells that hold dots (two by four in each, or one where ``plain``) and letters, with their colours.

    ``ranges`` are the largest x, and the y of the lowest and of the highest cell.
    """

    def __init__(self, columns: int, rows: int, plain: bool, ranges: tuple[float, float, float]) -> None:
        self.columns, self.plain, self.ranges = columns, plain, ranges
        self._across, self._down = (1, 1) if plain else (2, 4)
        self._cells = [[(" ", "")] * columns for _ in range(rows)]

    def line(self, series: Series) -> None:
        """Nothing; straight lines lead from each point of the series to the next."""
        places = [self._dot(point) for point in series.line]
        for (x, y), (to_x, to_y) in zip(places, places[1:] or places, strict=False):
            steps = max(math.ceil(max(abs(to_x - x), abs(to_y - y))), 1)
            for i in range(steps + 1):
                self._set(round(x + (to_x - x) * i / steps), round(y + (to_y - y) * i / steps), series)

    def marks(self, series: Series) -> None:
        """Nothing; the letter of the series stands at each of its marks."""
        for point in series.marks:
            x, y = (round(place) for place in self._dot(point))
            self._cells[y // self._down][x // self._across] = series.letter, series.colour

    def rows(self) -> Iterator[Text]:
        """The rows of cells, the highest first."""
        for cells in self._cells:
            row = Text()
            for character, colour in cells:
                row.append(character, style=colour)
            row.rstrip()
            yield row

    def _dot(self, point: tuple[float, float]) -> tuple[float, float]:
        """The place of a point, in dots from the left and from above."""
        right, low, high = self.ranges
        across, down = self.columns * self._across - 1, len(self._cells) * self._down - 1
        return point[0] / right * across, (high - point[1]) / (high - low) * down

    def _set(self, x: int, y: int, series: Series) -> None:
        row, column = y // self._down, x // self._across
        if self.plain:
            character = series.letter.lower()
        else:
            before = ord(self._cells[row][column][0])
            dots = before - _BRAILLE if before >= _BRAILLE else 0
            character = chr(_BRAILLE + (dots | _DOTS[y % 4][x % 2]))
        self._cells[row][column] = character, series.colour


def _columns(points: Points) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]
