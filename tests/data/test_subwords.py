from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable

import pytest

from transduce.data.formats.pair import Pair
from transduce.data.subwords import reservoir
from transduce.data.tokenizer import Tokenizer
from transduce.errors import DataError

Pairs = Callable[..., list[Pair]]


def text_of(pairs: Pairs, count: int) -> list[str]:
    return [side for pair in pairs(count) for side in (pair.source, pair.target)]


@pytest.mark.parametrize("subwords", ["bpe", "unigram"])
def test_the_same_text_gives_the_same_bytes(pairs: Pairs, subwords: str) -> None:
    text = text_of(pairs, 400)

    def train(seed: int) -> bytes:
        return Tokenizer.train(iter(text), 320, subwords=subwords, sample=300, seed=seed).model_bytes

    assert train(1) == train(1)
    assert train(1) != train(2)


def test_training_is_silent(pairs: Pairs, capfd: pytest.CaptureFixture[str]) -> None:
    Tokenizer.train(text_of(pairs, 50), 8000, strict=False)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("subwords", ["bpe", "unigram"])
def test_too_little_text_for_the_vocabulary(pairs: Pairs, subwords: str) -> None:
    text = text_of(pairs, 50)
    possible = Tokenizer.train(text, 8000, subwords=subwords, strict=False).vocabulary
    assert 300 < possible < 8000
    with pytest.raises(
        DataError,
        match=f"data.vocabulary is 8000, .* no more than {possible} .*set data.vocabulary={possible}",
    ):
        Tokenizer.train(text, 8000, subwords=subwords)
    assert Tokenizer.train(text, possible, subwords=subwords).vocabulary == possible


def test_one_word_is_enough_and_nothing_is_not() -> None:
    assert Tokenizer.train(["hello"], 8000, strict=False).decode([]) == ""
    for nothing in ([], ["", "  ", ""]):
        with pytest.raises(DataError, match="no text to learn subwords from"):
            Tokenizer.train(nothing, 8000, strict=False)


@pytest.mark.parametrize("subwords", ["bpe", "unigram"])
def test_more_characters_than_places_are_spelled_as_bytes(subwords: str) -> None:
    text = ["".join(chr(0x4E00 + 7 * i + j) for j in range(7)) for i in range(400)] + ["the old dog"] * 300
    trained = Tokenizer.train(text, 320, subwords=subwords, strict=False)
    assert trained.vocabulary <= 320
    assert all(trained.decode(trained.encode(line)) == line for line in text)
    assert not trained.byte_pieces[trained.encode("the old dog")].any()


@pytest.mark.parametrize("long", ["word " * 3000, "wörd" * 3000, "x" * 50_000])
def test_long_lines_are_learned_from(long: str) -> None:
    trained = Tokenizer.train([long], 330, strict=False)
    assert trained.decode(trained.encode(long)) == long
    assert len(trained.encode(long)) < 0.8 * len(long)
    assert not trained.byte_pieces[trained.encode(long)].any()


def test_text_with_reserved_characters_is_learned_from() -> None:
    trained = Tokenizer.train(["dog\x00 \u2581dog \u2585dog \ue000 \t dog"] * 5, 330, strict=False)
    assert not trained.byte_pieces[trained.encode("dog")].any()


def test_a_reservoir_draws_every_line_equally_often() -> None:
    lines = [str(i) for i in range(40)]
    counts = Counter(line for seed in range(2000) for line in reservoir(lines, 10, seed))
    assert sorted(counts) == sorted(lines)
    assert statistics.fmean(counts.values()) == 500
    assert max(abs(count - 500) for count in counts.values()) < 5 * (500 * 0.75) ** 0.5


def test_a_reservoir_holds_all_of_a_small_text() -> None:
    assert reservoir(["a", "b"], 2, 0) == ["a", "b"]
    assert reservoir(["a", "b"], 3, 0) == ["a", "b"]
    assert len(reservoir(map(str, range(1000)), 1, 0)) == 1
