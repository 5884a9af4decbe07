"""Pictures of the tables: every bar and point has the height that its row says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from transduce.paper import plots, table2, table4

pytest.importorskip("matplotlib", reason="pictures need the extra plots")


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The figures that were written."""
    figures: list[Any] = []
    real = plots.write_figure

    def kept(figure: Any, path: Path) -> None:
        figures.append(figure)
        real(figure, path)

    monkeypatch.setattr(plots, "write_figure", kept)
    return figures


def test_bleu_over_cost(tmp_path: Path, drawn: list[Any]) -> None:
    rows = [
        {"system": "mine", "paper_bleu": 27.5, "flops": {"paper_unit": 2e15}},
        {"system": "outputs.de", "paper_bleu": 21.0, "flops": None},
    ]
    plots.plot_table_2(rows, "de", tmp_path / "a.svg")
    lines = [(line.get_xdata()[0], line.get_ydata()[0]) for line in drawn[0].axes[0].lines]
    printed = {row.bleu_de for row in table2.PRINTED if row.flops_de is not None}
    assert (2e15, 27.5) in lines
    assert printed | {27.5, 21.0} == {y for _, y in lines}
    text = (tmp_path / "a.svg").read_text()
    assert all(name in text for name in ("mine", "outputs.de", "Transformer (big)"))


def test_differences_to_base(tmp_path: Path, drawn: list[Any]) -> None:
    rows: list[dict[str, Any]] = [{"row": "base", "bleu": 30.0}]
    for name, bleu, perplexity in (("A1", -2.0, 0.5), ("C6", 1.5, -0.25)):
        own = {"bleu_difference": bleu, "perplexity_difference": perplexity}
        rows.append(
            {"row": name, **own, "printed_bleu_difference": -0.5, "printed_perplexity_difference": 0.1}
        )
    plots.plot_table_3(rows, tmp_path / "a.png")
    bleu, perplexity = drawn[0].axes
    assert [bar.get_width() for bar in bleu.patches] == [-2.0, 1.5, -0.5, -0.5]
    assert [bar.get_width() for bar in perplexity.patches] == [0.5, -0.25, 0.1, 0.1]
    assert [label.get_text() for label in bleu.get_yticklabels()] == ["A1", "C6"]
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_brackets(tmp_path: Path, drawn: list[Any]) -> None:
    plots.plot_table_4(61.5, "parser", tmp_path / "a.svg")
    assert [bar.get_width() for bar in drawn[0].axes[0].patches] == [*table4.PRINTED.values(), 61.5]


def test_learning_curves(tmp_path: Path, drawn: list[Any]) -> None:
    curve = [{"updates": 100, "seconds": 5.0, "perplexity": 90.0}, {"updates": 200, "seconds": 9.0}]
    curve[1]["perplexity"] = 40.0
    plots.plot_baselines([{"system": "recurrent", "curve": curve}], tmp_path / "a.svg")
    for axes, xs in zip(drawn[0].axes, ([100, 200], [5.0, 9.0]), strict=True):
        assert list(axes.lines[0].get_xdata()) == xs
        assert list(axes.lines[0].get_ydata()) == [90.0, 40.0]
    assert "recurrent" in (tmp_path / "a.svg").read_text()


def test_both_norms_by_layer(tmp_path: Path, drawn: list[Any]) -> None:
    rows = [
        {
            "norm": norm,
            "updates": count,
            "stack": stack,
            "layer": 1,
            "activation": value,
            "gradient": value / 8,
        }
        for value, (norm, count, stack) in enumerate(
            ((n, c, s) for n in ("post", "pre") for c in (0, 10) for s in ("encoder", "decoder")), 1
        )
    ]
    plots.plot_norms(rows, tmp_path / "a.svg")
    last = drawn[0].axes[3]  # gradients after 10 updates
    assert [list(line.get_ydata()) for line in last.lines] == [[3 / 8, 4 / 8], [7 / 8, 8 / 8]]
    assert [list(line.get_xdata()) for line in last.lines] == [["e1", "d1"]] * 2
