"""The corpus and the model that several chapters look at: made on first use, and kept under build/reading."""

from __future__ import annotations

import hashlib
import io
import os
import re
from collections import Counter
from pathlib import Path

from transduce import train
from transduce.data.corpus.generator import generate, split_of

ROOT = Path(__file__).parents[2]
GENERATED, WORDS, LONGEST = 150_000, 300, 7
# An eighth as wide as the paper's base model and a third as deep; norm, positions and smoothing are its own.
SETTINGS = {
    "data.vocabulary": 800,
    "model.d_model": 64,
    "model.d_ff": 256,
    "model.heads": 4,
    "model.encoder_layers": 2,
    "model.decoder_layers": 2,
    "model.norm": "post",
    "model.dropout": 0.0,
    "training.batch_tokens": 1024,
    "training.schedule": "paper",
    "training.rate": 5e-3,
    "training.warmup": 150,
    "training.max_steps": 700,
    "training.save_every": 20,
    "training.average": 5,
    "training.valid_every": 700,
    "training.valid_lines": 30,
    "training.report_every": 50,
    "training.threads": 1,
}


def folder() -> Path:
    """Where everything lies that was made by this version of the toolkit and of this file."""
    if "READING_FOLDER" in os.environ:
        return Path(os.environ["READING_FOLDER"])
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for path in sorted((ROOT / "src" / "transduce").rglob("*.py")):
        digest.update(path.read_bytes())
    return ROOT / "build" / "reading" / digest.hexdigest()[:12]


def corpus() -> Path:
    """The folder with train, valid and test, .en and .de: the embedded corpus, but few words and short lines.

    Of so many generated pairs those are kept whose English side has at most ``LONGEST`` words, all of them
    among the ``WORDS`` most frequent ones. Which split a pair is in, the embedded corpus says; held-out pairs
    do not repeat.
    """
    here = folder()
    if not (here / "test.de").exists():
        here.mkdir(parents=True, exist_ok=True)
        short = [pair for pair in generate(GENERATED, 1) if pair[0].count(" ") < LONGEST]
        counts = Counter(word for english, _ in short for word in _words(english))
        known = {word for word, _ in counts.most_common(WORDS)}
        chosen = [pair for pair in short if known.issuperset(_words(pair[0]))]
        for split in ("train", "valid", "test"):
            pairs = [pair for pair in chosen if split_of(pair[1]) == split]
            if split != "train":
                pairs = list(dict.fromkeys(pairs))[:300]
            for side, name in enumerate(("en", "de")):
                text = "".join(f"{pair[side]}\n" for pair in pairs)
                (here / f"{split}.{name}").write_text(text, encoding="utf-8")
    return here


def pairs(split: str) -> list[tuple[str, str]]:
    """The pairs of a split, English and German."""
    sides = [(corpus() / f"{split}.{name}").read_text(encoding="utf-8").splitlines() for name in ("en", "de")]
    return list(zip(*sides, strict=True))


def model() -> Path:
    """The folder of the model, which has its checkpoints and prepared data in it."""
    here = corpus()
    made = here / "model"
    if not (made / "config.json").exists():
        held_out = {f"data.valid_{name}": [str(here / f"valid.{side}")] for name, side in
                    (("source", "en"), ("target", "de"))}  # fmt: skip
        train(
            made,
            source=here / "train.en",
            target=here / "train.de",
            preset="tiny",
            settings={**SETTINGS, **held_out},
            overwrite=True,
            stream=io.StringIO(),
        )
    return made


def _words(sentence: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]", sentence.lower())
