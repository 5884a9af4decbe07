"""Attention maps as files: arrays, JSON, pictures, and one page for a browser that needs no network."""

from __future__ import annotations

import base64
import io
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from transduce.errors import UsageError
from transduce.figures import figure, write_figure
from transduce.files import atomic_writer
from transduce.inspection.attention_maps import KINDS, AttentionMaps

SUFFIXES = (".npz", ".json", ".svg", ".png", ".html")
_STEPS = 255


def write_attention(maps: AttentionMaps, path: str | Path, *, kind: str = "cross", layer: int = -1) -> None:
    """Nothing; ``path`` holds the maps in the format of its suffix, one of `SUFFIXES`.

    .npz, .json and .html hold all layers and heads; a picture holds the heads of one ``layer`` (counted from
    0; -1: the last) of one ``kind``. Raises UsageError for another suffix or layer, or where a picture needs
    the extra ``plots``.
    """
    path = Path(path)
    if path.suffix == ".npz":
        content = _npz(maps)
    elif path.suffix == ".json":
        content = (json.dumps(as_lists(maps), ensure_ascii=False) + "\n").encode()
    elif path.suffix == ".html":
        content = attention_page(maps).encode()
    elif path.suffix in (".svg", ".png"):
        _picture(maps, kind, layer, path)
        return
    else:
        raise UsageError(f"{path}: the suffix says the format; use one of {', '.join(SUFFIXES)}")
    with atomic_writer(path) as file:
        file.write(content)


def labels(maps: AttentionMaps, kind: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the rows (who looks) and the columns (what is looked at) of the maps of ``kind`` stand for.

    A decoder's row is the token that it is about to predict.
    """
    rows = {"encoder": maps.source, "decoder": maps.target_out, "cross": maps.target_out}[kind]
    return rows, maps.target_in if kind == "decoder" else maps.source


def as_lists(maps: AttentionMaps) -> dict[str, Any]:
    """Labels and weights ready for JSON: weights[layer][head][row][column], to six digits."""
    weights = {kind: np.round(getattr(maps, kind).numpy().astype(np.float64), 6).tolist() for kind in KINDS}
    return {
        "source": list(maps.source),
        "target_in": list(maps.target_in),
        "target_out": list(maps.target_out),
        **weights,
    }


def _npz(maps: AttentionMaps) -> bytes:
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {kind: getattr(maps, kind).numpy() for kind in KINDS}
    # Of fixed-width characters, so that the file holds no Python objects.
    names: dict[str, Any] = {
        name: np.array(getattr(maps, name)) for name in ("source", "target_in", "target_out")
    }
    np.savez_compressed(buffer, **arrays, **names)
    return buffer.getvalue()


def attention_page(maps: AttentionMaps) -> str:
    """One HTML page that shows every layer and head, with everything it needs inside."""
    folder = files("transduce.inspection") / "page"
    page, style, script = (
        (folder / name).read_text(encoding="utf-8")
        for name in ("attention.html", "attention.css", "attention.js")
    )
    # "<" would end the element that holds the data, whatever the text is.
    data = json.dumps(page_data(maps), ensure_ascii=False).replace("<", "\\u003c")
    for mark, content in (("/*STYLE*/", style), ("/*SCRIPT*/", script), ("/*DATA*/", data)):
        page = page.replace(mark, content, 1)
    return page


def page_data(maps: AttentionMaps) -> dict[str, Any]:
    """What the page reads: labels, and the weights of each kind in steps of 1/255, base64.

    They stand layer by layer, head by head, row by row. Of the decoder, which never looks ahead, a row holds
    only what it may see: one more weight than the row before.
    """
    found: dict[str, Any] = {}
    for kind in KINDS:
        weights = getattr(maps, kind)
        rows, columns = labels(maps, kind)
        flat = weights
        if kind == "decoder":
            seen = torch.ones(weights.shape[2:], dtype=torch.bool).tril()
            flat = weights[:, :, seen]
        steps = (flat * _STEPS).round().to(torch.uint8).numpy().tobytes()
        found[kind] = {
            "layers": weights.shape[0],
            "heads": weights.shape[1],
            "rows": list(rows),
            "columns": list(columns),
            "weights": base64.b64encode(steps).decode(),
        }
    return found


def _picture(maps: AttentionMaps, kind: str, layer: int, path: Path) -> None:
    if kind not in KINDS:
        raise UsageError(f"attention of kind {kind!r}; choose one of {', '.join(KINDS)}")
    weights: Float[Tensor, "layers heads rows columns"] = getattr(maps, kind)
    if not -1 <= layer < len(weights):
        raise UsageError(f"layer {layer} of {len(weights)}; layers count from 0, and -1 is the last")
    rows, columns = labels(maps, kind)
    heads = weights.shape[1]
    across = min(4, heads)
    down = -(-heads // across)
    size = (across * (1.2 + 0.16 * len(columns)), down * (1.2 + 0.16 * len(rows)))
    drawn = figure(*size)
    for head, axes in enumerate(drawn.subplots(down, across, squeeze=False).flat):
        if head >= heads:
            axes.set_axis_off()
            continue
        axes.imshow(weights[layer, head].numpy(), vmin=0.0, vmax=1.0, cmap="Greys", aspect="auto")
        axes.set_title(f"head {head + 1}", fontsize=8)
        axes.set_xticks(range(len(columns)), [_shown(label) for label in columns], rotation=90, fontsize=6)
        axes.set_yticks(range(len(rows)), [_shown(label) for label in rows], fontsize=6)
    drawn.suptitle(f"{kind}, layer {layer % len(weights) + 1}", fontsize=9)
    write_figure(drawn, path)


def _shown(label: str) -> str:
    """A subword as matplotlib can show it: its mark for a space as a dot, and no formula between dollars."""
    label = label.replace("\u2581", "\u00b7").replace("$", r"\$")
    return "".join(c if c.isprintable() else "?" for c in label)
