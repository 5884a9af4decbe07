"""What a server is told when it starts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transduce.errors import UsageError

_COUNTS = (
    "max_characters",
    "max_texts",
    "max_beam",
    "max_body",
    "max_file",
    "queue",
    "batch_tokens",
    "max_inspected",
    "documents",
    "connections",
)
_SECONDS = ("timeout", "body_timeout", "header_timeout", "write_timeout", "keep_alive", "drain")
_OR_NONE = (
    "max_alternatives",
    "requests_per_minute",
    "characters_per_minute",
    "reload",
    "gather",
    "port",
    "keep_files",
)


@dataclass(frozen=True, kw_only=True)
class ServingConfig:
    """Where a server listens, what it allows, and how it translates where a request says nothing.

    ``beam``, ``alpha`` and ``protect`` are those of `TranslationOptions`. ``batch_tokens`` bounds hypotheses
    x tokens of what is translated at once, ``gather`` (seconds) how long the next batch waits for the company
    that the last one had, ``queue`` how many requests may wait.
    """

    host: str = "127.0.0.1"
    port: int = 5000
    beam: int = 4
    alpha: float = 0.6
    protect: str = "all"
    batch_tokens: int = 8_192
    gather: float = 0.004
    queue: int = 512
    reload: float = 2.0
    """Seconds between two looks at the model folders; 0: never."""

    keys: Path | None = None
    require_key: bool = False
    requests_per_minute: int = 0
    """Of a key or an address; 0: as many as it likes."""
    characters_per_minute: int = 0
    max_characters: int = 20_000
    max_texts: int = 1_000
    max_alternatives: int = 10
    max_beam: int = 16
    max_body: int = 1 << 20
    max_file: int = 10 << 20
    max_inspected: int = 128
    """Tokens of each side whose attention or search tree is shown: their work grows with the square."""
    documents: int = 4
    """Documents that are translated at the same time; others wait."""
    keep_files: float = 600.0
    """Seconds for which a translated file can be fetched."""

    connections: int = 2_048
    """Connections that may be open at the same time."""

    timeout: float = 60.0
    """Seconds until a request that has no translation yet is given up."""
    body_timeout: float = 15.0
    header_timeout: float = 10.0
    write_timeout: float = 20.0
    keep_alive: float = 5.0
    drain: float = 8.0
    """Seconds that requests have to finish in when the server is told to stop."""

    cors: tuple[str, ...] = ()
    proxy: str = ""
    """The address of a proxy whose X-Forwarded-For is believed."""
    suggestions: Path | None = None
    metrics: bool = True
    log_text: bool = False

    def __post_init__(self) -> None:
        for name in _COUNTS:
            self._check(name, getattr(self, name) >= 1, "1 or more")
        for name in _SECONDS:
            self._check(name, getattr(self, name) > 0, "above 0")
        for name in _OR_NONE:
            self._check(name, getattr(self, name) >= 0, "0 or more")
        self._check("port", self.port < 1 << 16, "below 65,536")
        self._check("beam", 1 <= self.beam <= self.max_beam, f"from 1 to max_beam, {self.max_beam}")
        if self.require_key and self.keys is None:
            raise UsageError("a key is required, but there is no file of keys: name one with --keys FILE")
        if "*" in self.cors and self.keys is not None:
            raise UsageError("with keys, pages of any origin (--cors '*') would be let in: name the origins")

    def _check(self, name: str, right: bool, expected: str) -> None:
        if not right:
            raise UsageError(f"{name} is {getattr(self, name)}; it must be {expected}")

    def limits(self) -> dict[str, Any]:
        """What a client may want to know before it asks."""
        names = (
            "max_characters",
            "max_texts",
            "max_alternatives",
            "max_beam",
            "max_file",
            "max_inspected",
            "requests_per_minute",
            "characters_per_minute",
            "timeout",
        )
        return {name: getattr(self, name) for name in names}
