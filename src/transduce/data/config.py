"""Settings of the data: which files, which subwords, which pairs are used."""

from __future__ import annotations

import math
from dataclasses import dataclass

from transduce.data.formats.sides import Wanted
from transduce.errors import ConfigError

SMALLEST_VOCABULARY = 300
"""256 byte pieces and 4 reserved ids leave 40 for characters and subwords: only toys want fewer."""


_VALIDATION = ("valid_source", "valid_target", "valid_tsv", "validation")


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """What to train on. 0 and "" mean: chosen from the data, and said in the log."""

    source: tuple[str, ...] = ()
    """Text files in the source language, one sentence a line, or subtitles, or SGM test sets; compressed
    files are read through."""
    target: tuple[str, ...] = ()
    """As many files as ``source``, aligned line by line."""
    tsv: tuple[str, ...] = ()
    """Files with source, TAB, target on each line; may be given besides or instead of the above."""
    pairs: tuple[str, ...] = ()
    """Files or folders that hold both sides, in a format that their names tell: translation memories,
    catalogs, tables and so on; see docs/data.md."""
    weights: tuple[float, ...] = ()
    """The share of each corpus in an epoch, to be divided by their sum: one number for each pair of
    ``source`` and ``target``, then for each of ``tsv``, then of ``pairs``. None: every pair once an epoch."""
    valid_source: tuple[str, ...] = ()
    valid_target: tuple[str, ...] = ()
    valid_tsv: tuple[str, ...] = ()
    validation: tuple[str, ...] = ()
    """Files to validate on that hold both sides, as ``pairs``."""
    vocabulary: int = 0
    """Size of the shared subword vocabulary."""
    subwords: str = "bpe"
    """How subwords are learned: ``bpe`` or ``unigram``."""
    tokenizer: str = ""
    """Path of a sentencepiece model of ours to use instead of training one."""
    tokenizer_sample: int = 2_000_000
    """At most so many lines (both languages together), drawn at random, teach the subwords."""
    max_length: int = 0
    """Longest side in tokens, its EOS counted; longer pairs are dropped and counted. 0: the model's."""
    valid_pairs: int = 0
    """So many pairs are held out of training when no validation files are given."""
    source_language: str = ""
    """Which language of ``pairs`` and ``validation`` is the source; ``de`` means ``de-DE`` too."""
    target_language: str = ""

    def __post_init__(self) -> None:
        self._check_files()
        self._check_weights()
        for name, value, least, remedy in (
            (
                "vocabulary",
                self.vocabulary,
                SMALLEST_VOCABULARY,
                "256 bytes and 4 reserved ids are part of it",
            ),
            ("max_length", self.max_length, 2, "the EOS counts as one token"),
            ("valid_pairs", self.valid_pairs, 1, "a validation set is needed to choose a model"),
        ):
            if value != 0 and value < least:
                raise ConfigError(
                    f"data.{name} is {value}; use {least} or more ({remedy}), or 0 to have it chosen"
                )
        if self.subwords not in ("bpe", "unigram"):
            raise ConfigError(f'data.subwords is "{self.subwords}"; expected "bpe" or "unigram"')
        if self.tokenizer and self.vocabulary:
            raise ConfigError(
                f"data.vocabulary is {self.vocabulary} and data.tokenizer is {self.tokenizer}: the tokenizer "
                "brings its own vocabulary; give only one of them"
            )
        if self.valid_pairs and (self.valid_source or self.valid_tsv or self.validation):
            raise ConfigError(
                f"data.valid_pairs is {self.valid_pairs}, but validation files are given, so no pairs are "
                "held out; leave out one of them"
            )
        if self.tokenizer_sample < 1:
            raise ConfigError(f"data.tokenizer_sample is {self.tokenizer_sample}; use at least 1 line")

    @property
    def corpora(self) -> tuple[str, ...]:
        """The names of the corpora, in the order of their weights and of their pairs."""
        return (*self.source, *self.tsv, *self.pairs)

    @property
    def wanted(self) -> Wanted:
        """The languages to read where files hold several."""
        return Wanted(self.source_language, self.target_language)

    def _check_weights(self) -> None:
        if self.weights and len(self.weights) != len(self.corpora):
            raise ConfigError(
                f"data.weights holds {len(self.weights)} numbers for {len(self.corpora)} corpora; give one "
                "for each pair of data.source and data.target, then for each of data.tsv, then of data.pairs"
            )
        for weight in self.weights:
            if not (math.isfinite(weight) and weight > 0):
                raise ConfigError(
                    f"data.weights holds {weight:g}; a weight is a finite number above 0: leave out a corpus "
                    "that is not wanted"
                )

    def _check_files(self) -> None:
        for one, other in (("source", "target"), ("valid_source", "valid_target")):
            files, others = getattr(self, one), getattr(self, other)
            if len(files) != len(others):
                raise ConfigError(
                    f"data.{one} names {len(files)} files but data.{other} names {len(others)}; "
                    "give the aligned files of both in the same order"
                )
        for name in ("source", "target", "tsv", "pairs", *_VALIDATION):
            if "-" in getattr(self, name):
                raise ConfigError(f"data.{name} is standard input, but is read more than once; use a file")
            if "" in getattr(self, name):
                raise ConfigError(f"data.{name} holds an empty file name; name a file or leave it out")
