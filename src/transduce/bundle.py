"""A model folder: weights, configuration and tokenizer, which belong together or are refused.

``model.safetensors``, ``config.json``, ``tokenizer.model`` and ``training.json``; nothing in them can run
code, and nothing outside the folder is needed. ``config.json`` is written last and holds the checksums of
weights and tokenizer, so that a mix of two saves is noticed, however it came about.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from transduce import __version__
from transduce.config import build
from transduce.data.tokenizer import Tokenizer
from transduce.errors import BundleError, ConfigError, DataError
from transduce.files import atomic_writer
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer

FORMAT = 1
WEIGHTS, CONFIG, TOKENIZER, TRAINING = "model.safetensors", "config.json", "tokenizer.model", "training.json"
_AGAIN = "copy the whole folder again, or save the model again (`transduce average` does)"


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """A translator's parts: the model, its tokenizer, and what is known of its training."""

    model: Transformer
    tokenizer: Tokenizer
    training: dict[str, Any]
    path: Path | None = None


def save_bundle(
    folder: str | Path,
    model: Transformer | Mapping[str, Tensor],
    config: ModelConfig,
    tokenizer: Tokenizer,
    training: Mapping[str, Any],
    *,
    dtype: torch.dtype = torch.float32,
) -> None:
    """Nothing; ``folder`` holds the model afterwards, its weights (or state) as ``dtype``.

    All files are written under other names first and renamed together at the end, ``config.json`` last. A
    folder may be overwritten; if the machine stops in the middle, `load_bundle` takes the old model or the
    new one, or refuses, but never mixes them. Raises BundleError for weights that are not of ``config``.
    """
    state = model.state_dict() if isinstance(model, Transformer) else model
    _check_tensors(
        {name: tuple(tensor.shape) for name, tensor in state.items()}, config, "the weights to save"
    )
    _check_vocabulary(tokenizer, config, "the tokenizer to save")
    weights = safetensors.torch.save(
        {name: tensor.detach().to("cpu", dtype).contiguous() for name, tensor in state.items()}
    )
    description = {
        "format": FORMAT,
        "transduce": __version__,
        "model": dataclasses.asdict(config),
        "weights": {"file": WEIGHTS, "sha256": hashlib.sha256(weights).hexdigest()},
        "tokenizer": {"file": TOKENIZER, "sha256": tokenizer.sha256, "vocabulary": tokenizer.vocabulary},
    }
    contents = {
        CONFIG: _json(description),
        TRAINING: _json(dict(training)),
        TOKENIZER: tokenizer.model_bytes,
        WEIGHTS: weights,
    }
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:  # left in reverse: the weights are renamed first, the configuration last
        files = {name: stack.enter_context(atomic_writer(folder / name)) for name in contents}
        for name, content in contents.items():
            files[name].write(content)


def load_bundle(folder: str | Path, device: str = "cpu") -> Bundle:
    """The model in ``folder``, on ``device`` and in evaluation mode.

    Raises BundleError, with the remedy, for whatever is missing, damaged, newer than this version, or does
    not belong to the rest.
    """
    folder = Path(folder)
    described = _read_description(folder)
    config = _model_config(folder / CONFIG, described)
    tokenizer = _load_tokenizer(folder, described, config)
    model = _load_model(folder, described, config, device)
    training = _read_json(folder / TRAINING) if (folder / TRAINING).exists() else {}
    return Bundle(model=model, tokenizer=tokenizer, training=training, path=folder)


def load_tokenizer(folder: str | Path) -> Tokenizer:
    """The tokenizer of the model in ``folder``, without its weights; raises BundleError as `load_bundle`."""
    folder = Path(folder)
    described = _read_description(folder)
    return _load_tokenizer(folder, described, _model_config(folder / CONFIG, described))


def _json(value: Any) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except OSError as error:
        raise BundleError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{path}: not valid JSON ({error}); {_AGAIN}") from None
    if not isinstance(value, dict):
        raise BundleError(f"{path}: holds a {type(value).__name__}, expected an object; {_AGAIN}")
    return value


def _read_description(folder: Path) -> dict[str, Any]:
    """What ``config.json`` says, its format known to this version."""
    if not folder.exists():
        raise BundleError(
            f"{folder}: no such model folder; check the path, or make one with `transduce train`"
        )
    if not folder.is_dir():
        raise BundleError(f"{folder}: is a file; name the model folder, which holds {CONFIG} and {WEIGHTS}")
    if not (folder / CONFIG).exists():
        if (folder / "checkpoints").is_dir():
            raise BundleError(
                f"{folder}: holds checkpoints but no model yet: its training has not finished; continue it "
                "with `transduce train --resume`, or make a model of its checkpoints with `transduce average`"
            )
        raise BundleError(
            f"{folder}: is not a model folder ({CONFIG} is missing); name what `transduce train` wrote"
        )
    described = _read_json(folder / CONFIG)
    version = described.get("format")
    if isinstance(version, str) and version.startswith("onnx "):
        raise BundleError(
            f"{folder}: is a model in the format {version}, which translate, evaluate and verify take; here "
            "name the model folder that it was made of"
        )
    if version is None and isinstance(described.get("transduce"), dict):
        raise BundleError(
            f"{folder}: is a model for CTranslate2, which translate, evaluate, score and verify take; here "
            "name the model folder that it was made of"
        )
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise BundleError(
            f"{folder / CONFIG}: format is {version!r}, expected a number from 1 to {FORMAT}; {_AGAIN}"
        )
    if version > FORMAT:
        raise BundleError(
            f"{folder / CONFIG}: format {version} is newer than this version reads (up to {FORMAT}); it was "
            f"written by transduce {described.get('transduce', '?')}: upgrade with `pip install -U transduce`"
        )
    return described


def _model_config(path: Path, described: Mapping[str, Any]) -> ModelConfig:
    values = described.get("model")
    if not isinstance(values, dict) or "vocabulary" not in values:
        raise BundleError(f"{path}: has no section 'model' with a vocabulary; {_AGAIN}")
    try:
        return build(ModelConfig, values, "model")
    except ConfigError as error:
        raise BundleError(f"{path}: {error}; {_AGAIN}") from None


def _checksum(folder: Path, described: Mapping[str, Any], section: str) -> str:
    entry = described.get(section)
    if not isinstance(entry, dict) or not isinstance(entry.get("sha256"), str):
        raise BundleError(f"{folder / CONFIG}: has no checksum of the {section}; {_AGAIN}")
    return str(entry["sha256"])


def _load_tokenizer(folder: Path, described: Mapping[str, Any], config: ModelConfig) -> Tokenizer:
    path = folder / TOKENIZER
    try:
        tokenizer = Tokenizer.load(path)
    except DataError as error:
        raise BundleError(f"{error}; {_AGAIN}") from None
    _check_vocabulary(tokenizer, config, str(path))
    if tokenizer.sha256 != _checksum(folder, described, "tokenizer"):
        raise BundleError(
            f"{path}: is not the tokenizer that this model was trained with (other checksum); {_AGAIN}"
        )
    return tokenizer


def _check_vocabulary(tokenizer: Tokenizer, config: ModelConfig, what: str) -> None:
    if tokenizer.vocabulary != config.vocabulary:
        raise BundleError(
            f"{what}: has {tokenizer.vocabulary} pieces, but the model has {config.vocabulary} embeddings; "
            "they do not belong together: use the tokenizer that the model was trained with"
        )


def _load_model(folder: Path, described: Mapping[str, Any], config: ModelConfig, device: str) -> Transformer:
    path = folder / WEIGHTS
    expected = _checksum(folder, described, "weights")
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        tensors = safetensors.torch.load_file(path)
    except FileNotFoundError:
        raise BundleError(f"{path}: is missing; {_AGAIN}") from None
    except OSError as error:
        raise BundleError(f"{path}: cannot be read: {error.strerror or error}") from None
    except safetensors.SafetensorError as error:
        raise BundleError(f"{path}: is damaged ({error}); {_AGAIN}") from None
    _check_tensors({name: tuple(tensor.shape) for name, tensor in tensors.items()}, config, str(path))
    if found != expected:
        raise BundleError(
            f"{path}: is damaged, or of another save than {CONFIG} (other checksum); "
            f"a save was interrupted, or files were mixed: {_AGAIN}"
        )
    model = model_without_weights(config).to_empty(device=device)
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            tensor.copy_(tensors[name])
    return model.eval()


def model_without_weights(config: ModelConfig) -> Transformer:
    """The model without storage: nothing is drawn, so this is fast and leaves the random state alone."""
    with torch.device("meta"):
        return Transformer(config)


def _check_tensors(found: Mapping[str, tuple[int, ...]], config: ModelConfig, what: str) -> None:
    empty = model_without_weights(config)
    expected = {name: tuple(tensor.shape) for name, tensor in empty.state_dict().items()}
    for name, shape in expected.items():
        if name not in found:
            raise BundleError(
                f"{what}: tensor {name} is missing, expected with shape {list(shape)}; {_AGAIN}"
            )
        if found[name] != shape:
            sizes = f"has shape {list(found[name])}, expected {list(shape)} by {CONFIG}"
            raise BundleError(f"{what}: tensor {name} {sizes}; {_AGAIN}")
    for name in found:
        if name not in expected:
            raise BundleError(f"{what}: tensor {name} does not belong to the model of {CONFIG}; {_AGAIN}")
