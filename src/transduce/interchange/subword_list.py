"""A tokenizer as plain JSON, for programs that have no sentencepiece: see ``javascript/tokenizer.mjs``."""

from __future__ import annotations

import importlib
from typing import Any

from transduce.data.imported_tokenizer import ImportedTokenizer
from transduce.data.tokenizer import UNK_ID, Tokenizer

_ALGORITHMS = {1: "unigram", 2: "bpe"}
# sentencepiece's types of pieces.
_USER_DEFINED, _UNUSED, _BYTE = 4, 5, 6


def subword_list(tokenizer: Tokenizer) -> dict[str, Any] | str:
    """The pieces with their scores and kinds; or, in a few words, why that cannot say all of it.

    ``silent`` are the ids that stand for no text, ``bytes`` the ids of the 256 bytes in their order.
    """
    if isinstance(tokenizer, ImportedTokenizer):
        return "it is that of an imported model"
    schema: Any = importlib.import_module("sentencepiece.sentencepiece_model_pb2")
    model = schema.ModelProto()
    model.ParseFromString(tokenizer.model_bytes)
    problem = _problem(model)
    if problem:
        return problem
    spelled = {int(piece.piece[3:5], 16): i for i, piece in enumerate(model.pieces) if piece.type == _BYTE}
    return {
        "algorithm": _ALGORITHMS[model.trainer_spec.model_type],
        "unknown": UNK_ID,
        "silent": sorted(tokenizer.silent),
        "bytes": [spelled[byte] for byte in range(256)],
        "pieces": [piece.piece for piece in model.pieces],
        "scores": [piece.score for piece in model.pieces],
    }


def _problem(model: Any) -> str:
    """What of a sentencepiece model the list does not know; empty if nothing."""
    if model.trainer_spec.model_type not in _ALGORITHMS:
        return "its subwords are neither BPE nor a unigram model"
    rules = model.normalizer_spec
    if rules.precompiled_charsmap or rules.remove_extra_whitespaces:
        return f"it normalises text ({rules.name})"
    if not rules.add_dummy_prefix or not rules.escape_whitespaces:
        return "it treats spaces in a way of its own"
    if model.trainer_spec.treat_whitespace_as_suffix:
        return "its pieces end in spaces"
    if any(piece.type in (_USER_DEFINED, _UNUSED) for piece in model.pieces):
        return "it has symbols that a user defined, or pieces that are not used"
    return ""
