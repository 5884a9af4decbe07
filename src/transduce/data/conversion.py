"""Parallel text from any format into any other, and into parts for training, validation and testing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from transduce.counts import counted
from transduce.data.corpora import choose_held_out
from transduce.data.formats.folders import files_of, read_pairs
from transduce.data.formats.pair import Pair
from transduce.data.formats.pair_file import FORMATS, read_pair_file
from transduce.data.formats.sides import Wanted
from transduce.data.formats.tally import Tally
from transduce.data.formats.two_files import read_two_files
from transduce.data.formats.writing import TEXT, output_format, text_names, write_pairs
from transduce.errors import DataError, UsageError
from transduce.files import made_folder, same_file

Name = str | Path


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What is read: files or folders with both sides, then files of two sides."""

    pairs: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    wanted: Wanted = field(default_factory=Wanted)
    kind: str = ""
    """The format of ``pairs`` where their names do not tell it."""

    def __post_init__(self) -> None:
        if len(self.source) != len(self.target):
            raise UsageError(
                f"{len(self.source)} source and {counted(len(self.target), 'target file')}; name as many of "
                "one as of the other"
            )
        if not self.pairs and not self.source:
            raise UsageError("nothing to read is named; name files, or --source and --target")

    def read(self, tally: Tally) -> Iterator[Pair]:
        """All pairs, with their text as it is in the files; what is left out is counted in ``tally``."""
        for corpus, path in enumerate(self.pairs):
            if self.kind:
                yield from read_pair_file(path, self.wanted, tally, corpus, self.kind)
            else:
                yield from read_pairs(path, self.wanted, tally, corpus)
        for corpus, (one, other) in enumerate(zip(self.source, self.target, strict=True), len(self.pairs)):
            yield from read_two_files(one, other, tally, corpus)

    def files(self) -> list[str]:
        """The names of all files that are read."""
        both = [name for path in self.pairs for files in files_of(path, self.wanted) for name in files]
        return [*both, *self.source, *self.target]


@dataclass(frozen=True)
class Converted:
    """How many pairs were written, and what a person should know of them."""

    pairs: int
    notes: list[str]


def convert(inputs: Inputs, output: Name, *, kind: str = "") -> Converted:
    """The pairs of ``inputs`` in one file, or two of text; the name ``output`` or ``kind`` tells the format.

    Nothing is there if anything is wrong. UsageError where the output is read as well.
    """
    tally = Tally()
    check_outputs(inputs, [output], kind)
    first, pairs = peeked(inputs.read(tally))
    languages = languages_of(inputs.wanted, tally, first)
    written = write_pairs(pairs, output, languages, tally, kind)
    return Converted(written, tally.lines())


def check_outputs(inputs: Inputs, outputs: Sequence[Name], kind: str) -> None:
    """Nothing; UsageError where one of the outputs is an input, or of no format that can be written."""
    for name in written_names(inputs, outputs, kind):
        if any(same_file(name, read) for read in inputs.files()):
            raise UsageError(f"{name}: is read as well; name another output")


def written_names(inputs: Inputs, outputs: Sequence[Name], kind: str) -> list[Name]:
    """The files that the outputs will be; UsageError for a format that cannot be written."""
    names: list[Name] = []
    for output in outputs:
        if output_format(output, kind) == TEXT and inputs.wanted.both:
            names += text_names(output, inputs.wanted)
        else:
            names.append(output)
    return names


def peeked(pairs: Iterator[Pair]) -> tuple[Pair | None, Iterator[Pair]]:
    """The first pair, and all of them: the languages of a file are known once it was read so far."""
    first = next(pairs, None)
    return first, pairs if first is None else chain([first], pairs)


def languages_of(wanted: Wanted, tally: Tally, first: Pair | None) -> Wanted:
    """The languages that were asked for, else as the first file names them."""
    source, target = tally.languages if first is not None else ("", "")
    return Wanted(wanted.source or source, wanted.target or target)


@dataclass(frozen=True)
class Split:
    """The three parts that were written, and how many pairs are in each."""

    files: dict[str, str]
    pairs: dict[str, int]
    left_out: int
    """Pairs whose source is in the validation or test part with another pair."""
    notes: list[str]


def split(
    inputs: Inputs, folder: Name, *, valid: int = 1000, test: int = 1000, seed: int = 1, kind: str = TEXT
) -> Split:
    """Files ``train``, ``valid`` and ``test`` in ``folder``; no source text is in two of them.

    ``valid`` and ``test`` pairs with different sources are drawn by the seed, whatever the order of the
    corpus; all others are for training, except for those that repeat a source that was drawn. What is read
    must be there to be read twice: no standard input. DataError where too few pairs are there.
    """
    if valid < 0 or test < 0:
        raise UsageError(f"{valid} validation and {counted(test, 'test pair')}: ask for 0 or more")
    if "-" in (*inputs.pairs, *inputs.source, *inputs.target):
        raise UsageError("standard input can be read once only, and a split reads twice; name a file")
    tally = Tally()
    drawn = choose_held_out(inputs.read(tally), valid + test, seed) if valid + test else []
    notes = tally.lines()
    if len(drawn) < valid + test:
        raise DataError(
            f"{', '.join(inputs.files())}: {counted(len(drawn), 'different source text')}, but {valid:,} "
            f"validation and {counted(test, 'test pair', 'are')} wanted; ask for fewer"
        )
    first, _ = peeked(inputs.read(tally))
    languages = languages_of(inputs.wanted, tally, first)
    ending = (
        "" if kind == TEXT else f".{kind}" if kind not in FORMATS else next(iter(FORMATS[kind][0]), ".xml")
    )
    names = {part: str(Path(folder) / f"{part}{ending}") for part in ("train", "valid", "test")}
    for name in names.values():
        check_outputs(inputs, [name], kind)
        if output_format(name, kind) == TEXT:
            text_names(name, languages)  # UsageError where the languages are not known
    told = Tally()
    with made_folder(folder):
        counts, met = _write_parts(
            inputs, drawn, _drawn_again(drawn, test, seed), names, languages, told, kind
        )
    return Split(names, counts, met - len(drawn), [*notes, *told.lines()])


def _write_parts(
    inputs: Inputs,
    drawn: Sequence[Pair],
    tests: Set[str],
    names: Mapping[str, str],
    languages: Wanted,
    told: Tally,
    kind: str,
) -> tuple[dict[str, int], int]:
    """How many pairs each part has, and how many pairs have a source that was drawn; the files are there."""
    parts = {
        "test": [pair for pair in drawn if pair.source.strip() in tests],
        "valid": [pair for pair in drawn if pair.source.strip() not in tests],
    }
    counts = {part: write_pairs(parts[part], names[part], languages, told, kind) for part in parts}
    sources = {pair.source.strip() for pair in drawn}
    met = 0

    def rest() -> Iterator[Pair]:
        nonlocal met
        for pair in inputs.read(Tally()):
            if pair.source.strip() in sources:
                met += 1
            else:
                yield pair

    counts["train"] = write_pairs(rest(), names["train"], languages, told, kind)
    return counts, met


def _drawn_again(drawn: Sequence[Pair], count: int, seed: int) -> set[str]:
    """The sources of ``count`` of these pairs, by another draw of the same seed."""
    key = f"test {seed}".encode()
    texts = sorted(
        (pair.source.strip() for pair in drawn),
        key=lambda text: hashlib.blake2b(text.encode(), digest_size=8, key=key).digest(),
    )
    return set(texts[:count])
