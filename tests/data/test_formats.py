from __future__ import annotations

from collections.abc import Callable

import pytest

from transduce.data.corpora import count_pairs, read_corpora
from transduce.data.formats.text_pair import read_text_pair
from transduce.data.formats.tsv import read_tsv
from transduce.errors import DataError

Write = Callable[..., str]


def test_a_text_pair_keeps_empty_lines_and_knows_its_place(write: Write) -> None:
    source, target = write("s", b"a\n\nc"), write("t", b"x\r\ny\r\nz\r\n")
    pairs = list(read_text_pair(source, target))
    assert [(p.source, p.target, p.line) for p in pairs] == [("a", "x", 1), ("", "y", 2), ("c", "z", 3)]
    assert {p.file for p in pairs} == {source}


@pytest.mark.parametrize(("sources", "targets"), [(5, 4), (4, 5), (0, 3), (3, 0)])
def test_unequal_files_are_refused_with_names_and_counts(write: Write, sources: int, targets: int) -> None:
    source, target = write("s.en", ["a"] * sources), write("t.de", ["b"] * targets)
    message = rf"s\.en has {sources} lines but \S*t\.de has {targets}: they are not aligned"
    with pytest.raises(DataError, match=message):
        list(read_text_pair(source, target))
    with pytest.raises(DataError, match=message):
        count_pairs([source], [target])


def test_line_separators_of_other_tools_do_not_shift_pairs(write: Write) -> None:
    odd = "a\u2028b\u0085c\x0bd\x0ce\rf"
    source, target = write("s", [odd, "two", odd]), write("t", ["eins", odd, "drei"])
    assert count_pairs([source], [target]) == 3
    assert [p.target for p in read_text_pair(source, target)] == ["eins", odd, "drei"]


def test_tsv_takes_the_first_two_columns_and_counts_the_others(write: Write) -> None:
    pairs = list(read_tsv(write("p.tsv", ["a\tx", "b\ty\tCC-BY\t3", "\t", "d\u2028\t z "])))
    assert [(p.source, p.target) for p in pairs] == [("a", "x"), ("b", "y"), ("", ""), ("d\u2028", " z ")]
    assert [p.extra_columns for p in pairs] == [0, 2, 0, 0]


def test_tsv_line_without_a_tab_is_named(write: Write) -> None:
    with pytest.raises(DataError, match=r"p\.tsv:2: 1 column, expected source and target with a TAB"):
        list(read_tsv(write("p.tsv", ["a\tx", "no tab here"])))


def test_several_corpora_are_one_stream(write: Write) -> None:
    files = ([write("s1", ["a"]), write("s2", ["b", "c"])], [write("t1", ["x"]), write("t2", ["y", "z"])])
    tsv = [write("p.tsv", ["d\tw"])]
    assert [p.source + p.target for p in read_corpora(*files, tsv)] == ["ax", "by", "cz", "dw"]
    assert count_pairs(*files, tsv) == 4
