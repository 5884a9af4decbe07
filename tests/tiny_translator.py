"""A tiny translator that was never trained: what it says is nonsense, but always the same nonsense."""

from __future__ import annotations

import functools
import random
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import torch

from transduce.bundle import Bundle, save_bundle
from transduce.data.tokenizer import EOS_ID, Tokenizer
from transduce.decoding.hypothesis import Hypothesis
from transduce.decoding.translator import Translator
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer


def sentences(count: int, *, seed: int = 0, words: tuple[int, int] = (1, 12)) -> list[str]:
    """So many lines of between so many made-up words, each ending in a full stop."""
    draw = random.Random(0)
    lexicon = ["".join(draw.choices("abdeghilmnorstuvw", k=draw.randint(2, 6))) for _ in range(60)]
    draw = random.Random(seed)
    return [" ".join(draw.choices(lexicon, k=draw.randint(*words))) + "." for _ in range(count)]


@functools.cache
def tokenizer(vocabulary: int = 320) -> Tokenizer:
    """A subword model of the made-up words."""
    return Tokenizer.train(sentences(300), vocabulary)


def tiny_model(*, seed: int = 1, ends: float = 7.0, **settings: Any) -> Transformer:
    """A model for that vocabulary, certain enough of itself that rounding cannot change what it says."""
    values = {"d_model": 32, "d_ff": 48, "heads": 4, "encoder_layers": 2, "decoder_layers": 2, **settings}
    torch.manual_seed(seed)
    model = Transformer(ModelConfig(**{"vocabulary": tokenizer().vocabulary, **values})).eval()
    with torch.no_grad():
        output = model.embeddings.output.mul_(3.0)
        if model.embeddings.output_bias is not None:
            model.embeddings.output_bias.copy_(torch.linspace(-0.5, 0.5, len(output)))
        # Ends come up about as often as in real outputs.
        end = output[model.config.eos_id]
        model.decoder.layers[-1].add_norm_3.norm.bias.copy_(ends * end / end.square().sum())
    return model


def tiny_bundle(**settings: Any) -> Bundle:
    """The model with its tokenizer."""
    return Bundle(model=tiny_model(**settings), tokenizer=tokenizer(), training={"recipe": "none"})


def tiny_translator(**settings: Any) -> Translator:
    """Both, ready to translate."""
    return Translator(tiny_bundle(**settings))


def save_tiny(folder: str | Path, **settings: Any) -> str:
    """The folder, in which model and tokenizer now are."""
    bundle = tiny_bundle(**settings)
    save_bundle(folder, bundle.model, bundle.model.config, bundle.tokenizer, {})
    return str(folder)


class Echo(Translator):
    """A translator whose model says the source again; ``heard`` has the ids of all that it was asked."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(tiny_bundle(**settings))
        self.heard: list[list[int]] = []
        self.searcher.search = self._again  # type: ignore[method-assign]
        self.searcher.stream = self._token_by_token  # type: ignore[method-assign]

    def _again(self, ids: Sequence[Sequence[int]], *_: Any) -> list[list[Hypothesis]]:
        self.heard += [list(source) for source in ids]
        return [[Hypothesis((*source, EOS_ID), -1.0, -1.0, False, ())] for source in ids]

    def _token_by_token(self, source: Sequence[int], *_: Any) -> Generator[list[int], None, Hypothesis]:
        ((output,),) = self._again([source])
        for token in source:
            yield [token]
        return output
