"""Which of another toolkit's subwords has which id here, and what cuts text into them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transduce.data.imported_tokenizer import RESERVED, ImportedTokenizer
from transduce.data.tags import language_tag
from transduce.data.tokenizer import Tokenizer
from transduce.errors import BundleError, DataError

NEVER = -1e4
"""A bias with which a subword is never chosen: its probability is 0 in every precision, and finite."""
NOWHERE = -1
_LANGUAGE = re.compile(r">>([A-Za-z0-9][A-Za-z0-9_.-]*)<<")


@dataclass(frozen=True)
class Special:
    """The other toolkit's ids of what has a reserved id here; `NOWHERE` for a begin that it does not have."""

    pad: int
    eos: int
    bos: int
    unk: int

    @property
    def ids(self) -> tuple[int, int, int, int]:
        """They in the order of our own ids."""
        return self.pad, self.eos, self.bos, self.unk


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """Our tokenizer, and for each of its ids the other toolkit's on either side, `NOWHERE` without one."""

    tokenizer: Tokenizer
    source: Sequence[int]
    target: Sequence[int]

    def rows(self, matrix: Tensor, ids: Sequence[int], where: object) -> Tensor:
        """The other toolkit's rows in the order of ours; zeros where there is none."""
        index = torch.tensor(ids)
        if int(index.max()) >= len(matrix):
            raise BundleError(
                f"{where}: the vocabulary has an id {int(index.max())}, but the model has {len(matrix)} "
                "embeddings; they do not belong together"
            )
        found = matrix.float()[index.clamp(min=0)]
        found[index == NOWHERE] = 0.0
        return found


def vocabulary_of(
    models: tuple[bytes, bytes],
    listed: tuple[Mapping[str, int], Mapping[str, int]],
    special: Special,
    where: Path,
) -> Vocabulary:
    """The vocabulary that sentencepiece models and lists (subword to id) of both sides make together.

    A subword that both sides have has one id here. Language codes such as ``>>fra<<`` become tags, which
    ``to`` asks for.
    """
    reserved = set(special.ids)
    subwords = dict.fromkeys(
        piece
        for side in listed
        for piece, index in sorted(side.items(), key=lambda entry: entry[1])
        if index not in reserved and piece not in RESERVED
    )
    ids = [[*special.ids, *(side.get(piece, NOWHERE) for piece in subwords)] for side in listed]
    pieces = [*RESERVED, *(_as_tag(piece) for piece in subwords)]
    return Vocabulary(tokenizer=_tokenizer(models, pieces, where), source=ids[0], target=ids[1])


def listing(tokenizer: Tokenizer) -> dict[str, int]:
    """Subword to id, as other toolkits have it: tags are language codes, so that they can be asked for."""
    return {_as_code(tokenizer.piece(i), tokenizer): i for i in range(tokenizer.vocabulary)}


def models_of(tokenizer: Tokenizer) -> tuple[bytes, bytes]:
    """The sentencepiece models of source and target."""
    if isinstance(tokenizer, ImportedTokenizer):
        return tokenizer.source_spm, tokenizer.target_spm
    return tokenizer.model_bytes, tokenizer.model_bytes


def whole_id(values: Mapping[str, Any], name: str, where: object) -> int:
    """The id that a configuration gives under ``name``; BundleError where it is none."""
    value = values.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise BundleError(f"{where}: {name} is {value!r}, expected an id of the vocabulary")
    return value


def _tokenizer(models: tuple[bytes, bytes], pieces: Sequence[str], where: Path) -> Tokenizer:
    """A tokenizer of ours where it is one that was exported, else an imported one."""
    if models[0] == models[1]:
        try:
            own = Tokenizer(models[0])
        except DataError:
            own = None
        if own is not None and [own.piece(i) for i in range(own.vocabulary)] == list(pieces):
            return own
    try:
        return ImportedTokenizer.of(*models, pieces)
    except DataError as error:
        raise BundleError(f"{where}: {error}") from None


def _as_tag(piece: str) -> str:
    code = _LANGUAGE.fullmatch(piece)
    return piece if code is None else language_tag(code[1])


def _as_code(piece: str, tokenizer: Tokenizer) -> str:
    is_language = piece in tokenizer.tags and piece.startswith("<2")
    return f">>{piece[2:-1]}<<" if is_language else piece
