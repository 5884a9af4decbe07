"""Functions from texts to texts that stand for a translator: their outputs are known without one."""

from __future__ import annotations

import re
from collections.abc import Callable

from transduce.decoding.protection import KINDS, find_items

Words = Callable[[str], str]


def outside(text: str, change: Words) -> str:
    """The text with what stands outside of tags, placeholders and addresses changed."""
    pieces, at = [], 0
    for item in find_items(text, KINDS):
        pieces += [change(text[at : item.begin]), item.text]
        at = item.end
    return "".join([*pieces, change(text[at:])])


def upper(texts: list[str]) -> list[str]:
    """Every text in capitals."""
    return [outside(text, str.upper) for text in texts]


def same(texts: list[str]) -> list[str]:
    """The texts."""
    return list(texts)


def backwards(texts: list[str]) -> list[str]:
    """The words of every text in reverse order, tags with them: nothing is nested as it was."""
    return [" ".join(re.findall(r"<[^<>]*>|[^\s<]+|<", text)[::-1]) for text in texts]


def without_tags(texts: list[str]) -> list[str]:
    """Every text in capitals, all tags lost."""
    return [re.sub(r"<[^<>]*>", "", text).upper() or "X" for text in texts]


HOSTILE: tuple[Callable[[list[str]], list[str]], ...] = (
    upper,
    same,
    backwards,
    without_tags,
    lambda texts: [""] * len(texts),
    lambda texts: [f"{text}{text}" for text in texts],
    lambda texts: ["]]> & \" ' \\ < > --> \x00 \ud800\uffff \n\r | ` * _ [x](y) # </p> </w:t>"] * len(texts),
)
