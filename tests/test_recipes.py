"""The recipes: each is one that `train` takes, and says of the paper's runs what the paper does."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from transduce.training.presets import recipe
from transduce.training.settings import check_names

RECIPES = sorted((Path(__file__).parents[1] / "recipes").glob("*.toml"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_name_is_a_setting(path: Path) -> None:
    settings = tomllib.loads(path.read_text(encoding="utf-8"))
    check_names(settings)
    recipe(settings["preset"])
    assert path.read_text(encoding="utf-8").startswith("#")


def test_the_papers_runs() -> None:
    wanted = {
        "wmt14-ende-base": ("paper-base", 37_000, 100_000, 5),
        "wmt14-ende-big": ("paper-big", 37_000, 300_000, 20),
        "wmt14-enfr-base": ("paper-base", 32_000, 100_000, 5),
        "wmt14-enfr-big": ("paper-big-enfr", 32_000, 300_000, 20),
    }
    found = {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in RECIPES}
    for name, (preset, vocabulary, steps, average) in wanted.items():
        assert found[name]["preset"] == preset
        assert found[name]["data"]["vocabulary"] == vocabulary
        _, training = recipe(preset)
        assert training.get("max_steps", 100_000) == steps
        assert training.get("average", 5) == average
