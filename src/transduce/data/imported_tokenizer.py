"""The tokenizer of an imported model: a sentencepiece model for each side, and one list of subwords.

Which ids subwords have is said by the list and not by the sentencepiece models, as in Marian, OPUS-MT and
JoeyNMT: text is cut by its side's model and each part looked up. What is not in the list is unknown, and the
models may normalise what they are given, so that, unlike with `Tokenizer`, text need not come back as it was.

The file is a zip archive, not compressed: ``source.spm``, ``target.spm``, ``pieces.json``.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterable, Sequence
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt
import sentencepiece

from transduce.data.surfaces import surfaces
from transduce.data.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID, Tokenizer, not_text, usual_threads
from transduce.errors import DataError

RESERVED = ("<pad>", "</s>", "<s>", "<unk>")
"""The first four of the list: padding, end, begin, unknown."""
_SOURCE, _TARGET, _PIECES = "source.spm", "target.spm", "pieces.json"
_BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


class ImportedTokenizer(Tokenizer):
    """A list of subwords and what cuts text into them; see the module."""

    def __init__(self, model_bytes: bytes, name: str = "tokenizer") -> None:
        self.model_bytes = model_bytes
        self.sha256 = hashlib.sha256(model_bytes).hexdigest()
        try:
            with zipfile.ZipFile(io.BytesIO(model_bytes)) as archive:
                self.source_spm, self.target_spm = archive.read(_SOURCE), archive.read(_TARGET)
                pieces = json.loads(archive.read(_PIECES))
            self._source = processor_of(self.source_spm)
            self._target = processor_of(self.target_spm)
        except (zipfile.BadZipFile, KeyError, ValueError, RuntimeError, TypeError) as error:
            raise DataError(f"{name}: not the tokenizer of an imported model ({error})") from None
        self._pieces: list[str] = pieces
        if tuple(pieces[:4]) != RESERVED or len(set(pieces)) != len(pieces):
            raise DataError(f"{name}: its list of subwords does not begin with {RESERVED}, or repeats itself")
        self.vocabulary = len(pieces)
        self.tags = {p: i for i, p in enumerate(pieces) if p.startswith("<2") and p.endswith(">")}
        self.silent = frozenset((PAD_ID, EOS_ID, BOS_ID, *self.tags.values()))
        # A text that is spelled like a reserved subword or a tag is a text.
        self._ids = {p: i for i, p in enumerate(pieces) if i >= len(RESERVED) and p not in self.tags}
        spelled = all(byte in self._ids for byte in _BYTES)
        self.byte_pieces: npt.NDArray[np.bool_] = np.zeros(len(pieces), np.bool_)
        if spelled:
            self.byte_pieces[[self._ids[byte] for byte in _BYTES]] = True
        self.knows_all = spelled

    @classmethod
    def of(cls, source_spm: bytes, target_spm: bytes, pieces: Sequence[str]) -> ImportedTokenizer:
        """The tokenizer with these models and subwords, of which the first are `RESERVED`."""
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            listed = json.dumps(list(pieces), ensure_ascii=False).encode()
            for name, data in ((_SOURCE, source_spm), (_TARGET, target_spm), (_PIECES, listed)):
                # The same parts give the same bytes: no time is written.
                archive.writestr(zipfile.ZipInfo(name), data)
        return cls(content.getvalue())

    def encode_batch(self, texts: Sequence[str], *, threads: int = 0) -> list[list[int]]:
        """The ids of lines of the source language."""
        return self._encoded(self._source, texts, threads)

    def encode_target_batch(self, texts: Sequence[str], *, threads: int = 0) -> list[list[int]]:
        """The ids of lines of the target language."""
        return self._encoded(self._target, texts, threads)

    def decode(self, ids: Iterable[SupportsIndex]) -> str:
        """The text of any sequence of ids, always one line; what is unknown gives U+FFFD."""
        return "".join(surfaces(self, ids))

    def piece(self, index: int) -> str:
        """The subword of one id."""
        return self._pieces[index]

    def score(self, index: int) -> float:
        """What the source's model gives a subword, or else the target's."""
        piece = self._pieces[index]
        for processor in (self._source, self._target):
            own = processor.piece_to_id(piece)
            if own != processor.unk_id():
                return float(processor.get_score(own))
        return 0.0

    def bytes_of(self, character: str) -> list[int]:
        """The byte pieces of a character, where there are such; the unknown id where there are none."""
        if not self.knows_all:
            return [UNK_ID]
        return [self._ids[_BYTES[byte]] for byte in character.encode()]

    def _encoded(self, processor: Any, texts: Sequence[str], threads: int) -> list[list[int]]:
        threads = usual_threads(threads, len(texts))
        try:
            cut: list[list[str]] = processor.encode(list(texts), out_type=str, num_threads=threads)
        except (RuntimeError, TypeError, UnicodeError):
            raise not_text(texts) from None
        return [[self._ids.get(piece, UNK_ID) for piece in line] for line in cut]

    def __reduce__(self) -> tuple[type[Tokenizer], tuple[bytes]]:
        return (ImportedTokenizer, (self.model_bytes,))


def processor_of(model: bytes) -> Any:
    """A sentencepiece model that is ready to be used; ValueError where it is empty."""
    if not model:
        raise ValueError("an empty sentencepiece model")
    return sentencepiece.SentencePieceProcessor(model_proto=model)
