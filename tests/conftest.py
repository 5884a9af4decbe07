"""Fixtures that several packages share: repeatable randomness, one thread, and small models."""

from __future__ import annotations

import gc
import os
import random
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

import checked_calls
import served

if TYPE_CHECKING:
    from transduce.model.transformer import Transformer

checked_calls.install()  # before anything of transduce is loaded

SMALL: dict[str, Any] = {
    "vocabulary": 23,
    "d_model": 16,
    "d_ff": 24,
    "heads": 2,
    "encoder_layers": 2,
    "decoder_layers": 2,
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest begins first, so that no process is left with it when the others have ended."""
    items.sort(key=lambda item: item.path.name not in ("test_docs.py", "test_on_ray.py"))


def pytest_collection_finish() -> None:
    """What is loaded by now stays: no collection of garbage need look through it again."""
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _shared_by_all_workers(tmp_path_factory: pytest.TempPathFactory) -> None:
    base = tmp_path_factory.getbasetemp()
    served.FOLDER[:] = [base.parent if "PYTEST_XDIST_WORKER" in os.environ else base]


@pytest.fixture(autouse=True)
def _repeatable() -> None:
    random.seed(0)
    if "torch" in sys.modules:  # no reason to load it for a test that does without
        torch = sys.modules["torch"]
        torch.manual_seed(0)
        # Small models gain nothing from a second thread, and lose much where others use the machine.
        torch.set_num_threads(1)


def _small_model(*, seed: int = 0, **settings: Any) -> Transformer:
    import torch

    from transduce.model.config import ModelConfig
    from transduce.model.transformer import Transformer

    torch.manual_seed(seed)
    model = Transformer(ModelConfig(**{**SMALL, **settings})).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            # Fresh biases are 0 and gains 1: their neighbours would hide a mistake in either.
            if parameter.dim() == 1:
                parameter.add_(0.3 * torch.randn_like(parameter))
    return model


@pytest.fixture(scope="session")
def small_model() -> Callable[..., Transformer]:
    """A function of settings (and ``seed``) that returns a small model in evaluation mode.

    No two of its parameters are alike, biases and gains included.
    """
    return _small_model
