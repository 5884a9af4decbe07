"""What is asked of the outputs of single lines, and the guide that sees to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from transduce.data.tokenizer import EOS_ID, Tokenizer
from transduce.decoding.config import TranslationOptions
from transduce.decoding.guide import Guide, Guides, together
from transduce.decoding.prefix import Prefix, PrefixGuide
from transduce.decoding.repetition import NoRepeatedNgram, RepetitionPenalty
from transduce.decoding.sources import Source
from transduce.decoding.spelling import Spelling
from transduce.errors import UsageError


@dataclass(frozen=True)
class Asked:
    """What the output of one sentence is to fulfil; nothing by default."""

    prefix: Prefix | None = None

    @property
    def least_tokens(self) -> int:
        """What it takes at least, the end included; a shorter source counts as having so many tokens."""
        return 0 if self.prefix is None else self.prefix.tokens + 1


class Asker:
    """Reads what is asked of lines, for one tokenizer."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._spelling: Spelling | None = None

    @property
    def spelling(self) -> Spelling:
        """What the tokens spell; worked out when it is first asked for."""
        if self._spelling is None:
            self._spelling = Spelling.of(self._tokenizer)
        return self._spelling

    def asked(
        self, sources: Sequence[Source], *, prefixes: Sequence[str] | None, first_line: int
    ) -> dict[tuple[int, int], Asked]:
        """What is asked of part p of source s, by (s, p), where anything is.

        The prefix of a line that was split concerns its first part. Raises UsageError, with both numbers,
        where there are not as many prefixes as lines.
        """
        if prefixes is None:
            return {}
        if isinstance(prefixes, str) or len(prefixes) != len(sources):
            got = "one string" if isinstance(prefixes, str) else f"{len(prefixes)} prefixes"
            raise UsageError(
                f"{got} for {len(sources)} lines; give one prefix per line, empty where there is none"
            )
        found = {}
        for line, (source, text) in enumerate(zip(sources, prefixes, strict=True)):
            if not isinstance(text, str) or "\n" in text:
                raise UsageError(
                    f"the prefix of line {first_line + line} is {text!r}; it must be a string of one line"
                )
            if source.ids and (prefix := Prefix.of(text, self._tokenizer, self.spelling, EOS_ID)):
                found[line, 0] = Asked(prefix)
        return found


def guide_of(
    asked: Sequence[Asked], options: TranslationOptions, vocabulary: int, device: str | torch.device
) -> Guides | None:
    """The guide of a batch of sentences; None where nothing is asked.

    A prefix comes before the guard against repeated n-grams, which thus never stands in its way.
    """
    guides: list[Guide] = []
    if any(one.prefix for one in asked):
        guides.append(PrefixGuide.start([one.prefix for one in asked], options.prefix_factor))
    if options.no_repeat_ngram:
        guides.append(NoRepeatedNgram.start(options.no_repeat_ngram, len(asked), device))
    if options.repetition_penalty != 1.0:
        guides.append(RepetitionPenalty.start(options.repetition_penalty, len(asked), vocabulary, device))
    return together(guides)
