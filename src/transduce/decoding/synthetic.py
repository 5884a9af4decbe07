"""Training text that a model makes: sources for real targets, and targets for real sources.

Back-translation (Sennrich et al., 2016): a model of the other direction translates text of the target
language, and its outputs become the sources of pairs whose targets are real. Sequence-level knowledge
distillation (Kim and Rush, 2016): a teacher translates the sources of the training text, and a smaller model
learns its outputs; or those of its n best that are closest to the real targets ("interpolation").

Every line gives one line. A line that makes no pair gives an empty one, which training drops and counts.
"""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from transduce.counts import counted
from transduce.decoding.config import TranslationOptions
from transduce.decoding.job import Progress
from transduce.decoding.translation import Translation
from transduce.decoding.translator import Translator
from transduce.errors import DataError, UsageError

METHODS = ("beam", "sample")
UNFINISHED = ("drop", "keep")
# Lines that are held at a time: enough to sort by length, and any text fits into memory.
CHUNK = 10_000


@dataclass(frozen=True)
class Made:
    """What was made of one line; ``text`` is empty where there is a ``problem``: empty or unfinished."""

    text: str
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class BackTranslation:
    """How sources are made. ``method`` is beam, the likeliest ones, or sample, varied ones.

    ``beam`` is that of the search; ``top_k`` and ``temperature`` are those of sampling (top_k 0: from all
    tokens). ``drop_words`` leaves out this share of the words, and ``shuffle_words`` lets words move by at
    most so many places (Edunov et al., 2018, have 0.1 and 3 after beam search). ``seed`` and the line's text
    decide what is drawn. ``to`` and ``domain`` are what the model is asked for, as in `TranslationOptions`.
    ``unfinished`` says what becomes of an output that ran into its length limit: drop or keep.
    """

    method: str = "beam"
    beam: int = 4
    top_k: int = 0
    temperature: float = 1.0
    drop_words: float = 0.0
    shuffle_words: int = 0
    seed: int = 0
    to: str = ""
    domain: str = ""
    unfinished: str = "drop"
    batch_tokens: int = 0

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise UsageError(f"method is {self.method!r}; choose one of {', '.join(METHODS)}")
        if self.method == "beam" and (self.top_k or self.temperature != 1.0):
            raise UsageError("top_k and temperature are of sampling; set method to sample, or leave them out")
        if not 0.0 <= self.drop_words < 1.0:
            raise UsageError(f"drop_words is {self.drop_words:g}; it must be at least 0 and below 1")
        _check_unfinished(self.unfinished)
        if self.shuffle_words < 0:
            raise UsageError(f"shuffle_words is {self.shuffle_words}; it must be 0 or more")
        TranslationOptions.from_mapping(self.translation)  # refuses what is wrong with the others

    @property
    def translation(self) -> dict[str, Any]:
        """The options of the translator."""
        common = {"to": self.to, "domain": self.domain, "batch_tokens": self.batch_tokens}
        if self.method == "beam":
            return {**common, "beam": self.beam}
        drawn = {"samples": 1, "top_k": self.top_k, "temperature": self.temperature, "seed": self.seed}
        return {**common, **drawn}


@dataclass(frozen=True, kw_only=True)
class Distillation:
    """How targets are made: by a ``beam``; with ``n_best`` above 1 the closest to the reference is taken.

    The others are as in `BackTranslation`.
    """

    beam: int = 4
    n_best: int = 1
    to: str = ""
    domain: str = ""
    unfinished: str = "drop"
    batch_tokens: int = 0

    def __post_init__(self) -> None:
        _check_unfinished(self.unfinished)
        TranslationOptions.from_mapping(self.translation)

    @property
    def translation(self) -> dict[str, Any]:
        """The options of the translator."""
        return {
            "beam": self.beam,
            "n_best": self.n_best,
            "to": self.to,
            "domain": self.domain,
            "batch_tokens": self.batch_tokens,
        }


def back_translate(
    translator: Translator,
    lines: Iterable[str],
    options: BackTranslation | None = None,
    *,
    first_line: int = 1,
    progress: Progress | None = None,
) -> Iterator[Made]:
    """For each line, in order, the source that ``translator``, a model of the other direction, makes of it.

    A line of the target language without text has none, and neither has one whose output did not come to its
    end. ``lines`` are read 10,000 at a time; ``progress`` is told how many of these are done.
    """
    options = options or BackTranslation()
    for number, chunk in _chunks(lines, first_line):
        found = translator.translate_detailed(
            chunk, first_line=number, progress=progress, **options.translation
        )
        for line, translation in zip(chunk, found, strict=True):
            made = _made(line, translation, 0, options.unfinished)
            yield Made(noised(made.text, line, options), made.problem)


def distill(
    translator: Translator,
    sources: Iterable[str],
    references: Iterable[str] | None = None,
    options: Distillation | None = None,
    *,
    first_line: int = 1,
    progress: Progress | None = None,
) -> Iterator[Made]:
    """For each source, in order, the target that the teacher ``translator`` makes of it.

    With ``references`` that of its n best outputs with the highest sentence BLEU against the reference, the
    likelier one of equals. Raises UsageError where only one of references and several outputs is given,
    DataError where there are not as many references as sources.
    """
    options = options or Distillation()
    if (options.n_best > 1) != (references is not None):
        raise UsageError(
            f"n_best is {options.n_best}{' and' if references is not None else ', but'} there are "
            f"{'' if references is not None else 'no '}references; give both, or neither: the closest of "
            "several outputs is taken"
        )
    rest = None if references is None else iter(references)
    for number, chunk in _chunks(sources, first_line):
        beside = None if rest is None else list(itertools.islice(rest, len(chunk)))
        if beside is not None and len(beside) < len(chunk):
            raise DataError(
                f"{counted(number - 1 + len(beside), 'reference', 'are')} there for "
                f"{counted(number - 1 + len(chunk), 'source')} or more; give one for each"
            )
        found = translator.translate_detailed(
            chunk, first_line=number, progress=progress, **options.translation
        )
        for place, (line, translation) in enumerate(zip(chunk, found, strict=True)):
            best = 0 if beside is None else closest(translation, beside[place])
            yield _made(line, translation, best, options.unfinished)


def closest(translation: Translation, reference: str) -> int:
    """Which of the outputs has the highest sentence BLEU (sacreBLEU's); those that have an end come first."""
    from sacrebleu.metrics.bleu import BLEU

    scorer: Any = BLEU(effective_order=True)
    scores = [
        (not one.truncated, float(scorer.sentence_score(one.text, [reference]).score), -rank)
        for rank, one in enumerate(translation.alternatives)
    ]
    return -max(scores)[2]


def noised(text: str, line: str, options: BackTranslation) -> str:
    """The text with words left out and moved; what is drawn follows from the seed and ``line``."""
    words = text.split()
    if not words or not (options.drop_words or options.shuffle_words):
        return text
    seed = hashlib.blake2b(f"{options.seed}:{line}".encode(), digest_size=8)
    chance = random.Random(int.from_bytes(seed.digest()))
    kept = [word for word in words if chance.random() >= options.drop_words] or [chance.choice(words)]
    if options.shuffle_words:
        # Sorted by such numbers no word moves by more places (Lample et al., 2018).
        places = [place + chance.uniform(0, options.shuffle_words + 1) for place in range(len(kept))]
        kept = [word for _, word in sorted(zip(places, kept, strict=True), key=lambda both: both[0])]
    return " ".join(kept)


def _check_unfinished(unfinished: str) -> None:
    if unfinished not in UNFINISHED:
        raise UsageError(f"unfinished is {unfinished!r}; choose one of {', '.join(UNFINISHED)}")


def _made(line: str, translation: Translation, rank: int, unfinished: str) -> Made:
    output = translation.alternatives[rank]
    if not line.strip() or not output.text.strip():
        return Made("", "empty")
    if output.truncated and unfinished == "drop":
        return Made("", "unfinished")
    return Made(output.text)


def _chunks(lines: Iterable[str], first_line: int) -> Iterator[tuple[int, Sequence[str]]]:
    rest = iter(lines)
    while chunk := list(itertools.islice(rest, CHUNK)):
        yield first_line, chunk
        first_line += len(chunk)
