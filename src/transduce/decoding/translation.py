"""What a translator gives back for one line: the outputs with their scores, and what to tell of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from transduce.data.tokenizer import Tokenizer
from transduce.decoding.hypothesis import Hypothesis, explain_score, length_penalty
from transduce.decoding.segmentation import join_parts
from transduce.decoding.sources import Source


@dataclass(frozen=True)
class OutputPart:
    """What one part of a line became: the tokens of both, and the characters at which both begin."""

    source_ids: tuple[int, ...]
    source_begin: int
    tokens: tuple[int, ...]
    begin: int


@dataclass(frozen=True)
class Alternative:
    """One output of a line. ``length`` is the number of tokens that the length penalty counts.

    ``token_log_probabilities``, the end's included, add up to ``log_probability``. Where they were asked for,
    ``word_confidences`` has the confidence in each word (see `confidence`; None in what ``protect`` put in),
    ``expected`` the expected chrF or BLEU by which the choice was made (see `minimum_risk`), ``total`` and
    ``model_scores`` those by which it was reranked (see `reranking`), and ``alignment`` pairs (source word,
    output word), counted from 0. Words are what ``str.split()`` makes of the texts.
    """

    text: str
    score: float
    log_probability: float
    length: int
    truncated: bool
    tokens: tuple[int, ...]
    token_log_probabilities: tuple[float, ...] = field(default=(), repr=False)
    word_confidences: tuple[float | None, ...] | None = None
    expected: float | None = None
    total: float | None = None
    model_scores: tuple[float, ...] | None = None
    alignment: tuple[tuple[int, int], ...] | None = None
    parts: tuple[OutputPart, ...] = field(default=(), repr=False)

    @property
    def confidence(self) -> float:
        """The geometric mean of the tokens' probabilities, the end counted: exp(log P / length)."""
        return math.exp(self.log_probability / self.length) if self.length else 1.0

    def explain(self, alpha: float) -> str:
        """The arithmetic of the score in one line."""
        return explain_score(self.log_probability, self.length, alpha)


@dataclass(frozen=True)
class Translation:
    """The outputs of one line, best first (at least one), and warnings that name the line."""

    source: str
    alternatives: tuple[Alternative, ...]
    warnings: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The best output; never with a line feed, nor, but in a document, white space at its ends."""
        return self.alternatives[0].text

    @property
    def alignment(self) -> tuple[tuple[int, int], ...] | None:
        """Which source words the best output's words come from; None unless ``alignments`` was asked for."""
        return self.alternatives[0].alignment

    def explain(self, alpha: float) -> list[str]:
        """How the score of each output comes about, and its rank by score, one line each."""
        order = sorted(range(len(self.alternatives)), key=lambda i: -self.alternatives[i].score)
        ranks = {i: rank for rank, i in enumerate(order, 1)}
        return [
            f"output {i + 1}, rank {ranks[i]}: {alternative.explain(alpha)}"
            for i, alternative in enumerate(self.alternatives)
        ]

    @property
    def truncated(self) -> bool:
        """Whether the best output ran into the length limit before its end."""
        return self.alternatives[0].truncated


def assemble(
    source: Source, found: Sequence[Sequence[Hypothesis]], tokenizer: Tokenizer, *, alpha: float
) -> Translation:
    """The translation of a line from the hypotheses of its parts.

    A line in several parts has as its i-th output the parts' i-th ones (their last where they have fewer),
    with log P and length summed and scored by the same formula. An empty line has one empty output.
    """
    if not source.ids:
        blank = source.indent + source.trail
        return Translation(source.text, (Alternative(blank, 0.0, 0.0, 0, False, ()),), source.warnings)
    source_begins = [0, *accumulate(len(part.text) + len(part.separator) for part in source.parts[:-1])]
    alternatives = []
    for rank in range(max(len(hypotheses) for hypotheses in found)):
        chosen = [hypotheses[min(rank, len(hypotheses) - 1)] for hypotheses in found]
        decoded = [tokenizer.decode(hypothesis.tokens) for hypothesis in chosen]
        line, begins = join_parts(source.parts, [output.strip() for output in decoded])
        # Tokens include the white space that is stripped, so a part may begin before its text.
        cut = len(line) - len(line.lstrip()) - len(source.indent)
        starts = [
            begin - cut - (len(output) - len(output.lstrip()))
            for begin, output in zip(begins, decoded, strict=True)
        ]
        log_probability = sum(hypothesis.log_probability for hypothesis in chosen)
        length = sum(hypothesis.length for hypothesis in chosen)
        alternatives.append(
            Alternative(
                text=source.indent + line.strip() + source.trail,
                score=log_probability / length_penalty(length, alpha),
                log_probability=log_probability,
                length=length,
                truncated=any(hypothesis.truncated for hypothesis in chosen),
                tokens=tuple(token for hypothesis in chosen for token in hypothesis.tokens),
                token_log_probabilities=tuple(
                    gain for hypothesis in chosen for gain in hypothesis.token_log_probabilities
                ),
                parts=tuple(
                    OutputPart(ids, source_begin, hypothesis.tokens, start)
                    for ids, source_begin, hypothesis, start in zip(
                        source.ids, source_begins, chosen, starts, strict=True
                    )
                ),
            )
        )
    return Translation(source.text, tuple(alternatives), source.warnings)
