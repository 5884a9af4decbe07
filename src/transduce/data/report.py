"""What became of the pairs of a corpus: counts, and lines for the log.

"300 tokens" always counts the EOS, as the limit does.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from transduce.counts import counted

BYTE_SHARE_WARNING = 0.01


@dataclass(kw_only=True)
class Report:
    """Counts of one corpus; lengths are in tokens with the EOS counted."""

    pairs: int = 0
    kept: int = 0
    empty: int = 0
    """Pairs with an empty side, dropped as pairs."""
    too_long: int = 0
    limit: int = 0
    longest_source: int = 0
    """Of all pairs, dropped ones too."""
    longest_target: int = 0
    held_out: int = 0
    """Pairs set aside for validation."""
    repeats_held_out: int = 0
    """Pairs not trained on since their source text also stands in a held-out pair."""
    extra_columns: int = 0
    """TSV lines with more than two columns."""
    source_tokens: int = 0
    target_tokens: int = 0
    source_bytes: int = 0
    """Tokens that are byte pieces: characters that the vocabulary lacks."""
    target_bytes: int = 0

    def lines(self) -> list[str]:
        """What a person should know, one line each; what did not happen is left out."""
        lines = [
            f"{counted(self.kept, 'pair')}: {self.source_tokens:,} source and "
            f"{counted(self.target_tokens, 'target token')}",
        ]
        if self.empty:
            lines.append(f"{self._dropped(self.empty)}: {counted(self.empty, 'pair')} with an empty side")
        if self.too_long:
            longest = [
                f"longest {side} {counted(length, 'token')}"
                for side, length in (("source", self.longest_source), ("target", self.longest_target))
                if length > self.limit
            ]
            lines.append(f"{self._dropped(self.too_long)}: {', '.join(longest)} (limit {self.limit})")
        if self.held_out:
            lines.append(f"{self.held_out:,} of {counted(self.pairs, 'pair')} held out for validation")
        if self.repeats_held_out:
            lines.append(f"{self._dropped(self.repeats_held_out)}: their source is held out for validation")
        if self.extra_columns:
            lines.append(f"lines with more than two columns, the others not used: {self.extra_columns:,}")
        return lines + self.warnings()

    def warnings(self) -> list[str]:
        """The lines that hint at a mistake: text in a script that the tokenizer has not seen."""
        return [
            f"warning: {spelled / tokens:.1%} of the {side} tokens are single bytes: the tokenizer lacks "
            "these characters; check the file and its language, or train a new tokenizer"
            for side, spelled, tokens in (
                ("source", self.source_bytes, self.source_tokens),
                ("target", self.target_bytes, self.target_tokens),
            )
            if spelled > BYTE_SHARE_WARNING * tokens
        ]

    def add(self, other: Report) -> None:
        """Nothing; what ``other`` counted, of other pairs of the same corpus, is counted here too."""
        for field in dataclasses.fields(self):
            mine, more = getattr(self, field.name), getattr(other, field.name)
            if field.name != "limit":
                longest = field.name.startswith("longest_")
                setattr(self, field.name, max(mine, more) if longest else mine + more)

    def to_dict(self) -> dict[str, Any]:
        """All counts, ready for JSON."""
        return dataclasses.asdict(self)

    def _dropped(self, count: int) -> str:
        share = 100 * count / self.pairs
        digits = f"{share:.1f}" if share >= 0.05 else f"{share:.1g}" if share >= 0.001 else "below 0.001"
        return f"{count:,} of {counted(self.pairs, 'pair')} dropped ({digits} %)"
