import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # the tests share toy.py


@pytest.fixture
def unscored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs translate nothing, which takes longer than their few updates."""
    from transduce.training.validation import Validation

    scores = {"bleu": 1.0, "chrf": 1.0, "exact": 0.0, "loss": 1.0, "signature": "none"}
    monkeypatch.setattr(
        "transduce.training.composition.validate", lambda *_, **__: Validation(1.0, 1.0, "signature", ())
    )
    monkeypatch.setattr("transduce.training.finish.final_scores", lambda *_, **__: scores)
