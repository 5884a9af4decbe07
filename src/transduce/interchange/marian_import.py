"""A folder of Marian's own files as a model of ours: what Marian trains, and packages of OPUS-MT."""

from __future__ import annotations

import dataclasses
import importlib.util
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from torch import Tensor

from transduce.bundle import Bundle
from transduce.counts import counted
from transduce.data.imported_tokenizer import processor_of
from transduce.data.tokenizer import BOS_ID, PAD_ID, UNK_ID
from transduce.errors import BundleError
from transduce.interchange.format import Read
from transduce.interchange.huggingface_import import Folder, without_zero_biases
from transduce.interchange.layout import made, taken
from transduce.interchange.marian_layout import (
    SETTINGS,
    as_matrix,
    embeddings_named,
    marian_places,
    turned,
    understood,
)  # fmt: skip
from transduce.interchange.marian_vocabulary import read_listing
from transduce.interchange.vocabulary import NEVER, NOWHERE, Special, Vocabulary, vocabulary_of
from transduce.model.config import ModelConfig

# Marian trains on sentences of any length and cuts what is longer than this only if it is told to.
_LONGEST = 512


def read_marian(path: Path) -> Read:
    """The model in the folder ``path``; BundleError for what is missing, damaged, or cannot be expressed."""
    folder = read_folder(path)
    bundle = Bundle(
        model=made(folder.config, folder.state, path),
        tokenizer=folder.vocabulary.tokenizer,
        training={"imported": {"from": "marian", "name": path.resolve().name}},
    )
    original = None
    if importlib.util.find_spec("ctranslate2") is not None:
        from transduce.interchange.marian_opened import OpenedMarian

        original = OpenedMarian(path, folder)
    return Read(bundle=bundle, remarks=folder.remarks, original=original)


def read_folder(path: Path) -> Folder:
    """The parts of the model in the folder ``path``: decoder.yml names the model and its vocabularies."""
    decoder = decoder_of(path)
    tensors, said = read_model(path / decoder["models"][0])
    vocabulary = _vocabulary(path, [path / name for name in decoder["vocabs"]])
    barred = [i for i, index in enumerate(vocabulary.target) if index == NOWHERE and i > UNK_ID]
    config = ModelConfig(vocabulary=len(vocabulary.source), max_length=_LONGEST, **understood(said, path))
    state = taken({name: turned(tensor) for name, tensor in tensors.items()}, marian_places(config), path)
    for name, table in embeddings_named(tensors, config.tying, path).items():
        side = vocabulary.source if name == "embeddings.own_source" else vocabulary.target
        state[name] = vocabulary.rows(table, side, path)
    stored = tensors.get("decoder_ff_logit_out_b")
    bias = torch.zeros(len(vocabulary.target))
    if stored is not None:
        bias = vocabulary.rows(stored.flatten(), vocabulary.target, path)
    bias[barred] = NEVER
    bias[[PAD_ID, BOS_ID, UNK_ID, *vocabulary.tokenizer.tags.values()]] = 0.0
    if bool(bias.any()):
        config, state["embeddings.output_bias"] = dataclasses.replace(config, output_bias=True), bias
    config, state = without_zero_biases(config, state)
    remarks = [f"decoder.yml asks for beam-size {decoder['beam']} and normalize {decoder['normalize']}"]
    return Folder(config=config, state=state, vocabulary=vocabulary, barred=barred, remarks=remarks)


def decoder_of(path: Path) -> dict[str, Any]:
    """Which files of the folder are the model and the vocabularies, by name, and how it is searched."""
    file = path / "decoder.yml"
    names = sorted(path.glob("*.decoder.yml"))
    if not file.is_file() and names:
        file = names[0]
    if not file.is_file():
        raise BundleError(f"{path}: has no decoder.yml, which names Marian's model and vocabularies")
    try:
        said = yaml.safe_load(file.read_bytes())
        models, vocabs = ([Path(str(name)).name for name in said[key]] for key in ("models", "vocabs"))
    except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
        raise BundleError(f"{file}: names no models and vocabs ({error})") from None
    if len(models) != 1 or len(vocabs) != 2:
        raise BundleError(
            f"{file}: names {counted(len(models), 'model')} and {counted(len(vocabs), 'vocab')}; "
            "expected 1 and 2"
        )
    search = {"beam": said.get("beam-size", 12), "normalize": said.get("normalize", 0)}
    return {"models": models, "vocabs": vocabs, **search}


def read_model(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and settings in model.npz; no pickle in it is opened."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            said = yaml.safe_load(settings_text(stored[SETTINGS]))
            names = [name for name in stored.files if not name.startswith("special:")]
            tensors = {name: as_matrix(stored[name]) for name in names}
    except (OSError, KeyError, ValueError, zipfile.BadZipFile, yaml.YAMLError) as error:
        raise BundleError(f"{path}: is no model of Marian ({error})") from None
    if not isinstance(said, dict):
        raise BundleError(f"{path}: holds no settings")
    return tensors, said


def settings_text(stored: Any) -> bytes:
    """The YAML among the tensors: it ends at the first zero, whatever the array is filled up with."""
    text: bytes = stored.tobytes().partition(b"\0")[0]
    return text


def _vocabulary(path: Path, files: list[Path]) -> Vocabulary:
    models, listed = [], []
    for file, beside in zip(files, ("source.spm", "target.spm"), strict=True):
        model = file if file.suffix == ".spm" else path / beside
        try:
            content = model.read_bytes()
            processor = processor_of(content)
        except (OSError, ValueError, RuntimeError) as error:
            raise BundleError(
                f"{model}: cannot be read ({error}); put the sentencepiece model that cut the text there"
            ) from None
        models.append(content)
        if file.suffix == ".spm":
            listed.append({processor.id_to_piece(i): i for i in range(processor.vocab_size())})
        else:
            listed.append(read_listing(file))
    for side in listed:
        if (side.get("</s>"), side.get("<unk>")) != (listed[0].get("</s>"), listed[0].get("<unk>")):
            raise BundleError(f"{path}: the vocabularies give </s> and <unk> different ids")
    if "</s>" not in listed[0] or "<unk>" not in listed[0]:
        raise BundleError(f"{files[0]}: has no </s> or no <unk>")
    special = Special(NOWHERE, listed[0]["</s>"], NOWHERE, listed[0]["<unk>"])
    return vocabulary_of((models[0], models[1]), (listed[0], listed[1]), special, path)
