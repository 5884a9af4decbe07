"""What is asked of the outputs of single lines, and the guide that sees to it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from transduce.counts import counted
from transduce.data.tokenizer import EOS_ID, UNK_ID, Tokenizer
from transduce.decoding.config import TranslationOptions
from transduce.decoding.constraints import ConstraintGuide, Constraints
from transduce.decoding.glossary import Glossary
from transduce.decoding.guide import Guide, Guides, together
from transduce.decoding.prefix import Prefix, PrefixGuide
from transduce.decoding.repetition import NoRepeatedNgram, RepetitionPenalty
from transduce.decoding.sources import Source
from transduce.decoding.spelling import Spelling
from transduce.decoding.terms import Sought, Term, Way
from transduce.decoding.translation import Translation
from transduce.errors import UsageError


@dataclass(frozen=True)
class Wishes:
    """What is asked of each line: ``prefixes`` and ``terms`` have one item per line, if they are there."""

    prefixes: Sequence[str] | None = None
    terms: Sequence[Sequence[Term | str]] | None = None
    glossary: Glossary | None = None


@dataclass(frozen=True)
class Asked:
    """What the output of one sentence is to fulfil; nothing by default."""

    prefix: Prefix | None = None
    terms: tuple[Way, ...] = ()

    @property
    def least_tokens(self) -> int:
        """What it takes at least, the end included; a shorter source counts as having so many tokens."""
        return 0 if self.prefix is None else len(self.prefix.ids) + 1

    @property
    def extra_rows(self) -> int:
        """By how much the beam is larger: one hypothesis for each token of the terms."""
        return int(sum(way.from_nothing for way in self.terms if math.isfinite(way.from_nothing)))

    def constraints(self, limit: int, *, after_prefix: bool) -> Constraints | None:
        """The terms that fit into ``limit`` tokens, the end included: each in turn that still fits."""
        first = self.prefix.ids if self.prefix is not None and after_prefix else ()
        kept = None
        for way in self.terms:
            more = Constraints([*(kept.ways if kept else ()), way], EOS_ID)
            state = more.start
            for token in first:
                state = more.next(state, token)
            if more.fits(state, limit - 1 - len(first)):
                kept = more
        return kept


class Asker:
    """Reads what is asked of lines, for one tokenizer."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._spelling: Spelling | None = None
        self._ways: dict[Term, Way] = {}

    @property
    def spelling(self) -> Spelling:
        """What the tokens spell; worked out when it is first asked for."""
        if self._spelling is None:
            self._spelling = Spelling.of(self._tokenizer)
        return self._spelling

    def asked(
        self, sources: Sequence[Source], wishes: Wishes, *, first_line: int
    ) -> dict[tuple[int, int], Asked]:
        """What is asked of part p of source s, by (s, p), where anything is.

        Of a line that was split, the prefix and the line's own terms concern the first part; the glossary
        concerns each. Raises UsageError, with both numbers, where there are not as many items as lines.
        """
        found: dict[tuple[int, int], Asked] = {}
        if wishes.prefixes is not None:
            _check_count(wishes.prefixes, "prefix", len(sources))
            for line, text in enumerate(wishes.prefixes):
                _check_text(text, "prefix", first_line + line)
                if sources[line].ids and (prefix := self._prefix(text)):
                    found[line, 0] = Asked(prefix)
        if wishes.terms is not None:
            _check_count(wishes.terms, "term list", len(sources))
        for line, source in enumerate(sources):
            own = wishes.terms[line] if wishes.terms is not None else ()
            if isinstance(own, str):
                raise UsageError(f"the terms of line {first_line + line} are one string; write [{own!r}]")
            for part in range(len(source.ids)):
                terms = [self._term(term, first_line + line) for term in own] if not part else []
                if wishes.glossary is not None:
                    terms += wishes.glossary.terms(source.parts[part].text)
                if terms:
                    ways = tuple(self._way(term) for term in dict.fromkeys(terms))
                    found[line, part] = replace(found.get((line, part), Asked()), terms=ways)
        return found

    def _prefix(self, text: str) -> Prefix | None:
        return Prefix.of(text, self._tokenizer, self.spelling, EOS_ID)

    def _term(self, term: Term | str, line: int) -> Term:
        chosen = Term(term) if isinstance(term, str) else term
        _check_text(chosen.text, "term", line)
        if not chosen.text.strip():
            raise UsageError(f"a term of line {line} is empty; leave it out")
        return chosen

    def _way(self, term: Term) -> Way:
        if term not in self._ways:
            self._ways[term] = Way(Sought(term, self._pieces), self.spelling)
        return self._ways[term]

    def _pieces(self, word: str) -> list[str]:
        ids = self._tokenizer.encode_target(word)
        if UNK_ID in ids:
            raise UsageError(
                f"the term {word!r} holds what the vocabulary of this model cannot spell; leave it out"
            )
        pieces = [self.spelling.texts[index] for index in ids]
        return [pieces[0].removeprefix(" "), *pieces[1:]] if pieces else []


def with_what_is_lacking(
    translations: Sequence[Translation], asked: Mapping[tuple[int, int], Asked], first_line: int
) -> list[Translation]:
    """The translations; those that lack a term that was asked of them say so in their warnings."""
    found = list(translations)
    for line in {line for line, _ in asked}:
        terms = [way.sought.term for (number, _), one in asked.items() if number == line for way in one.terms]
        told = tuple(
            f"line {first_line + line}: the output lacks {term.text!r}, which was asked of it"
            for term in dict.fromkeys(terms)
            if not term.found_in(found[line].text)
        )
        found[line] = replace(found[line], warnings=found[line].warnings + told)
    return found


def check_sampling(asked: Mapping[tuple[int, int], Asked], samples: int) -> None:
    """Nothing; UsageError where terms are asked of ``samples``, which cannot place them.

    A sample draws one token after the other: until a term must come because nothing else fits any more, it
    comes only by chance. A beam keeps hypotheses with more of the terms beside the more probable ones.
    """
    if samples and any(one.terms for one in asked.values()):
        raise UsageError(
            "terms are placed by the beam, not by samples, which would have them where nothing else fits; "
            "leave out terms or samples (several outputs with terms: n_best)"
        )


def guide_of(
    asked: Sequence[Asked],
    options: TranslationOptions,
    *,
    limits: Sequence[int],
    vocabulary: int,
    device: str | torch.device,
) -> Guides | None:
    """The guide of a batch of sentences; None where nothing is asked.

    Prefixes come first, then terms: the guard against repeated n-grams never stands in their way.
    """
    guides: list[Guide] = []
    if any(one.prefix for one in asked):
        guides.append(PrefixGuide.start([one.prefix for one in asked], options.prefix_factor))
    if any(one.terms for one in asked):
        kept = math.isinf(options.prefix_factor)
        terms = [one.constraints(limit, after_prefix=kept) for one, limit in zip(asked, limits, strict=True)]
        guides.append(ConstraintGuide.start(terms, limits))
    if options.no_repeat_ngram:
        guides.append(NoRepeatedNgram.start(options.no_repeat_ngram, len(asked), device))
    if options.repetition_penalty != 1.0:
        guides.append(RepetitionPenalty.start(options.repetition_penalty, len(asked), vocabulary, device))
    return together(guides)


def _check_count(items: Sequence[object], kind: str, lines: int) -> None:
    if isinstance(items, str) or len(items) != lines:
        got = "one string" if isinstance(items, str) else counted(len(items), kind)
        raise UsageError(
            f"{got} for {counted(lines, 'line')}; give one per line, empty where there is nothing to ask"
        )


def _check_text(text: object, kind: str, line: int) -> None:
    if not isinstance(text, str) or "\n" in text:
        raise UsageError(f"the {kind} of line {line} is {text!r}; it must be a string of one line")
