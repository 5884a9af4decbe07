"""Attention maps: shapes, sums, masks and labels; and that looking changes nothing."""

from __future__ import annotations

import torch

from tiny_translator import tiny_bundle
from transduce.inspection.attention_maps import attention_maps
from transduce.inspection.render import attention_grid


def test_shapes_sums_masks_and_labels() -> None:
    bundle = tiny_bundle()
    source, target = "a small dog runs", "ein kleiner hund"
    maps = attention_maps(bundle, source, target)
    config = bundle.model.config
    n, t = (len(bundle.tokenizer.encode(text)) + 1 for text in (source, target))
    assert maps.encoder.shape == (config.encoder_layers, config.heads, n, n)
    assert maps.decoder.shape == (config.decoder_layers, config.heads, t, t)
    assert maps.cross.shape == (config.decoder_layers, config.heads, t, n)
    for weights in (maps.encoder, maps.decoder, maps.cross):
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]), atol=1e-6, rtol=0)
    future = torch.ones(t, t).triu(1).bool()
    assert torch.all(maps.decoder[:, :, future] == 0)
    assert len(maps.source) == n
    assert len(maps.target_in) == len(maps.target_out) == t
    # the row that predicts y_t has read y_(t-1)
    assert maps.target_in[1:] == maps.target_out[:-1]
    assert list(maps.source[:-1]) == bundle.tokenizer.pieces(source)


def test_looking_changes_no_bit() -> None:
    bundle = tiny_bundle()
    source, target = torch.tensor([[5, 9, 7, 1]]), torch.tensor([[0, 8, 6]])
    with torch.no_grad():
        before = bundle.model(source, target)
        attention_maps(bundle, "one two", "eins zwei")
        after = bundle.model(source, target)
    assert torch.equal(before, after)


def test_the_maps_are_what_the_model_computes_with() -> None:
    # weights times values, through W^O, must give the layer's own output
    model = tiny_bundle().model
    layer = model.encoder.layers[0].self_attention
    x = torch.randn(1, 5, model.config.d_model, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        q, past = layer.project(x)
        by_hand = layer.o((layer.weights(q, past) @ past.values).transpose(1, 2).flatten(2))
        torch.testing.assert_close(layer(q, past), by_hand, atol=1e-6, rtol=1e-5)


def test_the_grid_shades_what_is_looked_at() -> None:
    weights = torch.tensor([[1.0, 0.0], [0.3, 0.7]])
    grid = attention_grid(weights, ["eins", "\u2581zwei"], ["one", "two"])
    lines = grid.split("\n")
    assert [line.split() for line in lines[:3]] == [["o", "t"], ["n", "w"], ["e", "o"]]
    assert lines[3] == " eins ██"
    assert lines[4] == "·zwei ░░▓▓"
    narrow = attention_grid(torch.rand(1, 80), ["x"], ["y"] * 80, width=42)
    assert "60 more columns do not fit in 42 characters" in narrow
