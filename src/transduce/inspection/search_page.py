"""A search tree as text for the terminal and as one page for a browser."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from transduce.counts import counted
from transduce.inspection.search_tree import Node, SearchTree

_COLOURS = {"kept": "#5b8", "best": "#b5410d", "ended": "#48c", "cut": "#999", "dropped": "#ccc"}
_ACROSS, _DOWN = 120, 20
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Search tree</title><style>
:root {{ color-scheme: light dark; }}
body {{ font: 14px/1.4 system-ui, sans-serif; margin: 1rem; }}
.tree {{ overflow: auto; }}
text {{ font-size: 12px; fill: currentColor; }}
.dropped text {{ opacity: .55; }} .best text {{ font-weight: 700; }}
.key span {{ display: inline-block; margin-right: 1rem; }}
.key i {{ display: inline-block; width: .8em; height: .8em; border-radius: 50%; margin-right: .3em; }}
</style></head><body>
<p>{source}<br><strong>{output}</strong></p>
<p>{steps} steps; the search ended because {reason}.</p>
<p class="key">{key}</p>
<div class="tree">{svg}</div>
</body></html>
"""


def tree_text(tree: SearchTree) -> str:
    """The tree step by step: the hypotheses of each with what became of them, best first."""
    lines = [tree.source, tree.output, ""]
    level: list[tuple[str, Node]] = [(child.piece, child) for child in tree.root.children]
    step = 1
    while level:
        lines.append(f"step {step}")
        level.sort(key=lambda item: -item[1].log_probability)
        for text, node in level:
            score = "" if node.score is None else f", score {node.score:.4f}"
            lines.append(
                f"  {node.fate:8}log P {node.log_probability:9.4f} ({node.gain:+.4f}){score}  {_clean(text)}"
            )
        level = [(text + child.piece, child) for text, node in level for child in node.children]
        step += 1
    return "\n".join([*lines, "", f"The search ended after {counted(tree.steps, 'step')}: {tree.reason}."])


def tree_page(tree: SearchTree) -> str:
    """One HTML page with the tree from left to right, a column a step; it needs nothing else."""
    places = dict(_places(tree.root))
    width = max(x for x, _ in places.values()) + 2 * _ACROSS
    height = max(y for _, y in places.values()) + 2 * _DOWN
    marks = [mark for node in _all(tree.root) for mark in _drawn(node, places)]
    key = "".join(
        f'<span><i style="background:{colour}"></i>{fate}</span>' for fate, colour in _COLOURS.items()
    )
    return _PAGE.format(
        source=escape(tree.source),
        output=escape(tree.output),
        steps=tree.steps,
        reason=escape(tree.reason),
        key=key,
        svg=f'<svg width="{width}" height="{height}" role="img" aria-label="Tree">{"".join(marks)}</svg>',
    )


def _drawn(node: Node, places: dict[int, tuple[int, int]]) -> Iterator[str]:
    x, y = places[id(node)]
    for child in node.children:
        to_x, to_y = places[id(child)]
        strength = 0.5 + 3.5 * 2.718 ** max(child.gain, -20.0)
        yield (
            f'<path d="M{x} {y}C{x + 40} {y} {to_x - 40} {to_y} {to_x} {to_y}" fill="none" '
            f'stroke="{_COLOURS[child.fate]}" stroke-width="{strength:.2f}"/>'
        )
    score = "" if node.score is None else f"\nscore {node.score:.4f}"
    told = escape(f"{node.piece}\n{node.fate}\nlog P {node.log_probability:.4f} ({node.gain:+.4f}){score}")
    yield (
        f'<g class="{node.fate}"><title>{told}</title>'
        f'<circle cx="{x}" cy="{y}" r="4" fill="{_COLOURS[node.fate]}"/>'
        f'<text x="{x + 4}" y="{y - 5}">{escape(_label(node))}</text></g>'
    )


def _places(root: Node) -> Iterator[tuple[int, tuple[int, int]]]:
    """Where each node stands: a column a step, a row a leaf; a parent beside its first child."""
    row = 0
    stack: list[tuple[Node, int]] = [(root, 0)]
    while stack:  # parents first, the first child right after them
        node, step = stack.pop()
        yield id(node), (10 + step * _ACROSS, _DOWN + row * _DOWN)
        row += not node.children
        stack += [(child, step + 1) for child in reversed(node.children)]


def _all(root: Node) -> Iterator[Node]:
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack += node.children


def _label(node: Node) -> str:
    return _clean(node.piece) or ("\u2423" if node.piece else "<start>")


def _clean(text: str) -> str:
    shown = text.replace("\u2581", " ").strip()
    return "".join(c if c.isprintable() else "?" for c in shown)
