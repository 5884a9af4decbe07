"""What the worker is asked for: lines to translate, a stream of pieces, or a look into a model."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from transduce.decoding.glossary import Glossary
from transduce.decoding.terms import Term
from transduce.decoding.translation import Translation
from transduce.serving.models import Loaded

Terms = Sequence[Term | str]


@dataclass(eq=False, kw_only=True)
class Request:
    """Something that waits for the worker. Whoever has lost interest cancels its ``future``."""

    model: Loaded
    future: Future[Any] = field(default_factory=Future)
    asked_at: float = field(default_factory=time.monotonic)
    begun_at: float | None = None

    @property
    def is_left(self) -> bool:
        """Whether nobody waits for it any more."""
        return self.future.done()

    def give(self, result: Any) -> None:
        """Nothing; the result is there, unless nobody waits for it."""
        with suppress(InvalidStateError):  # it was cancelled a moment ago
            self.future.set_result(result)

    def fail(self, error: BaseException) -> None:
        """Nothing; whoever waits gets the error."""
        with suppress(InvalidStateError):
            self.future.set_exception(error)


@dataclass(eq=False, kw_only=True)
class Lines(Request):
    """Lines to translate; those of several requests with the same ``options`` share batches.

    ``prefixes`` and ``terms`` have one item per line, if they are there.
    """

    texts: Sequence[str]
    options: Mapping[str, Any]
    prefixes: Sequence[str] | None = None
    terms: Sequence[Terms] | None = None
    glossary: Glossary | None = None
    taken: int = 0
    """Lines that have been handed to the model, from the first on."""
    found: list[Translation] = field(default_factory=list)
    costs: list[int] | None = None
    """Tokens of each line, known once the worker has looked at it."""

    @property
    def group(self) -> tuple[Any, ...]:
        """What requests share that may stand in one batch."""
        return (id(self.model), tuple(sorted(self.options.items())), id(self.glossary))

    @property
    def rows(self) -> int:
        """Hypotheses of a line."""
        return int(self.options.get("samples") or self.options.get("beam", 4))

    def weigh(self) -> list[int]:
        """The tokens of each line, the end counted."""
        if self.costs is None:
            encoded = self.model.translator.bundle.tokenizer.encode_batch(list(self.texts))
            self.costs = [len(ids) + 1 for ids in encoded]
        return self.costs


@dataclass(eq=False, kw_only=True)
class Stream(Request):
    """One text whose translation is told piece by piece, and then as a whole."""

    pieces: Callable[[], Generator[str, None, list[Translation]]]
    """What makes the pieces, line after line; it runs in the worker."""
    tell: Callable[[str], None]
    running: Generator[str, None, list[Translation]] | None = None


@dataclass(eq=False, kw_only=True)
class Look(Request):
    """Anything else that is asked of a model; ``work`` runs in the worker."""

    work: Callable[[], Any]


class LeftError(Exception):
    """Nobody waits any more for any line of the batch that is being translated."""
