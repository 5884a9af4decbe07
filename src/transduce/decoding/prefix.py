"""A target prefix: the output must begin with a given text, or is made likelier as long as it does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from transduce.data.tokenizer import UNK_ID, Tokenizer
from transduce.decoding.guide import NEVER
from transduce.decoding.repetition import with_total_of
from transduce.decoding.spelling import Spelling
from transduce.errors import UsageError


class Prefix:
    """The tokens that may follow at each place of a text with which an output is to begin.

    A word may go on where the text ends ("Hun" is a beginning of "Hund"), so a token may reach beyond it. No
    token is shorter than the tokenizer's at the same place, so that the model sees subwords that it knows.
    White space at the end of the text means that its last word is complete: what follows, if anything, begins
    with a space.
    """

    def __init__(self, text: str, ids: Sequence[int], spelling: Spelling, eos_id: int) -> None:
        """``ids`` are the tokenizer's for the text without white space at its ends."""
        self._spelling, self._eos_id = spelling, eos_id
        self.ids = tuple(ids)
        self.text = spelling.of_ids(ids) + (" " if text[-1:].isspace() else "")
        self._least: dict[int, int] = {}
        at = 0
        for index in ids:
            self._least[at] = len(spelling.texts[index])
            at += self._least[at]
        self._next: dict[int, dict[int, int]] = {}

    @classmethod
    def of(cls, text: str, tokenizer: Tokenizer, spelling: Spelling, eos_id: int) -> Prefix | None:
        """The prefix of a text; None where it is empty or white space."""
        ids = tokenizer.encode_target(text.strip())
        if UNK_ID in ids:
            raise UsageError(
                f"the prefix {text!r} holds what the vocabulary of this model cannot spell; leave it out"
            )
        return cls(text.lstrip(), ids, spelling, eos_id) if ids else None

    def next(self, at: int) -> dict[int, int]:
        """The tokens that may follow after ``at`` units of the text, and where each leads."""
        if at not in self._next:
            found = dict(self._spelling.steps(self.text, at, self._least.get(at, 1)))
            if self.text[at:] == " ":
                found[self._eos_id] = len(self.text)
            self._next[at] = found
        return self._next[at]


@dataclass(frozen=True)
class PrefixGuide:
    """Each row's prefix and how much of it is there; a row that is through, or has left it, has none.

    With a ``factor`` of infinity the prefix is kept. With a finite one, the tokens that follow it become so
    many times likelier than the others, compared with what they were.
    """

    places: tuple[tuple[Prefix, int] | None, ...]
    factor: float = math.inf

    @classmethod
    def start(cls, prefixes: Sequence[Prefix | None], factor: float = math.inf) -> PrefixGuide:
        """The guide of sentences with these prefixes."""
        return cls(tuple(None if prefix is None else (prefix, 0) for prefix in prefixes), factor)

    def guided(self, log_p: Float[Tensor, "rows vocabulary"]) -> Float[Tensor, "rows vocabulary"]:
        """See `Guide.guided`."""
        if not any(self.places):
            return log_p
        hard = math.isinf(self.factor)
        bonus = torch.zeros_like(log_p)
        for row, place in enumerate(self.places):
            if place is not None:
                following = torch.tensor(list(place[0].next(place[1])), device=log_p.device)
                if hard:
                    bonus[row] = NEVER
                bonus[row, following] = 0.0 if hard else math.log(self.factor)
        return log_p + bonus if hard else with_total_of(log_p, log_p + bonus)

    def extended(self, rows: Int[Tensor, " new"], tokens: Int[Tensor, " new"]) -> PrefixGuide:
        """See `Guide.extended`."""
        if not any(self.places):
            return PrefixGuide((None,) * len(rows), self.factor)
        pairs = zip(rows.tolist(), tokens.tolist(), strict=True)
        return PrefixGuide(tuple(_after(self.places[row], token) for row, token in pairs), self.factor)


def _after(place: tuple[Prefix, int] | None, token: int) -> tuple[Prefix, int] | None:
    if place is None:
        return None
    prefix, at = place
    reached = prefix.next(at).get(token, len(prefix.text))
    return (prefix, reached) if reached < len(prefix.text) else None
