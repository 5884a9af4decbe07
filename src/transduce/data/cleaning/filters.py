"""The filters by name, in their order, and what they make of a pair. No filter here looks at other pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from transduce.data.cleaning.config import CleaningConfig
from transduce.data.cleaning.duplicates import exact_prints, near_prints
from transduce.data.cleaning.fingerprints import Fingerprints
from transduce.data.cleaning.identical import identical
from transduce.data.cleaning.identifier import check_identifier
from transduce.data.cleaning.languages import known_language, wrong_languages
from transduce.data.cleaning.lengths import empty, length, ratio
from transduce.data.cleaning.markup import markup
from transduce.data.cleaning.noise import noise
from transduce.data.cleaning.numbers import addresses, numbers
from transduce.data.cleaning.repairs import Repair, mended, repairs
from transduce.data.cleaning.scripts import script, scripts_of
from transduce.data.cleaning.verdict import Verdict
from transduce.data.formats.pair import Pair

Filter = Callable[[str, str], str]
"""Why the pair of these texts is dropped; empty where it is not."""


class Judged(NamedTuple):
    """What a process sends back of a chunk: the verdicts that differ from "kept as it is", by their place."""

    verdicts: dict[int, Verdict]
    exact: Fingerprints
    """Of the pairs that are kept, in their order; empty where the filter is off."""
    near: Fingerprints

    def all(self, chunk: Sequence[Pair]) -> list[Verdict]:
        """The verdict on each pair of the chunk."""
        return [self.verdicts.get(at) or Verdict(pair, pair) for at, pair in enumerate(chunk)]


@dataclass(frozen=True)
class Filters:
    """The repairs and filters of these settings; a value that can be sent to other processes.

    Scripts and languages are looked at where the side's language is named. Raises UsageError where a step
    needs a package that is not installed.
    """

    config: CleaningConfig
    source_language: str = ""
    target_language: str = ""

    def __post_init__(self) -> None:
        repairs(self.config)
        if self._languages:
            check_identifier()

    @property
    def _languages(self) -> bool:
        """Whether the filter on languages is on."""
        return bool(self.config.language and (self.source_language or self.target_language))

    def names(self) -> list[str]:
        """The names of all filters that are on, in their order."""
        further = {
            "language": self._languages,
            "duplicate": self.config.duplicates,
            "near-duplicate": self.config.near_duplicates,
        }
        return [name for name, _ in self.filters()] + [name for name, on in further.items() if on]

    def repair_names(self) -> list[str]:
        """The names of the repairs that are on, in their order."""
        return [name for name, _ in repairs(self.config)]

    def idle(self) -> list[str]:
        """What is on but cannot be looked at, and what to give for it."""
        config = self.config
        lines = []
        for side, name in (("source", self.source_language), ("target", self.target_language)):
            if not name:
                what = [w for w, on in (("script", config.script_share), ("language", config.language)) if on]
                if what:
                    lines.append(f"{' and '.join(what)} of the {side} not checked: its language is not named")
                continue
            if config.script_share and not scripts_of(name):
                lines.append(f"script of the {side} not checked: that of {name!r} is not known")
            if config.language and not known_language(name):
                lines.append(f"language of the {side} not checked: {name!r} cannot be told from others")
        return lines

    def filters(self) -> list[tuple[str, Filter]]:
        """The filters that look at one pair alone and are on, by name: the cheap ones first."""
        c = self.config
        scripts = scripts_of(self.source_language), scripts_of(self.target_language)
        table: list[tuple[str, bool, Filter]] = [
            ("empty", c.empty, lambda s, t: empty(s, t, c)),
            (
                "length",
                bool(c.max_words or c.max_characters or c.max_word or c.min_words > 1),
                lambda s, t: length(s, t, c),
            ),
            ("ratio", bool(c.max_ratio), lambda s, t: ratio(s, t, c)),
            ("identical", bool(c.identical_words), lambda s, t: identical(s, t, c)),
            ("noise", bool(c.damaged or c.max_symbols or c.max_repeats), lambda s, t: noise(s, t, c)),
            ("markup", c.markup, lambda s, t: markup(s, t, c)),
            ("numbers", bool(c.number_digits), lambda s, t: numbers(s, t, c)),
            ("addresses", c.addresses, lambda s, t: addresses(s, t, c)),
            ("script", bool(c.script_share and any(scripts)), lambda s, t: script(s, t, scripts, c)),
        ]
        return [(name, check) for name, on, check in table if on]

    def __call__(self, chunk: Sequence[Pair]) -> Judged:
        """The verdicts on a chunk of pairs, each on its own, and the fingerprints of those that are kept."""
        mend, filters = repairs(self.config), self.filters()
        verdicts = [_judge(pair, mend, filters) for pair in chunk]
        if self._languages:
            self._judge_languages(verdicts)
        kept = [verdict for verdict in verdicts if not verdict.filter]
        return Judged(
            {at: v for at, v in enumerate(verdicts) if v.filter or v.repairs},
            exact_prints(kept if self.config.duplicates else ()),
            near_prints(kept if self.config.near_duplicates else ()),
        )

    def _judge_languages(self, verdicts: list[Verdict]) -> None:
        """Nothing; verdicts on kept pairs in another language than the ones named now drop them."""
        places = [at for at, verdict in enumerate(verdicts) if not verdict.filter]
        sources = [verdicts[at].mended.source for at in places]
        targets = [verdicts[at].mended.target for at in places]
        wrong = {
            **wrong_languages("target", targets, self.target_language, self.config),
            **wrong_languages("source", sources, self.source_language, self.config),
        }
        for place, reason in wrong.items():
            verdicts[places[place]] = verdicts[places[place]].dropped("language", reason)


def _judge(pair: Pair, mend: Sequence[tuple[str, Repair]], filters: Sequence[tuple[str, Filter]]) -> Verdict:
    used, done = mended(pair, mend)
    source, target = used.source, used.target
    for name, check in filters:
        if reason := check(source, target):
            return Verdict(pair, used, name, reason, done)
    return Verdict(pair, used, repairs=done)
