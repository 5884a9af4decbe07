"""The systems of `translation_speed.py`: each makes a function from lines and a beam to translations."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from transduce.bundle import Bundle, load_bundle
from transduce.decoding.translator import Translator
from transduce.model.transformer import Transformer

# Lines, beam, and the exact number of tokens of every output (None: the model's own choice) -> translations.
Translate = Callable[[list[str], int, int | None], list[str]]
Maker = Callable[[Path, Path, int], Translate]


def ours(engine: str, precision: str, device: str = "cpu", **options: Any) -> Maker:
    """Transduce by one of its engines, with these options of `TranslationOptions`."""

    def make(folder: Path, _: Path, threads: int) -> Translate:
        translator = Translator.load(
            folder, device=device, engine=engine, precision=precision, threads=threads
        )

        def translate(lines: list[str], beam: int, length: int | None) -> list[str]:
            forced = {} if length is None else {"min_length": length, "max_extra": 0}
            return translator.translate(lines, beam=beam, **forced, **options)

        return translate

    return make


def ctranslate2(compute: str, *, one_each: bool) -> Maker:
    """CTranslate2 with the same weights and tokenizer: translators of one thread each, or one with all."""

    def make(folder: Path, work: Path, threads: int) -> Translate:
        import ctranslate2 as peer

        bundle = load_bundle(folder)
        converted = work / "ctranslate2"
        if not converted.exists():
            convert(bundle, converted)
        inter, intra = (threads, 1) if one_each else (1, threads)
        translator = peer.Translator(
            str(converted), device="cpu", compute_type=compute, inter_threads=inter, intra_threads=intra
        )
        tokenizer = bundle.tokenizer
        ids = {tokenizer.piece(i): i for i in range(tokenizer.vocabulary)}

        def translate(lines: list[str], beam: int, length: int | None) -> list[str]:
            sources = [tokenizer.pieces(line) for line in lines]
            forced = {"max_decoding_length": 512} if length is None else {
                "min_decoding_length": length, "max_decoding_length": length,
            }  # fmt: skip
            found = translator.translate_batch(sources, beam_size=beam, max_batch_size=64, **forced)
            return [tokenizer.decode([ids[piece] for piece in one.hypotheses[0]]).strip() for one in found]

        return translate

    return make


def convert(bundle: Bundle, folder: Path) -> None:
    """Nothing; ``folder`` holds the model for CTranslate2, in float32."""
    from ctranslate2.specs import common_spec, transformer_spec

    model, config = bundle.model, bundle.model.config
    values = {name: tensor.detach().float().numpy() for name, tensor in model.state_dict().items()}
    rotary = {"rotary_dim": config.d_k, "rotary_interleave": True} if config.positions == "rotary" else {}
    shared: dict[str, Any] = {
        "pre_norm": config.norm == "pre",
        "activation": common_spec.Activation.RELU,
        **rotary,
    }
    spec = transformer_spec.TransformerSpec(
        transformer_spec.TransformerEncoderSpec(config.encoder_layers, config.heads, **shared),
        transformer_spec.TransformerDecoderSpec(config.decoder_layers, config.heads, **shared),
    )
    for side, stack, layers in (
        (spec.encoder, "encoder", config.encoder_layers),
        (spec.decoder, "decoder", config.decoder_layers),
    ):
        side.scale_embeddings = True
        if config.positions != "rotary":
            side.position_encodings.encodings = _positions(model)
        for i in range(layers):
            _layer(side.layer[i], values, f"{stack}.layers.{i}")
        if config.norm == "pre":
            _norm(side.layer_norm, values, f"{stack}.norm")
    table = values["embeddings.target"]
    spec.encoder.embeddings[0].weight = values.get("embeddings.own_source", table)
    target = table.copy()
    if config.decoder_start == "zero":
        target[config.pad_id] = 0
    spec.decoder.embeddings.weight = target
    _linear(spec.decoder.projection, values.get("embeddings.own_output", table))
    pieces = [bundle.tokenizer.piece(i) for i in range(bundle.tokenizer.vocabulary)]
    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    names = {"decoder_start_token": config.start_id, "eos_token": config.eos_id,
             "bos_token": config.bos_id, "unk_token": config.unk_id}  # fmt: skip
    for name, index in names.items():
        setattr(spec.config, name, pieces[index])
    spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = config.norm_epsilon
    spec.validate()
    spec.optimize()
    folder.mkdir()
    spec.save(str(folder))


def _positions(model: Transformer) -> Any:
    return model.target_positions.rows(512, torch.device("cpu")).detach().numpy()


def _layer(layer: Any, values: dict[str, Any], name: str) -> None:
    own = layer.self_attention
    _linear(own.linear[0], values[f"{name}.self_attention.qkv.weight"])
    _linear(own.linear[1], values[f"{name}.self_attention.o.weight"])
    _norm(own.layer_norm, values, f"{name}.add_norm_1.norm")
    last = 2
    if hasattr(layer, "attention"):
        for i, part in enumerate(("q", "kv", "o")):
            _linear(layer.attention.linear[i], values[f"{name}.cross_attention.{part}.weight"])
        _norm(layer.attention.layer_norm, values, f"{name}.add_norm_2.norm")
        last = 3
    for i, part in enumerate(("w_1", "w_2")):
        matrix, bias = (values[f"{name}.feed_forward.{part}.{kind}"] for kind in ("weight", "bias"))
        _linear(getattr(layer.ffn, f"linear_{i}"), matrix, bias)
    _norm(layer.ffn.layer_norm, values, f"{name}.add_norm_{last}.norm")


def _linear(spec: Any, matrix: Any, bias: Any = None) -> None:
    spec.weight = matrix
    spec.bias = np.zeros(len(matrix), np.float32) if bias is None else bias


def _norm(spec: Any, values: dict[str, Any], name: str) -> None:
    spec.gamma, spec.beta = values[f"{name}.weight"], values[f"{name}.bias"]


# Name on the command line -> name in the table, what must be installed, maker.
SYSTEMS: dict[str, tuple[str, str, Maker]] = {
    "openvino": ("Transduce (OpenVINO) fp32", "openvino", ours("openvino", "fp32")),
    "openvino-full": (
        "Transduce (OpenVINO) fp32, stop full", "openvino", ours("openvino", "fp32", stop="full"),
    ),
    "openvino-int8": ("Transduce (OpenVINO) int8", "openvino", ours("openvino", "int8")),
    "openvino-bf16": ("Transduce (OpenVINO) bf16", "openvino", ours("openvino", "bf16")),
    "torch": ("Transduce (PyTorch)", "torch", ours("torch", "auto")),
    "cuda": ("Transduce (PyTorch) on the GPU", "torch", ours("torch", "auto", "cuda")),
    "ct2-int8": ("CTranslate2 int8, 1 thread each", "ctranslate2", ctranslate2("int8", one_each=True)),
    "ct2-float32": (
        "CTranslate2 float32, 1 thread each", "ctranslate2", ctranslate2("float32", one_each=True),
    ),
    "ct2-float32-together": (
        "CTranslate2 float32, together", "ctranslate2", ctranslate2("float32", one_each=False),
    ),
}  # fmt: skip


def installed() -> list[str]:
    """The systems that can run here; bf16 and the GPU only where they are asked for."""
    return [
        name
        for name, (_, package, _) in SYSTEMS.items()
        if importlib.util.find_spec(package) is not None and name not in ("openvino-bf16", "cuda")
    ]
