"""A small parallel text, a tokenizer of it, and a way to write files."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from transduce.data.formats.pair import Pair
from transduce.data.tokenizer import Tokenizer

WORDS = {
    **{"the": "der", "a": "ein", "little": "kleine", "old": "alte", "dog": "Hund", "cat": "Katze"},
    **{"house": "Haus", "tree": "Baum", "man": "Mann", "woman": "Frau", "sees": "sieht", "likes": "mag"},
    **{"finds": "findet", "reads": "liest", "book": "Buch", "red": "rot", "green": "grün", "today": "heute"},
}


def sentence_pairs(count: int, seed: int = 0, longest: int = 12) -> Iterator[Pair]:
    draw = random.Random(seed)
    for line in range(1, count + 1):
        words = draw.choices(list(WORDS), k=draw.randint(1, longest))
        yield Pair(f"{' '.join(words)}.", f"{' '.join(WORDS[word] for word in words)}.", "made", line)


@pytest.fixture(scope="session")
def pairs() -> Callable[..., Iterator[Pair]]:
    return sentence_pairs


@pytest.fixture(scope="session", params=["bpe", "unigram"])
def any_tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return trained(request.param)


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return trained("bpe")


def trained(subwords: str) -> Tokenizer:
    text = [side for pair in sentence_pairs(300) for side in (pair.source, pair.target)]
    return Tokenizer.train(text, 400, subwords=subwords, strict=False)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, bytes | Sequence[str]], str]:
    """A function that writes bytes, or lines with an LF each, to a new file and returns its path."""

    def write_file(name: str, content: bytes | Sequence[str]) -> str:
        raw = content if isinstance(content, bytes) else "".join(f"{line}\n" for line in content).encode()
        (tmp_path / name).write_bytes(raw)
        return str(tmp_path / name)

    return write_file
