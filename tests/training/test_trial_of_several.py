"""The largest shape is tried by all of several workers before step 1, sharded or not, and all agree."""

from __future__ import annotations

import json
from pathlib import Path

from fleet import ended, fleet
from several import HOW, SHARDED, call_of, events

from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer
from transduce.training.config import TrainingConfig
from transduce.training.distributed import Workers
from transduce.training.rehearsal import ShardedTrial

ONLY_THE_SECOND = {"memory": {"1": 60}}  # tokens


def test_what_does_not_fit_on_one_fits_on_none(tmp_path: Path) -> None:
    auto = {**HOW, "fit_micro_batch": True, "max_epochs": 0, "max_steps": 1}
    calls = [
        call_of(tmp_path, "found", auto, **ONLY_THE_SECOND),
        call_of(tmp_path, "found-sharded", {**auto, **SHARDED}, **ONLY_THE_SECOND),
        call_of(tmp_path, "refused", {**HOW, **SHARDED, "micro_batch_tokens": 200}, **ONLY_THE_SECOND),
    ]
    with fleet(tmp_path, calls, 2) as processes:
        for code, said in ended(processes):
            assert code == 2, said
            # each says it of itself, and neither waits for the other
            assert "training.micro_batch_tokens is 200, but an update of" in said
            assert "tokens does not fit in the memory of cpu; use training.micro_batch_tokens=" in said
    for name in ("found", "found-sharded"):
        recipe = json.loads((tmp_path / name / "training.json").read_bytes())["recipe"]["training"]
        assert 40 <= recipe["micro_batch_tokens"] <= 60
        assert recipe["batch_tokens"] == HOW["batch_tokens"]
    assert not events(tmp_path / "refused", "train")


def test_a_shard_needs_less_the_more_share_it() -> None:
    """By hand, for four workers: a quarter of everything, and whole what is gathered at a time."""
    model = Transformer(ModelConfig.named("tiny", vocabulary=1000))
    trial = ShardedTrial.__new__(ShardedTrial)
    trial.model, trial.workers, trial.config = model, Workers(0, 4), TrainingConfig()
    counts = {
        name: sum(parameter.numel() for parameter in part.parameters())
        for name, part in (("all", model), ("layer", model.decoder.layers[0]))
    }
    layers = [*model.encoder.layers, *model.decoder.layers]
    rest = counts["all"] - sum(p.numel() for layer in layers for p in layer.parameters())
    weights_gradients_moments = 4 * counts["all"] / 4 * 4
    gathered = (rest + 2 * counts["layer"]) * (4 + 4)
    assert trial.held() == weights_gradients_moments + gathered - 4 * counts["all"]
