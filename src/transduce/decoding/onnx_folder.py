"""A folder that ``transduce export --to onnx`` wrote, read back: its description and its weights.

``config.json`` holds the model's settings, the ids that matter, where each tensor lies in ``weights.bin``,
and the checksums of the other files. Neither onnx nor onnxruntime is needed to read it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from transduce.bundle import Bundle
from transduce.data.tokenizer import Tokenizer
from transduce.errors import BundleError, TransduceError
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer

FORMAT = "onnx 1"
DESCRIPTION, ENCODER, DECODER, WEIGHTS = "config.json", "encoder.onnx", "decoder.onnx", "weights.bin"
TOKENIZER = "tokenizer.model"
# What is appended to the name of a matrix that is stored as whole numbers, and to that of its steps.
WHOLE, STEPS = ".int8", ".steps"
_AGAIN = "export the model again"


@dataclass(frozen=True, kw_only=True)
class OnnxFolder:
    """What ``config.json`` says: ``positions`` is the longest sequence that the graphs take."""

    path: Path
    config: ModelConfig
    precision: str
    positions: int
    forbidden: tuple[int, ...]
    training: Mapping[str, Any]
    tensors: Mapping[str, Mapping[str, Any]]

    @classmethod
    def read(cls, path: str | Path) -> OnnxFolder:
        """The description of the export in ``path``, whose files are the ones that were written.

        Raises BundleError, with the remedy, for what is missing, damaged or newer than this version.
        """
        path = Path(path)
        described = _described(path)
        try:
            for name, checksum in described["files"].items():
                with (path / name).open("rb") as file:
                    if hashlib.file_digest(file, "sha256").hexdigest() != checksum:
                        raise BundleError(
                            f"{path / name}: is damaged, or of another export (other checksum); {_AGAIN}"
                        )
            return cls(
                path=path,
                config=ModelConfig.from_mapping(described["model"]),
                precision=str(described["precision"]),
                positions=int(described["positions"]),
                forbidden=tuple(described["forbidden"]),
                training=dict(described["training"]),
                tensors=dict(described["tensors"]),
            )
        except OSError as error:
            raise BundleError(f"{error.filename}: cannot be read: {error.strerror}; {_AGAIN}") from None
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BundleError(f"{path / DESCRIPTION}: is damaged ({error!r}); {_AGAIN}") from None

    @property
    def engine_precision(self) -> str:
        """The precision as engines call it: fp32 or int8."""
        return "fp32" if self.precision == "float32" else self.precision

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """The model's tensors by their names, rounded where whole numbers are stored; the file is mapped."""
        content = np.memmap(self.path / WEIGHTS, np.uint8, "c")
        for name in self.tensors:
            if name.endswith(WHOLE):
                name = name.removesuffix(WHOLE)
                whole, steps = (self._stored(content, name + end) for end in (WHOLE, STEPS))
                yield name, torch.from_numpy((whole.T.astype(np.float32) - 128) * steps[:, None])
            elif not name.endswith(STEPS):
                yield name, torch.from_numpy(self._stored(content, name))

    def bundle(self) -> Bundle:
        """The model and its tokenizer for what the graphs do not compute, such as alignments."""
        with torch.device("meta"):
            model = Transformer(self.config)
        wanted = model.state_dict()
        stored = {name: tensor for name, tensor in self.weights() if name in wanted}
        try:
            model.load_state_dict(stored, assign=True)
            tokenizer = Tokenizer.load(self.path / TOKENIZER)
        except (RuntimeError, TransduceError) as error:
            raise BundleError(f"{self.path}: {' '.join(str(error).split())}; {_AGAIN}") from None
        return Bundle(model=model.eval(), tokenizer=tokenizer, training=dict(self.training), path=self.path)

    def _stored(self, content: npt.NDArray[np.uint8], name: str) -> npt.NDArray[Any]:
        entry = self.tensors[name]
        dtype, shape = np.dtype(entry["type"]), tuple(entry["shape"])
        end = entry["offset"] + int(np.prod(shape)) * dtype.itemsize
        if end > len(content):
            raise BundleError(f"{self.path / WEIGHTS}: ends before {name}; {_AGAIN}")
        values: npt.NDArray[Any] = content[entry["offset"] : end].view(dtype).reshape(shape)
        return values


def is_onnx_folder(path: str | Path) -> bool:
    """Whether a folder is an export to ONNX."""
    return (Path(path) / ENCODER).is_file() and (Path(path) / DESCRIPTION).is_file()


def _described(path: Path) -> dict[str, Any]:
    file = path / DESCRIPTION
    try:
        described = json.loads(file.read_bytes())
    except OSError as error:
        raise BundleError(
            f"{file}: cannot be read: {error.strerror}; name a folder that `transduce export --to onnx` wrote"
        ) from None
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{file}: is not valid JSON ({error}); {_AGAIN}") from None
    version = described.get("format") if isinstance(described, dict) else None
    if version != FORMAT:
        raise BundleError(
            f"{file}: format is {version!r}, this version reads {FORMAT!r}; export the model again, or "
            "upgrade with `pip install -U transduce`"
        )
    return described  # type: ignore[no-any-return]
