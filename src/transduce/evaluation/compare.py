"""Several systems on one test set: whole scores, and where they differ: by length, by word, by phenomenon."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from transduce.evaluation.scores import check_lines, score, tokenised_sign
from transduce.evaluation.significance import Tested, paired_segment_tests, paired_tests

LENGTHS = (10, 20, 30, 40, 50)
"""Upper ends of the buckets of source words; one more for what is longer."""
FREQUENCIES = (0, 1, 5, 20, 100)
"""Upper ends of the buckets of how often a word of the reference stands in the training text."""
SIGNIFICANT = 0.05
_WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")

# What a source may hold that systems find hard; words of negation in English, German and French.
PHENOMENA: dict[str, Callable[[str], bool]] = {
    "question": lambda text: text.rstrip().endswith(("?", "؟", "？")),
    "number": lambda text: any(c.isdecimal() for c in text),
    "negation": lambda text: bool(
        re.search(
            r"\b(?:no|not|never|none|nothing|nobody|cannot|kein\w*|nicht|nie|nichts|niemand|pas|jamais|aucune?"
            r"|rien)\b|n['’]t\b",
            text,
            re.IGNORECASE,
        )
    ),
    "quotation": lambda text: bool(re.search(r"[\"“”„«»]", text)),
    "parentheses": lambda text: bool(re.search(r"[(\[]", text)),
    "name or other capital inside": lambda text: bool(re.search(r"[\w,;] +[A-ZÄÖÜÀ-Ý]", text)),
    "several clauses": lambda text: len(re.findall(r"[,;:–]", text)) >= 2,
}


@dataclass(frozen=True)
class Part:
    """The scores of all systems on some of the sentences, or some of the words."""

    name: str
    size: int
    scores: tuple[float, ...]


@dataclass(frozen=True)
class Differing:
    """A sentence, and each system's output with its chrF."""

    line: int
    source: str
    reference: str
    outputs: tuple[str, ...]
    scores: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """All that was found; ``tests`` by name of the test, ``parts`` by what was sorted by."""

    systems: tuple[str, ...]
    sentences: int
    whole: tuple[dict[str, Any], ...]
    tests: dict[str, list[Tested]]
    parts: dict[str, list[Part]]
    differing: list[Differing]
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return {
            "systems": list(self.systems),
            "sentences": self.sentences,
            "whole": list(self.whole),
            "tests": {name: [vars(tested) for tested in found] for name, found in self.tests.items()},
            "parts": {name: [vars(part) for part in found] for name, found in self.parts.items()},
            "differing": [vars(sentence) for sentence in self.differing],
            "warnings": list(self.warnings),
        }


def compare(
    systems: Sequence[tuple[str, Sequence[str]]],
    references: Sequence[Sequence[str]],
    sources: Sequence[str],
    *,
    training: Iterable[str] = (),
    tests: Sequence[str] = ("bootstrap", "randomisation"),
    samples: int = 0,
    shown: int = 10,
    comet: Sequence[Sequence[float]] = (),
) -> Comparison:
    """What there is to say of these outputs of one test set; significance is against the first system.

    ``training`` are lines in the target language; how often they hold a word says how rare it is (without
    them the reference's own counts). ``samples`` is for the tests (see `paired_tests`), ``shown`` the
    number of sentences that differ most; ``comet`` has each system's COMET line by line. Raises
    DataError for unequal line counts.
    """
    names = [name for name, _ in systems]
    for name, outputs in systems:
        check_lines(
            outputs,
            [*references, sources],
            [name, *(f"reference {i + 1}" for i in range(len(references))), "the source"],
        )
    columns = [list(lines) for _, lines in systems]
    odd = tuple(
        f"{name} looks tokenised ({sign})" for name, lines in systems if (sign := tokenised_sign(lines))
    )
    found = {}
    if len(systems) > 1:
        found = {test: paired_tests(systems, references, test=test, samples=samples) for test in tests}
        if comet:
            scored = list(zip(names, comet, strict=True))
            for test, rows in found.items():
                rows += paired_segment_tests(scored, "comet", test=test, samples=samples)
    whole = [_whole(lines, references) for lines in columns]
    for figures, scores in zip(whole, comet, strict=bool(comet)):
        figures["comet"] = sum(scores) / max(1, len(scores))
    return Comparison(
        systems=tuple(names),
        sentences=len(sources),
        whole=tuple(whole),
        tests=found,
        parts={
            "source words": by_group(
                columns, references, [_length_bucket(s) for s in sources], _length_names()
            ),
            "frequency of reference words": by_frequency(columns, references[0], training),
            "phenomenon of the source": by_phenomenon(columns, references, sources),
        },
        differing=most_differing(columns, references, sources, shown),
        warnings=odd,
    )


def _whole(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, Any]:
    with warnings.catch_warnings():  # text that looks tokenised is told once, in `Comparison.warnings`
        warnings.simplefilter("ignore")
        found = score(outputs, references)
    return {
        "bleu": found.bleu,
        "chrf": found.chrf,
        "ter": found.ter,
        "brevity_penalty": found.brevity_penalty,
        "signature": found.signature,
    }


def by_group(
    outputs: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    groups: Sequence[int],
    names: Sequence[str],
) -> list[Part]:
    """BLEU of every system on the sentences of each group that has any; ``groups`` says each one's number."""
    parts = []
    for group, name in enumerate(names):
        chosen = [i for i, own in enumerate(groups) if own == group]
        if chosen:
            scores = tuple(
                _bleu([o[i] for i in chosen], [[r[i] for i in chosen] for r in references]) for o in outputs
            )
            parts.append(Part(name, len(chosen), scores))
    return parts


def by_phenomenon(
    outputs: Sequence[Sequence[str]], references: Sequence[Sequence[str]], sources: Sequence[str]
) -> list[Part]:
    """BLEU of every system on the sentences whose source has each of `PHENOMENA`; one may be in several."""
    parts = []
    for name, holds in PHENOMENA.items():
        parts += by_group(outputs, references, [0 if holds(source) else 1 for source in sources], [name])
    return parts


def by_frequency(
    outputs: Sequence[Sequence[str]], reference: Sequence[str], training: Iterable[str]
) -> list[Part]:
    """F1 (in per cent) of the reference's words by how often the training text holds them.

    Words are matched sentence by sentence, each as often as it is there. Without training text the
    reference's own counts say how rare a word is.
    """
    counts = Counter(word for line in training for word in _words(line))
    known = counts or Counter(word for line in reference for word in _words(line))
    names = [_frequency_name(i) for i in range(len(FREQUENCIES) + 1)]
    wanted = [Counter(_words(line)) for line in reference]
    sizes: Counter[int] = Counter()
    for of_line in wanted:
        for word, times in of_line.items():
            sizes[_bucket(known[word], FREQUENCIES)] += times
    columns = []
    for lines in outputs:
        right, given = Counter[int](), Counter[int]()
        for line, goal in zip(lines, wanted, strict=True):
            for word, times in Counter(_words(line)).items():
                bucket = _bucket(known[word], FREQUENCIES)
                given[bucket] += times
                right[bucket] += min(times, goal[word])
        columns.append([200.0 * right[b] / max(1, given[b] + sizes[b]) for b in range(len(names))])
    return [
        Part(name, sizes[b], tuple(column[b] for column in columns))
        for b, name in enumerate(names)
        if sizes[b]
    ]


def most_differing(
    outputs: Sequence[Sequence[str]], references: Sequence[Sequence[str]], sources: Sequence[str], count: int
) -> list[Differing]:
    """The sentences between whose best and worst output the difference of chrF is largest."""
    from sacrebleu.metrics.chrf import CHRF

    chrf = CHRF()
    scores = [
        tuple(chrf.sentence_score(lines[i], [r[i] for r in references]).score for lines in outputs)
        for i in range(len(sources))
    ]
    order = sorted(range(len(sources)), key=lambda i: (min(scores[i]) - max(scores[i]), i))
    return [
        Differing(i + 1, sources[i], references[0][i], tuple(lines[i] for lines in outputs), scores[i])
        for i in order[:count]
        if max(scores[i]) > min(scores[i])
    ]


def _bleu(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    from sacrebleu.metrics.bleu import BLEU

    return float(BLEU(force=True).corpus_score(outputs, references).score)


def _words(text: str) -> list[str]:
    return _WORD.findall(text)


def _bucket(value: int, ends: Sequence[int]) -> int:
    return sum(value > end for end in ends)


def _length_bucket(source: str) -> int:
    return _bucket(len(source.split()), LENGTHS)


def _length_names() -> list[str]:
    begins = [1, *(end + 1 for end in LENGTHS)]
    return [*(f"{a} to {b}" for a, b in zip(begins, LENGTHS, strict=False)), f"{begins[-1]} and more"]


def _frequency_name(bucket: int) -> str:
    if bucket == len(FREQUENCIES):
        return f"{FREQUENCIES[-1] + 1} times and more"
    begin = FREQUENCIES[bucket - 1] + 1 if bucket else FREQUENCIES[0]
    end = FREQUENCIES[bucket]
    return "never" if end == 0 else "once" if begin == end == 1 else f"{begin} to {end} times"


def significant(tested: Tested | Mapping[str, Any]) -> bool:
    """Whether a difference counts as real: p below 0.05."""
    p = tested.p if isinstance(tested, Tested) else tested["p"]
    return p is not None and p < SIGNIFICANT
