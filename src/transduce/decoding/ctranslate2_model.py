"""A model written in the layout of CTranslate2, by that library's own specification classes, and read back.

CTranslate2 is optional (extra ``export``). The ids that no output may hold get a bias before the softmax that
leaves them no probability, so that log P is ours whatever the caller's settings.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from transduce import __version__
from transduce.bundle import CONFIG, TOKENIZER, Bundle, model_without_weights
from transduce.config import build
from transduce.data.tokenizer import Tokenizer
from transduce.errors import BundleError, DataError, UsageError
from transduce.files import write_bytes, write_json
from transduce.model.config import OUTPUT_RESERVE, ModelConfig

BINARY, SECTION = "model.bin", "transduce"
# Added to the logits of reserved ids: nothing is left of them, in float16 too.
FORBIDDEN = -30_000.0
# Positions that are computed, not learned, are written out up to here at least.
POSITIONS = 1_024
# The lengths, ends counted, at which the two length penalties are to be alike.
_LENGTHS = range(5, 61)
# By their numbers in the file.
_TYPES = (torch.float32, torch.int8, torch.int16, torch.int32, torch.float16, torch.bfloat16)


def nearest_penalty(alpha: float) -> float:
    """The exponent p for which length^p, the end not counted, is nearest to ((5 + n) / 6)^alpha.

    The logarithms of both are compared at the lengths of usual sentences, up to a constant.
    """
    theirs = np.log(np.array(_LENGTHS) - 1.0)
    ours = np.log((5.0 + np.array(_LENGTHS)) / 6.0)
    theirs, ours = theirs - theirs.mean(), ours - ours.mean()
    return round(float(alpha * (theirs @ ours) / (theirs @ theirs)), 2)


def check_expressible(config: ModelConfig) -> None:
    """Nothing; UsageError for a model that CTranslate2 cannot compute."""
    if config.neighbourhood:
        raise UsageError("CTranslate2 does not know attention to a neighbourhood; use --engine torch")
    if config.d_k != config.d_v:
        raise UsageError(
            f"CTranslate2 needs heads as wide for values as for keys, and this model has d_k = {config.d_k} "
            f"and d_v = {config.d_v}; use --engine torch"
        )


def write_model(bundle: Bundle, folder: Path, *, precision: str, forbidden: Sequence[int]) -> None:
    """Nothing; ``folder``, which is made, holds the model for CTranslate2.

    ``precision`` is float32, float16, bfloat16 or int8. Raises UsageError for what it cannot compute.
    """
    config = bundle.model.config
    check_expressible(config)
    spec = _specification(config)
    # Copies: the library rounds arrays in place.
    state = bundle.model.state_dict()
    values = {name: tensor.detach().cpu().float().numpy().copy() for name, tensor in state.items()}
    for ours, theirs in tensor_names(config):
        _set(spec, theirs, values[ours])
    if config.positions in ("sinusoid", "t2t"):
        length = max(POSITIONS, 2 * config.max_length) + OUTPUT_RESERVE
        table = bundle.model.target_positions.rows(length, torch.device("cpu"))
        for side in (spec.encoder, spec.decoder):
            side.position_encodings.encodings = table.numpy().copy()
    bias = values.get("embeddings.output_bias", np.zeros(config.vocabulary, np.float32)).copy()
    bias[list(forbidden)] = FORBIDDEN
    spec.decoder.projection.bias = bias
    pieces = [bundle.tokenizer.piece(i) for i in range(config.vocabulary)]
    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    ids = {
        "decoder_start_token": config.start_id,
        "eos_token": config.eos_id,
        "bos_token": config.bos_id,
        "unk_token": config.unk_id,
    }
    for name, index in ids.items():
        setattr(spec.config, name, pieces[index])
    spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = config.norm_epsilon
    spec.validate()
    spec.optimize(quantization=None if precision == "float32" else precision)
    folder.mkdir()
    spec.save(str(folder))
    write_bytes(folder / TOKENIZER, bundle.tokenizer.model_bytes)
    _describe(bundle, folder, precision, forbidden)


def tensor_names(config: ModelConfig) -> Iterator[tuple[str, str]]:
    """Our name of each tensor and CTranslate2's, in our order; tied ones come under each of their uses."""
    source = "embeddings.target" if config.tying == "three-way" else "embeddings.own_source"
    output = "embeddings.own_output" if config.tying == "none" else "embeddings.target"
    yield "embeddings.target", "decoder/embeddings/weight"
    yield source, "encoder/embeddings_0/weight"
    yield output, "decoder/projection/weight"
    if config.positions == "learned":
        yield "source_positions.learned", "encoder/position_encodings/encodings"
        yield "target_positions.learned", "decoder/position_encodings/encodings"
    for stack, layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        for i in range(layers):
            yield from _layer_names(f"{stack}.layers.{i}", f"{stack}/layer_{i}", config, stack == "decoder")
        if config.norm == "pre":
            yield from _norm_names(f"{stack}.norm", f"{stack}/layer_norm")


def _layer_names(ours: str, theirs: str, config: ModelConfig, decoder: bool) -> Iterator[tuple[str, str]]:
    own = "self_attention", "self_attention", ["qkv", "o"]
    attentions = [own, ("cross_attention", "attention", ["q", "kv", "o"])] if decoder else [own]
    kinds = ("weight", "bias") if config.attention_bias else ("weight",)
    for number, (name, other, parts) in enumerate(attentions, 1):
        for i, part in enumerate(parts):
            for kind in kinds:
                yield f"{ours}.{name}.{part}.{kind}", f"{theirs}/{other}/linear_{i}/{kind}"
        yield from _norm_names(f"{ours}.add_norm_{number}.norm", f"{theirs}/{other}/layer_norm")
    for i, part in enumerate(("w_1", "w_2")):
        for kind in ("weight", "bias"):
            yield f"{ours}.feed_forward.{part}.{kind}", f"{theirs}/ffn/linear_{i}/{kind}"
    yield from _norm_names(f"{ours}.add_norm_{len(attentions) + 1}.norm", f"{theirs}/ffn/layer_norm")


def _norm_names(ours: str, theirs: str) -> Iterator[tuple[str, str]]:
    yield f"{ours}.weight", f"{theirs}/gamma"
    yield f"{ours}.bias", f"{theirs}/beta"


def _specification(config: ModelConfig) -> Any:
    from ctranslate2.specs import common_spec, transformer_spec

    kinds = common_spec.Activation
    activations = {"relu": kinds.RELU, "swish": kinds.SWISH, "gelu": kinds.GELU}
    shared: dict[str, Any] = {
        "pre_norm": config.norm == "pre",
        "activation": activations[config.activation],
    }
    if config.heads * config.d_k != config.d_model:
        shared["head_dim"] = config.d_k
    if config.positions == "rotary":
        shared |= {"rotary_dim": config.d_k, "rotary_interleave": True}
    spec = transformer_spec.TransformerSpec(
        transformer_spec.TransformerEncoderSpec(config.encoder_layers, config.heads, **shared),
        transformer_spec.TransformerDecoderSpec(config.decoder_layers, config.heads, **shared),
    )
    for side in (spec.encoder, spec.decoder):
        side.scale_embeddings = config.scale_embeddings
    spec.decoder.start_from_zero_embedding = config.decoder_start == "zero"
    return spec


def _set(spec: Any, name: str, value: Any) -> None:
    from ctranslate2.specs import model_spec

    scope, _, attribute = name.rpartition("/")
    # A tensor that is used twice is one array here, which the library then stores once.
    setattr(model_spec.index_spec(spec, scope), attribute, value)


def _describe(bundle: Bundle, folder: Path, precision: str, forbidden: Sequence[int]) -> None:
    """Nothing; ``config.json``, of which CTranslate2 reads what it knows, says what is ours in a section."""
    described = json.loads((folder / CONFIG).read_bytes())
    described[SECTION] = {
        "version": __version__,
        "precision": precision,
        "model": dataclasses.asdict(bundle.model.config),
        "forbidden": list(forbidden),
        "tokenizer": bundle.tokenizer.sha256,
        "weights": _checksum(folder / BINARY),
        "training": bundle.training,
    }
    write_json(folder / CONFIG, described)


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_model(folder: str | Path) -> bool:
    """Whether a model lies there that `write_model` wrote."""
    try:
        return (Path(folder) / BINARY).is_file() and SECTION in json.loads(
            (Path(folder) / CONFIG).read_bytes()
        )
    except (OSError, ValueError, TypeError):
        return False


@dataclass(frozen=True, kw_only=True)
class Written:
    """A folder of `write_model` by what it says of itself; the model of ``bundle`` has no weights."""

    bundle: Bundle
    precision: str
    forbidden: list[int]


def read_model(folder: Path) -> Written:
    """What the folder says of itself; BundleError where it is damaged."""
    again = "copy the whole folder again, or export the model again"
    try:
        described = json.loads((folder / CONFIG).read_bytes())[SECTION]
        config = build(ModelConfig, described["model"], "model")
        tokenizer = Tokenizer.load(folder / TOKENIZER)
        precision, forbidden = str(described["precision"]), [int(i) for i in described["forbidden"]]
        checksums = str(described["tokenizer"]), str(described["weights"])
        training = dict(described["training"])
    except (OSError, ValueError, KeyError, TypeError, DataError, UsageError) as error:
        raise BundleError(f"{folder}: is a damaged model for CTranslate2 ({error}); {again}") from None
    for name, found, expected in (
        (TOKENIZER, tokenizer.sha256, checksums[0]),
        (BINARY, _checksum(folder / BINARY), checksums[1]),
    ):
        if found != expected:
            raise BundleError(f"{folder / name}: is damaged, or of another model (other checksum); {again}")
    model = model_without_weights(config)
    bundle = Bundle(model=model, tokenizer=tokenizer, training=training, path=folder)
    return Written(bundle=bundle, precision=precision, forbidden=forbidden)


def read_tensors(folder: Path, config: ModelConfig) -> Iterator[tuple[str, Tensor]]:
    """What is stored, under our names and in float32; what was rounded to int8 is multiplied out again."""
    stored = _read_binary(folder / BINARY)
    for ours, theirs in tensor_names(config):
        tensor = stored[theirs].float()
        scale = stored.get(f"{theirs}_scale")
        yield ours, tensor if scale is None else tensor / scale.float()[:, None]


def _read_binary(path: Path) -> dict[str, Tensor]:
    """The variables of a ``model.bin``; the layout is that of ``ModelSpec`` in CTranslate2."""
    data = path.read_bytes()
    at = 0

    def take(form: str) -> int:
        nonlocal at
        (value,) = struct.unpack_from(form, data, at)
        at += struct.calcsize(form)
        return int(value)

    def text() -> str:
        nonlocal at
        length = take("<H")
        at += length
        return data[at - length : at - 1].decode()

    take("<I")
    text()
    take("<I")
    found: dict[str, Tensor] = {}
    for _ in range(take("<I")):
        name = text()
        shape = [take("<I") for _ in range(take("<B"))]
        kind, size = take("<B"), take("<I")
        found[name] = torch.frombuffer(bytearray(data[at : at + size]), dtype=_TYPES[kind]).reshape(shape)
        at += size
    for _ in range(take("<I")):
        alias, name = text(), text()
        found[alias] = found[name]
        if f"{name}_scale" in found:
            found[f"{alias}_scale"] = found[f"{name}_scale"]
    return found
