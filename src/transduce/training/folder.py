"""The folder of a run: who may write in it, and what of it a new run may delete."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from transduce.config import Settings
from transduce.data.cleaning.kept import FILES as CLEANING
from transduce.errors import TrainingError, UsageError
from transduce.files import write_json

# All that a run ever writes; nothing else is touched.
BEGUN = "begun.json"  # what was asked for, until settings.json says what the run is
FILES = (
    "settings.json",
    BEGUN,
    "log.jsonl",
    "config.json",
    "model.safetensors",
    "tokenizer.model",
    "training.json",
)
DATA = ("prepared.json", "tokenizer.model", "valid.jsonl", "unfinished.json", "files.json", *CLEANING)
SHARDS = ("train", "valid")


def check_room(folder: Path, *, overwrite: bool) -> None:
    """Nothing; raises UsageError where ``folder`` is no folder, or holds a run that would be lost."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder}: is a file; --output must name a folder")
    taken = [
        name for name in ("settings.json", "checkpoints", "model.safetensors") if (folder / name).exists()
    ]
    if taken and not overwrite:
        raise UsageError(
            f"{folder}: already holds a run ({taken[0]}); use --resume to go on with it, --overwrite to "
            "replace it, or another --output"
        )


def make_room(folder: Path) -> None:
    """Nothing; what an earlier run wrote in ``folder`` is gone, and nothing else is.

    But for its prepared data, or what there is of them: they are used where they are those of the new run,
    and written over where not.
    """
    for name in FILES:
        (folder / name).unlink(missing_ok=True)
    for path in (folder / "checkpoints").glob("*step-*"):
        shutil.rmtree(path, ignore_errors=True)
    for path in (folder / "tensorboard").glob("events.out.tfevents.*"):
        path.unlink()


def begin(folder: Path, asked: Settings) -> None:
    """Nothing; there is room for a new run, of which so much is known that it can be begun again."""
    make_room(folder)
    write_json(folder / BEGUN, asked)


def begun(folder: Path) -> Settings:
    """What was asked of a run that ended before its first update; nothing where there is none."""
    try:
        found: Settings = json.loads((folder / BEGUN).read_bytes())
    except (OSError, ValueError):
        return {}
    return found


def settle(folder: Path, settings: Settings) -> None:
    """Nothing; the run has these settings, and goes on with them."""
    write_json(folder / "settings.json", settings)
    (folder / BEGUN).unlink(missing_ok=True)


def clear_leftovers(folder: Path) -> None:
    """Nothing; files under temporary names, which a killed run left in ``folder``, are gone."""
    for place, names in (
        (folder, FILES),
        (folder / "data", DATA),
        *((folder / "data" / s, ("meta.json",)) for s in SHARDS),
    ):
        for name in names:
            for path in place.glob(f".{name}.*.tmp"):
                path.unlink()


def check_space(folder: Path, values: int, *, kept: int, there: int) -> str:
    """One line about the disk; raises TrainingError where ``folder`` has no room for the checkpoints to come.

    A checkpoint holds so many float32 ``values``. Besides the ``kept`` there are the best, one that a signal
    brought about, and the one being written; of all these ``there`` exist already.
    """
    one = 4 * values / 2**20
    free = shutil.disk_usage(folder).free / 2**20
    needed = max(1, kept + 3 - there) * one
    if needed > free:
        raise TrainingError(
            f"{folder / 'checkpoints'}: checkpoints need {needed:,.0f} MiB but {free:,.0f} MiB are free; "
            "make room, lower training.average or choose another --output"
        )
    return f"checkpoints will take up to {needed:,.0f} MiB; {free:,.0f} MiB are free"


def disk_error(folder: Path, error: OSError) -> TrainingError:
    """What to say where a disk refused: what is safe, and how the run goes on."""
    from transduce.training.checkpoint import Checkpoints  # loads torch, which listing runs does without

    newest = Checkpoints(folder / "checkpoints", keep=1).newest()
    kept = f"the last good checkpoint is {newest}" if newest else "there is no checkpoint yet"
    return TrainingError(
        f"{error.filename or folder}: cannot be written ({error.strerror or error}); the run has stopped, "
        f"{kept}; make room, then --resume"
    )


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Nothing; until left, no other process can train in ``folder``: it would get a UsageError."""
    try:
        import fcntl
    except ImportError:  # Windows: an open file cannot be replaced there anyway
        yield
        return
    with (folder / ".lock").open("w") as file:
        for wait in (0.1, 0.1, None):  # `is_locked` holds it for an instant
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if wait is None:
                    raise UsageError(
                        f"{folder}: another process is training there; wait for it, or stop it"
                    ) from None
                time.sleep(wait)
        yield


def is_locked(folder: Path) -> bool | None:
    """Whether a living process trains in ``folder``; None where the system cannot tell."""
    try:
        import fcntl
    except ImportError:
        return None
    try:
        with (folder / ".lock").open("rb") as file:
            # The system gives a lock back when its process ends, however it ends.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    except OSError:  # not ours to read, or a disk without locks
        return None
    return False
