"""A model as ONNX: a folder for onnxruntime, in Python and in JavaScript."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from torch import Tensor

from transduce import __version__
from transduce.bundle import Bundle
from transduce.counts import counted
from transduce.decoding.config import TranslationOptions
from transduce.decoding.onnx_folder import (
    DECODER,
    DESCRIPTION,
    ENCODER,
    FORMAT,
    TOKENIZER,
    WEIGHTS,
    OnnxFolder,
    is_onnx_folder,
)
from transduce.decoding.pairs import Ids
from transduce.decoding.translator import Translator
from transduce.interchange.subword_list import subword_list

SUBWORDS = "pieces.json"
_SCRIPTS = ("translate.mjs", "tokenizer.mjs")


class Onnx:
    """Encoder and decoder as graphs, their weights in one file, and what else it takes to translate."""

    precisions = ("float32", "int8")

    def holds(self, path: Path) -> bool:
        """Whether it is a folder that `write` made."""
        return is_onnx_folder(path)

    def write(self, bundle: Bundle, path: Path, precision: str) -> list[str]:
        """What could not be expressed: the limit of positions that are a formula, and odd tokenizers."""
        from transduce.interchange.onnx_graph import decoder_graph, encoder_graph, position_rows, weights_of

        config, tokenizer = bundle.model.config, bundle.tokenizer
        weights = weights_of(bundle.model, file=WEIGHTS, int8=precision == "int8")
        contents = {
            ENCODER: encoder_graph(config, weights).SerializeToString(),
            DECODER: decoder_graph(config, weights).SerializeToString(),
            TOKENIZER: tokenizer.model_bytes,
        }
        remarks = []
        if config.positions != "learned":
            rows = counted(position_rows(config), "token")
            remarks.append(f"positions are a table here: sequences end at {rows}")
        listed = subword_list(tokenizer)
        if isinstance(listed, str):
            remarks.append(f"the tokenizer is not written for JavaScript: {listed}")
        else:
            contents[SUBWORDS] = _json(listed)
            scripts = resources.files("transduce.interchange") / "javascript"
            contents |= {name: (scripts / name).read_bytes() for name in _SCRIPTS}
        path.mkdir()
        for name, content in contents.items():
            (path / name).write_bytes(content)
        with (path / WEIGHTS).open("wb") as file:
            weights.write(file)
        described = _description(bundle, precision, position_rows(config), weights.table())
        described["files"] = {name: _sha256(path / name) for name in (*contents, WEIGHTS)}
        (path / DESCRIPTION).write_bytes(_json(described))
        return remarks

    def open(self, path: Path) -> OpenedOnnx:
        """The model there, computed by onnxruntime."""
        return OpenedOnnx(OnnxFolder.read(path))


class OpenedOnnx:
    """An export, computed by onnxruntime."""

    def __init__(self, folder: OnnxFolder) -> None:
        config, bundle = folder.config, folder.bundle()
        self._folder = folder
        self._translator = Translator(bundle, engine="onnx", precision=folder.engine_precision)
        self.precision, self.forbidden = folder.precision, folder.forbidden
        self.eos_id, self.max_length = config.eos_id, config.max_length
        self.pieces = [bundle.tokenizer.piece(i) for i in range(bundle.tokenizer.vocabulary)]

    def forced(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """Log P of each token of each target, all steps of a target at once."""
        return self._translator.searcher.force_decode(sources, targets)

    def translate(self, lines: Sequence[str]) -> list[str]:
        """The translation of each line by our search, which asks onnxruntime for each step."""
        return self._translator.translate(lines)

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """What lies in the file of weights."""
        return self._folder.weights()


def _description(
    bundle: Bundle, precision: str, positions: int, tensors: Mapping[str, Any]
) -> dict[str, Any]:
    """What a program must know to run the graphs, and what is worth knowing of the model."""
    config, tokenizer, usual = bundle.model.config, bundle.tokenizer, TranslationOptions()
    return {
        "format": FORMAT,
        "transduce": __version__,
        "precision": precision,
        "start": config.start_id,
        "end": config.eos_id,
        "padding": config.pad_id,
        "forbidden": sorted({config.pad_id, config.bos_id, config.unk_id, *tokenizer.tags.values()}),
        "tags": tokenizer.tags,
        "max_source": config.max_length,
        "max_extra": usual.max_extra,
        "min_length": usual.min_length,
        "beam": usual.beam,
        "alpha": usual.alpha,
        "positions": positions,
        "model": dataclasses.asdict(config),
        "training": bundle.training,
        "tensors": dict(tensors),
    }


def _json(value: Mapping[str, Any]) -> bytes:
    """One line for each key, so that a person can look through it."""
    lines = [f"{json.dumps(key)}: {json.dumps(one, ensure_ascii=False)}" for key, one in value.items()]
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
