"""The demonstration runs from nothing to a map of the attention."""

from __future__ import annotations

from pathlib import Path

import pytest

from transduce.demo import demo


def test_the_whole_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said: list[str] = []
    settings = {
        "data": {"vocabulary": 600},
        "model": {"d_model": 32, "d_ff": 64},
        "training": {"max_steps": 6, "device": "cpu", "threads": 1},
    }
    result = demo(tmp_path, pairs=300, lines=12, settings=settings, say=said.append)
    assert result.lines == 12
    assert 0 <= result.exact <= 1
    text = "\n".join(said)
    assert "Unseen sentences: " in text
    assert f"{result.exact:.1%} exact, BLEU {result.bleu:.2f} (nrefs:1|" in text
    assert text.count("expected: ") <= 10
    assert "</s>" in text  # the map's last row and column
    train, test = (
        (tmp_path / "corpus" / f"{split}.en").read_text("utf-8").split("\n") for split in ("train", "test")
    )
    assert not set(train[:-1]) & set(test[:-1])
    # a second demonstration replaces the first
    assert demo(tmp_path, pairs=300, lines=12, settings=settings, say=said.append).folder == result.folder
