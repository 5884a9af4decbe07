"""Why a request gets no translation: an HTTP status and one line that says what to do."""

from __future__ import annotations

from transduce.errors import DataError, TransduceError, UsageError


class Refused(TransduceError):
    """A request is not answered: ``status`` says whose fault it is, ``retry_after`` when to ask again."""

    def __init__(self, status: int, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status, self.retry_after = status, retry_after


def status_of(error: TransduceError) -> int:
    """The HTTP status of an error: 400 for what the client can mend, else 500."""
    if isinstance(error, Refused):
        return error.status
    return 400 if isinstance(error, UsageError | DataError) else 500


def stopping() -> Refused:
    """What a request is told that finds the server on its way out."""
    return Refused(503, "the server is stopping; ask again in a moment", retry_after=2)


def too_late(seconds: float) -> Refused:
    """What a request is told that was not answered within its time."""
    return Refused(
        504, f"no translation within {seconds:g} seconds: ask for less text, or again later", retry_after=5
    )
