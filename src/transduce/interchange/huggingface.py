"""A folder that transformers loads: `MarianMTModel`, or Pegasus for pre norm, with `MarianTokenizer`.

Both families have positions in halves, so that the stream's dimensions are brought into that order; the
tables themselves are stored where a library would not compute the same ones.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from transduce.bundle import Bundle
from transduce.counts import counted
from transduce.errors import BundleError
from transduce.files import write_bytes
from transduce.interchange.huggingface_config import NORM_EPSILON, check_expressible, written
from transduce.interchange.huggingface_import import read_json
from transduce.interchange.layout import bart_places, given, halves, reordered
from transduce.interchange.model_card import model_card
from transduce.interchange.vocabulary import NEVER, listing, models_of
from transduce.model.config import OUTPUT_RESERVE, ModelConfig
from transduce.model.positional_encoding import sinusoids, t2t_sinusoids

_TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
BEAM, ALPHA = 4, 0.6
# Where the slope of the paper's penalty is taken: a sentence of usual length.
_USUAL_LENGTH = 25
POWER = ALPHA * _USUAL_LENGTH / (5 + _USUAL_LENGTH)
"""The power of the length that grows like ((5 + length) / 6)^0.6 there."""


class HuggingFace:
    """Marian and Pegasus folders."""

    precisions = tuple(_TYPES)

    def holds(self, path: Path) -> bool:
        """Whether config.json says that it is a model of one of the two families."""
        if not (path / "config.json").is_file():
            return False
        try:
            return read_json(path / "config.json").get("model_type") in ("marian", "pegasus")
        except BundleError:
            return False

    def write(self, bundle: Bundle, path: Path, precision: str) -> list[str]:
        """What could not be expressed; the folder ``path`` is made."""
        config, tokenizer = bundle.model.config, bundle.tokenizer
        check_expressible(config)
        positions = config.max_length + OUTPUT_RESERVE
        tensors = _tensors(bundle, positions)
        path.mkdir(parents=True)
        stored = {name: tensor.to(_TYPES[precision]).contiguous() for name, tensor in tensors.items()}
        write_bytes(path / "model.safetensors", safetensors.torch.save(stored, {"format": "pt"}))
        source, target = models_of(tokenizer)
        write_bytes(path / "source.spm", source)
        write_bytes(path / "target.spm", target)
        remarks = _remarks(bundle)
        described = {
            "vocab.json": listing(tokenizer),
            "tokenizer_config.json": _tokenizer_config(config),
            "generation_config.json": _generation_config(config, positions),
            "config.json": written(config, positions, precision),
        }
        for name, value in described.items():
            write_bytes(path / name, (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode())
        write_bytes(path / "README.md", model_card(bundle, remarks).encode())
        return remarks

    def open(self, path: Path) -> Any:
        """The model there, loaded by transformers."""
        from transduce.interchange.huggingface_opened import OpenedHuggingFace

        return OpenedHuggingFace(path)


def _tensors(bundle: Bundle, positions: int) -> dict[str, Tensor]:
    config = bundle.model.config
    state = {name: tensor.detach().cpu().float() for name, tensor in bundle.model.state_dict().items()}
    in_halves = config.positions == "sinusoid"
    if in_halves:
        state = reordered(state, halves(config.d_model))
    target = state["embeddings.target"].clone()
    if config.decoder_start == "zero":
        target[config.pad_id] = 0.0
    found = given(state, bart_places(config))
    if config.tying == "three-way":
        found["model.shared.weight"] = target
    else:
        found["model.encoder.embed_tokens.weight"] = state["embeddings.own_source"]
        found["model.decoder.embed_tokens.weight"] = target
    if config.tying == "none":
        found["lm_head.weight"] = state["embeddings.own_output"]
    bias = state.get("embeddings.output_bias", torch.zeros(config.vocabulary)).clone()
    bias[[config.pad_id, config.bos_id, config.unk_id, *bundle.tokenizer.tags.values()]] = NEVER
    found["final_logits_bias"] = bias[None]
    tables = _tables(config, state, positions)
    for side, table in zip(("encoder", "decoder"), tables, strict=True):
        found[f"model.{side}.embed_positions.weight"] = table
    return found


def _tables(config: ModelConfig, state: dict[str, Tensor], positions: int) -> tuple[Tensor, Tensor]:
    """The positions of source and target."""
    if config.positions == "learned":
        return state["source_positions.learned"], state["target_positions.learned"]
    if config.positions == "t2t":
        table = t2t_sinusoids(positions, config.d_model).float()
    else:
        table = sinusoids(positions, config.d_model).float()[:, halves(config.d_model)]
    return table, table.clone()


def _tokenizer_config(config: ModelConfig) -> dict[str, Any]:
    return {
        "tokenizer_class": "MarianTokenizer",
        "unk_token": "<unk>",
        "eos_token": "</s>",
        "pad_token": "<pad>",
        "model_max_length": config.max_length,
        "separate_vocabs": False,
        # Text that is spelled like a symbol stays text.
        "split_special_tokens": True,
        "clean_up_tokenization_spaces": False,
        "sp_model_kwargs": {},
    }


def _generation_config(config: ModelConfig, positions: int) -> dict[str, Any]:
    said = written(config, positions, "float32")
    ids = ("pad_token_id", "eos_token_id", "bos_token_id", "decoder_start_token_id", "forced_eos_token_id")
    return {
        **{name: said[name] for name in ids},
        "num_beams": BEAM,
        "length_penalty": round(POWER, 3),
        "early_stopping": "never",
        "max_length": positions,
    }


def _remarks(bundle: Bundle) -> list[str]:
    config = bundle.model.config
    remarks = [
        f"transformers divides log P by a power of the length, not by ((5 + length) / 6)^{ALPHA}: "
        f"length_penalty {POWER:g} is the nearest, slopes at {counted(_USUAL_LENGTH, 'token')} are equal"
    ]
    if config.norm == "pre":
        remarks.append("pre norm is Pegasus in transformers, not Marian; its tokenizer is MarianTokenizer")
    if config.norm_epsilon != NORM_EPSILON:
        remarks.append(
            f"LayerNorm adds {NORM_EPSILON:g} to the variance in transformers, {config.norm_epsilon:g} here"
        )
    if bundle.tokenizer.tags:
        code = f">>{bundle.tokenizer.languages[0]}<<" if bundle.tokenizer.languages else "none"
        remarks.append(f"a source must begin with the code of its target language ({code}), without a space")
    return remarks
