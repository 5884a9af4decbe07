"""Models of two lines for the search: the next token depends on the last token, or on the whole prefix."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from transduce.decoding.beam_search import beam_search
from transduce.decoding.config import SearchOptions
from transduce.decoding.hypothesis import Hypothesis, length_penalty

START, EOS = 2, 1


@dataclass(frozen=True)
class Prefixes:
    """A state that remembers each row's tokens and sentence."""

    tokens: Tensor
    sentences: Tensor

    def rows(self, hypotheses: Tensor, sentences: Tensor | None = None) -> Prefixes:
        kept = self.sentences[hypotheses]
        if sentences is not None:
            # Rows must stay grouped by the sentences that are kept.
            assert sorted(set(kept.tolist())) == sorted(
                {self.sentences[i].item() for i in self._firsts(sentences)}
            )
        return Prefixes(self.tokens[hypotheses], kept)

    def _firsts(self, sentences: Tensor) -> list[int]:
        per_sentence = len(self.sentences) // len(set(self.sentences.tolist()))
        return [int(s) * per_sentence for s in sentences]


def start(sentences: int) -> Prefixes:
    return Prefixes(torch.zeros((sentences, 0), dtype=torch.long), torch.arange(sentences))


Logits = Callable[[tuple[int, ...], int], Sequence[float] | Tensor]


def step_of(logits: Logits) -> Callable[[Tensor, Prefixes], tuple[Tensor, Prefixes]]:
    """A step from logits(tokens after the start, sentence)."""

    def step(tokens: Tensor, state: Prefixes) -> tuple[Tensor, Prefixes]:
        grown = Prefixes(torch.cat([state.tokens, tokens[:, None]], 1), state.sentences)
        rows = [
            torch.as_tensor(logits(tuple(prefix[1:]), sentence), dtype=torch.float64)
            for prefix, sentence in zip(grown.tokens.tolist(), grown.sentences.tolist(), strict=True)
        ]
        return torch.stack(rows), grown

    return step


def markov(table: Tensor) -> Callable[[Tensor, Prefixes], tuple[Tensor, Prefixes]]:
    """A fast step whose logits are the table's row of the last token."""

    def step(tokens: Tensor, state: Prefixes) -> tuple[Tensor, Prefixes]:
        return table[tokens], state

    return step


def enumerated(table: Tensor, longest: int, alpha: float) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Score and tokens of every output of at most ``longest`` tokens that ends, best first."""
    log_p = table.double().log_softmax(1)
    words = [token for token in range(table.shape[0]) if token != EOS]
    every = []
    for length in range(longest):
        for body in itertools.product(words, repeat=length):
            tokens = (*body, EOS)
            total = sum(log_p[a, b].item() for a, b in zip((START, *body), tokens, strict=True))
            every.append((total / length_penalty(length + 1, alpha), tokens))
    every.sort(key=lambda pair: (-pair[0], pair[1]))
    return iter(every)


def search(
    step: Callable[..., Any], *, limits: list[int], forbidden: tuple[int, ...] = (), **options: Any
) -> list[list[Hypothesis]]:
    """What a beam search over the step finds, for a sentence per limit; ``options`` are SearchOptions."""
    return beam_search(
        step,
        start(len(limits)),
        max_lengths=torch.tensor(limits, dtype=torch.long),
        options=SearchOptions(**options),
        start_id=START,
        eos_id=EOS,
        forbidden=forbidden,
    )


def table(seed: int, symbols: int = 5, scale: float = 1.5) -> Tensor:
    """Random logits for `markov`."""
    return torch.randn(symbols, symbols, generator=torch.Generator().manual_seed(seed)) * scale


def of_probabilities(
    choices: dict[tuple[int, ...], dict[int, float]], symbols: int = 6
) -> Callable[..., Any]:
    """A step from prefix -> {token: probability}; the rest goes to token 0, which goes on for ever."""

    def logits(prefix: tuple[int, ...], _: int) -> list[float]:
        row = choices.get(prefix, {})
        rest = 1.0 - sum(row.values())
        return [
            math.log(p) if p > 0 else -math.inf
            for p in ({0: rest, **row}.get(i, 0.0) for i in range(symbols))
        ]

    return step_of(logits)
