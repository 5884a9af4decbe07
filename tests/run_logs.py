"""Folders of runs with logs written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

START: dict[str, Any] = {
    "event": "start",
    "time": 1000.0,
    "settings": {"preset": "tiny"},
    "target_tokens_per_update": 200.0,
    "updates_per_epoch": 40,
}


def report(step: int, nll: Any, **more: Any) -> dict[str, Any]:
    """A training report, 2 seconds and 210 target tokens an update."""
    values = {"nll": nll, "loss": 8.0, "target_tokens_per_second": 105.0, "seconds": 2.0 * step}
    return {
        "event": "train",
        "time": 1000.0 + 2 * step,
        "step": step,
        **values,
        "target_tokens": 210 * step,
        **more,
    }


def validation(step: int, loss: float, bleu: Any = None, **more: Any) -> dict[str, Any]:
    """A validation, at the same pace."""
    values = {"loss": loss, "bleu": bleu, "seconds": 2.0 * step, "target_tokens": 210 * step}
    return {"event": "validation", "time": 1000.5 + 2 * step, "step": step, **values, **more}


def end(step: int, reason: str = "200 updates are done", **scores: Any) -> dict[str, Any]:
    """The end of a run."""
    return {
        "event": "end",
        "time": 1001.0 + 2 * step,
        "reason": reason,
        "step": step,
        "seconds": 2.0 * step,
        "scores": scores,
    }


def write_run(folder: Path, *events: dict[str, Any], tail: bytes = b"") -> Path:
    """``folder``, now a run whose log holds the events and then ``tail``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "settings.json").write_text("{}\n", encoding="utf-8")
    lines = "".join(json.dumps(event) + "\n" for event in events)
    (folder / "log.jsonl").write_bytes(lines.encode() + tail)
    return folder
