from __future__ import annotations

import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.data.cleaning.cleaner import judged
from transduce.data.cleaning.config import CleaningConfig
from transduce.data.cleaning.filters import Filters
from transduce.data.cleaning.fingerprints import Met, fingerprints
from transduce.data.formats.pair import Pair


@given(st.lists(st.lists(st.integers(0, 40), max_size=30), max_size=20))
@settings(max_examples=200, deadline=None)
def test_what_is_new_is_what_a_set_says(batches: list[list[int]]) -> None:
    met, oracle = Met(), set[int]()
    for batch in batches:
        expected = []
        for value in batch:
            expected.append(value not in oracle)
            oracle.add(value)
        assert met.add(np.array(batch, np.uint64)).tolist() == expected
        assert len(met) == len(oracle)


def test_memory_is_8_bytes_for_each_different_one_and_the_arrays_are_few() -> None:
    draw = np.random.default_rng(1)
    met = Met()
    for _ in range(200):
        met.add(draw.integers(0, 2**63, 1000).astype(np.uint64))
    runs = met._runs
    assert sum(run.nbytes for run in runs) == 8 * len(met) == 8 * 200_000
    assert len(runs) <= 9
    assert all(np.all(run[1:] > run[:-1]) for run in runs)


def test_fingerprints_know_where_the_source_ends() -> None:
    texts = [("ab", "c"), ("a", "bc"), ("", "abc"), ("abc", ""), ("1 a", ""), ("", "1 a"), ("\ud800", "")]
    assert len(set(fingerprints(texts).tolist())) == len(texts)
    assert fingerprints([]).tolist() == []


def test_fingerprints_are_the_same_in_every_process() -> None:
    program = (
        "from transduce.data.cleaning.fingerprints import fingerprints;"
        "print(fingerprints([('a', 'ä'), ('b', '')]).tolist())"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == str(fingerprints([("a", "ä"), ("b", "")]).tolist())


def pairs_of(texts: list[tuple[str, str]]) -> list[Pair]:
    return [Pair(source, target, "f", line) for line, (source, target) in enumerate(texts, 1)]


def decisions(texts: list[tuple[str, str]], **settings: bool) -> list[str]:
    filters = Filters(CleaningConfig(max_ratio=0.0, **settings))
    return [v.filter for chunk in judged(pairs_of(texts), filters) for v in chunk]


def test_the_first_of_equal_pairs_stays() -> None:
    texts = [
        ("a b", "x"),
        ("c", "y"),
        ("a b", "x"),
        ("a b", "z"),
        (" a b", "x "),
        ("A b!", "X"),
        ("a b", "x"),
    ]
    assert decisions(texts) == ["", "", "duplicate", "", "duplicate", "near-duplicate", "duplicate"]
    assert decisions(texts, near_duplicates=False)[5] == ""
    assert decisions(texts, duplicates=False)[2] == "near-duplicate"
    assert not any(decisions(texts, duplicates=False, near_duplicates=False))


def test_sides_without_letters_are_compared_as_they_are() -> None:
    texts = [
        ("12:30", "12.30"),
        ("14:00", "14.00"),
        ("12:30", "12.30"),
        ("Room 1", "Raum 1"),
        ("Room 2", "Raum 2"),
    ]
    assert decisions(texts) == ["", "", "duplicate", "", "near-duplicate"]


def test_a_side_without_letters_is_not_lost() -> None:
    assert decisions([("12:30", "so be it"), ("14:00", "so be it")]) == ["", ""]
    assert decisions([("so be it", "12:30"), ("so be it", "14:00")]) == ["", ""]


def test_pairs_that_are_dropped_for_something_else_are_not_remembered() -> None:
    texts = [("a &lt;b&gt;", "<b>"), ("a", "&amp;"), ("a", "&")]
    assert decisions([("see www.x.org", "dort"), ("see www.x.org", "dort")]) == ["addresses", "addresses"]
    assert decisions(texts) == ["", "", "duplicate"]  # as they are mended
    assert decisions([("a &amp; b", "c"), ("a & b", "c")]) == ["", "duplicate"]


def test_a_set_of_texts_is_the_oracle_across_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transduce.data.cleaning.cleaner.CHUNK", 7)
    draw = random.Random(3)
    texts = [(draw.choice("abcdefgh") * 2, draw.choice("stuvwxyz")) for _ in range(400)]
    seen = set[tuple[str, str]]()
    expected = []
    for pair in texts:
        expected.append("duplicate" if pair in seen else "")
        seen.add(pair)
    assert decisions(texts) == expected
