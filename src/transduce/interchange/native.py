"""Our own model folder: safetensors, JSON and the tokenizer; also with its weights in half the bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import safetensors.torch
import torch
from torch import Tensor

from transduce.bundle import CONFIG, WEIGHTS, Bundle, load_bundle, save_bundle
from transduce.decoding.pairs import Ids
from transduce.decoding.translator import Translator

_TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class Native:
    """A model folder, computed by PyTorch in float32: the reference of all comparisons."""

    def __init__(self, bundle: Bundle) -> None:
        self._translator = Translator(bundle)
        self._path = bundle.path
        tokenizer, config = bundle.tokenizer, bundle.model.config
        self.bundle = bundle
        self.pieces = [tokenizer.piece(i) for i in range(tokenizer.vocabulary)]
        self.forbidden: Sequence[int] = self._translator.searcher.forbidden
        self.eos_id, self.max_length = config.eos_id, config.max_length
        self.precision = "float32" if bundle.path is None else _stored_as(bundle.path)

    def forced(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """Log P of each token of each target."""
        with self._translator.searcher.ready():
            return self._translator.searcher.force_decode(sources, targets)

    def translate(self, lines: Sequence[str]) -> list[str]:
        """The translation of each line by the paper's search."""
        return self._translator.translate(lines)

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """The parameters."""
        for name, tensor in self.bundle.model.state_dict().items():
            yield name, tensor.float()


class Safetensors:
    """Our own folder, which `Translator.load` takes whatever its weights are stored in."""

    precisions = tuple(_TYPES)

    def holds(self, path: Path) -> bool:
        """Whether it is a folder of weights and a configuration of ours."""
        if not (path / CONFIG).is_file() or not (path / WEIGHTS).is_file():
            return False
        try:
            described = json.loads((path / CONFIG).read_bytes())
        except ValueError:
            return False
        return isinstance(described, dict) and isinstance(described.get("format"), int)

    def write(self, bundle: Bundle, path: Path, precision: str) -> list[str]:
        """Nothing that could not be expressed."""
        model = bundle.model
        save_bundle(path, model, model.config, bundle.tokenizer, bundle.training, dtype=_TYPES[precision])
        return []

    def open(self, path: Path) -> Native:
        """The model there."""
        return Native(load_bundle(path))


def _stored_as(folder: Path) -> str:
    with safetensors.safe_open(folder / WEIGHTS, "pt") as file:
        kinds = {str(file.get_slice(name).get_dtype()) for name in file.keys()}  # noqa: SIM118 - no mapping
    names = {"F32": "float32", "BF16": "bfloat16", "F16": "float16"}
    return names[kinds.pop()] if len(kinds) == 1 else "float32"
