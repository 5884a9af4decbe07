"""Settings of the data: which files, which subwords, which pairs are used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from transduce.counts import counted
from transduce.data.cleaning.config import CleaningConfig
from transduce.data.formats.sides import Wanted
from transduce.data.tags import Label, check_labels, labels, languages_of
from transduce.errors import ConfigError

Files = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[Wanted, ...]]
LABELS = ("languages", "domains", "valid_languages", "valid_domains")
"""What says of each corpus what it is."""
NO_FILES = ("weights", "weights_after_epochs", "weights_after_updates", *LABELS)
"""The lists in `DataConfig` that are not names of files."""
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
    alignments: tuple[str, ...] = ()
    """Files with the word alignments of each pair of ``source`` and ``target``, line by line as 0-0 1-2: a
    decoder layer then learns to look where they point (see `transduce.training.guided`)."""
    weights: tuple[float, ...] = ()
    """The share of each corpus in an epoch, to be divided by their sum: one number for each pair of
    ``source`` and ``target``, then for each of ``tsv``, then of ``pairs``. None: every pair once an epoch."""
    weights_after_epochs: tuple[tuple[float, ...], ...] = ()
    """Other weights from some epoch on, e.g. [[2, 1, 4], [5, 0, 1]]: after 2 epochs 1 and 4, after 5 epochs
    only the second corpus. 0 is allowed here, and in ``weights`` where there are others later."""
    weights_after_updates: tuple[tuple[float, ...], ...] = ()
    """The same by updates: the epoch ends there, and a new one begins with the new weights."""
    languages: tuple[str, ...] = ()
    """source:target of each corpus, e.g. en:de, in the order of ``weights``. A tag in front of each source
    then asks for the target language, so that one model learns several. None: no tags."""
    domains: tuple[str, ...] = ()
    """The kind of text of each corpus, as another tag in front of its sources; "" is none."""
    valid_source: tuple[str, ...] = ()
    """Files to validate on, as ``source``; without any, pairs are held out."""
    valid_target: tuple[str, ...] = ()
    """As many files as ``valid_source``, aligned line by line."""
    valid_tsv: tuple[str, ...] = ()
    """Files to validate on, as ``tsv``."""
    validation: tuple[str, ...] = ()
    """Files to validate on that hold both sides, as ``pairs``."""
    valid_languages: tuple[str, ...] = ()
    """As ``languages``, of the validation files; may be left out where all corpora have the same."""
    valid_domains: tuple[str, ...] = ()
    """As ``domains``, of the validation files."""
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
    workers: int = 0
    """So many processes turn text into tokens, with the same result; 0: one a core for large corpora."""
    ray: str = ""
    """The address of a Ray cluster whose machines turn text into tokens; ``local``: one of this machine's."""
    clean: bool = False
    """Whether training pairs are mended and dropped as ``cleaning`` says, before anything else is done."""
    cleaning: CleaningConfig = field(default_factory=CleaningConfig)
    """What ``clean`` does: the settings of cleaning."""
    source_language: str = ""
    """Which language of ``pairs`` and ``validation`` is the source; ``de`` means ``de-DE`` too. Where neither
    this nor ``target_language`` is named, ``languages`` says it of each corpus. Cleaning checks the languages
    that are named."""
    target_language: str = ""
    """The same for the target."""

    def __post_init__(self) -> None:
        self._check_files()
        self._check_weights()
        self._check_labels()
        _ = Wanted(self.source_language, self.target_language)  # refuses one language for both sides
        if self.alignments and len(self.alignments) != len(self.source):
            raise ConfigError(
                f"data.alignments names {counted(len(self.alignments), 'file')} for "
                f"{counted(len(self.source), 'pair')} of data.source and data.target; give one for each"
            )
        if self.alignments and self.clean:
            raise ConfigError(
                "data.alignments are of the text as it is, and data.clean may change it; clean it first "
                "(`transduce corpus clean`), align what is left, and leave data.clean out"
            )
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
        if self.workers < 0:
            raise ConfigError(f"data.workers is {self.workers}; use 1 or more, or 0 to have it chosen")
        if self.tokenizer_sample < 1:
            raise ConfigError(f"data.tokenizer_sample is {self.tokenizer_sample}; use at least 1 line")

    @property
    def corpora(self) -> tuple[str, ...]:
        """The names of the corpora, in the order of their weights and of their pairs."""
        return (*self.source, *self.tsv, *self.pairs)

    @property
    def wanted(self) -> tuple[Wanted, ...]:
        """The languages to read of each of ``pairs``, which may hold several."""
        return self._wanted(self.labels[len(self.source) + len(self.tsv) :])

    @property
    def valid_wanted(self) -> tuple[Wanted, ...]:
        """The same of each of ``validation``."""
        return self._wanted(self.valid_labels[len(self.valid_source) + len(self.valid_tsv) :])

    @property
    def files(self) -> Files:
        """What `read_corpora` and `count_pairs` take, of the training files."""
        return self.source, self.target, self.tsv, self.pairs, self.wanted

    @property
    def valid_files(self) -> Files:
        """The same of the validation files."""
        return self.valid_source, self.valid_target, self.valid_tsv, self.validation, self.valid_wanted

    @property
    def later_weights(self) -> tuple[tuple[float, ...], ...]:
        """When, in epochs or updates, and which weights from then on."""
        return self.weights_after_epochs or self.weights_after_updates

    @property
    def valid_corpora(self) -> tuple[str, ...]:
        """The names of the validation corpora, in their order."""
        return (*self.valid_source, *self.valid_tsv, *self.validation)

    @property
    def labels(self) -> tuple[Label, ...]:
        """What each corpus is, in the order of ``corpora``."""
        return labels(self.languages, self.domains, len(self.corpora))

    @property
    def valid_labels(self) -> tuple[Label, ...]:
        """What each validation corpus is, in the order of ``valid_corpora``."""
        count = len(self.valid_corpora)
        return labels(self.valid_languages or self.languages[:1] * count, self.valid_domains, count)

    def _wanted(self, labels: Sequence[Label]) -> tuple[Wanted, ...]:
        """What is named for all corpora, else what the label of each says."""
        if self.source_language or self.target_language:
            return (Wanted(self.source_language, self.target_language),) * len(labels)
        return tuple(languages_of(label) for label in labels)

    def _check_labels(self) -> None:
        check_labels(self.languages, self.domains, len(self.corpora))
        check_labels(self.valid_languages, self.valid_domains, len(self.valid_corpora), "valid_")
        if self.valid_languages and not self.languages:
            raise ConfigError("data.valid_languages is given without data.languages; give both or neither")
        if not self.valid_corpora:
            return
        if len(set(self.languages)) > 1 and not self.valid_languages:
            raise ConfigError(
                f"data.languages holds {', '.join(self.languages)}: say which of them the validation files "
                "are, with one of data.valid_languages for each"
            )
        if self.domains and all(self.domains) and not self.valid_domains:
            raise ConfigError(
                "every corpus has its domain, but the validation files have none; give data.valid_domains"
            )

    def _check_weights(self) -> None:
        if self.weights_after_epochs and self.weights_after_updates:
            raise ConfigError(
                "data.weights_after_epochs and data.weights_after_updates are both given; use one of them"
            )
        later = bool(self.later_weights)
        _check_weights("data.weights", self.weights, self.corpora, zero=later)
        for name in ("weights_after_epochs", "weights_after_updates"):
            before = 0.0
            for row in getattr(self, name):
                if len(row) < 2:
                    raise ConfigError(
                        f"data.{name} holds {list(row)}; expected when, and a weight for each corpus, e.g. "
                        "[2, 1, 4]"
                    )
                when, *weights = row
                if not (when > before and float(when).is_integer()):
                    raise ConfigError(
                        f"data.{name} changes the weights after {when:g}; these are whole numbers from 1 on, "
                        "each larger than the one before"
                    )
                before = when
                _check_weights(f"data.{name} after {when:g}", weights, self.corpora, zero=True)

    def _check_files(self) -> None:
        for one, other in (("source", "target"), ("valid_source", "valid_target")):
            files, others = getattr(self, one), getattr(self, other)
            if len(files) != len(others):
                raise ConfigError(
                    f"data.{one} names {counted(len(files), 'file')} but data.{other} names {len(others)}; "
                    "give the aligned files of both in the same order"
                )
        for name in ("source", "target", "tsv", "pairs", *_VALIDATION):
            if "-" in getattr(self, name):
                raise ConfigError(f"data.{name} is standard input, but is read more than once; use a file")
            if "" in getattr(self, name):
                raise ConfigError(f"data.{name} holds an empty file name; name a file or leave it out")


def _check_weights(name: str, weights: Sequence[float], corpora: Sequence[str], *, zero: bool) -> None:
    """Nothing; raises ConfigError for weights that make no sense. With ``zero`` some may be 0."""
    if weights and len(weights) != len(corpora):
        raise ConfigError(
            f"{name} holds {counted(len(weights), 'number')} for {counted(len(corpora), 'corpus')}; give one "
            "for each pair of data.source and data.target, then for each of data.tsv, then of data.pairs"
        )
    for weight in weights:
        if not (math.isfinite(weight) and (weight > 0 or (zero and weight == 0))):
            raise ConfigError(
                f"{name} holds {weight:g}; a weight is a finite number above 0: leave out a corpus "
                "that is not wanted"
            )
    if weights and not sum(weights):
        raise ConfigError(f"{name} holds only zeros; at least one corpus must be seen")
