"""Which subwords a model holds for alike: the nearest rows of its embedding matrix (section 3.4)."""

from __future__ import annotations

from typing import NamedTuple

import torch

from transduce.bundle import Bundle
from transduce.errors import DataError, UsageError

SIDES = ("source", "target", "output")


class Neighbour(NamedTuple):
    """A subword and the cosine of its embedding and the one that was asked for."""

    piece: str
    cosine: float


def neighbours(
    bundle: Bundle, text: str, *, count: int = 10, side: str = "source"
) -> dict[str, list[Neighbour]]:
    """For each different subword of ``text`` its ``count`` nearest others, nearest first.

    ``side`` is whose matrix: source, target or output (one and the same where they are tied). Raises
    DataError for a text without subwords, UsageError for an unknown side.
    """
    if side not in SIDES:
        raise UsageError(f"side is {side!r}; choose one of {', '.join(SIDES)}")
    if count < 1:
        raise UsageError(f"count is {count}; use 1 or more")
    encode = bundle.tokenizer.encode if side == "source" else bundle.tokenizer.encode_target
    ids = list(dict.fromkeys(encode(text)))
    if not ids:
        raise DataError("the text has no subwords; give a word")
    embeddings = bundle.model.embeddings
    matrix = {"source": embeddings.source, "target": embeddings.target, "output": embeddings.output}[side]
    rows = torch.nn.functional.normalize(matrix.detach().float(), dim=1)
    found = {}
    for index in ids:
        cosine = rows @ rows[index]
        cosine[index] = -2.0
        best = cosine.topk(min(count, len(rows) - 1))
        found[bundle.tokenizer.piece(index)] = [
            Neighbour(bundle.tokenizer.piece(other), value)
            for value, other in zip(best.values.tolist(), best.indices.tolist(), strict=True)
        ]
    return found
