"""A filter on languages: text that is most probably in another one than it should be."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from transduce.data.cleaning.config import CleaningConfig
from transduce.data.cleaning.identifier import identifier
from transduce.data.formats.languages import normal

_LETTER = re.compile(r"[^\W\d_]")
READ = 100
"""So many characters tell the language of a text: more only cost time."""
NONE = "zxx"
"""What is no language: numbers, code, markup. Other filters look for these."""
# Languages that one sentence does not tell apart for certain, or codes that stand for one another.
_ALIKE = (
    {"no", "nb", "nn", "da"},
    {"sr", "hr", "bs", "sh", "cnr"},
    {"id", "ms", "zsm"},
    {"zh", "cmn", "yue", "wuu"},
    {"ar", "arb", "arz", "ary", "apc"},
    {"cs", "sk"},
    {"gl", "pt"},
    {"fa", "pes", "prs"},
    {"tl", "fil"},
    {"bg", "mk"},
    {"uz", "uzn", "uzs"},
    {"sw", "swh"},
    {"lv", "lvs", "ltg"},
)


def known_language(language: str) -> bool:
    """Whether the identifier knows a language, by its code or that of a variety of it."""
    return not _labels(language).isdisjoint(identifier().codes)


def wrong_languages(side: str, texts: Sequence[str], wanted: str, config: CleaningConfig) -> dict[int, str]:
    """Why pairs are dropped whose texts on this side are not in the language that is wanted, by their places.

    Texts that are too short to tell are not looked at.
    """
    if not wanted or not known_language(wanted):
        return {}
    heads = [text[:READ] for text in texts]
    places = [
        at
        for at, head in enumerate(heads)
        if len(head) >= config.language_letters and len(_LETTER.findall(head)) >= config.language_letters
    ]
    labels = {NONE, *_labels(wanted)}
    return {
        at: f"{side} is {found} ({probability:.2f}), not {wanted}"
        for at, (found, probability) in zip(
            places, identifier().classify([heads[at] for at in places]), strict=True
        )
        if probability >= config.language and found not in labels
    }


@functools.cache
def _labels(language: str) -> frozenset[str]:
    """What the identifier may call a text in this language."""
    code = normal(language).partition("-")[0]
    return frozenset({code}.union(*(group for group in _ALIKE if code in group)))
