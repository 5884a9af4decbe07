"""Argos Translate: one ``.argosmodel`` file, which argos-translate and LibreTranslate install.

It is a zip archive of one folder: ``metadata.json``, ``model/`` for CTranslate2 and ``sentencepiece.model``.
The languages stand in the file's name, as Argos has it: ``translate-en_de.argosmodel``.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import weakref
import zipfile
from pathlib import Path
from typing import Any

from transduce import __version__
from transduce.bundle import Bundle
from transduce.data.imported_tokenizer import ImportedTokenizer
from transduce.decoding.ctranslate2_model import write_model
from transduce.errors import BundleError, UsageError
from transduce.files import write_bytes, write_json
from transduce.interchange.ctranslate2_format import CTranslate2Model, forbidden_ids
from transduce.model.config import OUTPUT_RESERVE, ModelConfig

_LANGUAGES = re.compile(r"(?:^|[^a-z])([a-z]{2,3})_([a-z]{2,3})(?![a-z])")
# What Argos shows in its lists; other languages are shown by their codes.
_NAMES = {
    "ar": "Arabic", "bg": "Bulgarian", "ca": "Catalan", "cs": "Czech", "da": "Danish", "de": "German",
    "el": "Greek", "en": "English", "eo": "Esperanto", "es": "Spanish", "et": "Estonian", "fa": "Persian",
    "fi": "Finnish", "fr": "French", "ga": "Irish", "he": "Hebrew", "hi": "Hindi", "hu": "Hungarian",
    "id": "Indonesian", "it": "Italian", "ja": "Japanese", "ko": "Korean", "lt": "Lithuanian",
    "lv": "Latvian", "nb": "Norwegian", "nl": "Dutch", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian",
    "ru": "Russian", "sk": "Slovak", "sl": "Slovenian", "sv": "Swedish", "tr": "Turkish", "uk": "Ukrainian",
    "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip


class ArgosModel(CTranslate2Model):
    """An archive's model, computed by CTranslate2, as Argos itself does; unpacked as long as it is used."""

    def __init__(self, path: Path) -> None:
        unpacked = Path(tempfile.mkdtemp(prefix="transduce-argos-"))
        weakref.finalize(self, shutil.rmtree, unpacked, ignore_errors=True)
        try:
            with zipfile.ZipFile(path) as archive:
                archive.extractall(unpacked)
            (metadata,) = unpacked.glob("*/metadata.json")
        except (OSError, ValueError, zipfile.BadZipFile) as error:
            raise BundleError(f"{path}: is a damaged package ({error}); export the model again") from None
        super().__init__(metadata.with_name("model"))


class Argos:
    """Packages for Argos Translate."""

    precisions = ("float32", "float16", "bfloat16", "int8")

    def holds(self, path: Path) -> bool:
        """Whether it is an archive with a package's description and model in it."""
        if not path.is_file() or not zipfile.is_zipfile(path):
            return False
        with zipfile.ZipFile(path) as archive:
            names = {name.partition("/")[2] for name in archive.namelist()}
        return {"metadata.json", "sentencepiece.model", "model/model.bin"} <= names

    def write(self, bundle: Bundle, path: Path, precision: str) -> list[str]:
        """What Argos does otherwise; it has no settings for it."""
        source, target = languages_of(path.name)
        if bundle.tokenizer.tags:
            raise UsageError(
                "Argos packages are of one pair of languages, and this model is asked for one of several by "
                f"tags ({', '.join(bundle.tokenizer.tags)}); export it to ctranslate2"
            )
        if isinstance(bundle.tokenizer, ImportedTokenizer):
            raise UsageError(
                "Argos packages hold one sentencepiece model, and this model's subwords come from another "
                "toolkit; export it to ctranslate2"
            )
        with tempfile.TemporaryDirectory(dir=path.absolute().parent, prefix=".argos-") as work:
            package = Path(work) / f"translate-{source}_{target}-1_0"
            package.mkdir()
            write_model(bundle, package / "model", precision=precision, forbidden=forbidden_ids(bundle))
            write_bytes(package / "sentencepiece.model", bundle.tokenizer.model_bytes)
            write_json(package / "metadata.json", _metadata(source, target))
            write_bytes(package / "README.md", _readme(bundle, source, target).encode())
            with zipfile.ZipFile(path, "w") as archive:
                for file in sorted(package.rglob("*")):
                    archive.write(file, file.relative_to(work))
        return _remarks(bundle.model.config)

    def open(self, path: Path) -> ArgosModel:
        """The model in the archive."""
        return ArgosModel(path)


def languages_of(name: str) -> tuple[str, str]:
    """The codes of source and target in a file's name; UsageError where it does not tell them."""
    found = _LANGUAGES.search(name)
    if found is None:
        raise UsageError(
            "an Argos package says its languages, which are read from its name: call --output, for instance, "
            "translate-en_de.argosmodel"
        )
    return found[1], found[2]


def _metadata(source: str, target: str) -> dict[str, Any]:
    return {
        "package_version": "1.0",
        "argos_version": "1.0",
        "from_code": source,
        "from_name": _NAMES.get(source, source),
        "to_code": target,
        "to_name": _NAMES.get(target, target),
        "type": "translate",
    }


def _readme(bundle: Bundle, source: str, target: str) -> str:
    training = json.dumps(bundle.training, ensure_ascii=False, indent=2)
    return (
        f"# {_NAMES.get(source, source)} to {_NAMES.get(target, target)}\n\n"
        f"Exported by Transduce {__version__}, {bundle.model.parameter_count():,} parameters. How it was "
        f"trained:\n\n```json\n{training}\n```\n"
    )


def _remarks(config: ModelConfig) -> list[str]:
    told = [
        "Argos divides log P by length^0.2 and leaves a sentence when a beam of 4 has ended: its outputs may "
        "differ from ours where these scores are close",
        "Argos computes in the fastest type that the machine has (on a CPU int8), unless ARGOS_COMPUTE_TYPE "
        "says otherwise",
        "Argos turns underscores of outputs into spaces, and splits text into sentences by a model of its "
        "own, which it fetches when a language is first used",
    ]
    if config.positions == "learned":
        rows = config.max_length + OUTPUT_RESERVE
        told.append(f"positions end at {rows:,}: Argos fails on a longer sentence")
    return told
