"""Trees: read, linearised, repaired whatever comes; and EVALB's F1 by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.data.lines import read_lines
from transduce.errors import DataError
from transduce.evaluation.brackets import bracket_scores
from transduce.evaluation.trees import Tree, read_tree, repaired

TREEBANK = Path(__file__).parents[3] / "shared" / "data" / "ptb-sample"
DOG = "(S (NP (DT The) (NN dog)) (VP (VBZ runs)) (. .))"


def test_reading_and_linearising() -> None:
    tree = read_tree(DOG)
    assert tree.linearised() == "(S (NP XX XX )NP (VP XX )VP XX )S"
    assert [(leaf.label, leaf.word) for leaf in tree.leaves()] == [
        ("DT", "The"),
        ("NN", "dog"),
        ("VBZ", "runs"),
        (".", "."),
    ]


def test_function_tags_traces_and_roots() -> None:
    empty = "(SBAR (-NONE- 0) (S (-NONE- *T*)))"
    raw = f"( (S (NP-SBJ-1 (-NONE- *)) (VP (VBZ runs) (NP=2 (-LRB- -LRB-) (NN x)) {empty})) )"
    assert read_tree(raw).linearised() == "(S (VP XX (NP XX XX )NP )VP )S"
    assert read_tree(raw).leaves()[1].label == "-LRB-"
    assert read_tree("(TOP (X (A a)))").label == "X"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("(S (NP", "t:3: a bracket is not closed"),
        ("", "t:3: a bracket is not closed"),
        ("(S (A a)))", "t:3: '\\)' after the end"),
        (")", "t:3: a bracket is closed that was not opened"),
        ("word", "t:3: 'word' has no tag"),
        ("(S (A a) b)", "t:3: 'b' has no tag"),
        ("(S (A a)) (S (A a))", "t:3: '\\(' after the end of the tree"),
    ],
)
def test_what_is_no_tree(line: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        read_tree(line, where="t:3")


def _trees() -> st.SearchStrategy[Tree]:
    leaf = st.builds(lambda: Tree("XX", word=""))
    labels = st.sampled_from(["S", "NP", "VP"])
    return st.builds(
        lambda label, children: Tree(label, children),
        labels,
        st.lists(
            st.recursive(
                leaf, lambda inner: st.builds(Tree, labels, st.lists(inner, min_size=1, max_size=3))
            ),
            min_size=1,
            max_size=4,
        ),
    )


@given(_trees())
def test_a_valid_line_is_taken_as_it_is(tree: Tree) -> None:
    again = repaired(tree.linearised().split(), len(tree.leaves()))
    assert again.linearised() == tree.linearised()


TOKENS = st.lists(st.sampled_from(["(S", "(NP", ")S", ")NP", "XX", "(", ")", "junk", ""]), max_size=30)


@given(TOKENS, st.integers(0, 8))
def test_whatever_comes_becomes_a_tree_of_so_many_words(tokens: list[str], words: int) -> None:
    tree = repaired(tokens, words)
    leaves = [node for node in tree.nodes() if node.word is not None]
    assert len(leaves) == words
    for node in tree.nodes():
        assert node.word is not None or node.children or words == 0
    line = tree.linearised().split()
    assert words == 0 or repaired(line, words).linearised() == tree.linearised()


def test_repairs_by_hand() -> None:
    def repair(line: str, words: int) -> str:
        return repaired(line.split(), words).linearised()

    assert repair("(S (NP XX", 1) == "(S (NP XX )NP )S"
    assert repair("(S (NP XX )VP XX )NP )S", 2) == "(S (NP XX XX )NP )S"
    assert repair("(S (NP XX )S XX", 2) == "(S (S (NP XX )NP )S XX )S"
    assert repair("(S XX )S", 3) == "(S XX XX XX )S"
    assert repair("(S XX XX XX (NP XX )NP )S", 2) == "(S XX XX )S"
    assert repair("(NP XX )NP (VP XX )VP", 2) == "(S (NP XX )NP (VP XX )VP )S"
    assert repair("", 2) == "(S XX XX )S"
    assert repair("(NP " * 5000 + "XX", 1).count("(NP") == 5000  # however deep


def test_f1_by_hand() -> None:
    gold = read_tree(DOG)
    found = repaired(["(S", "(NP", "XX", ")NP", "(VP", "XX", "XX", ")VP", "XX", ")S"], 4)
    scores = bracket_scores([gold, gold], [found, repaired(gold.linearised().split(), 4)])
    # of S, NP, VP in the first only S is right; its full stop does not count
    assert (scores.matched, scores.gold, scores.found) == (1 + 3, 6, 6)
    assert scores.f1 == pytest.approx(100 * 4 / 6)
    assert scores.complete_match == 50
    deep = repaired(["(NP"] * 5000 + ["XX"], 1)
    assert bracket_scores([deep], [deep]).gold == 5000


def test_evalbs_rules() -> None:
    gold = read_tree("(S (PRT (RP up)) (, ,) (NP (NP (NN x))))")
    # PRT is ADVP; a bracket may end before or after punctuation; equal brackets count as often as they come
    found = repaired(["(S", "(ADVP", "XX", "XX", ")ADVP", "(NP", "XX", ")NP", ")S"], 3)
    scores = bracket_scores([gold], [found])
    assert (scores.matched, scores.gold, scores.found) == (3, 4, 3)
    assert scores.precision == 100
    assert scores.recall == 75
    only = read_tree("(S (NP (, ,)) (VP (V x)))")
    assert bracket_scores([only], [only]).gold == 2  # a constituent of punctuation alone is none


def test_trees_of_other_sentences() -> None:
    with pytest.raises(DataError, match="1 gold trees but 0"):
        bracket_scores([read_tree(DOG)], [])
    with pytest.raises(DataError, match="tree 1 has 2 words, the gold tree has 4"):
        bracket_scores([read_tree(DOG)], [repaired([], 2)])


def test_a_real_treebank() -> None:
    if not TREEBANK.is_dir():
        pytest.skip("needs ../shared/data/ptb-sample beside the checkout")
    trees = [read_tree(line) for line in read_lines(TREEBANK / "test.mrg.gz")]
    lines = list(read_lines(TREEBANK / "test.lin.gz"))
    assert [tree.linearised() for tree in trees] == lines
    words = [" ".join(str(leaf.word) for leaf in tree.leaves()) for tree in trees]
    assert [len(line.split()) for line in words] == [
        len(line.split()) for line in read_lines(TREEBANK / "test.words.gz")
    ]
    again = [repaired(line.split(), len(tree.leaves())) for line, tree in zip(lines, trees, strict=True)]
    assert bracket_scores(trees, again).f1 == 100
    assert bracket_scores(trees, again).complete_match == 100
