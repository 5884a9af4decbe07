from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from transduce.data.config import DataConfig
from transduce.errors import ConfigError


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"source": ("a",)}, "data.source names 1 files but data.target names 0"),
        ({"valid_target": ("a", "b")}, "data.valid_source names 0 files but data.valid_target names 2"),
        ({"tsv": ("-",)}, "data.tsv is standard input"),
        ({"valid_tsv": ("",)}, "data.valid_tsv holds an empty file name"),
        ({"vocabulary": 60}, "data.vocabulary is 60; use 300 or more .*256 bytes.*or 0 to have it chosen"),
        ({"vocabulary": -1}, "data.vocabulary is -1"),
        ({"max_length": 1}, "data.max_length is 1; use 2 or more"),
        ({"valid_pairs": -5}, "data.valid_pairs is -5"),
        ({"valid_pairs": 5, "valid_tsv": ("v",)}, "data.valid_pairs is 5, but validation files are given"),
        ({"subwords": "wordpiece"}, 'data.subwords is "wordpiece"; expected "bpe" or "unigram"'),
        (
            {"tokenizer": "t.model", "vocabulary": 8000},
            "data.vocabulary is 8000 and data.tokenizer is t.model",
        ),
        ({"tokenizer_sample": 0}, "data.tokenizer_sample is 0"),
    ],
)
def test_nonsense_is_refused_with_the_value(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        DataConfig(**settings)


def test_it_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        DataConfig().vocabulary = 5  # type: ignore[misc]
