"""Which words of a text its tokens spell; words are what ``str.split()`` makes of it."""

from __future__ import annotations

from collections.abc import Sequence

from transduce.data.surfaces import surfaces
from transduce.data.tokenizer import Tokenizer


def words_by_character(text: str) -> list[int]:
    """For each character the number of its word, -1 for white space."""
    numbers, word, inside = [], -1, False
    for character in text:
        is_space = character.isspace()
        word += not is_space and not inside
        inside = not is_space
        numbers.append(-1 if is_space else word)
    return numbers


def words_of_tokens(
    tokenizer: Tokenizer, ids: Sequence[int], begin: int, words: Sequence[int]
) -> list[set[int]]:
    """For each token the words that it has a part in; tags, ends and white space have none.

    The space in front of a text, which is no part of it, counts with the first word.

    ``words`` is `words_by_character` of a text in which the tokens stand from character ``begin`` on.
    """
    found: list[set[int]] = [set() for _ in ids]
    at = begin
    waiting: list[int] = []  # the first bytes of a character belong where its last one does
    for token, surface in enumerate(surfaces(tokenizer, ids)):
        if ids[token] not in tokenizer.silent:
            waiting.append(token)
        if surface:
            span = range(max(at, 0), min(at + len(surface), len(words)))
            for one in waiting:
                found[one] = {words[character] for character in span} - {-1}
            waiting = []
        at += len(surface)
    return found
