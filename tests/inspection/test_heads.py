"""Heads: statistics by hand, importance by definition, and a pruned model that is the masked one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tiny_translator import sentences, tiny_bundle
from transduce.bundle import Bundle, load_bundle, save_bundle
from transduce.cli.heads import bleu
from transduce.decoding.translator import Translator
from transduce.errors import DataError, UsageError
from transduce.inspection import heads as heads_module
from transduce.inspection.attention_maps import AttentionMaps, attentions
from transduce.inspection.head_bleu import bleu_by_masking, bleu_of_fewer_heads
from transduce.inspection.head_importance import (
    batched_pairs,
    importance_by_gradient,
    importance_by_masking,
    loss_of,
    scaled_heads,
    without_head,
)
from transduce.inspection.heads import head_statistics
from transduce.inspection.pruning import kept_heads, pruned

PAIRS = list(zip(sentences(5, seed=1, words=(2, 6)), sentences(5, seed=2, words=(2, 6)), strict=True))


def _maps(cross: list[list[float]], decoder: list[list[float]]) -> AttentionMaps:
    """Maps with one layer and head; the encoder looks like the decoder's transpose."""
    tokens = tuple("abc"[: len(decoder)])
    d = torch.tensor(decoder)[None, None]
    encoder = torch.eye(len(cross[0]))[None, None]
    source = tuple("xyz"[: len(cross[0])])
    return AttentionMaps(encoder, d, torch.tensor(cross)[None, None], source, tokens, tokens)


def test_statistics_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    cross = [[0.5, 0.5, 0.0], [0.0, 0.25, 0.75]]
    decoder = [[1.0, 0.0], [0.25, 0.75]]
    monkeypatch.setattr(heads_module, "attention_maps", lambda *_: _maps(cross, decoder))
    found = head_statistics(tiny_bundle(), [("x", "y")])
    quarter = -(0.25 * math.log2(0.25) + 0.75 * math.log2(0.75))

    def value(kind: str, name: str) -> float:
        return float(getattr(found[kind], name)[0, 0])

    assert value("encoder", "entropy") == 0
    assert value("encoder", "same") == 1
    assert value("encoder", "first") == value("encoder", "last") == pytest.approx(1 / 3)
    assert value("cross", "entropy") == pytest.approx((1 + quarter) / 2)
    assert value("cross", "distance") == pytest.approx((0.5 + 0.75) / 2)
    assert value("cross", "next") == pytest.approx((0.5 + 0.75) / 2)
    assert value("cross", "last") == pytest.approx(0.75 / 2)
    assert value("decoder", "previous") == pytest.approx(0.25 / 2)
    assert value("decoder", "first") == pytest.approx((1 + 0.25) / 2)
    assert value("decoder", "last") == pytest.approx((1 + 0.75) / 2)  # the newest that can be seen
    assert found["encoder"].agreement is None


def test_means_are_over_tokens_not_sentences() -> None:
    bundle = tiny_bundle()
    both = head_statistics(bundle, PAIRS[:2])["encoder"].entropy
    one, other = (head_statistics(bundle, [pair])["encoder"].entropy for pair in PAIRS[:2])
    n, m = (len(bundle.tokenizer.encode(source)) + 1 for source, _ in PAIRS[:2])
    torch.testing.assert_close(both, (n * one + m * other) / (n + m))


def test_agreement_with_alignments() -> None:
    bundle = tiny_bundle()
    source, target = "ab de", "gh il mn"
    weights = heads_module.attention_maps(bundle, source, target).cross.double()
    s, t = (bundle.tokenizer.encode(text) for text in (source, target))
    first = len(bundle.tokenizer.encode("ab"))
    columns = list(range(first, len(s)))  # the tokens of the word "de"
    rows = list(range(len(bundle.tokenizer.encode("gh il")), len(t)))  # those of "mn"
    expected = weights[:, :, rows][:, :, :, columns].sum(3).mean(2)
    found = head_statistics(bundle, [(source, target)], [[(1, 2)]])["cross"].agreement
    torch.testing.assert_close(found, expected)
    with pytest.raises(DataError, match="alignment of pair 1: word 2 of 2 of the source"):
        head_statistics(bundle, [(source, target)], [[(2, 0)]])


def test_no_pairs() -> None:
    with pytest.raises(DataError, match="no pairs"):
        head_statistics(tiny_bundle(), [])
    with pytest.raises(DataError, match="no pairs with text on both sides"):
        batched_pairs(tiny_bundle(), [("a", " ")])


@contextmanager
def _weights_zeroed(module: Any, head: int) -> Iterator[None]:
    """The head silenced another way: its columns of W^O are zero meanwhile."""
    kept = module.o.weight.detach().clone()
    with torch.no_grad():
        module.o.weight[:, head * module.d_v : (head + 1) * module.d_v] = 0
    yield
    with torch.no_grad():
        module.o.weight.copy_(kept)


def test_a_masked_head_adds_nothing() -> None:
    bundle = tiny_bundle(d_v=5)
    data = batched_pairs(bundle, PAIRS)
    table = importance_by_masking(bundle.model, data)
    base = loss_of(bundle.model, data)
    for kind, modules in attentions(bundle.model).items():
        for layer, module in enumerate(modules):
            for head in range(module.heads):
                with _weights_zeroed(module, head):
                    assert float(table[kind][layer, head]) == pytest.approx(
                        loss_of(bundle.model, data) - base, abs=1e-5
                    )
    assert loss_of(bundle.model, data) == base  # looking leaves nothing behind


def test_the_loss_is_the_forced_score() -> None:
    bundle = tiny_bundle()
    scores = Translator(bundle).score(PAIRS)
    # The search gives reserved ids no probability; here they keep their small one.
    said = -sum(score.log_probability for score in scores) / sum(score.length for score in scores)
    assert loss_of(bundle.model, batched_pairs(bundle, PAIRS)) == pytest.approx(said, rel=0.02)


def test_gradient_importance_is_the_mean_slope_of_each_pair() -> None:
    bundle = tiny_bundle()
    model = bundle.model.double()
    found = importance_by_gradient(model, batched_pairs(bundle, PAIRS))
    module = attentions(model)["cross"][1]
    step = 1e-5
    slopes = []
    for pair in PAIRS:
        data = batched_pairs(bundle, [pair])
        tokens = int((data[0][2] != model.config.pad_id).sum())
        sides = []
        for sign in (1, -1):
            scale = torch.ones(module.heads, dtype=torch.double)
            scale[2] += sign * step
            with scaled_heads({module: scale}):
                sides.append(loss_of(model, data) * tokens)
        slopes.append(abs(sides[0] - sides[1]) / (2 * step))
    assert float(found["cross"][1, 2]) == pytest.approx(sum(slopes) / len(slopes), rel=1e-4)
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize(
    "settings", [{}, {"d_k": 3, "d_v": 5, "attention_bias": True, "norm": "pre"}, {"positions": "rotary"}]
)
def test_a_pruned_model_is_the_masked_one(settings: dict[str, Any], tmp_path: Any) -> None:
    bundle = tiny_bundle(**settings)
    with torch.no_grad():
        for parameter in bundle.model.parameters():  # biases are zero at first
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    table = {kind: torch.rand(2, 4) for kind in attentions(bundle.model)}
    smaller = pruned(bundle, table, 2)
    kept = kept_heads(table, 2)
    scales = {}
    for kind, modules in attentions(bundle.model).items():
        for module, chosen in zip(modules, kept[kind], strict=True):
            scales[module] = torch.zeros(4).index_fill_(0, torch.tensor(chosen), 1.0)
            assert (
                min(table[kind][modules.index(module)][chosen])
                >= table[kind][modules.index(module)].sort()[0][2]
            )
    source, target = torch.tensor([[5, 9, 7, 1]]), torch.tensor([[0, 8, 6]])
    with torch.no_grad():
        with scaled_heads(scales):
            masked = bundle.model(source, target)
        torch.testing.assert_close(smaller.model(source, target), masked, atol=1e-5, rtol=1e-5)
        assert not torch.allclose(bundle.model(source, target), masked, atol=1e-3)
    assert smaller.model.config.heads == 2
    assert smaller.model.parameter_count() < bundle.model.parameter_count()
    save_bundle(tmp_path / "m", smaller.model, smaller.model.config, smaller.tokenizer, smaller.training)
    again: Bundle = load_bundle(tmp_path / "m")
    assert again.training["pruned"]["heads"] == 2
    with torch.no_grad():
        assert torch.equal(again.model(source, target), smaller.model(source, target))


def test_all_heads_kept_is_the_same_model() -> None:
    bundle = tiny_bundle()
    table = {kind: torch.rand(2, 4) for kind in attentions(bundle.model)}
    for name, tensor in pruned(bundle, table, 4).model.state_dict().items():
        assert torch.equal(tensor, bundle.model.state_dict()[name])
    for wrong in (0, 5):
        with pytest.raises(UsageError, match=f"heads is {wrong}; every attention has 4"):
            pruned(bundle, table, wrong)


def test_bleu_without_each_head(monkeypatch: pytest.MonkeyPatch) -> None:
    # Outputs that are perfect but for one head: only masking that head costs anything.
    bundle = tiny_bundle()
    module = attentions(bundle.model)["encoder"][1]
    full = [target for _, target in PAIRS]

    def translate(self: Translator, texts: list[str], **_: Any) -> list[str]:
        seen: list[Tensor] = []
        handle = module.o.register_forward_pre_hook(lambda _, x: seen.append(x[0]))
        with torch.no_grad():
            nn.Module.__call__(module.o, torch.ones(1, 1, module.heads * module.d_v))
        handle.remove()
        silent = bool((seen[0][..., : module.d_v] == 0).all())
        return ["nothing alike"] * len(texts) if silent else full

    monkeypatch.setattr(Translator, "translate", translate)
    found = bleu_by_masking(bundle, PAIRS, score=bleu)
    assert float(found["encoder"][1, 0]) < -50
    found["encoder"][1, 0] = 0
    assert all(torch.equal(table, torch.zeros_like(table)) for table in found.values())
    assert without_head(module, 0)[module].tolist() == [0, 1, 1, 1]


def test_bleu_with_fewer_heads_masks_the_least_important(monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = tiny_bundle()
    modules = attentions(bundle.model)
    table = {kind: torch.rand(2, 4) for kind in modules}
    silent: list[set[tuple[str, int, int]]] = []

    def translate(self: Translator, texts: list[str], **_: Any) -> list[str]:
        found = set()
        for kind, group in modules.items():
            for layer, module in enumerate(group):
                seen: list[Tensor] = []
                handle = module.o.register_forward_pre_hook(lambda _, x, seen=seen: seen.append(x[0]))
                with torch.no_grad():
                    module.o(torch.ones(1, 1, module.heads * module.d_v))
                handle.remove()
                heads = seen[0].view(module.heads, module.d_v)
                found |= {(kind, layer, head) for head in range(module.heads) if not heads[head].any()}
        silent.append(found)
        return [target for _, target in PAIRS]

    monkeypatch.setattr(Translator, "translate", translate)
    scores = bleu_of_fewer_heads(bundle, table, PAIRS, [0, 5, 24], score=bleu)
    assert scores == [pytest.approx(100)] * 3
    assert [len(found) for found in silent] == [0, 5, 24]
    values = {(k, layer, h): float(table[k][layer, h]) for k in table for layer in range(2) for h in range(4)}
    assert max(values[head] for head in silent[1]) <= min(v for h, v in values.items() if h not in silent[1])
