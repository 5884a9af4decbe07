"""CTranslate2: a folder that ``ctranslate2.Translator`` loads, with the tokenizer beside the model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from torch import Tensor

from transduce.bundle import Bundle
from transduce.decoding.ctranslate2_model import (
    POSITIONS,
    is_model,
    nearest_penalty,
    read_model,
    read_tensors,
    write_model,
)
from transduce.decoding.pairs import Ids
from transduce.decoding.translator import Translator
from transduce.model.config import OUTPUT_RESERVE, ModelConfig


class CTranslate2Model:
    """A folder in CTranslate2's layout, computed by that library in the precision it is stored in."""

    def __init__(self, path: Path) -> None:
        written = read_model(path)
        self._path, self._config = path, written.bundle.model.config
        self._translator = Translator.load(path, engine="ctranslate2")
        tokenizer = written.bundle.tokenizer
        self.pieces = [tokenizer.piece(i) for i in range(tokenizer.vocabulary)]
        self.forbidden: Sequence[int] = written.forbidden
        self.eos_id, self.max_length = self._config.eos_id, self._config.max_length
        self.precision = written.precision

    def forced(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """Log P of each token of each target, by ``score_batch``."""
        return self._translator.searcher.force_decode(sources, targets)

    def translate(self, lines: Sequence[str]) -> list[str]:
        """The translation of each line."""
        return self._translator.translate(lines, stop="full")

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """The variables of ``model.bin``."""
        return read_tensors(self._path, self._config)


class CTranslate2:
    """Folders for CTranslate2."""

    precisions = ("float32", "float16", "bfloat16", "int8")

    def holds(self, path: Path) -> bool:
        """Whether `write` wrote it."""
        return is_model(path)

    def write(self, bundle: Bundle, path: Path, precision: str) -> list[str]:
        """How its search differs."""
        write_model(bundle, path, precision=precision, forbidden=forbidden_ids(bundle))
        return remarks(bundle.model.config)

    def open(self, path: Path) -> CTranslate2Model:
        """The model there."""
        return CTranslate2Model(path)


def forbidden_ids(bundle: Bundle) -> list[int]:
    """The ids that no output holds."""
    config = bundle.model.config
    return sorted({config.pad_id, config.bos_id, config.unk_id, *bundle.tokenizer.tags.values()})


def remarks(config: ModelConfig) -> list[str]:
    """What CTranslate2 does otherwise, and what to ask of it."""
    told = [
        "CTranslate2 divides log P by length^p, the end not counted, where we divide by ((5 + n) / 6)^alpha: "
        f"length_penalty={nearest_penalty(0.6):g} is nearest to alpha 0.6 (its own default is 1), with "
        "beam_size=4",
        "CTranslate2 leaves a sentence when a beam of outputs has ended (our --stop full); an output has at "
        "most 256 tokens unless max_decoding_length says otherwise (ours: the source's + 50)",
    ]
    if config.positions == "learned":
        rows = config.max_length + OUTPUT_RESERVE
        told.append(f"positions end at {rows:,}: a longer line fails; set max_input_length={rows - 1}")
    elif config.positions != "rotary":
        rows = max(POSITIONS, 2 * config.max_length) + OUTPUT_RESERVE
        told.append(f"positions are written out up to {rows:,}: a longer line fails")
    return told
