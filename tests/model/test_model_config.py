"""Every field of every named configuration, and what is refused."""

from __future__ import annotations

import ast
import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest

import transduce.model
from transduce.errors import ConfigError
from transduce.model.config import NAMED, ModelConfig

# What no named configuration changes. Written from the paper, not from the code.
ALIKE: dict[str, Any] = {
    "vocabulary": 37_000,
    "norm_epsilon": 1e-6,
    "attention_bias": False,
    "output_bias": False,
    "activation": "relu",
    "scale_embeddings": True,
    "neighbourhood": 0,
    "tying": "three-way",
    "decoder_start": "zero",
    "max_length": 256,
    "pad_id": 0,
    "eos_id": 1,
    "bos_id": 2,
    "unk_id": 3,
}
COLUMNS = (
    "encoder_layers", "decoder_layers", "d_model", "d_ff", "heads", "d_k", "d_v", "dropout",
    "attention_dropout", "relu_dropout", "norm", "positions", "initialisation",
)  # fmt: skip
PAPER = 0.0, 0.0, "post", "sinusoid", "fused-2017"
ROWS: dict[str, tuple[Any, ...]] = {
    # name          N  N  d_model d_ff  h  d_k  d_v  P_drop
    "paper-base":     (6, 6, 512, 2048, 8, 64, 64, 0.1, *PAPER),
    "paper-big":      (6, 6, 1024, 4096, 16, 64, 64, 0.3, *PAPER),
    "paper-big-enfr": (6, 6, 1024, 4096, 16, 64, 64, 0.1, *PAPER),
    "A1":             (6, 6, 512, 2048, 1, 512, 512, 0.1, *PAPER),
    "A2":             (6, 6, 512, 2048, 4, 128, 128, 0.1, *PAPER),
    "A3":             (6, 6, 512, 2048, 16, 32, 32, 0.1, *PAPER),
    "A4":             (6, 6, 512, 2048, 32, 16, 16, 0.1, *PAPER),
    "B1":             (6, 6, 512, 2048, 8, 16, 64, 0.1, *PAPER),
    "B2":             (6, 6, 512, 2048, 8, 32, 64, 0.1, *PAPER),
    "C1":             (2, 2, 512, 2048, 8, 64, 64, 0.1, *PAPER),
    "C2":             (4, 4, 512, 2048, 8, 64, 64, 0.1, *PAPER),
    "C3":             (8, 8, 512, 2048, 8, 64, 64, 0.1, *PAPER),
    "C4":             (6, 6, 256, 2048, 8, 32, 32, 0.1, *PAPER),
    "C5":             (6, 6, 1024, 2048, 8, 128, 128, 0.1, *PAPER),
    "C6":             (6, 6, 512, 1024, 8, 64, 64, 0.1, *PAPER),
    "C7":             (6, 6, 512, 4096, 8, 64, 64, 0.1, *PAPER),
    "D1":             (6, 6, 512, 2048, 8, 64, 64, 0.0, *PAPER),
    "D2":             (6, 6, 512, 2048, 8, 64, 64, 0.2, *PAPER),
    "D3":             (6, 6, 512, 2048, 8, 64, 64, 0.1, *PAPER),
    "D4":             (6, 6, 512, 2048, 8, 64, 64, 0.1, *PAPER),
    "E":              (6, 6, 512, 2048, 8, 64, 64, 0.1, 0.0, 0.0, "post", "learned", "fused-2017"),
    "big":            (6, 6, 1024, 4096, 16, 64, 64, 0.3, *PAPER),
    "t2t-v3":         (6, 6, 512, 2048, 8, 64, 64, 0.1, 0.1, 0.1, "pre", "t2t", "separate"),
    "tiny":           (3, 3, 256, 1024, 4, 64, 64, 0.1, 0.0, 0.0, "pre", "sinusoid", "fused-2017"),
    "small":          (5, 5, 512, 1024, 8, 64, 64, 0.3, 0.0, 0.0, "pre", "sinusoid", "fused-2017"),
}  # fmt: skip


def test_table_names_every_configuration_and_every_field() -> None:
    assert list(ROWS) == list(NAMED)
    assert {*ALIKE, *COLUMNS} == {field.name for field in dataclasses.fields(ModelConfig)}


@pytest.mark.parametrize("name", ROWS)
def test_every_field_of_every_named_configuration(name: str) -> None:
    expected = {**ALIKE, **dict(zip(COLUMNS, ROWS[name], strict=True))}
    assert dataclasses.asdict(ModelConfig.named(name, vocabulary=37_000)) == expected


def test_default_is_the_papers_base_model() -> None:
    assert ModelConfig(vocabulary=37_000) == ModelConfig.named("paper-base", vocabulary=37_000)


def test_overrides_win_over_the_named_row_and_widths_follow() -> None:
    config = ModelConfig.named("paper-big", vocabulary=100, d_model=64, dropout=0)
    assert (config.d_model, config.d_k, config.d_v, config.dropout) == (64, 4, 4, 0.0)
    assert config.d_ff == 4096


def test_json_round_trip() -> None:
    config = ModelConfig.named("t2t-v3", vocabulary=100, heads=4)
    assert ModelConfig.from_mapping(json.loads(json.dumps(dataclasses.asdict(config)))) == config


def test_is_frozen_and_keyword_only() -> None:
    config = ModelConfig(vocabulary=100)
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.d_model = 8  # type: ignore[misc]
    with pytest.raises(TypeError, match="positional"):
        ModelConfig(100)  # type: ignore[call-arg]


@pytest.mark.parametrize(("start", "start_id"), [("zero", 7), ("pad", 7), ("bos", 9), ("eos", 8)])
def test_start_id(start: str, start_id: int) -> None:
    ids = {"pad_id": 7, "eos_id": 8, "bos_id": 9}
    assert ModelConfig.from_mapping({"vocabulary": 20, "decoder_start": start, **ids}).start_id == start_id


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"d_model": 500}, r"d_model = 500 .* model.heads = 8; choose a multiple of 8, or set model.d_k"),
        ({"heads": 7}, r"d_model = 512 .* model.heads = 7; choose a multiple of 7, or set model.d_k"),
        ({"heads": 3, "d_k": 64}, r"choose a multiple of 3"),
        ({"vocabulary": 0}, r"model.vocabulary is 0; it must be at least 1"),
        ({"d_model": 0}, r"model.d_model is 0; it must be at least 1"),
        ({"d_ff": -1}, r"model.d_ff is -1; it must be at least 1"),
        ({"heads": 0}, r"model.heads is 0; it must be at least 1"),
        ({"d_k": -64}, r"model.d_k is -64; it must be at least 1"),
        ({"d_v": -64}, r"model.d_v is -64; it must be at least 1"),
        ({"encoder_layers": 0}, r"model.encoder_layers is 0; it must be at least 1"),
        ({"decoder_layers": 0}, r"model.decoder_layers is 0; it must be at least 1"),
        ({"max_length": 0}, r"model.max_length is 0; it must be at least 1"),
        ({"dropout": 1.5}, r"model.dropout is 1.5; it must lie between 0 and 1"),
        ({"attention_dropout": -0.1}, r"model.attention_dropout is -0.1; it must lie between 0 and 1"),
        ({"relu_dropout": math.nan}, r"model.relu_dropout is nan; it must lie between 0 and 1"),
        ({"norm_epsilon": 0.0}, r"model.norm_epsilon is 0.0; .* e.g. 1e-6"),
        ({"norm_epsilon": math.nan}, r"model.norm_epsilon is nan; .* e.g. 1e-6"),
        ({"norm_epsilon": math.inf}, r"model.norm_epsilon is inf; .* e.g. 1e-6"),
        ({"neighbourhood": -1}, r"model.neighbourhood is -1; it must be 0 \(none\) or a distance"),
        ({"norm": "layer"}, r"model.norm is 'layer'; choose one of post, pre"),
        ({"positions": "sine"}, r"positions is 'sine'; choose one of sinusoid, t2t, learned, rotary"),
        ({"tying": "two-way"}, r"tying is 'two-way'; choose one of three-way, decoder, none"),
        ({"decoder_start": "unk"}, r"decoder_start is 'unk'; choose one of zero, bos, eos, pad"),
        ({"initialisation": "xavier"}, r"initialisation is 'xavier'; choose one of fused-2017, separate"),
        ({"d_model": 511, "d_k": 64, "d_v": 64}, r"d_model is 511; it must be even for sinusoid positions"),
        (
            {"d_model": 511, "d_k": 64, "d_v": 64, "positions": "t2t"},
            r"d_model is 511; it must be even for t2t positions",
        ),
        ({"d_k": 63, "positions": "rotary"}, r"d_k is 63; it must be even for rotary positions"),
        ({"bos_id": 1}, r"pad, eos, bos, unk are \(0, 1, 1, 3\); they must be four different numbers"),
        ({"unk_id": 37_000}, r"they must be four different numbers below model.vocabulary = 37000"),
        ({"pad_id": -1}, r"they must be four different numbers"),
        ({"d_model": "512"}, r"model.d_model is '512'; it must be a whole number"),
        ({"d_model": 512.5}, r"model.d_model is 512.5; it must be a whole number"),
        ({"heads": True}, r"model.heads is True; it must be a whole number"),
        ({"dropout": "0.1"}, r"model.dropout is '0.1'; it must be a number"),
        ({"dropout": None}, r"model.dropout is None; it must be a number"),
        ({"attention_bias": 1}, r"model.attention_bias is 1; it must be true or false"),
        ({"norm": ["post"]}, r"model.norm is \['post'\]; it must be a string"),
    ],
)
def test_nonsense_is_refused_with_the_remedy(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ModelConfig.from_mapping({"vocabulary": 37_000, **settings})


def test_widths_that_do_not_divide_are_fine_when_given() -> None:
    config = ModelConfig(vocabulary=100, d_model=20, heads=3, d_k=8, d_v=5)
    assert (config.d_k, config.d_v) == (8, 5)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("paper-bass", "did you mean 'paper-base'"),
        ("tinny", "did you mean 'tiny'"),
        ("zzz", "there are A1, A2,"),
    ],
)
def test_unknown_name(name: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=f"no model configuration '{name}'; {hint}"):
        ModelConfig.named(name, vocabulary=100)


@pytest.mark.parametrize(
    ("setting", "hint"),
    [
        ("d_modell", "did you mean 'model.d_model'"),
        ("num_heads", "did you mean 'model.heads'"),
        ("atention_bias", "did you mean 'model.attention_bias'"),
    ],
)
def test_unknown_setting(setting: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=f"no setting 'model.{setting}'; {hint}"):
        ModelConfig.named("tiny", vocabulary=100, **{setting: 8})


def test_missing_vocabulary() -> None:
    with pytest.raises(ConfigError, match=r"model.vocabulary is missing"):
        ModelConfig.from_mapping({"d_model": 64})


def test_every_setting_is_read_by_a_line_of_the_package() -> None:
    folder = Path(str(transduce.model.__file__)).parent
    read = set()
    for file in folder.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                read.add(node.attr)
    # That each of them also changes the model is `test_transformer.test_every_setting_has_an_effect`.
    assert {field.name for field in dataclasses.fields(ModelConfig)} - read == set()
