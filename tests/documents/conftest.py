"""Fixtures for documents."""

from __future__ import annotations

from collections.abc import Iterator

import jaxtyping
import pytest


@pytest.fixture(autouse=True)
def _types_unchecked(request: pytest.FixtureRequest) -> Iterator[None]:
    """No type is checked meanwhile where thousands of documents are read: that takes most of the time."""
    is_drawn = getattr(request.function, "is_hypothesis_test", False)
    if not is_drawn and "damaged" not in request.path.name:
        yield
        return
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
