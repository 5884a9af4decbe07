"""The demonstration: a corpus, a model, its scores on unseen sentences, and where it looks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transduce.config import merge
from transduce.counts import counted
from transduce.data.corpus.generator import write_corpus
from transduce.data.lines import read_lines
from transduce.decoding.translator import Translator
from transduce.evaluation.scores import score
from transduce.inspection.attention_maps import attention_maps
from transduce.inspection.render import attention_grid
from transduce.training.run import train

SHOWN = 10
LONGEST = 8
SIDES = {"source": "en", "target": "de"}
# `tiny` at half its width, with small batches and rotary positions: what two slow cores can teach in minutes.
# Every sentence is seen about once, so there is nothing for dropout to guard against.
SETTINGS: dict[str, Any] = {
    "data": {"vocabulary": 3000},
    "model": {"d_model": 128, "d_ff": 512, "positions": "rotary", "dropout": 0.0},
    "training": {"batch_tokens": 512, "rate": 5e-3, "warmup": 200, "valid_every": 500, "valid_lines": 300},
}


@dataclass(frozen=True)
class DemoResult:
    """Scores on test sentences that the model has never seen; ``exact`` is the share of perfect outputs."""

    folder: Path
    lines: int
    exact: float
    bleu: float
    signature: str
    seconds: float


def demo(
    folder: str | Path,
    *,
    pairs: int = 150_000,
    lines: int = 1000,
    seed: int = 1,
    settings: dict[str, Any] | None = None,
    say: Callable[[str], None] = print,
) -> DemoResult:
    """The result of the whole path: generate, train ``tiny``, translate, score, look at the attention.

    ``lines`` is the size of the validation and of the test set. Everything lies below ``folder``
    (``corpus/`` and ``model/``), which may hold an earlier demonstration.
    """
    folder = Path(folder)
    say(f"Generating {pairs:,} English-German pairs of up to {LONGEST} words from the embedded grammar.")
    corpus, model = folder / "corpus", folder / "model"
    write_corpus(corpus, pairs, seed, valid=lines, test=lines, longest=LONGEST)
    say("Training `tiny` on them.")
    result = train(
        model,
        source=corpus / "train.en",
        target=corpus / "train.de",
        preset="tiny",
        settings=merge(
            SETTINGS,
            {"data": {f"valid_{name}": [str(corpus / f"valid.{side}")] for name, side in SIDES.items()}},
            settings or {},
        ),
        overwrite=True,
    )
    translator = Translator.load(model)
    sources, references = (list(read_lines(corpus / f"test.{side}")) for side in ("en", "de"))
    outputs = translator.translate(sources)
    scores = score(outputs, references, ter=False)
    exact = sum(o == r for o, r in zip(outputs, references, strict=True)) / len(sources)
    say(f"\nTen of {counted(len(sources), 'test sentence')}, none of them in the training corpus:\n")
    for source, reference, output in list(zip(sources, references, outputs, strict=True))[:SHOWN]:
        say(
            f"  {source}\n  {output}" + ("" if output == reference else f"\n    expected: {reference}") + "\n"
        )
    example = max(range(min(100, len(sources))), key=lambda i: (outputs[i] == references[i], len(sources[i])))
    maps = attention_maps(translator.bundle, sources[example], outputs[example])
    say("Where each German word looks (attention to the source, last layer, mean of the heads):\n")
    say(attention_grid(maps.cross[-1].mean(0), maps.target_out, maps.source))
    say(f"\nUnseen sentences: {exact:.1%} exact, BLEU {scores.bleu:.2f} ({scores.signature})")
    return DemoResult(model, len(sources), exact, scores.bleu, scores.signature, result.seconds)
