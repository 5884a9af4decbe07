"""The attention page in a browser: opened without network, clicked, and compared with the weights."""

from __future__ import annotations

from pathlib import Path

import pytest

from browser import page_of
from tiny_translator import tiny_bundle
from transduce.inspection.attention_files import write_attention
from transduce.inspection.attention_maps import AttentionMaps, attention_maps

SOURCE, TARGET = "ab <script>alert(1)</script> de", "gh il & mn"


@pytest.fixture(scope="module")
def maps() -> AttentionMaps:
    return attention_maps(tiny_bundle(decoder_layers=3, encoder_layers=1), SOURCE, TARGET)


def test_choosing_pointing_and_holding(maps: AttentionMaps, tmp_path: Path) -> None:
    write_attention(maps, tmp_path / "a.html")
    with page_of((tmp_path / "a.html").as_uri()) as page:
        assert page.locator("select").nth(0).input_value() == "cross"
        assert page.locator("select").nth(1).input_value() == "2"  # the last layer
        assert page.locator(".overview button").count() == 3 * 4
        tokens = page.locator(".token")
        assert tokens.count() == len(maps.source) + len(maps.target_out)
        # where a target token looks is what the arrays say
        page.locator('.token[data-side="row"][data-index="1"]').hover()
        weights = maps.cross[2, 0, 1]
        shown = maps.source[int(weights.argmax())].replace("\u2581", "\u00b7")
        assert f"looks at {shown} {round(float(weights.max()) * 100)} %" in page.locator(".told").inner_text()
        assert page.locator("svg line").count() == int((weights >= 0.0099).sum())
        # held, it stays while others are pointed at
        page.locator('.token[data-side="row"][data-index="1"]').click()
        held = page.locator(".told").inner_text()
        page.locator('.token[data-side="column"][data-index="0"]').hover()
        assert page.locator(".told").inner_text() == held
        page.locator('.token[data-side="row"][data-index="1"]').click()
        page.locator('.token[data-side="column"][data-index="0"]').hover()
        assert "is looked at by" in page.locator(".told").inner_text()


def test_layers_heads_and_kinds(maps: AttentionMaps, tmp_path: Path) -> None:
    write_attention(maps, tmp_path / "a.html")
    with page_of((tmp_path / "a.html").as_uri()) as page:
        page.locator('.overview button[data-layer="1"][data-head="2"]').click()
        assert page.locator("select").nth(1).input_value() == "1"
        assert page.locator("select").nth(2).input_value() == "2"
        page.locator("select").nth(0).select_option("encoder")
        assert page.locator(".overview button").count() == 1 * 4
        assert page.locator('.overview button[aria-pressed="true"]').count() == 1
        page.locator("select").nth(0).select_option("decoder")
        page.locator('.token[data-side="row"][data-index="0"]').focus()
        assert "looks at <start> 100 %" in page.locator(".told").inner_text()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 360)])
def test_it_fits_dark_and_narrow_screens(
    maps: AttentionMaps, tmp_path: Path, scheme: str, width: int
) -> None:
    write_attention(maps, tmp_path / "a.html")
    options = {"color_scheme": scheme, "viewport": {"width": width, "height": 800}}
    with page_of((tmp_path / "a.html").as_uri(), **options) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        # a dark page has light ink, also in the canvases
        ink = page.evaluate(
            "(() => { const c = document.querySelector('.matrix canvas');"
            " const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
            " for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 24) return d[i]; return -1; })()"
        )
        assert ink > 128 if scheme == "dark" else ink < 128
