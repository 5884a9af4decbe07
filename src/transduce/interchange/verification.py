"""Whether two models are the same: log P of known outputs token by token, translations, and sizes.

The pairs are made of the model's own subwords, so that any two models of one vocabulary can be compared
without data: sources and targets of 1 to 90 tokens, in one batch, so that wrong masks, positions and start
symbols show as well as wrong weights.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from pathlib import Path

import torch

from transduce.bundle import CONFIG, TOKENIZER, TRAINING, WEIGHTS
from transduce.counts import counted
from transduce.data.formats.two_files import read_side
from transduce.decoding.pairs import Ids
from transduce.errors import DataError, UsageError
from transduce.interchange.format import Opened
from transduce.interchange.formats import open_model, recognise

LENGTHS = (1, 2, 3, 5, 8, 12, 16, 20, 25, 30, 35, 40, 45, 50, 55, 60, 68, 76, 83, 90)
SEED = 7
# The most that log P of a token may differ by, and its mean over all tokens, by what weights are stored in.
BOUNDS = {
    "float32": (1e-3, 1e-3),
    "float16": (0.1, 0.01),
    "bfloat16": (0.5, 0.05),
    "int8": (3.0, 0.3),
}
# The most that a stored value may differ by, as a part of the greatest one in its tensor.
ROUNDING = {"float32": 1e-6, "float16": 2**-10, "bfloat16": 2**-8, "int8": 1 / 100}


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How far two models agree; differences are those of log P of one token.

    ``bound`` and ``mean_bound`` are what they may be at most. ``bleu`` and ``equal_lines`` are of a given
    test set, None without one; ``sizes`` are in bytes.
    """

    pairs: int
    tokens: int
    largest: float
    mean: float
    at: tuple[int, int]
    bound: float
    mean_bound: float
    sizes: tuple[int, int]
    bleu: tuple[float, float] | None = None
    equal_lines: tuple[int, int] | None = None

    @property
    def good(self) -> bool:
        """Whether the two are one model, as far as their precision lets them."""
        return self.largest <= self.bound and self.mean <= self.mean_bound

    def lines(self) -> list[str]:
        """The comparison in a few lines of text."""
        told = [
            f"log P of {counted(self.tokens, 'token')} of {counted(self.pairs, 'pair')}: differs by at most "
            f"{self.largest:.2g} (bound {self.bound:g}), {self.mean:.2g} on average (bound "
            f"{self.mean_bound:g})"
        ]
        if self.bleu is not None and self.equal_lines is not None:
            one, other = self.bleu
            same, all_lines = self.equal_lines
            told.append(
                f"BLEU {one:.2f} and {other:.2f}; {same:,} of {counted(all_lines, 'line', 'are')} translated "
                "alike"
            )
        told.append(f"{self.sizes[0]:,} and {counted(self.sizes[1], 'byte')}")
        return told


def verify(
    one: str | Path,
    other: str | Path,
    *,
    source: str | Path | None = None,
    reference: str | Path | None = None,
) -> Comparison:
    """How far two models agree, ours or exported in any format (see `docs/interchange.md`).

    With ``source`` and ``reference`` both translate the test set as well. Raises DataError where their
    vocabularies differ: then they are not one model.
    """
    check_test_set(source, reference)
    paths = Path(one), Path(other)
    first, second = open_model(one), open_model(other)
    return compare(first, second, paths=paths, source=source, reference=reference)


def check_test_set(source: object, reference: object) -> None:
    """Nothing; UsageError where one half of a test set is missing."""
    if (source is None) != (reference is None):
        raise UsageError("a test set is a source and its reference: give both, or neither")


def compare(
    one: Opened,
    other: Opened,
    *,
    paths: tuple[Path, Path],
    source: str | Path | None = None,
    reference: str | Path | None = None,
) -> Comparison:
    """How far two opened models agree; ``paths`` say where they lie."""
    _check_vocabularies(one, other, paths)
    pairs = built_in_pairs(one, most=min(one.max_length, other.max_length))
    sources, targets = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    found = [model.forced(sources, targets) for model in (one, other)]
    differences = {
        (pair, token): abs(a - b) if math.isfinite(a - b) else math.inf
        for pair, rows in enumerate(zip(*found, strict=True))
        for token, (a, b) in enumerate(zip(*rows, strict=True))
    }
    at = max(differences, key=differences.__getitem__)
    bounds = [BOUNDS[model.precision] for model in (one, other)]
    bleu, equal = _on_test_set(one, other, source, reference)
    return Comparison(
        pairs=len(pairs),
        tokens=len(differences),
        largest=differences[at],
        mean=sum(differences.values()) / len(differences),
        at=at,
        bound=max(bound for bound, _ in bounds),
        mean_bound=max(bound for _, bound in bounds),
        sizes=(size(paths[0]), size(paths[1])),
        bleu=bleu,
        equal_lines=equal,
    )


def built_in_pairs(model: Opened, *, most: int) -> list[tuple[Ids, Ids]]:
    """Sources without, targets with their end, of 1 to 90 tokens but at most ``most`` with the end.

    They are drawn among the subwords that an output may hold, the same ones each time.
    """
    drawn = random.Random(SEED)
    left_out = {*model.forbidden, model.eos_id}
    allowed = [index for index in range(len(model.pieces)) if index not in left_out]
    lengths = [min(length, most - 1) for length in LENGTHS]
    # A long source meets short and long targets alike.
    others = drawn.sample(lengths, len(lengths))
    return [
        (
            tuple(drawn.choices(allowed, k=length)),
            (*drawn.choices(allowed, k=other - 1), model.eos_id),
        )
        for length, other in zip(lengths, others, strict=True)
    ]


def first_difference(one: Opened, other: Opened) -> str | None:
    """The first tensor of ``one`` that is stored otherwise in ``other``, in words; None where all agree."""
    rounding = max(ROUNDING[model.precision] for model in (one, other))
    stored = dict(other.weights())
    for name, tensor in one.weights():
        if name not in stored:
            continue
        found = stored[name]
        if found.shape != tensor.shape:
            return f"{name}, of shape {list(found.shape)} instead of {list(tensor.shape)}"
        largest = float((found - tensor).abs().max())
        if not largest <= rounding * float(tensor.abs().max()):
            place = torch.nonzero((found - tensor).abs() == largest)[:1].flatten().tolist()
            return f"{name}, by {largest:.3g} at {place}"
    return None


def size(path: Path) -> int:
    """The bytes of a file, or of all files in a folder; of a folder of ours, of those that are the model."""
    if path.is_file():
        return path.stat().st_size
    ours = recognise(path) == "safetensors"
    files = [path / name for name in (WEIGHTS, CONFIG, TOKENIZER, TRAINING)] if ours else path.rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file())


def _check_vocabularies(one: Opened, other: Opened, paths: tuple[Path, Path]) -> None:
    if len(one.pieces) != len(other.pieces):
        raise DataError(
            f"{paths[0]} has {counted(len(one.pieces), 'subword')} and {paths[1]} has {len(other.pieces):,}: "
            "they are not one model"
        )
    for index, (a, b) in enumerate(zip(one.pieces, other.pieces, strict=True)):
        if a != b:
            raise DataError(
                f"subword {index} is {a!r} in {paths[0]} and {b!r} in {paths[1]}: they are not one model"
            )


def _on_test_set(
    one: Opened, other: Opened, source: str | Path | None, reference: str | Path | None
) -> tuple[tuple[float, float] | None, tuple[int, int] | None]:
    if source is None or reference is None:
        return None, None
    from sacrebleu.metrics.bleu import BLEU

    lines, references = list(read_side(source)), list(read_side(reference))
    if len(lines) != len(references) or not lines:
        raise DataError(
            f"{source} has {counted(len(lines), 'line')} and {reference} has {len(references):,}; a test set "
            "has as many, and at least one"
        )
    outputs = [model.translate(lines) for model in (one, other)]
    scores = [float(BLEU().corpus_score(output, [references]).score) for output in outputs]
    same = sum(a == b for a, b in zip(*outputs, strict=True))
    return (scores[0], scores[1]), (same, len(lines))
