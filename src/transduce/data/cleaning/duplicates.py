"""Filters that look back: pairs that came before, exactly or nearly. They run in order, in one place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from transduce.data.cleaning.config import CleaningConfig
from transduce.data.cleaning.fingerprints import Fingerprints, Met, fingerprints
from transduce.data.cleaning.letters import letters
from transduce.data.cleaning.verdict import Verdict


def exact_prints(verdicts: Sequence[Verdict]) -> Fingerprints:
    """The fingerprints of pairs as they are used."""
    return fingerprints((v.mended.source.strip(), v.mended.target.strip()) for v in verdicts)


def near_prints(verdicts: Sequence[Verdict]) -> Fingerprints:
    """The fingerprints of pairs without case, punctuation, white space and digits.

    A side of nothing else, a price or a date, is taken as it is.
    """
    return fingerprints(
        (letters(v.mended.source) or v.mended.source, letters(v.mended.target) or v.mended.target)
        for v in verdicts
    )


class Duplicates:
    """The pairs that were kept so far, in at most 16 bytes each."""

    def __init__(self, config: CleaningConfig) -> None:
        self._exact = Met() if config.duplicates else None
        self._near = Met() if config.near_duplicates else None

    def judge(self, verdicts: Sequence[Verdict], exact: Fingerprints, near: Fingerprints) -> list[Verdict]:
        """The verdicts, where those of copies now drop them; the arrays are the kept ones' fingerprints."""
        kept = [at for at, verdict in enumerate(verdicts) if verdict.kept]
        result = list(verdicts)
        new = np.ones(len(kept), np.bool_)
        if self._exact is not None:
            new = self._exact.add(exact)
            for place in np.flatnonzero(~new).tolist():
                at = kept[place]
                result[at] = result[at].dropped("duplicate", "the same pair came before")
        if self._near is not None:
            first = np.flatnonzero(new)
            fresh = self._near.add(near[first])
            for place in first[~fresh].tolist():
                at = kept[place]
                result[at] = result[at].dropped(
                    "near-duplicate", "a pair came before that differs in case, punctuation or digits only"
                )
        return result
