"""What is suspicious of an output, by the texts and their lengths alone."""

from __future__ import annotations

import zlib
from collections import Counter

from transduce.counts import counted
from transduce.decoding.translation import Alternative

COPY_RATE = 0.9
COMPRESSION_RATIO = 3.0
# None of 29,000 pairs of Multi30k EN-DE and 3,000 of newstest2013 lies above this.
LENGTH_RATIO = 2.5
# Shorter outputs (names, numbers) are rightly copied.
_FEWEST_COPIED_WORDS = 4


def unusual(source: str, output: Alternative) -> list[str]:
    """What speaks for a failure: a copied source, repetition, an odd length, no end. Usually empty.

    The copy rate is the share of the output's words that the source has too; the compression ratio is the
    output's size in bytes by its size when compressed; lengths are compared as (5 + tokens), so that short
    sentences may differ.
    """
    reasons = []
    words = output.text.split()
    if len(words) >= _FEWEST_COPIED_WORDS:
        rate = (Counter(words) & Counter(source.split())).total() / len(words)
        if rate > COPY_RATE:
            reasons.append(f"{rate:.0%} of the output's words are copied from the source")
    if output.text:
        size = output.text.encode()
        ratio = len(size) / len(zlib.compress(size))
        if ratio > COMPRESSION_RATIO:
            reasons.append(f"the output repeats itself (compression ratio {ratio:.1f})")
    own = sum(len(part.source_ids) + 1 for part in output.parts)
    if own and max(5 + own, 5 + output.length) > LENGTH_RATIO * min(5 + own, 5 + output.length):
        which = "long" if output.length > own else "short"
        reasons.append(
            f"the output is oddly {which}: {counted(output.length, 'token')} for {own} of the source"
        )
    if output.truncated:
        reasons.append(f"the output has no end: it ran into its limit of {counted(output.length, 'token')}")
    return reasons
