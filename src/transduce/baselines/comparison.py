"""A Transformer and its predecessors, trained alike: the same data, batches, budget and search."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from transduce.baselines.convolutional import ConvolutionalTranslator
from transduce.baselines.recurrent import RecurrentTranslator
from transduce.bundle import Bundle
from transduce.counts import counted
from transduce.data.config import DataConfig
from transduce.data.prepare import Prepared, prepare
from transduce.decoding.translator import Translator
from transduce.errors import UsageError
from transduce.evaluation.scores import score
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer
from transduce.training.bare import updates
from transduce.training.config import TrainingConfig
from transduce.training.validation import validation_loss

SYSTEMS: dict[str, type[Transformer]] = {
    "transformer": Transformer,
    "recurrent": RecurrentTranslator,
    "convolutional": ConvolutionalTranslator,
}


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How long each system learns: updates, or seconds of updates; what is reached first ends it.

    A limit of 0 is no limit.
    """

    steps: int = 0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.steps < 0 or self.seconds < 0 or not (self.steps or self.seconds):
            raise UsageError(
                f"a budget of {counted(self.steps, 'update')} and {self.seconds:g} s is none; set one above 0"
            )

    def done(self, step: int, seconds: float) -> float:
        """The share of the budget that is over."""
        shares = [step / self.steps] if self.steps else []
        shares += [seconds / self.seconds] if self.seconds else []
        return max(shares)


def compare_systems(
    data: DataConfig,
    folder: str | Path,
    *,
    model: Mapping[str, Any],
    training: TrainingConfig,
    budget: Budget,
    systems: Sequence[str] = tuple(SYSTEMS),
    rates: Mapping[str, float] | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> list[dict[str, Any]]:
    """A row for each system: parameters, updates, speed, perplexity, BLEU and chrF on the validation set.

    ``model`` are settings of `ModelConfig` that all share (widths, layers, dropout); ``rates`` are peak
    learning rates that go before ``training.rate``. ``folder`` takes the prepared data.
    """
    for name in systems:
        if name not in SYSTEMS:
            raise UsageError(f"system {name!r}; choose among {', '.join(SYSTEMS)}")
    prepared = prepare(data, folder, max_length=256, seed=training.seed, say=say)
    config = ModelConfig.from_mapping({**model, "vocabulary": prepared.tokenizer.vocabulary})
    rows = []
    for name in systems:
        own = TrainingConfig(**{**vars(training), "rate": (rates or {}).get(name, training.rate)})
        torch.manual_seed(training.seed)
        network = SYSTEMS[name](config)
        say(f"{name}: {counted(network.parameter_count(), 'parameter')}")
        learned = learn(network, prepared, own, budget, say=say)
        rows.append({"system": name, "rate": own.rate, **learned, **judge(network, prepared)})
        say(describe(rows).splitlines()[-1])
    return rows


def learn(
    model: Transformer,
    data: Prepared,
    config: TrainingConfig,
    budget: Budget,
    *,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """How many updates, tokens and seconds were spent; ``model`` has learned and is in evaluation mode.

    ``curve`` holds the perplexity since the last report, every ``config.report_every`` updates.
    """
    tokens, curve, nll, since = 0, [], 0.0, 0
    for last in updates(model, data.train, config, budget.done):
        tokens += last.seen.target_tokens
        nll, since = nll + last.seen.nll, since + last.seen.target_tokens
        if last.number % config.report_every == 0:
            perplexity = math.exp(min(20.0, nll / since))
            curve.append({"updates": last.number, "seconds": last.seconds, "perplexity": perplexity})
            nll, since = 0.0, 0
            rate = tokens / last.seconds
            say(f"update {last.number:,}, perplexity {perplexity:.2f}, {rate:,.0f} target tokens/s")
    model.eval()
    return {
        "parameters": model.parameter_count(),
        "updates": last.number,
        "seconds": last.seconds,
        "target_tokens": tokens,
        "tokens_per_second": tokens / last.seconds,
        "curve": curve,
    }


def judge(model: Transformer, data: Prepared, beam: int = 4) -> dict[str, Any]:
    """Perplexity, BLEU and chrF of the model on the validation set, and how long translating it took."""
    loss = validation_loss(model, data.valid, device="cpu", precision="fp32")
    translator = Translator(Bundle(model=model, tokenizer=data.tokenizer, training={}))
    begin = time.perf_counter()
    outputs = translator.translate([pair.source for pair in data.valid_pairs], beam=beam)
    seconds = time.perf_counter() - begin
    found = score(outputs, [pair.target for pair in data.valid_pairs], ter=False)
    return {
        "perplexity": math.exp(min(20.0, loss)),
        "bleu": found.bleu,
        "chrf": found.chrf,
        "translation_seconds": seconds,
        "signature": found.signature,
    }


def describe(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as a table."""
    lines = [
        f"{'system':15}{'parameters':>12}{'rate':>10}{'updates':>9}{'s':>8}{'tokens/s':>10}{'PPL':>8}{'BLEU':>7}"
        f"{'chrF':>7}"
    ]
    lines += [
        f"{row['system']:15}{row['parameters']:>12,}{row['rate']:>10.1e}{row['updates']:>9,}{row['seconds']:>8.0f}"
        f"{row['tokens_per_second']:>10,.0f}{row['perplexity']:>8.2f}{row['bleu']:>7.2f}{row['chrf']:>7.2f}"
        for row in rows
    ]
    return "\n".join(lines)
