"""Fixtures for searching."""

from __future__ import annotations

from collections.abc import Iterator

import jaxtyping
import pytest


@pytest.fixture
def shapes_unchecked() -> Iterator[None]:
    """No shape is checked meanwhile: that takes most of the time of a long search, and other tests do it."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
