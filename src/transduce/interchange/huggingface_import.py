"""A folder of transformers' Marian or Pegasus models (OPUS-MT among them) as a model of ours.

Nothing but JSON, sentencepiece models and tensors is read, a checkpoint of pickles with nothing in it but
tensors; transformers itself is needed only to compare the two.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from transduce.bundle import Bundle
from transduce.data.tokenizer import BOS_ID, PAD_ID, UNK_ID
from transduce.errors import BundleError
from transduce.interchange.format import Read
from transduce.interchange.huggingface_config import understood
from transduce.interchange.layout import bart_places, halves, made, reordered, taken
from transduce.interchange.vocabulary import (
    NEVER,
    NOWHERE,
    Special,
    Vocabulary,
    vocabulary_of,
    whole_id,
)  # fmt: skip
from transduce.model.config import OUTPUT_RESERVE, ModelConfig
from transduce.model.positional_encoding import sinusoids, t2t_sinusoids

# Tables of positions are the same if they lie no further apart: libraries compute them in float32.
_SAME = 1e-4
_SHARED = "model.shared.weight"
_SOURCE, _TARGET, _OUTPUT = (
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
    "lm_head.weight",
)


@dataclass(frozen=True, kw_only=True)
class Folder:
    """What lies in such a folder, in our terms; ``barred`` are subwords that its searches never choose."""

    config: ModelConfig
    state: dict[str, Tensor]
    vocabulary: Vocabulary
    barred: list[int]
    remarks: list[str]


def read_huggingface(path: Path) -> Read:
    """The model in the folder ``path``; BundleError for what is missing, damaged, or cannot be expressed."""
    folder = read_folder(path)
    bundle = Bundle(
        model=made(folder.config, folder.state, path),
        tokenizer=folder.vocabulary.tokenizer,
        training={"imported": {"from": "huggingface", "name": path.resolve().name}},
    )
    original = None
    if importlib.util.find_spec("transformers") is not None:
        from transduce.interchange.huggingface_opened import OpenedHuggingFace

        original = OpenedHuggingFace(path, folder)
    return Read(bundle=bundle, remarks=folder.remarks, original=original)


def read_folder(path: Path) -> Folder:
    """The parts of the model in the folder ``path``."""
    if not (path / "config.json").is_file():
        raise BundleError(f"{path}: is no folder of a transformers model (config.json is missing)")
    values = read_json(path / "config.json")
    settings = understood(values, path / "config.json")
    tensors = read_tensors(path)
    special, start = _special(path, values, tensors)
    vocabulary = _vocabulary(path, special)
    positions, order = _positions(values, tensors, path)
    config = ModelConfig(vocabulary=len(vocabulary.source), decoder_start=start, **positions, **settings)
    state = taken(tensors, bart_places(config), path)
    tables = {name: tensors[key].float() for name, key in _LEARNED.items() if config.positions == "learned"}
    # What is learned of positions stands in the order of ours, as it was written.
    state = {**reordered({**state, **_embeddings(config, vocabulary, tensors, path)}, order), **tables}
    barred, remarks = _barred(path, vocabulary)
    bias = _bias(path, vocabulary, tensors, barred)
    if bool(bias.any()):
        config, state["embeddings.output_bias"] = dataclasses.replace(config, output_bias=True), bias
    config, state = without_zero_biases(config, state)
    remarks = [*_searched(path), *remarks]
    return Folder(config=config, state=state, vocabulary=vocabulary, barred=barred, remarks=remarks)


_LEARNED = {
    "source_positions.learned": "model.encoder.embed_positions.weight",
    "target_positions.learned": "model.decoder.embed_positions.weight",
}


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; BundleError where it is missing, or none."""
    try:
        value = json.loads(path.read_bytes())
    except OSError as error:
        raise BundleError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{path}: not valid JSON ({error})") from None
    if not isinstance(value, dict):
        raise BundleError(f"{path}: holds a {type(value).__name__}, expected an object")
    return value


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a folder: model.safetensors, or pytorch_model.bin if it holds nothing but tensors."""
    stored, older = path / "model.safetensors", path / "pytorch_model.bin"
    try:
        if stored.is_file():
            return safetensors.torch.load_file(stored)
        if older.is_file():
            loaded = torch.load(older, map_location="cpu", weights_only=True)
            return {name: tensor for name, tensor in loaded.items() if isinstance(tensor, Tensor)}
    except (OSError, safetensors.SafetensorError, RuntimeError, EOFError) as error:
        raise BundleError(f"{path}: the weights cannot be read: {str(error).splitlines()[0]}") from None
    except Exception as error:
        if type(error).__name__ != "UnpicklingError":  # what torch raises for more than tensors
            raise
        raise BundleError(
            f"{older}: holds more than tensors, which could run code; save it as model.safetensors"
        ) from None
    raise BundleError(f"{path}: has neither {stored.name} nor {older.name}")


def without_zero_biases(
    config: ModelConfig, state: Mapping[str, Tensor]
) -> tuple[ModelConfig, dict[str, Tensor]]:
    """The same model without biases in attention where all of them are 0."""
    biases = [name for name in state if "attention" in name and name.endswith(".bias")]
    if not biases or any(bool(state[name].any()) for name in biases):
        return config, dict(state)
    kept = {name: tensor for name, tensor in state.items() if name not in biases}
    return dataclasses.replace(config, attention_bias=False), kept


def _special(path: Path, values: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> tuple[Special, str]:
    """The reserved ids, and `ModelConfig.decoder_start`."""
    where = path / "config.json"
    listed = read_json(path / "vocab.json")
    pad, eos = whole_id(values, "pad_token_id", where), whole_id(values, "eos_token_id", where)
    start = whole_id(values, "decoder_start_token_id", where)
    unk = listed.get("<unk>")
    if not isinstance(unk, int):
        raise BundleError(f"{path / 'vocab.json'}: has no <unk>")
    bos = listed.get("<s>", NOWHERE)
    if start not in (pad, eos):
        return Special(pad, eos, start, unk), "bos"
    if start == eos:
        return Special(pad, eos, bos, unk), "eos"
    matrix = _first(tensors, (_TARGET, _SHARED, _OUTPUT), path)
    silent = pad < len(matrix) and not bool(matrix[pad].any())
    return Special(pad, eos, bos, unk), "zero" if silent else "pad"


def _vocabulary(path: Path, special: Special) -> Vocabulary:
    source = read_json(path / "vocab.json")
    other = path / "target_vocab.json"
    target = read_json(other) if other.is_file() else source
    try:
        models = (path / "source.spm").read_bytes(), (path / "target.spm").read_bytes()
    except OSError as error:
        raise BundleError(f"{error.filename}: cannot be read: {error.strerror}") from None
    return vocabulary_of(models, (source, target), special, path)


def _positions(
    values: Mapping[str, Any], tensors: Mapping[str, Tensor], path: Path
) -> tuple[dict[str, Any], Tensor]:
    """The settings of positions, and the order that the stream must be brought into for them."""
    rows, d_model = values.get("max_position_embeddings", 1024), values.get("d_model", 0)
    plain, inverse = torch.arange(d_model), torch.argsort(halves(d_model))
    if not isinstance(rows, int) or rows < 2:
        raise BundleError(f"{path / 'config.json'}: max_position_embeddings is {rows!r}, expected a number")
    said = path / "tokenizer_config.json"
    longest = read_json(said).get("model_max_length") if said.is_file() else None
    settings = {
        "positions": "sinusoid",
        "max_length": min(rows, longest) if isinstance(longest, int) else rows,
    }
    tables = [tensors[name].float() for name in _LEARNED.values() if name in tensors]
    if len(tables) < 2:
        return settings, inverse
    printed = sinusoids(len(tables[0]), d_model).float()
    if all(_alike(table, printed[:, halves(d_model)]) for table in tables):
        return settings, inverse
    if all(_alike(table, t2t_sinusoids(len(table), d_model).float()) for table in tables):
        return {**settings, "positions": "t2t"}, plain
    return {"positions": "learned", "max_length": len(tables[0]) - OUTPUT_RESERVE}, plain


def _alike(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and float((one - other).abs().max()) <= _SAME


def _embeddings(
    config: ModelConfig, vocabulary: Vocabulary, tensors: Mapping[str, Tensor], path: Path
) -> dict[str, Tensor]:
    target = _first(tensors, (_TARGET, _SHARED, _OUTPUT), path)
    found = {"embeddings.target": vocabulary.rows(target, vocabulary.target, path)}
    if config.tying != "three-way":
        source = _first(tensors, (_SOURCE, _SHARED), path)
        found["embeddings.own_source"] = vocabulary.rows(source, vocabulary.source, path)
    if config.tying == "none":
        output = _first(tensors, (_OUTPUT,), path)
        found["embeddings.own_output"] = vocabulary.rows(output, vocabulary.target, path)
    return found


def _first(tensors: Mapping[str, Tensor], names: tuple[str, ...], path: Path) -> Tensor:
    for name in names:
        if name in tensors:
            return tensors[name]
    raise BundleError(f"{path}: the tensor {names[0]} is missing; was the file cut short?")


def _barred(path: Path, vocabulary: Vocabulary) -> tuple[list[int], list[str]]:
    """The subwords, by our ids, that no output holds, and what is to be told of longer sequences."""
    found, remarks = [], []
    left_out = {PAD_ID, BOS_ID, UNK_ID, *vocabulary.tokenizer.tags.values()}
    for words in _generation(path).get("bad_words_ids") or []:
        if len(words) > 1:
            remarks.append(f"bad_words_ids bars the sequence {words}, which is not taken over")
        else:
            found += [i for i, index in enumerate(vocabulary.target) if index == words[0]]
    found += [i for i, index in enumerate(vocabulary.target) if index == NOWHERE]
    return sorted(set(found) - left_out), remarks


def _bias(path: Path, vocabulary: Vocabulary, tensors: Mapping[str, Tensor], barred: list[int]) -> Tensor:
    """The bias before the softmax."""
    stored = tensors.get("final_logits_bias")
    ids = vocabulary.target
    bias = torch.zeros(len(ids)) if stored is None else vocabulary.rows(stored.view(-1), ids, path)
    bias[barred] += NEVER
    # Those that no output holds in any case.
    bias[[PAD_ID, BOS_ID, UNK_ID, *vocabulary.tokenizer.tags.values()]] = 0.0
    return bias


def _generation(path: Path) -> dict[str, Any]:
    """How the model is meant to be searched: settings that stand in either of two files."""
    own = path / "generation_config.json"
    return {**read_json(path / "config.json"), **(read_json(own) if own.is_file() else {})}


def _searched(path: Path) -> list[str]:
    said = _generation(path)
    beam, power = said.get("num_beams", 1), said.get("length_penalty", 1.0)
    return [
        f"the model is meant for num_beams {beam} and length_penalty {power:g}, log P divided by that power "
        f"of the length: use `--beam {beam}`; the paper's penalty, --alpha, is another function of the length"
    ]
