"""Guided alignment: the term by hand, its gradients, and runs with it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from several import HOW, assert_same_weights, call_of
from toy import Said

from tiny_translator import tiny_model
from transduce.data.formats.text_pair import read_text_pair
from transduce.data.links import TokenLinks, links_of
from transduce.data.shards import TokenShards
from transduce.decoding.alignment import trained_layer
from transduce.decoding.translator import Translator
from transduce.errors import ConfigError
from transduce.model.attention_record import recorded_weights
from transduce.training.guided import Guide
from transduce.training.run import train
from transduce.training.step import Batch, batch_loss

# Target tokens 0 and 2 of row 0 and token 1 of row 1 are linked.
LINKS = TokenLinks(
    np.array([0, 0, 0, 1]), np.array([0, 0, 2, 1]), np.array([1, 2, 0, 1]),
    np.array([0.5, 0.5, 1.0, 1.0], np.float32),
)  # fmt: skip


def _guide(layer: int = 1, weight: float = 0.3) -> Guide:
    return Guide.of(LINKS, "cpu", layer=layer, weight=weight)


def _batch(guide: Guide | None) -> Batch:
    source = torch.tensor([[5, 6, 7, 1], [8, 9, 1, 0]])
    target_in, target_out = (
        torch.tensor([[0, 5, 6, 7], [0, 8, 9, 0]]),
        torch.tensor([[5, 6, 7, 1], [8, 9, 1, 0]]),
    )
    return Batch(source, target_in, target_out, 7, 7, guide=guide)


def test_the_term_by_hand() -> None:
    # Two heads whose mean is known: 0.5, 0.25 and 0.25 everywhere.
    weights = torch.tensor([[0.8, 0.1, 0.1], [0.2, 0.4, 0.4]])[None, :, None, :].expand(2, 2, 3, 3)
    expected = -0.3 * (0.5 * math.log(0.25) + 0.5 * math.log(0.25) + math.log(0.5) + math.log(0.25))
    assert _guide().loss(weights).item() == pytest.approx(expected)
    # An attention of 0 costs much, and nothing infinite.
    assert torch.isfinite(_guide().loss(torch.zeros(2, 2, 3, 3)))


def test_the_loss_is_the_words_and_the_attentions() -> None:
    model = tiny_model(decoder_layers=3, dropout=0.0)
    plain, nll = batch_loss(model, _batch(None), smoothing=0.1, scale=0.25)
    guided, same_nll = batch_loss(model, _batch(_guide(layer=2)), smoothing=0.1, scale=0.25)
    attention = model.decoder.layers[1].cross_attention
    batch = _batch(None)
    with recorded_weights([attention]) as recorded:
        model.features(batch.target_in, model.start(batch.source))
    mean = recorded[attention].mean(1).detach()
    term = -sum(
        share * math.log(mean[row, t, s])
        for row, t, s, share in zip(*(part.tolist() for part in LINKS), strict=True)
    )
    assert guided.item() == pytest.approx(plain.item() + 0.25 * 0.3 * term, rel=1e-5)
    assert same_nll.item() == nll.item()


def test_gradients_reach_the_layer_and_what_is_below_it_and_not_what_is_above() -> None:
    model = tiny_model(decoder_layers=3, dropout=0.0).train()
    losses = [
        batch_loss(model, _batch(guide), smoothing=0.0, scale=1.0)[0] for guide in (_guide(layer=2), None)
    ]
    parameters = dict(model.named_parameters())
    one, other = (torch.autograd.grad(loss, list(parameters.values()), retain_graph=True) for loss in losses)
    moved = {
        name for name, a, b in zip(parameters, one, other, strict=True) if not torch.allclose(a, b, atol=1e-7)
    }
    assert "decoder.layers.1.cross_attention.q.weight" in moved
    assert "decoder.layers.1.cross_attention.kv.weight" in moved
    assert any(name.startswith("decoder.layers.0.") for name in moved)
    assert any(name.startswith("encoder.") for name in moved)
    assert not any(name.startswith("decoder.layers.2.") for name in moved)


def test_what_is_trained_is_looked_at() -> None:
    model = tiny_model(decoder_layers=2, dropout=0.0).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(40):
        loss, _ = batch_loss(model, _batch(_guide(weight=1.0)), smoothing=0.0, scale=1.0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    attention, batch = model.decoder.layers[0].cross_attention, _batch(None)
    with recorded_weights([attention]) as recorded, torch.no_grad():
        model.features(batch.target_in, model.start(batch.source))
    mean = recorded[attention].mean(1)
    assert mean[0, 0].argmax().item() in (1, 2)
    assert mean[0, 2].argmax().item() == 0
    assert mean[1, 1, 1] > 0.8


def _aligned_call(folder: Path, name: str, **how: Any) -> dict[str, Any]:
    """A toy corpus whose targets are reversed: word i belongs to word n - 1 - i."""
    call = call_of(folder, name, {**HOW, **how})
    file = folder / "links"
    words = [len(line.split()) for line in Path(call["source"]).read_text("utf-8").splitlines()]
    lines = [" ".join(f"{i}-{n - 1 - i}" for i in range(n)) for n in words]
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    call["settings"]["data"]["alignments"] = [str(file)]
    call["settings"]["model"]["decoder_layers"] = 2
    return call


def _run(call: dict[str, Any], **more: Any) -> Path:
    named = {name: value for name, value in call.items() if name != "output"}
    return train(Path(call["output"]), **named, stream=Said(), **more).folder


def test_a_run_keeps_the_links_of_every_pair_and_goes_on_exactly(tmp_path: Path) -> None:
    varying = {"sample_source": 0.2, "upper_case": 0.2}
    whole = _run(_aligned_call(tmp_path, "whole", **varying))
    _run(_aligned_call(tmp_path, "parts", **varying, max_steps=3))
    parts = _run(_aligned_call(tmp_path, "parts", **varying), resume=True)
    assert_same_weights(parts, whole)
    shards, translator = TokenShards.open(whole / "data" / "train"), Translator.load(whole)
    tokenizer = translator.bundle.tokenizer
    files = [tmp_path / name for name in ("200.en", "200.de")]
    lines = (tmp_path / "links").read_text("utf-8").splitlines()
    wanted = {
        (pair.source, pair.target): links_of(pair._replace(alignment=line)).tolist()
        for pair, line in zip(read_text_pair(*files), lines, strict=True)
    }
    for index in range(len(shards)):
        key = tuple(tokenizer.decode(side.tolist()) for side in (shards.source(index), shards.target(index)))
        assert shards.links(index).tolist() == wanted[key]  # type: ignore[index]
    assert trained_layer(translator.bundle.training, 2) == 1
    assert translator.aligner().layer == 1
    plain = call_of(tmp_path, "plain", HOW)
    plain["settings"]["model"]["decoder_layers"] = 2
    folder = _run(plain)
    assert not TokenShards.open(folder / "data" / "train").aligned
    assert Translator.load(folder).aligner().layer == 0


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"compile": True}, r"training\.compile is on, but alignments guide"),
        ({"recompute_layers": True}, r"training\.recompute_layers is on"),
        ({"guided_layer": 3}, r"guided_layer is 3, but the decoder has 2 layers; choose 1 to 2"),
    ],
)
def test_what_does_not_go_together_is_refused(
    setting: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transduce.training.composition.compiled", lambda *_, **__: None)
    with pytest.raises(ConfigError, match=message):
        _run(_aligned_call(tmp_path, "run", **setting))
