"""The tree of a search: its sums, what became of each hypothesis, and the search left alone."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import torch

from tiny_translator import sentences, tiny_bundle
from transduce.decoding.translator import Translator
from transduce.errors import DataError
from transduce.inspection.search_page import tree_page, tree_text
from transduce.inspection.search_tree import Node, SearchTree, search_tree

TEXTS = sentences(6, seed=5, words=(2, 5))


def _paths(node: Node, path: tuple[Node, ...] = ()) -> Iterator[tuple[Node, ...]]:
    for child in node.children:
        yield (*path, child)
        yield from _paths(child, (*path, child))


@pytest.mark.parametrize("beam", [1, 2, 4])
@pytest.mark.parametrize("text", TEXTS[:3])
def test_the_tree_holds_the_output_and_its_score(text: str, beam: int) -> None:
    bundle = tiny_bundle(ends=14.0)
    tree = search_tree(bundle, text, beam=beam)
    (found,) = Translator(bundle).translate_detailed([text], beam=beam)
    assert tree.output == found.text
    (best,) = [path for path in _paths(tree.root) if path[-1].fate == "best"]
    assert tuple(node.token for node in best) == found.alternatives[0].tokens
    assert best[-1].log_probability == pytest.approx(found.alternatives[0].log_probability, abs=1e-4)
    assert best[-1].score == pytest.approx(found.alternatives[0].score, abs=1e-4)


def test_sums_gains_and_fates() -> None:
    bundle = tiny_bundle(ends=14.0)
    beam = 3
    tree = search_tree(bundle, TEXTS[0], beam=beam)
    kept_at: dict[int, list[float]] = {}
    dropped_at: dict[int, list[float]] = {}
    for path in _paths(tree.root):
        assert path[-1].log_probability == pytest.approx(sum(node.gain for node in path), abs=1e-9)
        assert all(node.fate == "kept" for node in path[:-1])
        ends = path[-1].token == bundle.model.config.eos_id
        assert (path[-1].score is not None) == (path[-1].fate in ("ended", "best"))
        if path[-1].fate == "kept":
            assert path[-1].children
            kept_at.setdefault(len(path), []).append(path[-1].log_probability)
        if path[-1].fate == "dropped" and not ends:
            dropped_at.setdefault(len(path), []).append(path[-1].log_probability)
    for step, kept in kept_at.items():
        assert len(kept) <= beam
        # nothing that was dropped was better than what was kept in its stead
        assert max(dropped_at.get(step, [-99.0])) <= min(kept) + 1e-6 or len(kept) < beam


def test_why_it_ended() -> None:
    assert "nothing alive could win any more" in search_tree(tiny_bundle(ends=14.0), TEXTS[0], beam=2).reason
    never = tiny_bundle(ends=-20.0)
    tree = search_tree(never, "ab", beam=2)
    assert tree.reason.startswith("the limit of")
    assert tree.steps == len(never.tokenizer.encode("ab")) + 50
    with pytest.raises(DataError, match="the source is empty"):
        search_tree(never, " ")


def test_more_continuations_on_request() -> None:
    bundle = tiny_bundle(ends=14.0)
    narrow, wide = (search_tree(bundle, TEXTS[1], beam=2, shown=shown) for shown in (1, 6))
    assert len(wide.root.children) == 6
    assert len(list(_paths(narrow.root))) < len(list(_paths(wide.root)))
    assert narrow.output == wide.output


@pytest.fixture(scope="module")
def tree() -> SearchTree:
    return search_tree(tiny_bundle(ends=14.0), "ab <b> & de", beam=2)


def test_as_text(tree: SearchTree) -> None:
    text = tree_text(tree)
    assert text.count("\nstep ") == max(len(path) for path in _paths(tree.root))
    assert text.count("  best ") == 1
    assert tree.reason in text
    assert len(re.findall(r"log P +-?\d", text)) >= len(list(_paths(tree.root)))


def test_as_a_page(tree: SearchTree) -> None:
    page = tree_page(tree)
    assert "ab &lt;b&gt; &amp; de" in page
    assert "<b>" not in page
    assert not re.search(r"<script|src=|href=|https?://", page)
    assert page.count("<circle") == 1 + len(list(_paths(tree.root)))
    assert page.count("<path") == len(list(_paths(tree.root)))


def test_looking_changes_no_bit() -> None:
    bundle = tiny_bundle(ends=14.0)
    before = Translator(bundle).translate(TEXTS)
    state = {name: tensor.clone() for name, tensor in bundle.model.state_dict().items()}
    search_tree(bundle, TEXTS[0])
    assert Translator(bundle).translate(TEXTS) == before
    assert all(torch.equal(tensor, state[name]) for name, tensor in bundle.model.state_dict().items())
