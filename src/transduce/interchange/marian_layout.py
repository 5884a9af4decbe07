"""Marian's model.npz: its names and settings, and ours.

Marian keeps matrices with inputs as rows, vectors as rows of one, and its settings as YAML among the tensors.
Its sinusoids are those of tensor2tensor (``positions = "t2t"``) and its decoder begins with a zero vector.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from transduce import __version__
from transduce.errors import BundleError, UsageError
from transduce.interchange.layout import Place
from transduce.model.config import ModelConfig

SETTINGS = "special:model.yml"
NORM_EPSILON = 1e-6
_ACTIVATIONS = ("relu", "swish")
# What a transformer of the paper's kind has in these; anything else is another architecture.
_PLAIN: dict[str, Any] = {
    "type": "transformer",
    "transformer-decoder-autoreg": "self-attention",
    "transformer-no-projection": False,
    "transformer-no-bias": False,
    "transformer-no-affine": False,
    "transformer-rnn-projection": False,
    "transformer-train-position-embeddings": False,
    "transformer-disable-position-embeddings": False,
    "transformer-alibi-shift": False,
    "transformer-pool": False,
    "transformer-tied-layers": [],
    "transformer-ffn-depth": 2,
    "transformer-decoder-ffn-depth": 0,
    "transformer-decoder-dim-ffn": 0,
    "transformer-depth-scaling": False,
    "lemma-dim-emb": 0,
    "ulr": False,
    "right-left": False,
    "skip": False,
}
# ``preprocess``, ``postprocess`` and ``postprocess-top`` without their dropouts.
_NORMS = {("", "an", ""): "post", ("n", "a", "n"): "pre"}


def marian_places(config: ModelConfig) -> Iterator[Place]:
    """The names of layers; matrices there are transposed, see `turned`."""
    pre = "_pre" if config.norm == "pre" else ""
    for side, layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        for layer in range(layers):
            ours, theirs = f"{side}.layers.{layer}", f"{side}_l{layer + 1}"
            norms = ["self_Wo", "ffn_ffn"]
            if side == "decoder":
                norms.insert(1, "context_Wo")
                yield from _linear(f"{ours}.cross_attention.q", f"{theirs}_context", "q")
                yield from _linear(f"{ours}.cross_attention.kv", f"{theirs}_context", "k", "v")
                yield from _linear(f"{ours}.cross_attention.o", f"{theirs}_context", "o")
            yield from _linear(f"{ours}.self_attention.qkv", f"{theirs}_self", "q", "k", "v")
            yield from _linear(f"{ours}.self_attention.o", f"{theirs}_self", "o")
            yield from _linear(f"{ours}.feed_forward.w_1", f"{theirs}_ffn", "1")
            yield from _linear(f"{ours}.feed_forward.w_2", f"{theirs}_ffn", "2")
            for number, norm in enumerate(norms, 1):
                yield from _norm(f"{ours}.add_norm_{number}.norm", f"{theirs}_{norm}", pre)
        if config.norm == "pre":
            yield from _norm(f"{side}.norm", f"{side}_top", "")


def turned(tensor: Tensor) -> Tensor:
    """A matrix as the other toolkit has it: transposed; a vector as one row, and one row as a vector."""
    if tensor.ndim == 1:
        return tensor[None]
    return tensor[0] if len(tensor) == 1 else tensor.t().contiguous()


def settings_of(config: ModelConfig, vocabulary: int) -> dict[str, Any]:
    """Marian's settings of a model; UsageError, with the setting, for one that it cannot be."""
    problem = ""
    if config.positions != "t2t":
        problem = f"model.positions is {config.positions}, and Marian's sinusoids are those of t2t"
    elif config.decoder_start != "zero":
        problem = f"model.decoder_start is {config.decoder_start}, and Marian begins with zero"
    elif config.activation not in _ACTIVATIONS:
        problem = f"model.activation is {config.activation}, and Marian has {' and '.join(_ACTIVATIONS)}"
    elif config.neighbourhood or not config.scale_embeddings:
        problem = "model.neighbourhood or model.scale_embeddings is not the paper's"
    elif (config.d_k, config.d_v) != (config.d_model // config.heads,) * 2:
        problem = f"model.d_k and model.d_v are {config.d_k} and {config.d_v}, not d_model / heads"
    if problem:
        raise UsageError(f"{problem}; export it to another format, or train one that Marian can express")
    pre = config.norm == "pre"
    return {
        **_PLAIN,
        "dim-vocabs": [vocabulary, vocabulary],
        "dim-emb": config.d_model,
        "enc-depth": config.encoder_layers,
        "dec-depth": config.decoder_layers,
        "transformer-heads": config.heads,
        "transformer-dim-ffn": config.d_ff,
        "transformer-ffn-activation": config.activation,
        "transformer-preprocess": "n" if pre else "",
        "transformer-postprocess": "da" if pre else "dan",
        "transformer-postprocess-top": "n" if pre else "",
        "transformer-postprocess-emb": "d",
        "transformer-guided-alignment-layer": "last",
        "tied-embeddings-all": config.tying == "three-way",
        "tied-embeddings": config.tying == "decoder",
        "tied-embeddings-src": False,
        "output-omit-bias": False,
        "layer-normalization": False,
        "input-types": [],
        "version": f"v1.12.0 transduce {__version__}",
    }


def understood(said: Mapping[str, Any], where: object) -> dict[str, Any]:
    """The settings of `ModelConfig` that Marian's say; BundleError for what ours cannot be."""
    for name, plain in _PLAIN.items():
        if said.get(name, plain) != plain:
            raise BundleError(f"{where}: {name} is {said[name]!r}; only {plain!r} has an equivalent here")
    steps = tuple(
        str(said.get(f"transformer-{name}") or "").replace("d", "")
        for name in ("preprocess", "postprocess", "postprocess-top")
    )
    if steps not in _NORMS or str(said.get("transformer-postprocess-emb") or "").replace("d", ""):
        raise BundleError(f"{where}: normalises as {steps}, which is neither post nor pre norm")
    activation = said.get("transformer-ffn-activation", "swish")
    if activation not in _ACTIVATIONS:
        raise BundleError(f"{where}: transformer-ffn-activation is {activation!r}; known: {_ACTIVATIONS}")
    tying = "none"
    if said.get("tied-embeddings-all"):
        tying = "three-way"
    elif said.get("tied-embeddings"):
        tying = "decoder"
    return {
        "d_model": int(said["dim-emb"]),
        "d_ff": int(said["transformer-dim-ffn"]),
        "heads": int(said["transformer-heads"]),
        "encoder_layers": int(said["enc-depth"]),
        "decoder_layers": int(said["dec-depth"]),
        "norm": _NORMS[steps],
        "norm_epsilon": NORM_EPSILON,
        "activation": activation,
        "attention_bias": True,
        "positions": "t2t",
        "tying": tying,
    }


def embeddings_named(tensors: Mapping[str, Tensor], tying: str, where: object) -> dict[str, Tensor]:
    """Marian's tables under our names, their rows in its order."""
    names = {"embeddings.target": "Wemb"}
    if tying != "three-way":
        own = "Wemb" not in tensors
        names = {
            "embeddings.target": "decoder_Wemb" if own else "Wemb",
            "embeddings.own_source": "encoder_Wemb" if own else "Wemb",
        }
    found = {ours: tensors[name] for ours, name in names.items() if name in tensors}
    if tying == "none" and "decoder_ff_logit_out_W" in tensors:
        found["embeddings.own_output"] = tensors["decoder_ff_logit_out_W"].t()
    if len(found) != len(names) + (tying == "none"):
        raise BundleError(f"{where}: a table of embeddings is missing; was the file cut short?")
    return found


def _linear(ours: str, theirs: str, *parts: str) -> Iterator[Place]:
    for kind, letter in (("weight", "W"), ("bias", "b")):
        yield Place(f"{ours}.{kind}", tuple(f"{theirs}_{letter}{part}" for part in parts))


def _norm(ours: str, theirs: str, ending: str) -> Iterator[Place]:
    yield Place(f"{ours}.weight", (f"{theirs}_ln_scale{ending}",))
    yield Place(f"{ours}.bias", (f"{theirs}_ln_bias{ending}",))


def as_matrix(array: Any) -> Tensor:
    """A tensor of numpy's numbers in float32."""
    return torch.from_numpy(array).float()
