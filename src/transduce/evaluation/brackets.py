"""Labelled bracket F1 by the rules of EVALB (Collins's parameters), the measure of the paper's Table 4.

Words whose gold tag is punctuation are taken out of both trees; the root TOP does not count; ADVP and PRT are
one label. Brackets are compared as (label, first word, last word), each as often as it is there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from transduce.counts import counted
from transduce.errors import DataError
from transduce.evaluation.trees import Tree

PUNCTUATION = frozenset({",", ":", "``", "''", ".", "?", "!"})
NOT_COUNTED = frozenset({"TOP", "ROOT", "S1", ""})
_SAME = {"PRT": "ADVP"}
Bracket = tuple[str, int, int]


@dataclass(frozen=True)
class BracketScores:
    """Sums over all sentences; precision, recall, F1 and complete matches in per cent."""

    sentences: int
    matched: int
    gold: int
    found: int
    complete: int

    @property
    def precision(self) -> float:
        """The share of the found brackets that are right."""
        return 100.0 * self.matched / max(1, self.found)

    @property
    def recall(self) -> float:
        """The share of the gold brackets that were found."""
        return 100.0 * self.matched / max(1, self.gold)

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return 200.0 * self.matched / max(1, self.found + self.gold)

    @property
    def complete_match(self) -> float:
        """The share of the sentences whose brackets are all right."""
        return 100.0 * self.complete / max(1, self.sentences)


def brackets(tree: Tree, kept: Sequence[bool]) -> Counter[Bracket]:
    """The constituents over the words that are kept; those that hold none are left out."""
    found: Counter[Bracket] = Counter()
    leaf = place = 0
    stack: list[Tree | tuple[str, int]] = [tree]  # what is still to be read, and the ends of what is open
    while stack:
        node = stack.pop()
        if isinstance(node, tuple):
            label, begin = node
            if place > begin and label not in NOT_COUNTED:
                found[_SAME.get(label, label), begin, place] += 1
        elif node.is_leaf:
            place += kept[leaf]
            leaf += 1
        else:
            stack += [(node.label, place), *reversed(node.children)]
    return found


def bracket_scores(gold: Sequence[Tree], found: Sequence[Tree]) -> BracketScores:
    """The scores of the found trees; DataError where numbers of trees, or of words in one, differ."""
    if len(gold) != len(found):
        raise DataError(
            f"{len(gold)} gold trees but {len(found)} found ones; they must be of the same sentences"
        )
    matched = in_gold = in_found = complete = 0
    for number, (right, tree) in enumerate(zip(gold, found, strict=True), 1):
        tags = [leaf.label for leaf in right.leaves()]
        if len(tree.leaves()) != len(tags):
            raise DataError(
                f"tree {number} has {counted(len(tree.leaves()), 'word')}, the gold tree has {len(tags)}"
            )
        kept = [tag not in PUNCTUATION for tag in tags]
        one, other = brackets(right, kept), brackets(tree, kept)
        matched += (one & other).total()
        in_gold += one.total()
        in_found += other.total()
        complete += one == other
    return BracketScores(len(gold), matched, in_gold, in_found, complete)
