"""The systems of `translation_speed.py`: each makes a function from lines and a beam to translations."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transduce.bundle import load_bundle
from transduce.decoding.ctranslate2_model import write_model
from transduce.decoding.translator import Translator
from transduce.interchange.ctranslate2_format import forbidden_ids

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
            write_model(bundle, converted, precision="float32", forbidden=forbidden_ids(bundle))
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
