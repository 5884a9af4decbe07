"""How sure a model is of an output: as a whole, and of each word."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from transduce.data.tokenizer import Tokenizer
from transduce.decoding.translation import Alternative, Translation
from transduce.decoding.words import words_by_character, words_of_tokens


def with_word_confidences(translation: Translation, tokenizer: Tokenizer) -> Translation:
    """The same outputs, each with its `word_confidences`."""
    alternatives = tuple(
        replace(alternative, word_confidences=word_confidences(alternative, tokenizer))
        for alternative in translation.alternatives
    )
    return replace(translation, alternatives=alternatives)


def word_confidences(alternative: Alternative, tokenizer: Tokenizer) -> tuple[float, ...]:
    """For each word of the output the geometric mean of the probabilities of the tokens that spell it.

    Words are what ``str.split()`` makes of the text. The end, and tokens of white space alone, are no word's.
    """
    words = words_by_character(alternative.text)
    gains: list[list[float]] = [[] for _ in range(max(words, default=-1) + 1)]
    first = 0
    for part in alternative.parts:
        of_part = alternative.token_log_probabilities[first : first + len(part.tokens)]
        spelled = words_of_tokens(tokenizer, part.tokens, part.begin, words)
        for gain, some in zip(of_part, spelled, strict=True):
            for word in some:
                gains[word].append(gain)
        first += len(part.tokens)
    return tuple(_geometric_mean(of_word) for of_word in gains)


def _geometric_mean(log_probabilities: Sequence[float]) -> float:
    return math.exp(sum(log_probabilities) / len(log_probabilities))
