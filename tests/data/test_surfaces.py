from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiny_translator import tokenizer
from transduce.data.surfaces import stable_surfaces, surfaces

BYTES = [3 + 1 + byte for byte in range(256)]


def test_the_bytes_stand_where_this_file_takes_them_to_be() -> None:
    assert [tokenizer().piece(index) for index in BYTES[:2]] == ["<0x00>", "<0x01>"]


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=30))
def test_surfaces_joined_are_the_text(text: str) -> None:
    it = tokenizer()
    assert "".join(surfaces(it, it.encode(text))) == text.replace("\n", " ")


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.integers(0, 400),
            st.sampled_from([BYTES[b] for b in "é€\U0001f600\ue000 \n01".encode()]),
            st.integers(BYTES[0], BYTES[255]),
        ),
        max_size=12,
    )
)
def test_surfaces_of_any_ids_joined_are_what_is_decoded(ids: list[int]) -> None:
    it = tokenizer()
    found = surfaces(it, ids)
    assert len(found) == len(ids)
    assert "".join(found) == it.decode(ids)
    for count in range(len(ids) + 1):
        assert it.decode(ids).startswith("".join(stable_surfaces(it, ids[:count])))


def test_a_character_of_several_bytes_belongs_to_the_last() -> None:
    assert surfaces(tokenizer(), [BYTES[b] for b in "€a".encode()]) == ["", "", "€", "a"]
    assert surfaces(tokenizer(), [BYTES[0xE2], BYTES[0x82]]) == ["\ufffd", "\ufffd"]


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_half_a_character_is_not_stable(cut: int) -> None:
    it = tokenizer()
    ids = [*it.encode("ab"), *(BYTES[b] for b in "\U0001f600".encode())]
    assert "".join(stable_surfaces(it, ids[:-cut])) == "ab"
    assert "".join(stable_surfaces(it, [*ids, it.encode("ab")[-1]])).startswith("ab\U0001f600")


def test_most_of_an_output_is_stable_at_once() -> None:
    it, draw = tokenizer(), random.Random(1)
    ids = [draw.randrange(270, it.vocabulary) for _ in range(20)]
    assert "".join(stable_surfaces(it, ids)) == it.decode(ids)
