"""Translated files that wait to be fetched, in memory, for a while."""

from __future__ import annotations

import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Kept:
    """A file: how it is called, what is in it, and until when it is kept."""

    name: str
    content: bytes
    until: float


class Files:
    """Files by names that nobody can guess; the oldest go where there would be more than ``most`` bytes."""

    def __init__(self, seconds: float, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._most, self._clock = seconds, most, clock
        self._kept: OrderedDict[str, Kept] = OrderedDict()

    def keep(self, name: str, content: bytes) -> str:
        """The name under which the file can be fetched from now on."""
        self._forget()
        while self._kept and sum(len(one.content) for one in self._kept.values()) + len(content) > self._most:
            self._kept.popitem(last=False)
        called = safe_name(name)
        key = f"{secrets.token_urlsafe(24)}.{called}"
        self._kept[key] = Kept(called, content, self._clock() + self._seconds)
        return key

    def get(self, key: str) -> Kept | None:
        """The file of that name; None where there is none, or no more."""
        self._forget()
        return self._kept.get(key)

    def _forget(self) -> None:
        now = self._clock()
        while self._kept and next(iter(self._kept.values())).until <= now:
            self._kept.popitem(last=False)


def safe_name(name: str) -> str:
    """The name of a file without folders, or characters that a header or a path cannot hold."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", name.replace("\\", "/").rpartition("/")[2]).lstrip(".")
    stem, dot, suffix = plain.rpartition(".")
    return f"{stem[:80]}{dot}{suffix[:16]}" or "file"
