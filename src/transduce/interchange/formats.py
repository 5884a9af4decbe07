"""The formats by their names.

Their modules are imported when one is asked for, and import their libraries only when a model is written or
opened: these are heavy, and may be missing.
"""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any

from transduce.errors import BundleError, UsageError
from transduce.interchange.format import Format, Opened, Reader

# Name -> module and class of the `Format`, and the packages that it cannot do without.
FORMATS: dict[str, tuple[str, tuple[str, ...]]] = {
    "ctranslate2": ("transduce.interchange.ctranslate2_format:CTranslate2", ("ctranslate2",)),
    "argos": ("transduce.interchange.argos_format:Argos", ("ctranslate2",)),
    "safetensors": ("transduce.interchange.native:Safetensors", ()),
    "onnx": ("transduce.interchange.onnx_format:Onnx", ("onnx", "onnxruntime")),
    "huggingface": ("transduce.interchange.huggingface:HuggingFace", ("transformers",)),
    "marian": ("transduce.interchange.marian:Marian", ("yaml", "ctranslate2")),
}
# What models are read from: name -> module and function (a `Reader`), and the packages that it needs.
ORIGINS: dict[str, tuple[str, tuple[str, ...]]] = {
    "huggingface": ("transduce.interchange.huggingface_import:read_huggingface", ()),
    "marian": ("transduce.interchange.marian_import:read_marian", ("yaml",)),
}
_INSTALL = "install it with `pip install 'transduce[export]'`"


def find_format(name: str) -> Format:
    """The format called ``name``; UsageError where it is unknown, or a package that it needs is missing."""
    found: Format = _found(name, FORMATS, "format")()
    return found


def find_reader(name: str) -> Reader:
    """What reads models of the toolkit ``name``; UsageError as `find_format`."""
    found: Reader = _found(name, ORIGINS, "origin")
    return found


def recognise(path: str | Path) -> str:
    """The name of the format of what lies at ``path``; BundleError where it is none that is known."""
    path = Path(path)
    if not path.exists():
        raise BundleError(f"{path}: there is no such file or folder; check the path")
    for name, (home, _) in FORMATS.items():
        if _resolved(home)().holds(path):
            return name
    raise BundleError(f"{path}: is no model of a format that is known ({', '.join(FORMATS)}); check the path")


def open_model(path: str | Path) -> Opened:
    """The model at ``path``, ours or exported, by the library of its format, which its content tells."""
    return find_format(recognise(path)).open(Path(path))


def _found(name: str, table: dict[str, tuple[str, tuple[str, ...]]], kind: str) -> Any:
    if name not in table:
        raise UsageError(f"unknown {kind} {name!r}: choose one of {', '.join(table)}")
    home, packages = table[name]
    for package in packages:
        if importlib.util.find_spec(package) is None:
            raise UsageError(f"the {kind} {name} needs {package}, which is not installed: {_INSTALL}")
    return _resolved(home)


def _resolved(home: str) -> Any:
    module, _, name = home.partition(":")
    return getattr(importlib.import_module(module), name)
