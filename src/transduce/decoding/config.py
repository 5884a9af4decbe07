"""Settings of the search (section 6.1) and of translating text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from transduce.config import build
from transduce.data.formats.languages import is_code
from transduce.decoding.protection import kinds_of
from transduce.errors import UsageError

LONG_LINES = ("split", "truncate", "error")
STOPS = ("exact", "full")
MBR = ("chrf", "bleu")
# Colder, and log P divided by it would leave the range of float32.
_COLDEST = 1e-3


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """How `beam_search` looks for the best outputs; the defaults of ``beam`` and ``alpha`` are the paper's.

    ``min_length`` counts tokens without the end; shorter outputs are never formed. ``stop`` says when a
    sentence is left: exact, when nothing alive can still win; full, also when as many outputs have ended
    among its best candidates as the beam is wide, which is sooner and may miss a better one.
    """

    beam: int = 4
    alpha: float = 0.6
    n_best: int = 1
    min_length: int = 0
    stop: str = "exact"

    def __post_init__(self) -> None:
        if self.beam < 1:
            raise UsageError(f"beam is {self.beam}; it must be at least 1 (1 is greedy search)")
        if not 1 <= self.n_best <= self.beam:
            raise UsageError(f"n_best is {self.n_best}; it must lie between 1 and the beam, {self.beam}")
        if not math.isfinite(self.alpha):
            raise UsageError(f"alpha is {self.alpha}; it must be a finite number, e.g. 0.6")
        if self.min_length < 0:
            raise UsageError(f"min_length is {self.min_length}; it must be 0 or more")
        if self.stop not in STOPS:
            raise UsageError(f"stop is {self.stop!r}; choose one of {', '.join(STOPS)}")


@dataclass(frozen=True, kw_only=True)
class SamplingOptions:
    """How `sample` draws outputs; by default from the model's own distribution.

    ``temperature`` divides log P before the softmax: below 1 what is probable becomes more so. ``top_k``
    keeps the k most probable tokens (0: all), ``top_p`` of these the fewest that reach this share. ``alpha``
    and ``min_length`` are those of the search.
    """

    samples: int = 1
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    alpha: float = 0.6
    min_length: int = 0

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise UsageError(f"samples is {self.samples}; it must be at least 1")
        if not (math.isfinite(self.temperature) and self.temperature >= _COLDEST):
            raise UsageError(
                f"temperature is {self.temperature:g}; it must be at least {_COLDEST:g}, e.g. 0.7 "
                "(beam search with a beam of 1 takes the most probable token each time)"
            )
        if self.top_k < 0:
            raise UsageError(f"top_k is {self.top_k}; it must be 1 or more, or 0 to keep all tokens")
        if not 0 < self.top_p <= 1:
            raise UsageError(
                f"top_p is {self.top_p:g}; it must be above 0 and at most 1 (1 keeps all tokens)"
            )


@dataclass(frozen=True, kw_only=True)
class TranslationOptions:
    """How a `Translator` turns lines into lines."""

    beam: int = 4
    """Hypotheses kept in the search; 1 is greedy (section 6.1)."""
    alpha: float = 0.6
    """The length penalty's exponent: scores are log P / ((5 + length) / 6)^alpha, the end counted."""
    n_best: int = 1
    """So many outputs of each line."""
    min_length: int = 1
    """Outputs of fewer tokens, the end not counted, are never formed."""
    stop: str = "exact"
    """When a line is left: ``exact`` or, sooner, ``full`` (see `SearchOptions`)."""
    max_extra: int = 50
    """An output has at most as many tokens as its own source, the end not counted, and so many more, its end
    included."""
    samples: int = 0
    """So many outputs are drawn instead of searched (see `SamplingOptions`); they depend on the line's
    text, the options and ``seed``."""
    temperature: float = 1.0
    """Of sampling: divides log P before the softmax."""
    top_k: int = 0
    """Of sampling: the most probable tokens alone; 0: all."""
    top_p: float = 1.0
    """Of sampling: the fewest tokens that reach this share."""
    seed: int = 0
    """Of sampling."""
    mbr: str = ""
    """``chrf`` or ``bleu``: the output first that has the highest expected one against the others."""
    batch_tokens: int = 0
    """Bounds sentences x beam (or samples) x tokens of the longest in a batch; 0: as suits the device."""
    long_lines: str = "split"
    """What becomes of a line with more tokens than the model is meant for: ``split`` at sentence ends,
    ``truncate`` or ``error``."""
    flag_unusual: bool = False
    """Warns of outputs that look like a copy or like endless repetition, are oddly long or short, or have
    no end; changes no output."""
    confidence: bool = False
    """Gives the confidence in each word."""
    prefix_factor: float = math.inf
    """For lines that come with a prefix: infinity keeps it, a finite factor makes the tokens that follow it
    so many times likelier."""
    no_repeat_ngram: int = 0
    """So many tokens in a row that the output has already are forbidden; 0: off."""
    repetition_penalty: float = 1.0
    """Raises the probability of a token that the output has already to this power; 1: off."""
    alignments: bool = False
    """Says which source words each output's words come from, by the attention of all decoder layers."""
    alignment_layer: int = 0
    """The same by the attention of one decoder layer, from 1; 0: the trained one, or all."""
    protect: str = ""
    """Names, with commas, what is carried through untouched: all, or some of tags, placeholders, urls,
    emails and numbers."""
    document: bool = False
    """Lines are paragraphs that are translated sentence by sentence, with their white space kept."""
    language: str = ""
    """The code of the source's language, for telling sentences apart."""
    to: str = ""
    """The language that a model of several is asked for (see `Translator.languages`)."""
    domain: str = ""
    """The kind of text that the source is said to be (see `Translator.domains`)."""
    shortlist: bool = False
    """Outputs hold no other tokens than the model's shortlist has for those of their line: that is faster,
    and scores are then those among these tokens (see `transduce.decoding.shortlist`)."""

    def __post_init__(self) -> None:
        _ = self.search  # refuses what the search refuses
        self._check_sampling()
        self._check_text()
        if self.mbr not in ("", *MBR):
            raise UsageError(f"mbr is {self.mbr!r}; choose one of {', '.join(MBR)}, or leave it out")
        if self.mbr and self.outputs < 2:
            raise UsageError(
                f"mbr is {self.mbr}, but there is one output to choose from; set samples, e.g. 32, or n_best"
            )
        if self.max_extra < 0:
            raise UsageError(f"max_extra is {self.max_extra}; it must be 0 or more")
        if self.batch_tokens < 0:
            raise UsageError(f"batch_tokens is {self.batch_tokens}; use 0 to have it chosen")
        if self.long_lines not in LONG_LINES:
            raise UsageError(f"long_lines is {self.long_lines!r}; choose one of {', '.join(LONG_LINES)}")
        if not self.prefix_factor >= 1:
            raise UsageError(
                f"prefix_factor is {self.prefix_factor}; it must be 1 or more, or inf to keep prefixes"
            )
        if self.no_repeat_ngram < 0:
            raise UsageError(f"no_repeat_ngram is {self.no_repeat_ngram}; it must be 0 (off) or more")
        if not 1 <= self.repetition_penalty < math.inf:
            raise UsageError(
                f"repetition_penalty is {self.repetition_penalty}; it must be 1 (off) or more, e.g. 1.2"
            )

    def check_prefixes(self, *, given: bool) -> None:
        """Nothing; UsageError where something is said of prefixes, and none are given."""
        if self.prefix_factor != math.inf and not given:
            raise UsageError(
                f"prefix_factor is {self.prefix_factor:g}, but no output is told how to begin; give prefixes "
                "(--prefix-file), or leave it out"
            )

    def _check_text(self) -> None:
        if self.alignment_layer and not self.alignments:
            raise UsageError(f"alignment_layer is {self.alignment_layer}, but alignments are not asked for")
        if kinds_of(self.protect) and self.alignments:
            raise UsageError("alignments are of the model's own words; leave out alignments or protect")
        if self.language and not self.document:
            raise UsageError(f"language is {self.language!r}, but lines are sentences; set document too")
        if self.language and not is_code(self.language):
            raise UsageError(
                f"language is {self.language!r}, which is no code of a language; write one such as en, de or "
                "pt-BR, or leave it out"
            )

    @property
    def search(self) -> SearchOptions:
        """The part that concerns the search."""
        return SearchOptions(
            beam=self.beam,
            alpha=self.alpha,
            n_best=self.n_best,
            min_length=self.min_length,
            stop=self.stop,
        )

    @property
    def sampling(self) -> SamplingOptions:
        """The part that concerns sampling."""
        return SamplingOptions(
            samples=self.samples,
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            alpha=self.alpha,
            min_length=self.min_length,
        )

    @property
    def rows(self) -> int:
        """The rows that a sentence takes in a batch."""
        return self.samples or self.beam

    @property
    def outputs(self) -> int:
        """The most outputs that a line can have."""
        return self.samples or self.n_best

    @property
    def one_is_chosen(self) -> bool:
        """Whether one output of a line is its translation, and not one of several."""
        return self.outputs == 1 or bool(self.mbr)

    def _check_sampling(self) -> None:
        if self.samples:
            _ = self.sampling
            if self.n_best != 1:
                raise UsageError(
                    f"n_best is {self.n_best}, but samples is {self.samples}: then nothing is searched and "
                    "every sample is given; leave out one of them"
                )
            return
        for name in ("temperature", "top_k", "top_p", "seed"):
            value = getattr(self, name)
            if value != getattr(type(self), name):
                raise UsageError(f"{name} is {value:g}, but nothing is sampled; set samples to 1 or more")

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> TranslationOptions:
        """The options with these fields; raises ConfigError, with the nearest name, for an unknown one."""
        return build(cls, values, "translation")
