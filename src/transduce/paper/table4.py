"""Table 4: English constituency parsing as sequence transduction (section 6.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from transduce.counts import counted
from transduce.data.lines import read_lines
from transduce.errors import DataError
from transduce.evaluation.brackets import BracketScores
from transduce.evaluation.trees import Tree, read_tree, repaired
from transduce.files import write_bytes

BEAM, ALPHA, EXTRA = 21, 0.3, 300
PRINTED = {
    "Vinyals et al. (2014), WSJ only": 88.3,
    "Petrov et al. (2006), WSJ only": 90.4,
    "Zhu et al. (2013), WSJ only": 90.4,
    "Dyer et al. (2016), WSJ only": 91.7,
    "Transformer (4 layers), WSJ only": 91.3,
    "Transformer (4 layers), semi-supervised": 92.7,
}
"""F1 on section 23 of the Wall Street Journal, as the paper prints it."""


def read_treebank(path: str | Path) -> list[Tree]:
    """The trees of a file, one a line (also .gz, .zst); DataError, naming file and line, for what is none."""
    trees = [
        read_tree(line, where=f"{path}:{n}") for n, line in enumerate(read_lines(path), 1) if line.strip()
    ]
    if not trees:
        raise DataError(
            f"{path}: holds no tree; expected one a line, e.g. (S (NP (DT The) (NN dog)) (VP (VBZ runs)))"
        )
    return trees


def words_of(tree: Tree) -> str:
    """The sentence that the tree is of."""
    return " ".join(str(leaf.word) for leaf in tree.leaves())


def write_parallel(trees: Sequence[Tree], source: str | Path, target: str | Path) -> None:
    """Nothing; the two files hold the sentences and their linearised trees, aligned, for training."""
    for path, line_of in ((source, words_of), (target, Tree.linearised)):
        write_bytes(path, "".join(f"{line_of(tree)}\n" for tree in trees).encode())


def parse(
    translate: Callable[..., list[str]],
    sentences: Sequence[str],
    *,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> tuple[list[Tree], int]:
    """A tree for each sentence, and how many outputs were no valid trees and had to be repaired.

    ``translate`` is asked as `Translator.translate` is: with beam 21, alpha 0.3 and at most 300 more tokens
    than a sentence has; ``options`` go before these.
    """
    asked: Mapping[str, Any] = {
        "beam": BEAM,
        "alpha": ALPHA,
        "max_extra": EXTRA,
        "flag_unusual": False,
        **options,
    }
    outputs = translate(list(sentences), progress=progress, **asked)
    trees, mended = [], 0
    for sentence, line in zip(sentences, outputs, strict=True):
        tree = repaired(line.split(), len(sentence.split()))
        mended += tree.linearised() != " ".join(line.split())
        trees.append(tree)
    return trees, mended


def describe(scores: BracketScores, mended: int, what: str) -> str:
    """The scores beside the printed ones."""
    lines = [f"{'parser':44}{'F1':>7}"]
    lines += [f"{name + ', section 23':44}{value:7.1f}" for name, value in PRINTED.items()]
    lines.append(f"{what:44}{scores.f1:7.1f}")
    lines.append(
        f"precision {scores.precision:.2f}, recall {scores.recall:.2f}, complete match "
        f"{scores.complete_match:.1f} %, {counted(scores.sentences, 'sentence')}; "
        f"{counted(mended, 'output')} repaired"
    )
    return "\n".join(lines)
