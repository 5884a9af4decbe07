"""Attention as files: each format holds the same weights and labels, and none can run code or reach out."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tiny_translator import tiny_bundle
from transduce.errors import UsageError
from transduce.inspection.attention_files import attention_page, labels, page_data, write_attention
from transduce.inspection.attention_maps import KINDS, AttentionMaps, attention_maps


@pytest.fixture(scope="module")
def maps() -> AttentionMaps:
    return attention_maps(
        tiny_bundle(decoder_layers=3), "a small dog </script> runs", "ein <b> hund & so $x$"
    )


def test_arrays(maps: AttentionMaps, tmp_path: Path) -> None:
    write_attention(maps, tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz", allow_pickle=False) as found:
        for kind in KINDS:
            np.testing.assert_array_equal(found[kind], getattr(maps, kind).numpy())
        assert tuple(found["source"]) == maps.source
        assert tuple(found["target_out"]) == maps.target_out


def test_json(maps: AttentionMaps, tmp_path: Path) -> None:
    write_attention(maps, tmp_path / "a.json")
    found = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert found["target_in"] == list(maps.target_in)
    for kind in KINDS:
        torch.testing.assert_close(torch.tensor(found[kind]), getattr(maps, kind), atol=1e-6, rtol=0)


def _weights(kind: str, part: dict[str, Any]) -> np.ndarray:
    """What the page's script makes of its data: the same walk, written again."""
    steps = np.frombuffer(base64.b64decode(part["weights"]), np.uint8)
    rows, columns = len(part["rows"]), len(part["columns"])
    shape = part["layers"], part["heads"], rows, columns
    if kind != "decoder":
        return steps.reshape(shape) / 255
    full = np.zeros(shape)
    steps = steps.reshape(*shape[:2], -1)
    for row in range(rows):
        begin = row * (row + 1) // 2
        full[:, :, row, : row + 1] = steps[:, :, begin : begin + row + 1] / 255
    return full


def test_the_page_holds_every_weight(maps: AttentionMaps) -> None:
    for kind, part in page_data(maps).items():
        np.testing.assert_allclose(_weights(kind, part), getattr(maps, kind).numpy(), atol=0.5 / 255 + 1e-6)
        assert (tuple(part["rows"]), tuple(part["columns"])) == labels(maps, kind)


def test_the_page_is_whole_and_alone(maps: AttentionMaps) -> None:
    page = attention_page(maps)
    assert page.count("</script>") == 2  # its own; text that looks like one cannot end it
    assert "/*" not in re.sub(r'<script type="application/json".*?</script>', "", page, flags=re.DOTALL)
    assert not re.search(r"(src|href)\s*=|url\(|@import|fetch\(|https?://(?!www\.w3\.org/2000/svg)", page)
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    assert json.loads(data[1]) == page_data(maps)


def test_a_large_page_stays_small() -> None:
    def weights(rows: int, columns: int) -> torch.Tensor:
        return torch.rand(6, 8, rows, columns).softmax(-1)

    tokens = tuple(f"\u2581wort{i}" for i in range(101))
    large = AttentionMaps(
        weights(101, 101), weights(101, 101).tril(), weights(101, 101), tokens, tokens, tokens
    )
    assert len(attention_page(large).encode()) < 2_000_000


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_pictures(maps: AttentionMaps, tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the extra plots")
    first, second, other = (tmp_path / f"{name}.{suffix}" for name in "abc")
    write_attention(maps, first, kind="encoder", layer=0)
    write_attention(maps, second, kind="encoder", layer=0)
    write_attention(maps, other, kind="encoder", layer=1)
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes() != other.read_bytes()


def test_what_cannot_be_written(maps: AttentionMaps, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"a.pdf: the suffix says the format; use one of .npz"):
        write_attention(maps, tmp_path / "a.pdf")
    with pytest.raises(UsageError, match="layer 3 of 3"):
        write_attention(maps, tmp_path / "a.svg", layer=3)
    with pytest.raises(UsageError, match="kind 'crosss'"):
        write_attention(maps, tmp_path / "a.svg", kind="crosss")
    assert not list(tmp_path.iterdir())
