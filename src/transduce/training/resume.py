"""Going on with a run: what may change, what must be accepted first, and what nothing can make acceptable.

Every checkpoint holds its *basis*: the data, the tokenizer and the settings that `Progress.position` counts
in. Where it is not that of today, the position means nothing and the epoch begins anew.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch

from transduce.config import Settings
from transduce.data.config import DataConfig
from transduce.data.tokenizer import Tokenizer
from transduce.errors import ConfigError, TrainingError
from transduce.files import write_bytes
from transduce.training.settings import WEIGHTS, RunSettings, differences
from transduce.training.trainer import Trainer

# Beside those of training, the settings that leave every trained number its place and meaning.
LOOSE = (*WEIGHTS, "model.dropout", "model.attention_dropout", "model.relu_dropout", "model.max_length")
# The subwords are learned once: each row of the embeddings is that of one piece.
SUBWORDS = ("vocabulary", "subwords", "tokenizer_sample")


def changes(stored: Settings, run: RunSettings, folder: Path, *, accept: bool) -> list[str]:
    """What makes ``run`` another than the one in ``folder`` began as, and was accepted; one line each.

    Raises ConfigError where there is something that was not accepted, or cannot be. What has changed in the
    files of the corpus is for `prepare` to find.
    """
    wanted = run.as_dict()
    changed = differences(stored, wanted)
    fixed = [line for line in changed if not _loose(line, wanted)]
    if fixed:
        raise ConfigError(
            f"this would be another run than the one in {folder}: {'; '.join(fixed)}; weights are of one "
            "model, so this cannot be accepted: start a new run (what a preset sets can be changed by name)"
        )
    if changed and not accept:
        raise ConfigError(
            f"this would be another run than the one in {folder}: {'; '.join(changed)}; "
            "use --accept-changes to go on with it nevertheless"
        )
    if accept:
        _check_tokenizer(stored["data"], run.data, folder)
    return changed


def _loose(line: str, wanted: Settings) -> bool:
    name = line.split(" ")[0]
    if name == "model.max_length" and wanted["model"].get("positions") == "learned":  # it has so many rows
        return False
    return name in LOOSE or name.startswith("training.")


def _check_tokenizer(stored: Settings, data: DataConfig, folder: Path) -> None:
    """Nothing; raises ConfigError where other subwords would not fit the embeddings that were trained."""
    file = folder / "data" / "tokenizer.model"
    if data.tokenizer and file.exists():
        old, new = Tokenizer.load(file).vocabulary, Tokenizer.load(data.tokenizer).vocabulary
        if old != new:
            raise ConfigError(
                f"data.tokenizer is {data.tokenizer} with {new} pieces, but the model in {folder} was "
                f"trained with {old}: this cannot be accepted; use one of {old} pieces, or start a new run"
            )
        return
    for name in (*SUBWORDS, *(["tokenizer"] if stored["tokenizer"] else [])):
        if stored[name] != getattr(data, name):
            raise ConfigError(
                f"data.{name} was {stored[name]!r}, is {getattr(data, name)!r}: the model in {folder} was "
                "trained with its own subwords, so this cannot be accepted; restore it, or start a new run"
            )


def basis(data: Path, tokenizer: Tokenizer, settings: RunSettings, blocks: int) -> dict[str, Any]:
    """What the position in an epoch counts in; ``data`` is the folder of the prepared data.

    A corpus of several ``blocks`` is in another order than earlier versions had it in.
    """
    config = settings.training
    return {
        "data": hashlib.sha256((data / "prepared.json").read_bytes()).hexdigest(),
        "tokenizer": tokenizer.sha256,
        "training.batch_tokens": config.batch_tokens,
        "training.micro_batch_tokens": config.micro_batch_tokens,
        "training.seed": config.seed,
        **{name: settings.as_dict()["data"][name.removeprefix("data.")] for name in WEIGHTS},
        **({"order": f"{blocks} blocks"} if blocks > 1 else {}),
    }


def go_on(trainer: Trainer, today: dict[str, Any], *, accept: bool) -> bool:
    """Whether there was a checkpoint, from which ``trainer`` goes on; ``today`` is the basis of this run.

    Raises TrainingError where the checkpoint's basis is another, unless ``accept``.
    """
    found = trainer.resume()
    before, trainer.basis = trainer.basis, today
    # What an older version did not write down was as it is now, but for the order.
    changed = [
        name
        for name in today
        if found and before.get(name, "whole" if name == "order" else today[name]) != today[name]
    ]
    p, say = trainer.progress, trainer.log.say
    if not found:
        rewind(trainer.log.path, 0)
        return False
    if changed and not accept:
        raise TrainingError(
            f"{trainer.checkpoints.newest()}: was made with another basis: {', '.join(changed)} changed; "
            "restore it, or use --accept-changes to go on nevertheless"
        )
    rewind(trainer.log.path, p.step)
    say(f"resuming after update {p.step:,}")
    if changed:
        p.block = p.position = 0
        if "training.seed" in changed:
            torch.manual_seed(trainer.config.seed)
        say(f"accepted: {', '.join(changed)} changed; going on at the beginning of epoch {p.epoch + 1:,}")
        if "tokenizer" in changed:
            say("warning: the embeddings were trained for the pieces of another tokenizer")
        trainer.save(passing=trainer.passing)
    return True


def rewind(path: Path, step: int) -> None:
    """Nothing; the log ``path`` says nothing of updates after ``step``: they are done, and said, again.

    Half a line at the end, which a kill or a full disk left, is gone as well.
    """
    if not path.exists():
        return
    lines = path.read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if _step(line) <= step]
    if kept != lines:
        write_bytes(path, b"".join(kept))


def _step(line: bytes) -> float:
    try:
        entry = json.loads(line)
    except ValueError:
        return float("inf")
    whole = line.endswith(b"\n") and isinstance(entry, dict)
    return float(entry.get("step", 0)) if whole else float("inf")
