"""The steps of a preparation, each of which is skipped where an earlier one that was killed had done it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from transduce.counts import counted
from transduce.data.cleaning.filters import Filters
from transduce.data.cleaning.kept import BITS, DROPPED, Kept, clean_once
from transduce.data.cleaning.kept import FILES as CLEANING
from transduce.data.config import DataConfig
from transduce.data.corpora import choose_held_out, read_corpora, without
from transduce.data.crew import Crew
from transduce.data.formats.pair import Pair
from transduce.data.journal import Journal, sha256
from transduce.data.links import with_alignments
from transduce.data.report import Report
from transduce.data.shard_writer import usable, write_shards
from transduce.data.shards import TokenShards
from transduce.data.tags import labelled, tags_of
from transduce.data.tokenizer import Tokenizer
from transduce.errors import ConfigError, DataError
from transduce.files import atomic_writer

TOKENIZER, VALID = "tokenizer.model", "valid.jsonl"
# Fewer pairs are done before further processes have started.
FEW = 100_000
_TOLD_EVERY = 4096
# Fields of a pair that are written only where they say something.
_LABEL = ("languages", "domain", "alignment", "alignment_file")

Say = Callable[[str], None]
Tell = Callable[[str, int, int], None]
"""Told what is being done, how many pairs of it are done, and of how many."""


class Preparation:
    """What is made of the ``count`` pairs of a corpus in ``folder``; ``journal`` knows what is there."""

    def __init__(
        self,
        config: DataConfig,
        folder: Path,
        journal: Journal,
        *,
        count: int,
        seed: int,
        say: Say,
        tell: Tell,
    ) -> None:
        self.config, self.folder, self.journal = config, folder, journal
        self.count, self.seed, self.say, self.tell = count, seed, say, tell
        self.held_out: list[Pair] = []
        self._kept: Kept | None = None
        workers = config.workers if config.workers or config.ray or count >= FEW else 1
        self.crew = Crew(workers=workers, ray=config.ray)

    def pairs(self, what: str, begin: int = 0) -> Iterator[Pair]:
        """All pairs of the training files; how far they are read is told from pair ``begin`` on."""
        for number, pair in enumerate(self._read()):
            if number % _TOLD_EVERY == 0 and number > begin:
                self.tell(what, number - begin, self.count - begin)
            yield pair

    def _read(self) -> Iterator[Pair]:
        pairs = read_corpora(*self.config.files)
        if self.config.alignments:
            pairs = with_alignments(pairs, self.config.alignments)
        return labelled(self._kept.of(pairs) if self._kept else pairs, self.config.labels)

    def clean(self) -> None:
        """Nothing; from now on the training pairs are those that cleaning keeps, where it is wanted."""
        if not self.config.clean:
            for name in CLEANING:
                (self.folder / name).unlink(missing_ok=True)
            return
        filters = filters_of(self.config)
        if not self.journal.has("cleaned", BITS):
            self.say(f"cleaning {counted(self.count, 'pair')}")
            clean_once(self.pairs("cleaned"), filters, self.folder, crew=self.crew)
            self.journal.note(cleaned=sha256(self.folder / BITS))
        kept = Kept.open(filters, self.folder)
        if not kept.count:
            raise DataError(
                f"{', '.join(self.config.corpora)}: cleaning drops all {counted(self.count, 'pair')}; "
                f"{self.folder / DROPPED} says why: change the settings of cleaning, or turn it off"
            )
        self._kept, self.count = kept, kept.count

    def validation(self) -> list[Pair]:
        """The validation pairs: those of the files that were named, or pairs that are held out."""
        if any((*self.config.valid_files[:3], self.config.validation)):
            valid = list(labelled(read_corpora(*self.config.valid_files), self.config.valid_labels))
            self._write_valid(valid)
            return valid
        if self.journal.has("valid", VALID):
            self.held_out = read_pairs(self.folder / VALID)
            return self.held_out
        wanted = self.config.valid_pairs or automatic_valid_pairs(self.count)
        self.say(f"choosing {wanted:,} of {counted(self.count, 'pair')} for validation")
        self.held_out = choose_held_out(self.pairs("choosing"), wanted, self.seed)
        if self.held_out and next(without(self._read(), self.held_out), None) is None:
            raise DataError(
                f"{', '.join(self.config.corpora)}: none of {counted(self.count, 'pair')} is left to train "
                "on: all are held out for validation, or repeat one that is; give more pairs, or validation "
                "files"
            )
        self._write_valid(self.held_out)
        return self.held_out

    def _write_valid(self, pairs: Iterable[Pair]) -> None:
        write_pairs(
            self.folder / VALID, [pair for pair in pairs if pair.source.strip() and pair.target.strip()]
        )
        self.journal.note(valid=sha256(self.folder / VALID))

    def tokenizer(self, kept: Tokenizer | None) -> Tokenizer:
        """The tokenizer: the one ``kept``, that of the settings, or one that is learned from the pairs."""
        if self.journal.has("tokenizer", TOKENIZER):
            return Tokenizer.load(self.folder / TOKENIZER)
        tokenizer = kept or self._tokenizer()
        _check_languages(self.config, tokenizer)
        tokenizer.save(self.folder / TOKENIZER)
        self.journal.note(tokenizer=sha256(self.folder / TOKENIZER), train=None)
        return tokenizer

    def _tokenizer(self) -> Tokenizer:
        config = self.config
        if config.tokenizer:
            return Tokenizer.load(config.tokenizer)
        size = config.vocabulary or automatic_vocabulary(self.count)
        self.say(f"learning {size:,} {config.subwords} subwords")
        pairs = without(self.pairs("sampling"), self.held_out)
        return Tokenizer.train(
            (text for pair in pairs for text in (pair.source, pair.target)),
            size,
            subwords=config.subwords,
            sample=config.tokenizer_sample,
            seed=self.seed,
            strict=config.vocabulary > 0,
            tags=tags(config),
        )

    def shards(self, tokenizer: Tokenizer, report: Report, corpus: object) -> TokenShards:
        """The training pairs as ids; ``corpus`` says what they were made from."""
        folder = self.folder / "train"
        mark = usable(folder, self.journal.done.get("train"))
        begin = mark["report"]["pairs"] if mark else 0
        again = f", going on after {begin:,}" if begin else ""
        self.say(f"turning {counted(self.count, 'pair')} into tokens{again}")
        return write_shards(
            self.pairs("turned into tokens", begin),
            tokenizer,
            folder,
            report,
            held_out=self.held_out,
            crew=self.crew,
            mark=mark,
            marked=lambda mark: self.journal.note(train=mark),
            corpus=corpus,
            **({"aligned": True} if self.config.alignments else {}),
        )


def filters_of(config: DataConfig) -> Filters:
    """The filters of these settings; UsageError where they need what is not installed."""
    return Filters(config.cleaning, config.source_language, config.target_language)


def tags(config: DataConfig) -> list[str]:
    """All tags of the corpora and of the validation files, languages first."""
    found = {tag for label in (*config.labels, *config.valid_labels) for tag in tags_of(label)}
    return sorted(found, key=lambda tag: (not tag.startswith("<2"), tag))


def _check_languages(config: DataConfig, tokenizer: Tokenizer) -> None:
    """Nothing; raises ConfigError where a model of several languages would get sources that name none."""
    if tokenizer.languages and not config.languages:
        raise ConfigError(
            f"the tokenizer is one of a model that is told its target language "
            f"({', '.join(tokenizer.languages)}); give data.languages, e.g. en:{tokenizer.languages[0]}"
        )
    tokenizer.tag_ids(tags(config))


def automatic_vocabulary(pairs: int) -> int:
    """A joint vocabulary size that suits so many pairs; the paper has 37,000 for 4.5 million."""
    for limit, size in ((10_000, 4_000), (200_000, 8_000), (1_000_000, 16_000), (3_000_000, 24_000)):
        if pairs < limit:
            return size
    return 37_000


def automatic_valid_pairs(pairs: int) -> int:
    """How many pairs to hold out: one in twenty, at most 1,000."""
    return max(1, min(1_000, pairs // 20))


def write_pairs(path: Path, pairs: list[Pair]) -> None:
    """Nothing; the file holds the pairs, one JSON object a line."""
    with atomic_writer(path) as file:
        for pair in pairs:
            fields = {name: value for name, value in pair._asdict().items() if name not in _LABEL or value}
            file.write(json.dumps(fields).encode() + b"\n")


def read_pairs(path: Path) -> list[Pair]:
    """What `write_pairs` wrote; DataError where it is not there or not whole."""
    try:
        return [Pair(**json.loads(line)) for line in path.read_bytes().split(b"\n") if line]
    except (OSError, ValueError, TypeError):
        raise DataError(f"{path}: is missing or damaged; prepare the data again") from None
