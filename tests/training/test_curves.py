"""Curves as text and as files: their points stand where they must, and nothing else is drawn."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from run_logs import START, report, validation, write_run
from transduce.errors import DataError, UsageError
from transduce.training.curves import draw_curves, plot_curves
from transduce.training.history import Run, read_run


@pytest.fixture
def falling(tmp_path: Path) -> Run:
    """A run whose training loss falls from 9 to 1 on a straight line, with two validations."""
    log = [START, *(report(step, 9.0 - 8 * (step - 10) / 90) for step in range(10, 101, 10))]
    return read_run(write_run(tmp_path / "falling", *log, validation(50, 9.0), validation(100, 1.0)))


@pytest.fixture
def scored(tmp_path: Path) -> Run:
    """A run with BLEU in its validations."""
    log = [START, report(40, 5.0), validation(40, 5.0, 3.25), report(80, 3.0), validation(80, 3.5, 30.75)]
    return read_run(write_run(tmp_path / "scored", *log))


def _grid(text: str, corner: str = "+", upright: str = "|") -> list[str]:
    """The cells of the first diagram, row by row, at full width."""
    lines = text.split("\n")
    axis = next(line for line in lines if line.lstrip().startswith(corner))
    begin = axis.index(corner) + 1
    cells = [line[begin:] for line in lines[: lines.index(axis)] if line[begin - 1 : begin] == upright]
    return [row.ljust(len(axis) - begin) for row in cells]


def test_a_straight_line_is_straight_and_letters_stand_on_their_points(falling: Run) -> None:
    text = draw_curves([falling], width=61, height=15, plain=True).plain
    assert text.isascii()
    rows = _grid(text)
    columns = ["".join(row[i] for row in rows) for i in range(len(rows[0]))]
    assert len(rows) == 15
    last = len(columns) - 1
    for i, column in enumerate(columns):
        update = 100 * i / last
        found = {row for row, cell in enumerate(column) if cell == "a"}
        if update < 9:  # before the first report
            assert not found
        elif 12 < update < 98:
            wanted = (update - 10) / 90 * 14
            assert found, update
            assert all(abs(row - wanted) <= 0.5 + 14 * 50 / 90 / last + 1e-6 for row in found)
    letters = {(x, y) for x, column in enumerate(columns) for y, cell in enumerate(column) if cell == "A"}
    assert letters == {(round(last / 2), 0), (last, 14)}  # 9 at update 50, 1 at update 100
    assert "9.00|" in text
    assert "1.00|" in text
    assert "5.00|" in text
    assert text.split("\n")[17].split() == ["0", "50", "100", "updates"]


def _dots(character: str) -> set[tuple[int, int]]:
    """Column and row of the dots of a braille character, by Unicode's numbering: 1-3 and 7 stand left."""
    bits = ord(character) - 0x2800
    places = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3)]
    return {place for number, place in enumerate(places) if bits >> number & 1}


def test_the_dots_of_a_straight_line_are_on_it(falling: Run) -> None:
    rows = _grid(draw_curves([falling], width=61, height=15).plain, "└", "│")
    cells = {(x, y): c for y, row in enumerate(rows) for x, c in enumerate(row) if c.strip() and c != "A"}
    dots = {(2 * x + dx, 4 * y + dy) for (x, y), c in cells.items() for dx, dy in _dots(c)}
    across, down = 2 * len(rows[0]) - 1, 59
    for x, y in dots:
        assert abs(y - (100 * x / across - 10) / 90 * down) <= 0.5 + 50 / 90 * down / across + 1e-6
    hidden = {
        2 * x + dx for x, c in enumerate(map("".join, zip(*rows, strict=True))) if "A" in c for dx in (0, 1)
    }
    assert {x for x, _ in dots} | hidden >= set(range(round(across / 10), across + 1))


@pytest.mark.parametrize("width", [40, 41, 80, 133])
@pytest.mark.parametrize("by", ["updates", "seconds", "tokens"])
@pytest.mark.parametrize("plain", [True, False])
def test_nothing_is_wider_than_the_terminal(
    falling: Run, scored: Run, width: int, by: str, plain: bool
) -> None:
    text = draw_curves([falling, scored], by=by, width=width, plain=plain).plain
    diagrams = text[: text.index(f"A {falling.folder}")].split("\n")
    tables = [line for line in diagrams if not line.startswith(("loss", "BLEU"))]
    assert max(map(len, tables)) == width
    assert text.endswith(f"A {falling.folder}\nB {scored.folder}\n")


def test_what_is_there_is_drawn_and_nothing_else(falling: Run, scored: Run, tmp_path: Path) -> None:
    assert "BLEU" not in draw_curves([falling]).plain
    both = draw_curves([falling, scored], plain=True).plain
    bleu = both[both.index("BLEU") :]
    assert "30.75|" in bleu
    assert " 3.25|" in bleu
    cells = "".join(line.partition("|")[2] for line in bleu.split("\n"))
    assert set(cells) == {" ", "b", "B"}  # the other run has none, and keeps its letter
    empty = read_run(write_run(tmp_path / "empty", START))
    with pytest.raises(DataError, match=r"empty: nothing to draw yet; the log holds no training report"):
        draw_curves([empty])
    with pytest.raises(UsageError, match="27 runs do not fit in one diagram; name at most 26"):
        draw_curves([falling] * 27)


def test_a_single_point_and_a_level_line_can_be_drawn(tmp_path: Path) -> None:
    one = read_run(write_run(tmp_path / "one", START, report(50, 4.0)))
    rows = _grid(draw_curves([one], plain=True).plain)
    assert [row.strip() for row in rows if row.strip()] == ["a"]
    level = read_run(write_run(tmp_path / "level", START, report(1, 4.0), report(50, 4.0)))
    rows = _grid(draw_curves([level], plain=True).plain)
    assert [set(row.strip()) for row in rows if row.strip()] == [{"a"}]
    start = read_run(write_run(tmp_path / "start", START, validation(0, 4.0)))
    assert "A" in "".join(_grid(draw_curves([start], plain=True).plain))


def test_files_hold_the_curves(falling: Run, scored: Run, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for name in ("curves.png", "curves.svg"):
        plot_curves([falling, scored], tmp_path / name, by="tokens")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG\r\n")
    svg = (tmp_path / "curves.svg").read_bytes()
    texts = ["".join(e.itertext()) for e in ElementTree.fromstring(svg).iter() if e.tag.endswith("}text")]
    assert {f"A {falling.folder}", f"B {scored.folder}", "target tokens", "BLEU of the validations"} <= set(
        texts
    )
    plot_curves([falling, scored], tmp_path / "again.svg", by="tokens")
    assert (tmp_path / "again.svg").read_bytes() == svg
    plot_curves([falling], tmp_path / "again.svg", by="tokens")
    assert (tmp_path / "again.svg").read_bytes() != svg


def test_names_with_dollars_are_no_formulas(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    run = read_run(write_run(tmp_path / "_$a_{b$", START, report(1, 4.0), report(50, 4.0)))
    plot_curves([run], tmp_path / "curves.svg")
    assert "_$a_{b$" in (tmp_path / "curves.svg").read_text("utf-8")


def test_what_cannot_be_written_is_refused(
    falling: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("curves.pdf", "curves", "curves.png.gz"):
        with pytest.raises(
            UsageError, match=r"a plot is written as PNG or SVG; end its name in \.png or \.svg"
        ):
            plot_curves([falling], tmp_path / name)
    with pytest.raises(UsageError, match="name a file in an existing folder"):
        plot_curves([falling], tmp_path / "none" / "curves.png")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError, match=r"plots need matplotlib .*: pip install matplotlib, or"):
        plot_curves([falling], tmp_path / "curves.png")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["falling"]
