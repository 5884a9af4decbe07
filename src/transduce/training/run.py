"""`train`: from settings in layers to a run. What a run is made of stands in `composition.py`."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import IO, Any

from transduce.config import Settings, merge
from transduce.data.config import DataConfig
from transduce.data.corpora import count_pairs
from transduce.data.seen import Seen
from transduce.errors import UsageError
from transduce.training.composition import Run, TrainingResult
from transduce.training.deterministic import deterministic
from transduce.training.distributed import Workers, joined
from transduce.training.folder import begun, check_room
from transduce.training.log import RunLog
from transduce.training.resume import changes
from transduce.training.settings import check_sections, expand, resolve, stored_settings
from transduce.training.start import start_of
from transduce.training.tensorboard import check_tensorboard


def train(  # noqa: PLR0913 - all but the first by name, as in the command line
    output: str | Path,
    *,
    source: str | Path | Sequence[str | Path] = (),
    target: str | Path | Sequence[str | Path] = (),
    pairs: str | Path | Sequence[str | Path] = (),
    preset: str = "",
    settings: Mapping[str, Any] | None = None,
    start: str | Path = "",
    resume: bool = False,
    overwrite: bool = False,
    accept_changes: bool = False,
    prepare_only: bool = False,
    stream: IO[str] | None = None,
) -> TrainingResult:
    """The result of a run whose model folder is ``output``.

    ``source`` and ``target`` are aligned files; ``pairs`` are files or folders that hold both sides.
    ``settings`` holds what a TOML file holds, nested or with dotted names: ``{"training.max_steps": 1000}``.
    What is not said is chosen from the amount of data and said on ``stream`` (default: stderr). ``start``
    names a model folder, a run or a checkpoint, whose weights, shape and tokenizer the run starts from.
    ``resume`` goes on from the newest checkpoint in ``output``, or begins again where there is none yet;
    ``accept_changes`` lets it go on with other data or settings than it began with. With ``prepare_only``
    nothing is trained: the data are prepared in the folder, where a later call finds them.
    Raises ConfigError, DataError, TrainingError.
    """
    folder = Path(output)
    files: Settings = {
        "source": _names("source", source),
        "target": _names("target", target),
        "pairs": _names("pairs", pairs),
    }
    flags: Settings = {
        "data": {n: v for n, v in files.items() if v},
        **({"preset": preset} if preset else {}),
        **({"start": str(start)} if start else {}),
    }
    given = merge(expand(settings or {}), flags)
    if resume and overwrite:
        raise UsageError("--resume goes on with a run and --overwrite replaces it: give one of them")
    if accept_changes and not resume:
        raise UsageError("--accept-changes is about a run that goes on: give --resume as well")
    with joined() as workers:
        stored = workers.first(lambda: _stored(folder, resume, workers))
        given = merge(workers.first(lambda: begun(folder)) if resume and not stored else {}, given)
        resume = bool(stored)
        asked = given
        found, given, lines = start_of(given, folder, stored)
        given = merge(stored, given)
        data = check_sections(given)
        if not resume:
            workers.first(lambda: check_room(folder, overwrite=overwrite))
        with deterministic(given.get("training", {}).get("deterministic", False)):
            device = workers.device(given.get("training", {}).get("device", "auto"))
            amount = workers.first(lambda: _count(data, folder))
            resolved = resolve(given, pairs=amount, device=device)
            resolved = dataclasses.replace(resolved, chosen=(*lines, *resolved.chosen))
            workers.check_same(resolved.as_dict())
            accepted = changes(stored, resolved, folder, accept=accept_changes) if stored else []
            if resolved.training.tensorboard:
                check_tensorboard()
            with closing(_log(folder, stream, workers)) as log:
                run = Run(resolved, folder, device, log, workers, asked=asked, prepare_only=prepare_only)
                return run.start(found, resume=resume, accept=accept_changes, accepted=accepted)


def _count(data: DataConfig, folder: Path) -> int:
    return count_pairs(*data.files, seen=Seen(folder / "data"))


def _log(folder: Path, stream: IO[str] | None, workers: Workers) -> RunLog:
    """Worker 0 tells of the run; the others are silent."""
    if workers.primary:
        return RunLog(folder / "log.jsonl", stream)
    return RunLog(os.devnull, stream, quiet=True)


def _stored(folder: Path, resume: bool, workers: Workers) -> Settings:
    """The settings of the run that goes on; empty for a new one.

    A launcher starts again with the command that it began with: --resume then also begins. So it does where a
    run ended before its first update.
    """
    if not resume:
        return {}
    if not (folder / "settings.json").exists() and (workers.launched or begun(folder)):
        return {}
    return stored_settings(folder)


def _names(side: str, files: str | Path | Sequence[str | Path]) -> list[str]:
    names = [files] if isinstance(files, str | Path) else files
    if not isinstance(names, Sequence) or not all(isinstance(name, str | Path) for name in names):
        raise UsageError(f"{side} is {files!r}; it must be the name of a file, or a list of names")
    return [str(name) for name in names]
