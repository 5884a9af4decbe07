"""Parallel text from Python, as the command ``transduce corpus`` has it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from transduce.data.cleaning.clean import clean
from transduce.data.cleaning.config import CleaningConfig
from transduce.data.cleaning.filters import Filters
from transduce.data.cleaning.report import CleaningReport
from transduce.data.cleaning.scores import ByScore
from transduce.data.conversion import Converted, Inputs, Split, convert, split
from transduce.data.crew import Crew
from transduce.data.formats.pair import Pair
from transduce.data.formats.sides import Wanted
from transduce.data.formats.tally import Tally
from transduce.data.getting import get as get_corpus
from transduce.data.information import Information, describe
from transduce.data.tokenizer import Tokenizer

__all__ = ["clean_corpus", "convert_corpus", "describe_corpus", "get_corpus", "read_corpus", "split_corpus"]
Names = str | Path | Sequence[str | Path]


def read_corpus(
    pairs: Names, *, source_language: str = "", target_language: str = "", tally: Tally | None = None
) -> Iterator[Pair]:
    """The pairs of files or folders of any format, each with its file and line.

    What is left out is counted in ``tally``, where one is given.
    """
    return _inputs(pairs, source_language, target_language).read(tally or Tally())


def describe_corpus(
    pairs: Names,
    *,
    source_language: str = "",
    target_language: str = "",
    tokenizer: str | Path | None = None,
) -> Information:
    """Counts, lengths, scripts and repeats of files or folders; tokens with a model folder or tokenizer."""
    tally, known = Tally(), None
    if tokenizer is not None:
        path = Path(tokenizer)
        known = Tokenizer.load(path / "tokenizer.model" if path.is_dir() else path)
    inputs = _inputs(pairs, source_language, target_language)
    return describe(inputs.read(tally), tally, inputs.wanted, known)


def convert_corpus(
    pairs: Names, output: str | Path, *, source_language: str = "", target_language: str = "", kind: str = ""
) -> Converted:
    """The pairs of files or folders in another format, which the output's name or ``kind`` tells."""
    return convert(_inputs(pairs, source_language, target_language), output, kind=kind)


def split_corpus(
    pairs: Names,
    folder: str | Path,
    *,
    source_language: str = "",
    target_language: str = "",
    valid: int = 1000,
    test: int = 1000,
    seed: int = 1,
    kind: str = "text",
) -> Split:
    """Files train, valid and test in ``folder``; no source text is in two of them."""
    inputs = _inputs(pairs, source_language, target_language)
    return split(inputs, folder, valid=valid, test=test, seed=seed, kind=kind)


def clean_corpus(  # noqa: PLR0913 - all but the first two by name, as in the command line
    pairs: Names,
    output: str | Path,
    *,
    source_language: str = "",
    target_language: str = "",
    config: CleaningConfig | None = None,
    dropped: str | Path = "",
    by_score: ByScore | None = None,
    workers: int = 1,
    kind: str = "",
) -> CleaningReport:
    """What became of the pairs of files or folders: the good ones are in ``output``, the others beside it.

    ``config`` says what is mended and dropped, ``by_score`` whether models judge pairs as well (see
    `PairScorer`). ``dropped`` names the side file (``.jsonl`` or ``.tsv``, also ``.gz``, ``.zst``).
    """
    inputs = _inputs(pairs, source_language, target_language)
    filters = Filters(config or CleaningConfig(), source_language, target_language)
    crew = Crew(workers=workers)
    return clean(inputs, output, filters, kind=kind, dropped=dropped, by_score=by_score, crew=crew)


def _inputs(pairs: Names, source_language: str, target_language: str) -> Inputs:
    names = [pairs] if isinstance(pairs, str | Path) else pairs
    return Inputs(pairs=tuple(str(name) for name in names), wanted=Wanted(source_language, target_language))
