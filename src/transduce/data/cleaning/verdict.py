"""What cleaning decides about one pair."""

from __future__ import annotations

from typing import NamedTuple

from transduce.data.formats.pair import Pair


class Verdict(NamedTuple):
    """One pair, and what becomes of it."""

    pair: Pair
    """As it was read."""
    mended: Pair
    """As it is to be used where it is kept: the same object where nothing was mended."""
    filter: str = ""
    """The name of the filter that drops it; empty where it is kept."""
    reason: str = ""
    """What the filter found: in words, with the value and the limit."""
    repairs: tuple[str, ...] = ()
    """The names of the repairs that changed it."""

    @property
    def kept(self) -> bool:
        """Whether the pair is used."""
        return not self.filter

    def dropped(self, name: str, reason: str) -> Verdict:
        """The verdict of a later filter."""
        return self._replace(filter=name, reason=reason)
