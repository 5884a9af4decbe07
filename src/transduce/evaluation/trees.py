"""Constituency trees as lines: bracketed as in treebanks, linearised as a model reads them, and repaired.

Linearised (Vinyals et al. 2015, Grammar as a Foreign Language): ``(S (NP XX )NP (VP XX )VP )S`` names every
bracket at both ends and has XX for each word's tag, so that the words need not be copied.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from transduce.errors import DataError

LEAF = "XX"
ROOT = "S"
_TOKEN = re.compile(r"\(|\)|[^\s()]+")


@dataclass
class Tree:
    """A constituent with its children, or a leaf: a word's tag, with the word where it is known."""

    label: str
    children: list[Tree] = field(default_factory=list)
    word: str | None = None

    @property
    def is_leaf(self) -> bool:
        """Whether it is a tag above a word and no constituent."""
        return not self.children

    def leaves(self) -> list[Tree]:
        """The tags from left to right."""
        return [node for node in self.nodes() if node.is_leaf]

    def nodes(self) -> Iterator[Tree]:
        """This node and all below it, parents first."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack += reversed(node.children)

    def linearised(self) -> str:
        """The tree without its words, as a model is taught it."""
        parts: list[str] = []
        stack: list[Tree | str] = [self]
        while stack:
            node = stack.pop()
            if isinstance(node, str):
                parts.append(node)
            elif node.is_leaf:
                parts.append(LEAF)
            else:
                parts.append(f"({node.label}")
                stack.append(f"){node.label}")
                stack += reversed(node.children)
        return " ".join(parts)


def read_tree(line: str, *, where: str = "tree") -> Tree:
    """The tree of a line like ``(S (NP (DT The) (NN dog)) (VP (VBZ runs)))``; an unnamed root goes.

    Function tags (``NP-SBJ``, ``NP=2``) are cut off, empty elements (``-NONE-``) and what then is empty left
    out. Raises DataError, naming ``where``, for what is no such line.
    """
    tokens = _TOKEN.findall(line)
    stack: list[Tree] = []
    root: Tree | None = None
    at = 0
    while at < len(tokens):
        token = tokens[at]
        at += 1
        if root is not None:
            raise DataError(f"{where}: {token!r} after the end of the tree; one tree stands on a line")
        if token == "(":
            label = tokens[at] if at < len(tokens) and tokens[at] not in "()" else ""
            at += bool(label)
            stack.append(Tree(_plain(label)))
        elif token == ")":
            if not stack:
                raise DataError(f"{where}: a bracket is closed that was not opened")
            done = stack.pop()
            kept = done.label != "-NONE-" and (done.word is not None or bool(done.children))
            if stack:
                stack[-1].children += [done] if kept else []
            else:
                root = done
        elif not stack or stack[-1].word is not None or stack[-1].children:
            raise DataError(f"{where}: {token!r} has no tag; expected (TAG word)")
        else:
            stack[-1].word = token
    if root is None or stack:
        raise DataError(f"{where}: a bracket is not closed")
    while root.label in ("", "TOP", "ROOT") and len(root.children) == 1:
        root = root.children[0]
    return root


def repaired(tokens: Sequence[str], words: int) -> Tree:
    """A tree with ``words`` leaves from whatever a model wrote: a valid line is taken as it is.

    A closing bracket closes up to the nearest open one of its label, and is ignored where there is none; what
    is open at the end is closed; constituents without a word vanish. Leaves that are missing are added at the
    end below the root, those too many dropped. Several roots are put under one S.
    """
    root = Tree("")
    stack = [root]
    leaves = 0
    for token in tokens:
        if token.startswith("(") and len(token) > 1:
            child = Tree(token[1:])
            stack[-1].children.append(child)
            stack.append(child)
        elif token.startswith(")"):
            label = token[1:]
            depth = next((i for i in range(len(stack) - 1, 0, -1) if stack[i].label == label), 0)
            for _ in range(len(stack) - depth if depth else 0):
                _close(stack)
        elif token == LEAF and leaves < words:
            stack[-1].children.append(Tree(LEAF, word=""))
            leaves += 1
    while len(stack) > 1:
        _close(stack)
    tops = root.children
    rest = [Tree(LEAF, word="") for _ in range(words - leaves)]
    if len(tops) == 1 and not tops[0].is_leaf:
        tops[0].children += rest
        return tops[0]
    return Tree(ROOT, [*tops, *rest])


def _close(stack: list[Tree]) -> None:
    """Nothing; the newest constituent is complete, and gone where it holds nothing."""
    if not stack.pop().children:
        stack[-1].children.pop()


def _plain(label: str) -> str:
    """The label without function tags and indices; labels like -LRB- begin with a dash and stay."""
    return label if label.startswith("-") else re.split(r"[-=|]", label)[0]
