"""A model of Marian's format as CTranslate2's reader of that format understands it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
from torch import Tensor

from transduce.data.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from transduce.decoding.pairs import Ids
from transduce.interchange.huggingface_import import Folder
from transduce.interchange.marian_import import decoder_of, read_folder, settings_text
from transduce.interchange.marian_layout import SETTINGS
from transduce.interchange.marian_vocabulary import listing_text
from transduce.interchange.vocabulary import NEVER
from transduce.model.positional_encoding import t2t_sinusoids

_POSITIONS = 1024


class OpenedMarian:
    """A folder of Marian's files, converted and computed by CTranslate2 in float32."""

    precision = "float32"

    def __init__(self, path: Path, folder: Folder | None = None) -> None:
        self._folder = folder or read_folder(path)
        vocabulary = self._folder.vocabulary
        tokenizer = vocabulary.tokenizer
        self.pieces = [tokenizer.piece(i) for i in range(tokenizer.vocabulary)]
        self.forbidden: Sequence[int] = sorted(
            {PAD_ID, BOS_ID, UNK_ID, *tokenizer.tags.values(), *self._folder.barred}
        )
        self.eos_id, self.max_length = EOS_ID, self._folder.config.max_length
        with np.load(path / decoder_of(path)["models"][0], allow_pickle=False) as stored:
            tensors = {name: stored[name] for name in stored.files}
        self._translator = _converted(tensors, self._folder)

    def forced(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """Log P of each token of each target, by ``score_batch``."""
        vocabulary = self._folder.vocabulary
        read = [[_name(vocabulary.source[i]) for i in ids] for ids in sources]
        given = [[_name(vocabulary.target[i]) for i in ids[:-1]] for ids in targets]
        results = self._translator.score_batch(read, given)
        return [list(result.log_probs) for result in results]

    def translate(self, lines: Sequence[str]) -> list[str]:
        """The translation of each line, by CTranslate2's search with a beam of 4; empty for empty."""
        vocabulary = self._folder.vocabulary
        tokenizer = vocabulary.tokenizer
        encoded = tokenizer.encode_batch([line.strip() for line in lines])
        read = [[_name(vocabulary.source[i]) for i in ids] for ids in encoded]
        back = {_name(index): ours for ours, index in enumerate(vocabulary.target)}
        found = self._translator.translate_batch(read, beam_size=4)
        return [
            tokenizer.decode([back[token] for token in result.hypotheses[0]]) if ids else ""
            for ids, result in zip(encoded, found, strict=True)
        ]

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """What is stored, under our names."""
        yield from self._folder.state.items()


def _converted(tensors: dict[str, Any], folder: Folder) -> Any:
    """The model as CTranslate2 has it, with what its reader takes otherwise than Marian.

    That is the table of positions, which it would make by another formula; and what Marian's search is told
    to leave out (the unknown, and tags) is left out here by its bias, as in our sums.
    """
    vocabulary, bias = folder.vocabulary, tensors["decoder_ff_logit_out_b"].copy()
    for ours in (UNK_ID, *vocabulary.tokenizer.tags.values()):
        bias[0, vocabulary.target[ours]] = NEVER
    table = t2t_sinusoids(_POSITIONS, folder.config.d_model).float().numpy()
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        said = np.frombuffer(settings_text(tensors[SETTINGS]) + b"\0", np.int8)
        own = {**tensors, SETTINGS: said, "decoder_ff_logit_out_b": bias, "Wpos": table}
        np.savez(base / "model.npz", **own)
        files = []
        for side, rows in (("source", vocabulary.source), ("target", vocabulary.target)):
            count = max(rows) + 1
            symbols = {vocabulary.target[EOS_ID]: "</s>", vocabulary.target[UNK_ID]: "<unk>"}
            listed = listing_text([symbols.get(index, _name(index)) for index in range(count)])
            files.append(base / f"{side}.yml")
            files[-1].write_text(listed)
        converter = ctranslate2.converters.MarianConverter(str(base / "model.npz"), list(map(str, files)))
        converter.convert(str(base / "converted"))
        return ctranslate2.Translator(str(base / "converted"), device="cpu", compute_type="float32")


def _name(index: int) -> str:
    """What stands for an id, whatever its subword is spelled like."""
    return f"w{index}"
