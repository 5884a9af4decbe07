"""Marian and Pegasus models as transformers computes them, under our ids."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transduce.data.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from transduce.decoding.pairs import Ids
from transduce.decoding.scoring import token_log_probabilities
from transduce.interchange.huggingface_import import Folder, read_folder, read_json
from transduce.interchange.vocabulary import NEVER

_TYPES = {"float32": "float32", "float16": "float16", "bfloat16": "bfloat16"}
# Lines that are translated at a time.
_BATCH = 16


class OpenedHuggingFace:
    """A folder, loaded by transformers and computed in float32."""

    def __init__(self, path: Path, folder: Folder | None = None) -> None:
        # It has types for some of its functions only.
        transformers: Any = importlib.import_module("transformers")
        transformers.utils.logging.disable_progress_bar()
        self._path, self._folder = path, folder or read_folder(path)
        vocabulary = self._folder.vocabulary
        values = read_json(path / "config.json")
        kind = {"marian": "MarianMTModel", "pegasus": "PegasusForConditionalGeneration"}[values["model_type"]]
        self._model: Any = (
            getattr(transformers, kind).from_pretrained(path, local_files_only=True).float().eval()
        )
        self._tokenizer: Any = transformers.AutoTokenizer.from_pretrained(path, local_files_only=True)
        tokenizer = vocabulary.tokenizer
        self.pieces = [tokenizer.piece(i) for i in range(tokenizer.vocabulary)]
        self._never = sorted({PAD_ID, BOS_ID, UNK_ID, *tokenizer.tags.values()})
        self._barred = self._folder.barred
        self.forbidden: Sequence[int] = sorted({*self._never, *self._barred})
        self.eos_id, self.max_length = EOS_ID, self._folder.config.max_length
        said = str(values.get("dtype") or values.get("torch_dtype"))
        self.precision = _TYPES.get(said, "float32")

    def forced(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """Log P of each token of each target."""
        vocabulary, config = self._folder.vocabulary, self._model.config
        pad, start = config.pad_token_id, config.decoder_start_token_id
        read = [[vocabulary.source[i] for i in (*ids, EOS_ID)] for ids in sources]
        given = [[start, *(vocabulary.target[i] for i in ids[:-1])] for ids in targets]
        source, target_in = _padded(read, pad), _padded(given, pad)
        mask = _padded([[1] * len(ids) for ids in read], 0)
        with torch.inference_mode():
            logits = self._model(input_ids=source, attention_mask=mask, decoder_input_ids=target_in).logits
        own = logits[..., torch.tensor(vocabulary.target).clamp(min=0)]
        own[..., self._barred] += NEVER
        lengths = [len(ids) for ids in targets]
        return token_log_probabilities(own, _padded(targets, PAD_ID), lengths, self._never)

    def translate(self, lines: Sequence[str]) -> list[str]:
        """The translation of each line, by `generate` with a beam of 4; an empty one stays empty."""
        found = [""] * len(lines)
        full = [i for i, line in enumerate(lines) if line.strip()]
        for first in range(0, len(full), _BATCH):
            some = full[first : first + _BATCH]
            batch = self._tokenizer([lines[i].strip() for i in some], return_tensors="pt", padding=True)
            with torch.inference_mode():
                outputs = self._model.generate(**batch, num_beams=4)
            texts = self._tokenizer.batch_decode(outputs, skip_special_tokens=True)
            for i, text in zip(some, texts, strict=True):
                found[i] = text
        return found

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """What is stored, under our names."""
        yield from self._folder.state.items()


def _padded(rows: Sequence[Sequence[int]], padding: int) -> Tensor:
    tensors = [torch.tensor(list(row)) for row in rows]
    return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=padding)
