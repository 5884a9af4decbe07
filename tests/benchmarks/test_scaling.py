"""The arithmetic of docs/scaling.md: by hand, and as the script prints it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def scaling() -> ModuleType:
    spec = importlib.util.spec_from_file_location("scaling", ROOT / "benchmarks" / "scaling.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["scaling"] = module
    spec.loader.exec_module(module)
    return module


def test_an_update_by_hand(scaling: ModuleType) -> None:
    link = scaling.Link(name="slow", rate=1e9, latency=1e-3)
    assert scaling.all_reduce(4e9, 8, link) == pytest.approx(7 + 0.014)
    # 8,000 tokens on 8 devices of 500 a second: 2 s, of which 1.333 hide the first of the two sums
    how = {"tokens": 8000, "speed": 500.0, "size": 1.5e9, "tied": 0.5e9}
    one = scaling.update(8, link, enough=1, **how)
    early, late = 1.75 + 0.014, 0.875 + 0.014
    assert one.computing == pytest.approx(2.0)
    assert one.communicating == pytest.approx(early + late)
    assert one.seconds == pytest.approx(2.0 + early - 4 / 3 + late)
    assert scaling.update(8, link, enough=2000, **how).computing == pytest.approx(4.0)


def test_the_papers_own_speed_comes_out(scaling: ModuleType) -> None:
    for preset, hours in (("paper-base", 12.0), ("paper-big", 84.0)):
        speed = scaling.BATCH / 8 / scaling.PAPER_SECONDS[preset]
        assert scaling.UPDATES[preset] * scaling.BATCH / (8 * speed) / 3600 == pytest.approx(hours)


@pytest.mark.parametrize(
    "arguments", [[], ["--preset", "paper-base", "--tokens-per-second", "150000", "--enough", "3000"]]
)
def test_the_page_shows_what_the_script_prints(
    scaling: ModuleType,
    arguments: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["scaling.py", *arguments])
    assert scaling.main() == 0
    printed = capsys.readouterr().out.split("\n\n", 1)[1].strip()
    assert printed in (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")
