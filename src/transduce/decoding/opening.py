"""Which searcher a translator has: our own search over one of its engines, or CTranslate2's."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from transduce import machine
from transduce.bundle import Bundle, load_bundle
from transduce.decoding.ctranslate2_model import is_model, read_model
from transduce.decoding.onnx_folder import OnnxFolder, is_onnx_folder
from transduce.decoding.searcher import Searcher
from transduce.errors import UsageError

CTRANSLATE2 = "ctranslate2"
_INSTALL = "install it with `pip install 'transduce[export]'`"
# What weights are stored in, and our name of what is computed with them where nothing is said.
_STORED = {"float32": "fp32", "float16": "fp32", "bfloat16": "bf16", "int8": "int8"}


@dataclass(frozen=True, kw_only=True)
class Arithmetic:
    """Where models are computed, by what, and how exactly."""

    device: str
    precision: str
    engine: str


def pick_arithmetic(folders: Sequence[str | Path], *, device: str, precision: str, engine: str) -> Arithmetic:
    """What ``auto`` means for these folders on this machine; UsageError for what cannot be."""
    exported = [folder for folder in folders if is_model(folder)]
    if exported and engine == "auto":
        engine = CTRANSLATE2
    if engine != CTRANSLATE2:
        if exported:
            raise UsageError(
                f"{exported[0]}: is a model for CTranslate2; use the engine ctranslate2, or name the model "
                "folder that it was made from"
            )
        device = machine.pick_device(device)
        onnx = [folder for folder in folders if is_onnx_folder(folder)]
        if onnx and precision == "auto" and device == "cpu" and engine in ("auto", "onnx"):
            precision = OnnxFolder.read(onnx[0]).engine_precision
        return Arithmetic(device=device, precision=machine.pick_precision(precision, device), engine=engine)
    check_installed()
    if device not in ("auto", "cpu"):
        raise UsageError(f"the engine ctranslate2 computes on the CPU here, and the device is {device}")
    if precision == "auto":
        stored = _STORED[read_model(Path(exported[0])).precision] if exported else "fp32"
        precision = stored if stored in _computed() else "fp32"
    elif machine.pick_precision(precision, "cpu") not in _computed():
        raise UsageError(f"CTranslate2 cannot compute with {precision} on this machine; use auto or fp32")
    return Arithmetic(device="cpu", precision=precision, engine=engine)


def read_bundles(folders: Sequence[str | Path], arithmetic: Arithmetic) -> list[Bundle]:
    """The models in these folders; of one that was exported all but the weights."""
    return [_bundle(folder, arithmetic.device) for folder in folders]


def _bundle(folder: str | Path, device: str) -> Bundle:
    if is_model(folder):
        return read_model(Path(folder)).bundle
    return OnnxFolder.read(folder).bundle() if is_onnx_folder(folder) else load_bundle(folder, device)


def pick_searcher(
    bundles: Sequence[Bundle], *, device: str, precision: str, engine: str, ensemble_by: str
) -> Searcher:
    """Our own search by the named engine, or CTranslate2's; raises UsageError where that cannot be used."""
    if engine != CTRANSLATE2:
        return Searcher(bundles, device=device, precision=precision, engine=engine, ensemble_by=ensemble_by)
    check_installed()
    from transduce.decoding.ctranslate2_searcher import CTranslate2Searcher

    return CTranslate2Searcher(bundles, precision=precision)


def scoring_engine(folders: Sequence[str | Path], engine: str) -> str:
    """What ``auto`` means for known outputs, which PyTorch scores all at once: no other engine is needed."""
    return "torch" if engine == "auto" and not any(is_model(folder) for folder in folders) else engine


def check_installed() -> None:
    """Nothing; UsageError with the remedy where CTranslate2 is missing."""
    if importlib.util.find_spec("ctranslate2") is None:
        raise UsageError(f"the engine ctranslate2 is not installed: {_INSTALL}")


def _computed() -> list[str]:
    """Our names of the precisions that CTranslate2 computes with on this machine."""
    import ctranslate2

    from transduce.decoding.ctranslate2_searcher import COMPUTE

    there = ctranslate2.get_supported_compute_types("cpu")
    return [name for name, kind in COMPUTE.items() if kind in there]
