"""docs/paper-map.md names files and tests that exist, and docs/departures.md settings that do."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from transduce.model.config import ModelConfig

ROOT = Path(__file__).parents[2]
MAP = (ROOT / "docs" / "paper-map.md").read_text(encoding="utf-8")
DEPARTURES = (ROOT / "docs" / "departures.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`([\w/]+\.py(?:::\w+)?)`", MAP)))


@pytest.mark.parametrize("name", NAMED)
def test_every_file_and_test_on_the_map_exists(name: str) -> None:
    path, _, function = name.partition("::")
    folder = "tests" if Path(path).name.startswith(("test_", "oracles")) else "src/transduce"
    text = (ROOT / folder / path).read_text(encoding="utf-8")
    assert not function or f"def {function}(" in text


def test_every_file_of_the_model_is_on_the_map() -> None:
    files = {f"model/{file.name}" for file in (ROOT / "src/transduce/model").glob("*.py")}
    assert files - {"model/__init__.py"} <= set(NAMED)


def test_every_test_file_of_the_model_is_on_the_map() -> None:
    files = {f"model/{file.name}" for file in Path(__file__).parent.glob("test_*.py")}
    assert files - {"model/test_paper_map.py"} <= {name.partition("::")[0] for name in NAMED}


def test_every_departure_of_the_model_is_a_setting() -> None:
    fields = {field.name for field in dataclasses.fields(ModelConfig)}
    assert set(re.findall(r"`model\.(\w+)`", DEPARTURES)) <= fields
    choices = {"norm", "attention_bias", "attention_dropout", "relu_dropout", "positions", "neighbourhood"}
    choices |= {"tying", "decoder_start", "norm_epsilon", "initialisation", "d_k", "d_v"}
    choices |= {"output_bias", "activation", "scale_embeddings"}
    assert choices <= set(re.findall(r"`model\.(\w+)`", DEPARTURES))
