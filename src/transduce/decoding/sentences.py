"""The sentences of a line, found by the sentencex library (rules for some 300 languages)."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import accumulate, pairwise

from transduce.decoding.segmentation import split_sentences
from transduce.errors import UsageError

Split = Callable[[str], list[str]]
# The library takes any code; for one that it does not know, the rules that all languages share.
_ANY = "und"
_FULL_STOP = re.compile(r"\.[\"'”’»›)\]]*\s*$")
_LOOK_BACK = 40


def sentence_splitter(language: str = "") -> Split:
    """A function that cuts a line into its sentences, each with the white space after it.

    ``language`` is a code such as ``en``. Where a full stop ends a sentence for the library but belongs to an
    abbreviation, an initial or an ordinal by `split_sentences`, there is no cut: two sentences in one harm
    less than half a sentence.
    """
    try:
        import sentencex
    except ImportError:
        raise UsageError(
            "documents are split into sentences with the sentencex package; install it with "
            "`pip install 'transduce[documents]'`, or give one sentence a line"
        ) from None

    def split(text: str) -> list[str]:
        pieces: list[str] = sentencex.segment(language or _ANY, text)
        own = split_sentences(text)
        if "".join(pieces) != text:  # never seen, but nothing may be lost here
            return own
        certain = set(accumulate(map(len, own)))
        ends = [
            end
            for end in accumulate(map(len, pieces))
            if end in certain or not _FULL_STOP.search(text[max(0, end - _LOOK_BACK) : end])
        ]
        return [text[begin:end] for begin, end in pairwise([0, *ends])]

    return split
