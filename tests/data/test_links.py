"""Word alignments of the training text: read, checked, and carried over to subwords."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiny_translator import sentences
from transduce.data.formats.pair import Pair
from transduce.data.links import WordsOfTokens, links_of, with_alignments
from transduce.data.surfaces import surfaces
from transduce.data.tokenizer import EOS_ID, Tokenizer
from transduce.errors import DataError

TOKENIZER = Tokenizer.train(sentences(300), 340, tags=["<2de>"])
TEXT = st.lists(
    st.sampled_from(["bet", "torab", " ", "  ", "語", "ü", "\u00a0", "a.b", "▁"]), max_size=8
).map("".join)


def _row(text: str, tags: tuple[str, ...] = ()) -> np.ndarray:
    return np.array([*TOKENIZER.tag_ids(tags), *TOKENIZER.encode(text), EOS_ID], dtype=np.uint16)


def _words_by_text(row: np.ndarray) -> list[int]:
    """For each token the word between spaces that it spells, by the characters; -1 for none."""
    texts = surfaces(TOKENIZER, row.tolist())
    line = "".join(texts)
    number, numbers = -1, []
    for at, character in enumerate(line):
        number += character != " " and (at == 0 or line[at - 1] == " ")
        numbers.append(-1 if character == " " else number)
    found, at, waiting = [-1] * len(row), 0, []
    for token, text in enumerate(texts):
        if row[token] in TOKENIZER.silent or not (text or TOKENIZER.byte_pieces[row[token]]):
            continue  # the space in front of a text is no part of it
        waiting.append(token)
        if text:
            spelled = {numbers[i] for i in range(at, at + len(text))} - {-1}
            assert len(spelled) <= 1
            for one in waiting:
                found[one] = next(iter(spelled), -1)
            waiting, at = [], at + len(text)
    return found


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(TEXT, st.booleans()), min_size=1, max_size=4))
def test_words_are_those_that_the_characters_spell(texts: list[tuple[str, bool]]) -> None:
    rows = [_row(text, ("<2de>",) if tagged else ()) for text, tagged in texts]
    bases, first, size = WordsOfTokens(TOKENIZER).spans(rows)
    for number, row in enumerate(rows):
        words = _words_by_text(row)
        end = bases[number + 1] if number + 1 < len(rows) else len(first)
        assert end - bases[number] == max(words, default=-1) + 1
        for word in range(end - bases[number]):
            place = bases[number] + word
            mine = {t for t in range(len(row)) if words[t] == word}
            span = set(range(first[place], first[place] + size[place]))
            # A space that is a token of its own in front of the word may be part of the span.
            assert mine <= span
            assert all(words[t] in (word, -1) for t in span)


def _words_with_spaces(row: np.ndarray) -> list[int]:
    """The same; a token that is nothing but the space in front of a word belongs to the word."""
    words = _words_by_text(row)
    for at in reversed(range(len(row) - 1)):
        if TOKENIZER.piece(int(row[at])) == "▁":
            words[at] = words[at + 1]
    return words


def test_tokens_of_linked_words_share_by_hand() -> None:
    # Two rows; words of 1 to 3 tokens each.
    sources = [_row("torab bet", ("<2de>",)), _row("bet")]
    targets = [_row("torab bet"), _row("bet torab")]
    links = [np.array([0, 0, 1, 0, 1, 1], np.uint16), np.array([0, 1], np.uint16)]
    found = WordsOfTokens(TOKENIZER).token_links(sources, targets, links)
    dense = [np.zeros((len(t), len(s))) for s, t in zip(sources, targets, strict=True)]
    for row, t, s, share in zip(*found, strict=True):
        assert dense[row][t, s] == 0
        dense[row][t, s] = share
    for number, (source, target, pairs) in enumerate(zip(sources, targets, links, strict=True)):
        of_source, of_target = _words_with_spaces(source), _words_with_spaces(target)
        linked = {tuple(pair) for pair in pairs.reshape(-1, 2).tolist()}
        for t in range(len(target)):
            there = [(of_source[s], of_target[t]) in linked for s in range(len(source))]
            expected = [share / max(1, sum(there)) for share in there]
            assert dense[number][t].tolist() == pytest.approx(expected)


def _pair(source: str, target: str, alignment: str) -> Pair:
    return Pair(source, target, "f", 7, alignment=alignment, alignment_file="links")


def test_links_are_read_once_each_and_in_words_between_spaces() -> None:
    assert links_of(_pair("a b", "c d", " 1-0 0-1  1-0 ")).tolist() == [0, 1, 1, 0]
    assert links_of(_pair("a b", "c d", "")).tolist() == []
    # For an aligner the no-break space parts words; for subwords it does not.
    assert links_of(_pair("a\u00a0b  c", "d", "0-0 1-0 2-0")).tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize(
    ("alignment", "message"),
    [
        ("0-0 x", r"links:7: 'x' is no link; write source-target"),
        ("0:0", r"links:7: '0:0' is no link"),
        ("0-2", r"links:7: links word 0 with word 2, but the pair has 2 and 2 words, counted from 0"),
        ("-1-0", r"links:7: '-1-0' is no link"),
    ],
)
def test_what_is_no_link_is_refused_with_file_and_line(alignment: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        links_of(_pair("a b", "c d", alignment))


def test_alignments_belong_to_the_pairs_of_their_corpus(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("0-0\n\n1-1\n", encoding="utf-8")
    pairs = [Pair("a", "b", "f", n, corpus=c) for c, count in ((0, 2), (1, 3)) for n in range(1, count + 1)]
    found = list(with_alignments(pairs, ["", str(tmp_path / "one")]))
    assert [pair.alignment for pair in found] == ["", "", "0-0", "", "1-1"]
    for lines, message in (
        ("0-0\n\n", "has 2 lines, fewer than f"),
        ("\n\n\n\n", "has 4 lines, but its corpus has 3 pairs"),
    ):
        (tmp_path / "one").write_text(lines, encoding="utf-8")
        with pytest.raises(DataError, match=message):
            list(with_alignments(pairs, ["", str(tmp_path / "one")]))
