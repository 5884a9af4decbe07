"""Recipes and presets make sense, and what is not said is chosen."""

from __future__ import annotations

from pathlib import Path

import pytest

from transduce.config import read_toml
from transduce.errors import ConfigError
from transduce.model.config import NAMED
from transduce.training.presets import RECIPES
from transduce.training.settings import LIMITS, check_sections, differences, resolve

RECIPE_FILES = sorted((Path(__file__).parents[2] / "recipes").glob("*.toml"))


@pytest.mark.parametrize("path", RECIPE_FILES, ids=lambda path: path.name)
def test_every_recipe_file_is_valid(path: Path) -> None:
    settings = read_toml(path)
    check_sections(settings)
    resolve(settings, pairs=29_000, device="cpu")


@pytest.mark.parametrize("preset", sorted(NAMED))
def test_every_preset_resolves_and_ends(preset: str) -> None:
    run = resolve({"preset": preset}, pairs=29_000, device="cpu")
    assert any(getattr(run.training, limit) for limit in LIMITS)
    assert run.training.micro_batch_tokens <= 4096
    assert run.model_config(8000).vocabulary == 8000


def test_recipes_belong_to_named_models() -> None:
    assert set(RECIPES) <= set(NAMED)


def test_the_papers_recipes() -> None:
    base, big, row = (
        resolve({"preset": p}, pairs=10**6, device="cpu").training for p in ("paper-base", "paper-big", "A1")
    )
    assert (base.batch_tokens, base.max_steps, base.warmup, base.average) == (25_000, 100_000, 4000, 5)
    assert (base.schedule, base.rate, base.label_smoothing, base.clip_norm) == ("paper", 0.0, 0.1, 0.0)
    assert (base.beta_1, base.beta_2, base.epsilon) == (0.9, 0.98, 1e-9)
    assert (big.max_steps, big.average) == (300_000, 20)
    assert row.average == 1  # Table 3 was measured without averaging
    smoothing = [
        resolve({"preset": p}, pairs=10**6, device="cpu").training.label_smoothing for p in ("D3", "D4")
    ]
    assert smoothing == [0.0, 0.2]


def test_a_named_limit_replaces_the_presets() -> None:
    run = resolve({"preset": "paper-base", "training": {"max_minutes": 5}}, pairs=10**6, device="cpu")
    assert (run.training.max_minutes, run.training.max_steps) == (5.0, 0)


def test_less_data_means_more_epochs_and_dropout() -> None:
    runs = [resolve({}, pairs=pairs, device="cpu") for pairs in (1_000, 30_000, 165_000)]
    epochs, dropout = [r.training.max_epochs for r in runs], [r.model["dropout"] for r in runs]
    assert epochs == sorted(epochs, reverse=True)
    assert dropout == sorted(dropout, reverse=True)
    assert all(
        any(f"max_epochs = {e}" in line for line in r.chosen) for e, r in zip(epochs, runs, strict=True)
    )


def test_the_nearest_name_ignores_the_section_that_all_share() -> None:
    with pytest.raises(ConfigError, match=r"did you mean 'training.warmup'"):
        check_sections({"training": {"warm_up": 3}})
    with pytest.raises(ConfigError, match=r"there is no setting 'training.zzz'; there are training"):
        check_sections({"training": {"zzz": 3}})


def test_a_run_that_knew_fewer_settings_goes_on_as_it_was() -> None:
    new = resolve({"preset": "tiny", "data": {"tsv": ["a.tsv"]}}, pairs=100, device="cpu").as_dict()
    old = {**new, "training": {**new["training"]}, "data": {**new["data"]}}
    del old["training"]["ema"], old["training"]["optimizer_state"], old["data"]["weights"]
    assert differences(old, new) == []
    now = {**new, "training": {**new["training"], "ema": 0.9}, "data": {**new["data"], "weights": [2.0]}}
    assert differences(old, now) == ["data.weights was [], is [2.0]", "training.ema was 0.0, is 0.9"]


def test_what_a_file_says_over_a_preset_is_said() -> None:
    given = {"preset": "paper-base", "model": {"d_model": 128, "dropout": 0.1}, "training": {"max_steps": 1}}
    assert resolve(given, pairs=9, device="cpu").reshaped() == " with d_model = 128"
    given = {"preset": "tiny", "model": {"positions": "rotary"}, "training": {"max_steps": 1}}
    assert resolve(given, pairs=9, device="cpu").reshaped() == " with positions = rotary"
    assert resolve({"preset": "paper-big"}, pairs=9, device="cpu").reshaped() == ""
