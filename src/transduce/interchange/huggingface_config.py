"""A model's settings as transformers' configuration of the Marian and Pegasus families, and back.

Marian normalises after each sub-layer and Pegasus before; otherwise the two are one architecture. Both have
positions in halves, biases in attention and one before the softmax, and LayerNorm's epsilon at 1e-5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transduce.errors import BundleError, UsageError
from transduce.model.config import ModelConfig

NORM_EPSILON = 1e-5
_CLASSES = {"post": ("marian", "MarianMTModel"), "pre": ("pegasus", "PegasusForConditionalGeneration")}
_NORMS = {name: norm for norm, (name, _) in _CLASSES.items()}
_ACTIVATIONS = {"relu": "relu", "swish": "swish", "silu": "swish", "gelu": "gelu"}


def check_expressible(config: ModelConfig) -> None:
    """Nothing; UsageError, which names the setting, for a model that neither family can be."""
    problem = ""
    if config.positions == "rotary":
        problem = "model.positions is rotary"
    elif config.neighbourhood:
        problem = f"model.neighbourhood is {config.neighbourhood}"
    elif (config.d_k, config.d_v) != (config.d_model // config.heads,) * 2 or config.d_model % config.heads:
        problem = f"model.d_k and model.d_v are {config.d_k} and {config.d_v}, not d_model / heads"
    elif config.norm == "pre" and config.tying != "three-way":
        problem = f"model.norm is pre and model.tying is {config.tying}"
    if problem:
        raise UsageError(
            f"{problem}: transformers has no translation model of this shape (Marian and Pegasus have not); "
            "export it to another format, or train one with post norm, sinusoid positions and d_model / heads"
        )


def written(config: ModelConfig, positions: int, precision: str) -> dict[str, Any]:
    """The content of config.json; the tables of positions have so many rows."""
    kind, name = _CLASSES[config.norm]
    start = {"bos": config.bos_id, "eos": config.eos_id}.get(config.decoder_start, config.pad_id)
    both = {
        side + what: value
        for side in ("encoder", "decoder")
        for what, value in (
            ("_ffn_dim", config.d_ff),
            ("_attention_heads", config.heads),
            ("_layerdrop", 0.0),
        )
    }
    return {
        "architectures": [name],
        "model_type": kind,
        "vocab_size": config.vocabulary,
        **({"decoder_vocab_size": config.vocabulary} if kind == "marian" else {}),
        "d_model": config.d_model,
        "encoder_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers,
        **both,
        "activation_function": config.activation,
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "activation_dropout": config.relu_dropout,
        "scale_embedding": config.scale_embeddings,
        "max_position_embeddings": positions,
        "static_position_embeddings": config.positions != "learned",
        "normalize_before": config.norm == "pre",
        "add_final_layer_norm": config.norm == "pre",
        "share_encoder_decoder_embeddings": config.tying == "three-way",
        "tie_word_embeddings": config.tying != "none",
        "is_encoder_decoder": True,
        "use_cache": True,
        "pad_token_id": config.pad_id,
        "eos_token_id": config.eos_id,
        "bos_token_id": config.bos_id,
        "unk_token_id": config.unk_id,
        "decoder_start_token_id": start,
        "forced_eos_token_id": None,
        "torch_dtype": precision,
    }


def understood(values: Mapping[str, Any], where: object) -> dict[str, Any]:
    """The settings of `ModelConfig` that a config.json says, but those of vocabulary, start and positions.

    Raises BundleError, with the setting, for what ours cannot be.
    """
    kind = values.get("model_type")
    if kind not in _NORMS:
        raise BundleError(f"{where}: model_type is {kind!r}; models of {' and '.join(_NORMS)} can be read")
    activation = values.get("activation_function", "gelu")
    if activation not in _ACTIVATIONS:
        raise BundleError(
            f"{where}: activation_function is {activation!r}; known are {', '.join(_ACTIVATIONS)}"
        )
    found: dict[str, Any] = {}
    for ours, theirs in (("d_ff", "ffn_dim"), ("heads", "attention_heads")):
        sides = [_whole(values, f"{side}_{theirs}", where) for side in ("encoder", "decoder")]
        if sides[0] != sides[1]:
            raise BundleError(
                f"{where}: encoder_{theirs} is {sides[0]} and decoder_{theirs} {sides[1]}; here both are one"
            )
        found[ours] = sides[0]
    for name in ("normalize_embedding", "extra_pos_embeddings"):
        if values.get(name):
            raise BundleError(f"{where}: {name} is {values[name]!r}, which has no equivalent here")
    shared = values.get("share_encoder_decoder_embeddings", True)
    tied = values.get("tie_word_embeddings", True)
    return {
        **found,
        **{name: _whole(values, name, where) for name in ("d_model", "encoder_layers", "decoder_layers")},
        "norm": _NORMS[kind],
        "norm_epsilon": NORM_EPSILON,
        "attention_bias": True,
        "activation": _ACTIVATIONS[activation],
        "scale_embeddings": bool(values.get("scale_embedding", False)),
        "dropout": float(values.get("dropout", 0.1)),
        "attention_dropout": float(values.get("attention_dropout", 0.0)),
        "relu_dropout": float(values.get("activation_dropout", 0.0)),
        "tying": "none" if not tied else "three-way" if shared else "decoder",
    }


def _whole(values: Mapping[str, Any], name: str, where: object) -> int:
    value = values.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise BundleError(f"{where}: {name} is {value!r}, expected a whole number from 1 on")
    return value
