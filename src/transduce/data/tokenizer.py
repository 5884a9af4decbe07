"""Text to subword ids and back, without loss: sentencepiece with byte fallback.

Nothing is normalised: ``decode(encode(text)) == text`` for every line of Unicode text. A character that the
vocabulary lacks becomes its UTF-8 bytes, so the unknown id never occurs. Source and target share the
vocabulary (section 5.1).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt
import sentencepiece

from transduce.data.subwords import learn
from transduce.errors import DataError
from transduce.files import write_bytes

PAD_ID = 0
EOS_ID = 1
BOS_ID = 2
UNK_ID = 3

# sentencepiece writes a space as U+2581 and would give back a space for a U+2581 of the text. The private-use
# character below takes its place in the text, followed by 1; followed by 0 it means itself.
_MARK = "\u2581"
_ESCAPE = "\ue000"
# What a zip archive begins with: the tokenizer of an imported model.
_ARCHIVE = b"PK"


class Tokenizer:
    """A trained subword model. Ids: pad 0, end 1, begin 2, unknown 3, then the 256 bytes and the pieces."""

    knows_all = True
    """Whether every text can be spelled, so that the unknown id never occurs; not with imported ones."""

    def __init__(self, model_bytes: bytes, name: str = "tokenizer") -> None:
        self.model_bytes = model_bytes
        self.sha256 = hashlib.sha256(model_bytes).hexdigest()
        try:
            if not model_bytes:
                raise ValueError  # old releases of the library crash the process
            processor: Any = sentencepiece.SentencePieceProcessor(model_proto=model_bytes)
        except (RuntimeError, TypeError, ValueError):
            raise DataError(f"{name}: not a sentencepiece model; was it cut short or replaced?") from None
        self._processor = processor
        self.vocabulary: int = processor.vocab_size()
        found = (processor.pad_id(), processor.eos_id(), processor.bos_id(), processor.unk_id())
        if found != (PAD_ID, EOS_ID, BOS_ID, UNK_ID):
            raise DataError(
                f"{name}: pad, eos, bos and unk have the ids {found}, expected (0, 1, 2, 3); "
                "use a model that was trained by transduce"
            )
        self.byte_pieces: npt.NDArray[np.bool_] = np.array(
            [processor.is_byte(i) for i in range(self.vocabulary)], dtype=np.bool_
        )
        if int(self.byte_pieces.sum()) != 256:
            raise DataError(f"{name}: has no byte fallback; use a model that was trained by transduce")
        self.tags: dict[str, int] = {
            self.piece(i): i for i in range(UNK_ID + 1, self.vocabulary) if processor.is_control(i)
        }
        """The ids that no text is turned into, by their names; see `transduce.data.tags`."""
        self.silent = frozenset((PAD_ID, EOS_ID, BOS_ID, *self.tags.values()))
        """The ids that stand for no text."""
        self._replacement = [processor.piece_to_id(f"<0x{byte:02X}>") for byte in "\ufffd".encode()]

    @classmethod
    def train(
        cls,
        lines: Iterable[str],
        vocabulary: int,
        *,
        subwords: str = "bpe",
        sample: int = 2_000_000,
        seed: int = 0,
        strict: bool = True,
        tags: Sequence[str] = (),
    ) -> Tokenizer:
        """A tokenizer of ``vocabulary`` pieces, ``tags`` among them, learned from at most ``sample`` lines.

        The same lines, settings and seed give the same bytes. Where the text has too little in it for so many
        pieces, DataError names the possible size if ``strict``, else the possible size is taken.
        """
        return cls(
            learn(lines, vocabulary, subwords=subwords, sample=sample, seed=seed, strict=strict, tags=tags)
        )

    @classmethod
    def load(cls, path: str | Path) -> Tokenizer:
        """The tokenizer that ``save`` wrote; DataError where the file is missing or not one of ours."""
        try:
            content = Path(path).read_bytes()
            if content.startswith(_ARCHIVE):
                from transduce.data.imported_tokenizer import ImportedTokenizer

                return ImportedTokenizer(content, str(path))
            return cls(content, str(path))
        except FileNotFoundError:
            raise DataError(f"{path}: no such tokenizer; check the path") from None
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None

    def save(self, path: str | Path) -> None:
        """Nothing; ``path`` holds the model afterwards."""
        write_bytes(path, self.model_bytes)

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages that it has tags for."""
        return tuple(tag[2:-1] for tag in self.tags if tag.startswith("<2"))

    @property
    def domains(self) -> tuple[str, ...]:
        """The domains that it has tags for."""
        return tuple(tag[1:-1] for tag in self.tags if not tag.startswith("<2"))

    def tag_ids(self, tags: Sequence[str]) -> list[int]:
        """The ids of these tags; DataError for one that the tokenizer lacks."""
        for tag in tags:
            if tag not in self.tags:
                there = ", ".join(self.tags) or "none"
                raise DataError(
                    f"the tokenizer has no tag {tag} (it has: {there}); learn a new one with all corpora, "
                    "or leave the language or domain out"
                )
        return [self.tags[tag] for tag in tags]

    def encode(self, text: str) -> list[int]:
        """The ids of one line, without the end id."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str], *, threads: int = 0) -> list[list[int]]:
        """The ids of many lines, worked out by so many threads; 0: one a core if there are enough lines."""
        threads = usual_threads(threads, len(texts))
        try:
            escaped = [_escaped(text) for text in texts]
            encoded: list[list[int]] = self._processor.encode(escaped, num_threads=threads)
        except (RuntimeError, TypeError, UnicodeError):
            raise not_text(texts) from None
        return encoded

    def encode_target(self, text: str) -> list[int]:
        """The ids of one line of the target language, without the end id."""
        return self.encode_target_batch([text])[0]

    def encode_target_batch(self, texts: Sequence[str], *, threads: int = 0) -> list[list[int]]:
        """The ids of lines of the target language: the same, but for imported models."""
        return self.encode_batch(texts, threads=threads)

    def decode(self, ids: Iterable[SupportsIndex]) -> str:
        """The text of any sequence of ids; always one line.

        Pad, end and begin ids and tags are ignored. The unknown id, ids outside the vocabulary, and bytes
        that are no valid UTF-8 give U+FFFD. A line feed, which a model can spell as a byte, gives a space,
        since outputs are one line each.
        """
        kept: list[int] = []
        for item in ids:
            index = item.__index__()
            if index in self.silent:
                continue
            if UNK_ID < index < self.vocabulary:
                kept.append(index)
            else:
                kept.extend(self._replacement)
        text: str = self._processor.decode(kept) if kept else ""
        return unescaped(text).replace("\n", " ")

    def pieces(self, text: str) -> list[str]:
        """The subwords of one line as strings; ``▁`` stands for a space, ``<0x41>`` for a byte."""
        return [self.piece(index) for index in self.encode(text)]

    def piece(self, index: int) -> str:
        """The subword of one id."""
        piece: str = self._processor.id_to_piece(index)
        return piece

    def score(self, index: int) -> float:
        """What the subword model gives a piece: for BPE the earlier the merge the more, else its log P."""
        score: float = self._processor.get_score(index)
        return score

    def bytes_of(self, character: str) -> list[int]:
        """The byte pieces of a character."""
        return [self._processor.piece_to_id(f"<0x{byte:02X}>") for byte in character.encode()]

    def spelling(self, index: SupportsIndex) -> str | bytes:
        """What one id stands for: text that is still escaped, or bytes; none for pad, end, begin and tags.

        The unknown id and ids outside the vocabulary stand for U+FFFD, spelled as bytes.
        """
        index = index.__index__()
        if index in self.silent:
            return b""
        if not UNK_ID < index < self.vocabulary:
            return "\ufffd".encode()
        piece = self.piece(index)
        return bytes([int(piece[3:5], 16)]) if self.byte_pieces[index] else piece.replace(_MARK, " ")

    def __reduce__(self) -> tuple[type[Tokenizer], tuple[bytes]]:
        return (Tokenizer, (self.model_bytes,))


def usual_threads(wanted: int, texts: int) -> int:
    """The threads that encode so many texts where ``wanted`` is 0: a core each if there is enough to do.

    Cores are those that this process may use, which in a container are fewer than there are.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(wanted or cores, 1 + texts // 64)


def _escaped(text: str) -> str:
    if _ESCAPE in text or _MARK in text:
        return text.replace(_ESCAPE, _ESCAPE + "0").replace(_MARK, _ESCAPE + "1")
    return text


def unescaped(text: str) -> str:
    """The text that `_escaped` was given."""
    if _ESCAPE in text:
        return text.replace(_ESCAPE + "1", _MARK).replace(_ESCAPE + "0", _ESCAPE)
    return text


def not_text(texts: Sequence[str]) -> DataError:
    """The error that says which of the texts holds what no text may hold."""
    for number, text in enumerate(texts, 1):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            place = f"text {number}, column {error.start + 1}"
            return DataError(
                f"{place}: lone surrogate U+{ord(text[error.start]):04X}: not valid Unicode; remove it"
            )
    return DataError("sentencepiece cannot encode this text")
