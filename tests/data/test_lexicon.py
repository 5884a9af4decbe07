"""The lexicon against arithmetic by hand and against the plain way with dictionaries."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pytest

from transduce.data import lexicon
from transduce.data.lexicon import Lexicon, Sentences, learn_lexicon

THE, HOUSE, BOOK, A = 4, 5, 6, 7
DAS, HAUS, BUCH, EIN = 8, 9, 10, 11
SOURCE = [[DAS, HAUS], [DAS, BUCH], [EIN, BUCH]]
TARGET = [[THE, HOUSE], [THE, BOOK], [A, BOOK]]
Pairs = Sequence[tuple[Sequence[int], Sequence[int]]]


def learned(pairs: Pairs, vocabulary: int, rounds: int, kept: int = 500) -> Lexicon:
    sources, targets = zip(*pairs, strict=True)
    return learn_lexicon(Sentences.of(sources), Sentences.of(targets), vocabulary, rounds=rounds, kept=kept)


def plain(pairs: Pairs, rounds: int) -> dict[int, dict[int, float]]:
    """Model 1 as the paper states it, with dictionaries."""
    t: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(lambda: 1.0))
    for _ in range(rounds):
        counts: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        for source, target in pairs:
            for word in target:
                whole = sum(t[one][word] for one in source)
                for one in source:
                    counts[one][word] += t[one][word] / whole
        t = {one: {word: c / sum(row.values()) for word, c in row.items()} for one, row in counts.items()}
    return t


def test_two_rounds_by_hand() -> None:
    pairs = list(zip(SOURCE, TARGET, strict=True))
    first = learned(pairs, 12, 1).block(0, 12, 12)
    # Each word is shared out evenly: das gets half of "the" twice, of "house" and of "book".
    assert first[DAS, [THE, HOUSE, BOOK]] == pytest.approx([1 / 2, 1 / 4, 1 / 4])
    assert first[HAUS, [THE, HOUSE]] == pytest.approx([1 / 2, 1 / 2])
    second = learned(pairs, 12, 2).block(0, 12, 12)
    # "the" of das Haus: 1/2 to each; "house": (1/4) / (3/4) to das, 2/3 to Haus; and so on.
    assert second[HAUS, [HOUSE, THE]] == pytest.approx([(2 / 3) / (7 / 6), (1 / 2) / (7 / 6)])
    # "the" of das Buch: (1/2) / (3/4) to das; "house" and "book" 1/3 each: 7/6 of 11/6.
    assert second[DAS, THE] == pytest.approx(7 / 11)
    assert learned(pairs, 12, 50).targets[[DAS, HAUS, BUCH, EIN], 0].tolist() == [THE, HOUSE, BOOK, A]


@pytest.mark.parametrize("small", [False, True])
def test_it_is_the_plain_way_whatever_the_blocks(small: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if small:
        monkeypatch.setattr(lexicon, "_BLOCK", 3 * 20)
        monkeypatch.setattr(lexicon, "_CELLS", 7)
    draw = random.Random(1)
    pairs = [
        (draw.choices(range(1, 12), k=draw.randint(1, 6)), draw.choices(range(5, 20), k=draw.randint(1, 6)))
        for _ in range(40)
    ]
    for rounds in (1, 4):
        expected = np.zeros((20, 20))
        for one, row in plain(pairs, rounds).items():
            for word, value in row.items():
                expected[one, word] = value
        found = learned(pairs, 20, rounds)
        np.testing.assert_allclose(found.block(0, 20, 20), expected, atol=1e-6)
        assert (np.diff(found.probabilities, axis=1) <= 0).all()
        used = {one for source, _ in pairs for one in source}
        sums = found.probabilities.sum(1)
        assert sums == pytest.approx([1.0 if one in used else 0.0 for one in range(20)])


def test_only_the_best_are_kept_and_make_up_the_whole() -> None:
    pairs = [([3], [4, 4, 4, 5, 5, 6])]
    found = learned(pairs, 8, 1, kept=2)
    assert found.targets[3].tolist() == [4, 5]
    assert found.probabilities[3] == pytest.approx([3 / 5, 2 / 5])


def test_equals_stand_in_the_order_of_their_ids() -> None:
    assert learned([([3], [6, 5, 7, 5, 4])], 8, 2).targets[3].tolist() == [5, 4, 6, 7]


def test_rounds_are_told() -> None:
    numbers: list[int] = []
    one = Sentences.of([[3]])
    learn_lexicon(one, one, 4, rounds=3, told=numbers.append)
    assert numbers == [1, 2, 3]
