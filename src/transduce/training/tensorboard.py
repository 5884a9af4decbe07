"""The numbers of a run's log for TensorBoard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transduce.errors import ConfigError

# What becomes a scalar: the events of the log, the heading that TensorBoard shows it under, and its values.
SCALARS = {
    "train": (
        "training",
        (
            "loss",
            "nll",
            "perplexity",
            "rate",
            "gradient_norm",
            "source_tokens_per_second",
            "target_tokens_per_second",
        ),
    ),
    "validation": ("validation", ("loss", "perplexity", "bleu")),
    "end": ("final", ("loss", "bleu", "chrf")),
}
FLUSH_SECONDS = 10


class TensorBoard:
    """Event files in ``folder`` that repeat what the log says, update by update.

    ``after`` is the update from which a run goes on: whatever an earlier process wrote of later ones is
    hidden. None for a new run.
    """

    def __init__(self, folder: str | Path, *, after: int | None = None) -> None:
        purge = None if after is None else after + 1
        self._writer = _writer_class()(str(folder), purge_step=purge, flush_secs=FLUSH_SECONDS)

    def write(self, entry: dict[str, Any]) -> None:
        """Nothing; the numbers of one event of the log are scalars at its update and time."""
        heading, names = SCALARS.get(entry["event"], ("", ()))
        values = entry.get("scores", entry)
        for name in names:
            if values.get(name) is not None:
                self._writer.add_scalar(
                    f"{heading}/{name}", values[name], entry["step"], walltime=entry["time"]
                )

    def close(self) -> None:
        """Nothing; all is on its way to the disk."""
        self._writer.close()


def check_tensorboard() -> None:
    """Nothing; raises ConfigError where TensorBoard's package is missing or does not load."""
    _writer_class()


def _writer_class() -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise ConfigError(
            f"training.tensorboard needs the tensorboard package ({error}): "
            "pip install tensorboard (the extra 'transduce[tensorboard]'), or leave the setting out"
        ) from error
    return SummaryWriter
