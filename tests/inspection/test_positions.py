"""Positions and embeddings: what section 3.5 says holds for sinusoids and not for others."""

from __future__ import annotations

import pytest
import torch

from tiny_translator import tiny_bundle
from transduce.errors import DataError, UsageError
from transduce.inspection.neighbours import neighbours
from transduce.inspection.positions import model_positions, positions_of
from transduce.model.positional_encoding import sinusoids


def test_sinusoids_turn_linearly_and_random_rows_do_not() -> None:
    paper = positions_of("sinusoid", sinusoids(64, 32))
    assert float(paper.offset_error.max()) < 1e-12
    # PE(p) . PE(p + 5) is the same for every p, so the mean cosine is that of any pair
    rows = sinusoids(64, 32)
    one = float(rows[3] @ rows[8] / (rows[3].norm() * rows[8].norm()))
    assert float(paper.similarity[5]) == pytest.approx(one)
    assert float(paper.similarity[0]) == pytest.approx(1.0)
    other = positions_of("random", torch.randn(64, 32))
    assert float(other.offset_error.min()) > 0.5


def test_the_fit_is_the_best_one() -> None:
    table = torch.randn(30, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    error = float(positions_of("", table, offsets=2).offset_error[1])
    # the same problem as least squares: y = [[a, -b], [b, a]] x for each pair of dimensions
    total = 0.0
    for pair in (0, 2):
        x, y = table[:-2, pair : pair + 2], table[2:, pair : pair + 2]
        design = torch.cat([torch.stack([x[:, 0], -x[:, 1]], 1), torch.stack([x[:, 1], x[:, 0]], 1)])
        goal = torch.cat([y[:, 0], y[:, 1]])
        best = torch.linalg.lstsq(design, goal[:, None]).solution
        total += float((design @ best - goal[:, None]).square().sum())
    assert error == pytest.approx((total / float(table[2:].square().sum())) ** 0.5)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("sinusoid", ["sinusoid"]),
        ("t2t", ["t2t", "sinusoid"]),
        ("rotary", ["sinusoid"]),
        ("learned", ["learned, source", "learned, target", "sinusoid"]),
    ],
)
def test_the_tables_of_a_model(kind: str, names: list[str]) -> None:
    model = tiny_bundle(positions=kind, max_length=40).model
    found = model_positions(model)
    assert [of.name for of in found] == names
    assert all(of.table.shape == (40, 32) for of in found)
    if kind == "t2t":
        assert float(found[0].offset_error.max()) < 1e-5
    if kind == "learned":
        assert torch.equal(found[1].table.float(), model.target_positions.learned[:40].detach())
        assert float(found[0].offset_error.min()) > 0.5


def test_too_few_positions() -> None:
    with pytest.raises(DataError, match="10 positions are too few for offsets up to 20"):
        positions_of("", torch.randn(10, 4))


def test_neighbours_are_the_nearest_rows() -> None:
    bundle = tiny_bundle(tying="none")
    ids = bundle.tokenizer.encode("ab")
    with torch.no_grad():
        bundle.model.embeddings.source[40] = 3.0 * bundle.model.embeddings.source[ids[0]]
    found = neighbours(bundle, "ab", count=2)
    assert list(found) == [bundle.tokenizer.piece(i) for i in dict.fromkeys(ids)]
    nearest = found[bundle.tokenizer.piece(ids[0])][0]
    assert nearest.piece == bundle.tokenizer.piece(40)
    assert nearest.cosine == pytest.approx(1.0)
    assert neighbours(bundle, "ab", count=2, side="output") != found
    with pytest.raises(UsageError, match="side is 'left'"):
        neighbours(bundle, "ab", side="left")
    with pytest.raises(DataError, match="no subwords"):
        neighbours(bundle, "")
