"""What became of the pairs: counts, and examples of each filter and repair."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappush, heapreplace
from typing import Any

from transduce.counts import counted
from transduce.data.cleaning.verdict import Verdict

EXAMPLES = 5
SHOWN = 80  # characters of a text


@dataclass
class Examples:
    """Of all verdicts that were added so many, drawn by the hash of their text: the same ones every time."""

    count: int = 0
    _drawn: list[tuple[int, int, Verdict]] = field(default_factory=list)

    def add(self, verdict: Verdict, order: int) -> None:
        """Nothing; the verdict on pair ``order`` of the corpus is counted, and may be shown."""
        self.count += 1
        text = f"{verdict.pair.source}\0{verdict.pair.target}".encode("utf-8", "surrogatepass")
        # The smallest hashes are kept: a heap holds the largest of them first.
        drawn = -int.from_bytes(hashlib.blake2b(text, digest_size=8).digest())
        if len(self._drawn) < EXAMPLES:
            heappush(self._drawn, (drawn, -order, verdict))
        elif (drawn, -order) > self._drawn[0][:2]:
            heapreplace(self._drawn, (drawn, -order, verdict))

    def shown(self) -> list[Verdict]:
        """The ones that were drawn, in the order of the corpus."""
        return [verdict for _, _, verdict in sorted(self._drawn, key=lambda item: -item[1])]


@dataclass
class CleaningReport:
    """Counts of one corpus; ``filters`` and ``repairs`` hold all that are on, those that did nothing too."""

    filters: dict[str, Examples]
    repairs: dict[str, Examples]
    notes: list[str] = field(default_factory=list)
    """What was on but could not be looked at."""
    pairs: int = 0
    kept: int = 0
    repaired: int = 0
    """Pairs that are kept and were mended."""

    @classmethod
    def of(cls, filters: Sequence[str], repairs: Sequence[str], notes: Sequence[str] = ()) -> CleaningReport:
        """An empty report of steps with these names."""
        return cls({n: Examples() for n in filters}, {n: Examples() for n in repairs}, list(notes))

    def add(self, verdict: Verdict) -> None:
        """Nothing; the next pair's verdict is counted."""
        self.pairs += 1
        if verdict.filter:
            self.filters[verdict.filter].add(verdict, self.pairs)
            return
        self.kept += 1
        if verdict.repairs:
            self.repaired += 1
            for name in verdict.repairs:
                self.repairs[name].add(verdict, self.pairs)

    @property
    def dropped(self) -> int:
        """Pairs that are not kept."""
        return self.pairs - self.kept

    def counts(self) -> list[str]:
        """What a log says: one line on the whole, one for each filter and repair that did something."""
        lines = [
            f"{counted(self.pairs, 'pair')} cleaned: {self.kept:,} kept, {self.dropped:,} dropped "
            f"({self._share(self.dropped)}), {self.repaired:,} of those kept mended"
        ]
        lines += [self._line("dropped", name, found) for name, found in self.filters.items() if found.count]
        lines += [self._line("mended", name, found) for name, found in self.repairs.items() if found.count]
        return lines

    def lines(self) -> list[str]:
        """The same, with examples below each, and what was on and found nothing."""
        lines = self.counts()[:1]
        for verb, steps in (("dropped", self.filters), ("mended", self.repairs)):
            for name, found in steps.items():
                if found.count:
                    lines.append(self._line(verb, name, found))
                    lines += [f"    {line}" for verdict in found.shown() for line in _example(verb, verdict)]
        nothing = [name for name, found in {**self.filters, **self.repairs}.items() if not found.count]
        if nothing:
            lines.append(f"nothing found by: {', '.join(nothing)}")
        return lines + self.notes

    def to_dict(self) -> dict[str, Any]:
        """All counts and examples, ready for JSON."""
        return {
            "pairs": self.pairs,
            "kept": self.kept,
            "dropped": {name: _listed(found) for name, found in self.filters.items()},
            "repaired": self.repaired,
            "mended": {name: _listed(found) for name, found in self.repairs.items()},
            "notes": self.notes,
        }

    def _line(self, verb: str, name: str, found: Examples) -> str:
        return f"{verb} by {name}: {found.count:,} ({self._share(found.count)})"

    def _share(self, count: int) -> str:
        share = 100 * count / max(self.pairs, 1)
        if not count:
            return "0 %"
        return f"{share:.1f} %" if share >= 0.05 else f"{share:.1g} %" if share >= 0.001 else "below 0.001 %"


def _listed(found: Examples) -> dict[str, Any]:
    examples = []
    for verdict in found.shown():
        example = {"file": verdict.pair.file, "line": verdict.pair.line}
        example |= {"source": verdict.pair.source, "target": verdict.pair.target}
        if verdict.filter:
            example["reason"] = verdict.reason
        else:
            example |= {"mended_source": verdict.mended.source, "mended_target": verdict.mended.target}
        examples.append(example)
    return {"count": found.count, "examples": examples}


def _example(verb: str, verdict: Verdict) -> list[str]:
    pair, mended = verdict.pair, verdict.mended
    place = f"{pair.file}:{pair.line}: "
    if verb == "dropped":
        return [f"{place}{verdict.reason}: {_short(pair.source)} | {_short(pair.target)}"]
    sides = ((pair.source, mended.source), (pair.target, mended.target))
    return [place + "; ".join(f"{_short(was)} -> {_short(now)}" for was, now in sides if was != now)]


def _short(text: str) -> str:
    """The text on one line of the terminal, with nothing in it that could steer the terminal."""
    text = "".join(c if c.isprintable() or c == "\u00a0" else f"\\u{ord(c):04x}" for c in text[: SHOWN + 1])
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
