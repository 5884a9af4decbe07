"""What readers passed over and what they chose by themselves, to be told once."""

from __future__ import annotations

from collections import Counter

from transduce.counts import counted


class Tally:
    """Counts by file and reason. No unit of a file is left out without standing here."""

    def __init__(self) -> None:
        self.skipped: dict[str, Counter[str]] = {}
        self.changed: dict[str, Counter[str]] = {}
        self.first: dict[tuple[str, str], int] = {}
        """Where the first of its kind was."""
        self.columns: dict[str, int] = {}
        """Lines of tables that have more columns than are read."""
        self.chosen: dict[str, str] = {}
        self.languages: tuple[str, str] = ("", "")
        """Names of source and target as the file that was read last has them."""

    def skip(self, file: str, why: str, line: int, count: int = 1) -> None:
        """Nothing; ``count`` units of the file are known to be left out."""
        self.skipped.setdefault(file, Counter())[why] += count
        self.first.setdefault((file, why), line)

    def change(self, file: str, how: str, line: int) -> None:
        """Nothing; a text that could not be written as it is is known."""
        self.changed.setdefault(file, Counter())[how] += 1
        self.first.setdefault((file, how), line)

    def more_columns(self, file: str, line: int) -> None:
        """Nothing; a line with more than two columns is known, of which two are read."""
        self.columns[file] = self.columns.get(file, 0) + 1
        self.first.setdefault((file, "columns"), line)

    def leave(self, file: str) -> None:
        """Nothing; a whole file is known to be left out, as one of several, for its languages."""
        self.skipped.pop(file, None)
        self.choose(file, "left out, as it is in other languages")

    def choose(self, file: str, what: str) -> None:
        """Nothing; what was chosen for want of a setting is known."""
        self.chosen[file] = what

    def leave_empty(self, file: str) -> None:
        """Nothing; a file of no bytes is known, which holds no pairs in any format."""
        self.choose(file, "is empty: no pairs")

    def count(self) -> int:
        """How many units were left out of all files."""
        return sum(counts.total() for counts in self.skipped.values())

    def lines(self) -> list[str]:
        """What a person should know, a line for each file."""
        lines = [f"{file}: {what}" for file, what in self.chosen.items()]
        for file, counts in self.skipped.items():
            lines.append(f"{file}: {counts.total():,} left out: {self._reasons(file, counts)}")
        for file, counts in self.changed.items():
            lines.append(f"{file}: {counted(counts.total(), 'text')} {self._reasons(file, counts)}")
        for file, count in self.columns.items():
            told = counted(count, "line")
            first = self.first[file, "columns"]
            lines.append(
                f"{file}: {told} with more than two columns, the others not used (first at {first:,})"
            )
        return lines

    def _reasons(self, file: str, counts: Counter[str]) -> str:
        return ", ".join(
            f"{count:,} {why} (first at {self.first[file, why]:,})" for why, count in counts.most_common()
        )

    def to_dict(self) -> dict[str, dict[str, int]]:
        """The counts, ready for JSON."""
        return {file: dict(counts) for file, counts in self.skipped.items()}
