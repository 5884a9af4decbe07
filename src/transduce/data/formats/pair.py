"""What every reader of parallel text yields."""

from __future__ import annotations

from typing import NamedTuple


class Pair(NamedTuple):
    """One source line and its translation, with the place that they came from."""

    source: str
    target: str
    file: str
    """The file that holds the source line."""
    line: int
    """Counted from 1."""
    extra_columns: int = 0
    """Columns after the second in a TSV line: not used, but counted in the report."""
    corpus: int = 0
    """Which of the corpora that were named it is from, counted from 0."""
    languages: str = ""
    """Source:target, e.g. en:de, where the corpus is labelled; see `transduce.data.tags`."""
    domain: str = ""
    alignment: str = ""
    """Which of its words belong together, as 0-0 1-2, from line ``line`` of ``alignment_file``."""
    alignment_file: str = ""

    @property
    def to(self) -> str:
        """The target language; empty where nothing is said."""
        return self.languages.partition(":")[2]
