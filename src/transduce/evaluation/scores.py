"""BLEU, chrF and TER of whole, detokenised, cased text, through the sacrebleu library (paper, section 6.1).

The signature names everything that a score depends on; without it a BLEU cannot be compared.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from transduce.counts import counted
from transduce.errors import DataError

# What tokenisers and sub-word splitters leave behind and running text does not hold.
_TRACES = (" @-@ ", "@@ ", "&apos;", "&quot;", "\u2581")
_SPACED = re.compile(r"\w [.,](?= |$)")
_ATTACHED = re.compile(r"\w[.,](?= |$)")


@dataclass(frozen=True, kw_only=True)
class Scores:
    """The scores of one set of translations; ``ter`` is None where it was left out.

    ``bleu`` and ``chrf`` run from 0 to 100 and more is better; of ``ter`` (edits per 100 words) less is.
    Lengths are counted in BLEU's own tokens.
    """

    bleu: float
    chrf: float
    ter: float | None
    signature: str
    chrf_signature: str
    ter_signature: str | None
    precisions: tuple[float, ...]
    brevity_penalty: float
    hypothesis_length: int
    reference_length: int
    sentences: int


def score(
    hypotheses: Sequence[str],
    references: Sequence[str] | Sequence[Sequence[str]],
    *,
    ter: bool = True,
    names: Sequence[str] = (),
) -> Scores:
    """The corpus scores of ``hypotheses`` against one reference, or against several.

    ``references`` is a list of lines, or a list of such lists. ``names`` are the files of the hypotheses and
    of each reference, for messages. ``ter=False`` leaves out TER, by far the slowest of the three. Raises
    DataError where the numbers of lines differ; warns about text that looks tokenised.
    """
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    lists = reference_lists(references)
    check_lines(hypotheses, lists, names)
    for lines, name in zip([hypotheses, *lists], _all_names(lists, names), strict=True):
        sign = tokenised_sign(lines)
        if sign:
            warnings.warn(
                f"{name} looks tokenised ({sign}): sacreBLEU wants detokenised text, this score compares "
                f"with no other",
                stacklevel=2,
            )
    # `force` only silences the library's own remark about tokenised text.
    bleu, chrf, edits = BLEU(force=True), CHRF(), TER()
    bleu_score = bleu.corpus_score(hypotheses, lists)
    chrf_score = chrf.corpus_score(hypotheses, lists)
    ter_score = edits.corpus_score(hypotheses, lists) if ter else None
    return Scores(
        bleu=bleu_score.score,
        chrf=chrf_score.score,
        ter=None if ter_score is None else ter_score.score,
        signature=str(bleu.get_signature()),
        chrf_signature=str(chrf.get_signature()),
        ter_signature=None if ter_score is None else str(edits.get_signature()),
        precisions=tuple(bleu_score.precisions),
        brevity_penalty=bleu_score.bp,
        hypothesis_length=bleu_score.sys_len,
        reference_length=bleu_score.ref_len,
        sentences=len(hypotheses),
    )


def reference_lists(references: Sequence[str] | Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """The references as a list of lists of lines, whether one or several were given."""
    single = [line for line in references if isinstance(line, str)]
    if single or not references:
        return [single]
    return [lines for lines in references if not isinstance(lines, str)]


def check_lines(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], names: Sequence[str] = ()
) -> None:
    """Nothing; raises DataError where there is no line, or where files have different numbers of them."""
    mine, *others = _all_names(references, names)
    for lines, name in zip(references, others, strict=True):
        if len(lines) != len(hypotheses):
            raise DataError(
                f"{mine} has {counted(len(hypotheses), 'line')} and {name} has {len(lines):,}: line n of one "
                "must be the translation in line n of the other"
            )
    if not hypotheses:
        raise DataError(f"{mine} holds no line: there is nothing to score")


def tokenised_sign(lines: Sequence[str]) -> str | None:
    """What makes the text look tokenised or split into sub-words, in words; None for running text."""
    for trace in _TRACES:
        if any(trace in line for line in lines):
            return f"it holds {trace!r}"
    # A space before a full stop or comma nearly everywhere; French sets one before ; : ! ? only.
    spaced = sum(len(_SPACED.findall(line)) for line in lines)
    attached = sum(len(_ATTACHED.findall(line)) for line in lines)
    if spaced >= 3 and spaced > 4 * attached:
        return "there is a space before its full stops and commas"
    return None


def _all_names(references: Sequence[Sequence[str]], names: Sequence[str]) -> list[str]:
    """One name for the hypotheses and one for each reference, made up where none was given."""
    if names:
        return list(names)
    if len(references) == 1:
        return ["the hypotheses", "the reference"]
    return ["the hypotheses", *(f"reference {number}" for number in range(1, len(references) + 1))]
