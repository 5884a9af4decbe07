from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from table_models import EOS, START, markov, start, step_of
from torch import Tensor

from tiny_translator import sentences, tiny_bundle, tiny_model, tokenizer
from transduce.bundle import Bundle, save_bundle
from transduce.data.tokenizer import Tokenizer
from transduce.decoding.beam_search import beam_search
from transduce.decoding.config import SearchOptions
from transduce.decoding.ensemble import Ensemble, joint_log_p
from transduce.decoding.translation import Translation
from transduce.decoding.translator import Translator
from transduce.errors import UsageError


class Table:
    """An engine that looks up the last token."""

    name, workers = "table", 1

    def __init__(self, rows: list[list[float]]) -> None:
        self.table = torch.log(torch.tensor(rows, dtype=torch.float64))

    def start(self, source: Tensor, choice: object = None) -> Any:
        return start(len(source))

    def step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        return markov(self.table)(tokens, state)


# Token 0, the end, the start (which no output holds), token 3.
ONE = Table([[0.1, 0.6, 0.1, 0.2], [1.0, 1.0, 1.0, 1.0], [0.2, 0.1, 0.6, 0.1], [0.1, 0.8, 0.0, 0.1]])
TWO = Table([[0.7, 0.1, 0.1, 0.1], [1.0, 1.0, 1.0, 1.0], [0.1, 0.1, 0.2, 0.6], [0.3, 0.3, 0.3, 0.1]])


def test_means_by_hand() -> None:
    one, two = torch.log(torch.tensor([0.9, 0.1])), torch.log(torch.tensor([0.5, 0.5]))
    assert joint_log_p([one, two], "mean").exp().tolist() == pytest.approx([0.7, 0.3])
    # sqrt(0.45) and sqrt(0.05), which add up to 0.8944.
    assert joint_log_p([one, two], "log").exp().tolist() == pytest.approx([0.75, 0.25])
    never = torch.log(torch.tensor([1.0, 0.0]))
    assert joint_log_p([never, two], "mean").exp().tolist() == pytest.approx([0.75, 0.25])
    assert joint_log_p([never, two], "log").exp().tolist() == pytest.approx([1.0, 0.0])


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize("by", ["mean", "log"])
def test_a_step_says_the_mean_of_what_the_models_say(by: str) -> None:
    joint = Ensemble([ONE, TWO], by=by, forbidden=[2])
    source = torch.zeros((1, 1), dtype=torch.long)
    log_p, _ = joint.step(torch.tensor([START]), joint.start(source))
    # Without the start: 0.5, 0.25, 0.25 and 1/8, 1/8, 6/8.
    expected = [2.5, 1.5, 4.0] if by == "mean" else [math.sqrt(4), math.sqrt(2), math.sqrt(12)]
    whole = sum(expected)
    assert log_p[0].exp()[[0, 1, 3]].tolist() == pytest.approx([value / whole for value in expected])
    assert log_p[0, 2] == -math.inf


@pytest.mark.usefixtures("shapes_unchecked")
def test_the_search_finds_the_best_output_of_the_joint_table() -> None:
    joint = Ensemble([ONE, TWO], by="mean", forbidden=[2])
    source = torch.zeros((2, 1), dtype=torch.long)
    found = beam_search(
        joint.step,
        joint.start(source),
        max_lengths=torch.tensor([3, 6]),
        options=SearchOptions(beam=4, alpha=0.0, n_best=2),
        start_id=START,
        eos_id=EOS,
        forbidden=[2],
    )
    # 3 first (0.5), then its end: (0.8 + 3/7) / 2; the next best is 0 (5/16) and the end: (6/9 + 1/9) / 2.
    for best, second in found:
        assert best.tokens == (3, EOS)
        assert best.log_probability == pytest.approx(math.log(0.5 * (0.8 + 3 / 7) / 2))
        assert second.log_probability < best.log_probability


class ByPrefix:
    """An engine whose scores depend on all tokens so far, and on the sentence."""

    name, workers = "table", 1

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def logits(self, prefix: tuple[int, ...], sentence: int) -> Tensor:
        draw = torch.Generator().manual_seed(hash((self.seed, prefix, sentence)) % 2**62)
        return torch.randn(5, generator=draw, dtype=torch.float64) * 2

    def start(self, source: Tensor, choice: object = None) -> Any:
        return start(len(source))

    def step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        return step_of(self.logits)(tokens, state)


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize("by", ["mean", "log"])
def test_every_model_goes_on_with_the_hypotheses_that_were_kept(by: str) -> None:
    """Hypotheses are copied, dropped and reordered, and sentences leave early."""
    members, limits = [ByPrefix(1), ByPrefix(2), ByPrefix(3)], torch.tensor([2, 7, 4, 7])

    def together(prefix: tuple[int, ...], sentence: int) -> Tensor:
        rows = [member.logits(prefix, sentence) for member in members]
        for row in rows:
            row[START] = -math.inf
        return joint_log_p([row.log_softmax(0) for row in rows], by)

    settings: dict[str, Any] = {
        "max_lengths": limits,
        "options": SearchOptions(beam=4, n_best=2),
        "start_id": START,
        "eos_id": EOS,
        "forbidden": [START],
    }
    joint = Ensemble(members, by=by, forbidden=[START])
    source = torch.zeros((len(limits), 1), dtype=torch.long)
    found = beam_search(joint.step, joint.start(source), **settings)
    expected = beam_search(step_of(together), start(len(limits)), **settings)
    assert [[one.tokens for one in some] for some in found] == [
        [one.tokens for one in some] for some in expected
    ]
    for one, other in zip(itertools.chain(*found), itertools.chain(*expected), strict=True):
        assert one.score == pytest.approx(other.score)


def same(one: list[Translation], other: list[Translation]) -> bool:
    return all(
        [x.tokens for x in a.alternatives] == [y.tokens for y in b.alternatives]
        and [x.score for x in a.alternatives] == pytest.approx([y.score for y in b.alternatives], abs=1e-4)
        for a, b in zip(one, other, strict=True)
    )


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize("by", ["mean", "log"])
def test_one_model_twice_is_the_model(by: str) -> None:
    lines = [*sentences(8, seed=1, words=(1, 4)), ""]
    alone, twice = Translator(tiny_bundle()), Translator([tiny_bundle(), tiny_bundle()], ensemble_by=by)
    for options in ({"n_best": 3}, {"samples": 2, "seed": 3}, {"beam": 1}):
        settings: dict[str, Any] = {"max_extra": 6, **options}
        assert same(alone.translate_detailed(lines, **settings), twice.translate_detailed(lines, **settings))
    pairs = [("ab de", "gh il"), ("gh", "ab")]
    for one, other in zip(alone.score(pairs), twice.score(pairs), strict=True):
        assert one.token_log_probabilities == pytest.approx(other.token_log_probabilities, abs=1e-4)


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize("by", ["mean", "log"])
def test_two_models_find_outputs_of_which_both_agree_on_the_score(by: str) -> None:
    two = Translator([tiny_bundle(), tiny_bundle(seed=2, d_model=16, max_length=20)], ensemble_by=by)
    lines = sentences(6, seed=1, words=(1, 4))
    found = two.translate_detailed(lines, n_best=2, max_extra=6)
    scores = two.score([(t.source, a.tokens) for t in found for a in t.alternatives])
    for alternative, score in zip([a for t in found for a in t.alternatives], scores, strict=True):
        assert alternative.log_probability == pytest.approx(score.log_probability, abs=1e-4)
    # Each token's probability is the mean of what the models give it alone.
    alone = [Translator(bundle).score([("ab de", "gh il")])[0] for bundle in two.bundles]
    (joint,) = two.score([("ab de", "gh il")])
    pairs = zip(*(score.token_log_probabilities for score in alone), strict=True)
    for gain, (one, other) in zip(joint.token_log_probabilities, pairs, strict=True):
        if by == "mean":
            assert math.exp(gain) == pytest.approx((math.exp(one) + math.exp(other)) / 2, rel=1e-3)
        else:
            assert gain >= (one + other) / 2 - 1e-4
    # Neither may be asked for more than it takes.
    with pytest.warns(UserWarning, match="the model takes 19 and the end"):
        two.translate(["ab " * 30], max_extra=1, beam=1)


def test_models_are_in_evaluation_mode_meanwhile_and_as_before_afterwards() -> None:
    bundles = [tiny_bundle(dropout=0.5), tiny_bundle(seed=2, dropout=0.5)]
    bundles[1].model.train()
    it = Translator(bundles)
    first = it.translate_detailed(["ab de"], max_extra=3)
    assert same(first, it.translate_detailed(["ab de"], max_extra=3))
    assert [bundle.model.training for bundle in bundles] == [False, True]


def test_strangers_are_refused(tmp_path: Path) -> None:
    other = Tokenizer.train(sentences(300, seed=5), 320)
    assert other.sha256 != tokenizer().sha256
    stranger = Bundle(model=tiny_model(), tokenizer=other, training={})
    for name, bundle in (("one", tiny_bundle()), ("two", stranger)):
        save_bundle(tmp_path / name, bundle.model, bundle.model.config, bundle.tokenizer, {})
    one, two = tmp_path / "one", tmp_path / "two"
    with pytest.raises(UsageError, match=r"two: has another vocabulary than .*one; .*one/tokenizer\.model"):
        Translator.load([one, two], device="cpu")
    with pytest.raises(UsageError, match="model 2: begins its outputs with token 2, model 1 with 0"):
        Translator([tiny_bundle(), tiny_bundle(decoder_start="bos")])
    with pytest.raises(UsageError, match="ensemble_by is 'max'; choose one of mean, log"):
        Translator([tiny_bundle(), tiny_bundle()], ensemble_by="max")
    with pytest.raises(UsageError, match="name at least one model folder"):
        Translator.load([])
    assert Translator.load([one], device="cpu").translate(["ab"], max_extra=2) == Translator.load(
        one, device="cpu"
    ).translate(["ab"], max_extra=2)
