"""COMET, a neural metric, by the program `comet-score` and a model that is on this machine.

The program may live in an environment of its own (`pipx install unbabel-comet`), since its dependencies are
old. Nothing is downloaded, and the model's checkpoint is read without running code that it may hold.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from transduce import machine
from transduce.counts import counted
from transduce.errors import DataError, UsageError
from transduce.files import write_bytes

PROGRAM = "comet-score"
# What its libraries would otherwise do: ask the network, and unpickle whatever stands in the checkpoint.
_ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TORCH_FORCE_WEIGHTS_ONLY_LOAD": "1"}


def check_comet(checkpoint: str | Path) -> str:
    """The program's path; UsageError, with the remedy, where it or the checkpoint is missing."""
    program = shutil.which(PROGRAM)
    if program is None:
        raise UsageError(f"COMET needs the program {PROGRAM}: install it with `pipx install unbabel-comet`")
    path = Path(checkpoint)
    if path.suffix != ".ckpt" or not path.is_file() or not (path.parents[1] / "hparams.yaml").is_file():
        raise UsageError(
            f"{checkpoint}: is no COMET model on this machine; name a file checkpoints/*.ckpt beside whose "
            "folder hparams.yaml stands"
        )
    return program


def comet_scores(
    systems: Sequence[Sequence[str]],
    sources: Sequence[str],
    reference: Sequence[str],
    checkpoint: str | Path,
) -> list[list[float]]:
    """Each system's scores, line by line; UsageError as `check_comet`, DataError where the program fails."""
    program = check_comet(checkpoint)
    with tempfile.TemporaryDirectory() as folder:
        names = {"source": sources, "reference": reference}
        names |= {f"system-{i}": lines for i, lines in enumerate(systems)}
        for name, lines in names.items():
            write_bytes(Path(folder) / name, "".join(f"{_one_line(line)}\n" for line in lines).encode())
        outputs = [name for name in names if name.startswith("system-")]
        command = [program, "--sources", "source", "--references", "reference", "--translations", *outputs]
        command += ["--model", str(Path(checkpoint).resolve()), "--gpus", "0", "--quiet", "--only_system"]
        done = subprocess.run(
            [*command, "--to_json", "scores.json"],
            cwd=folder,
            env={**os.environ, **_ENVIRONMENT},
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode:
            said = machine.one_line(
                done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "nothing"
            )
            raise DataError(f"{PROGRAM} failed with {checkpoint} (exit code {done.returncode}): {said}")
        found = json.loads((Path(folder) / "scores.json").read_bytes())
    scores = [[float(line["COMET"]) for line in found[name]] for name in outputs]
    if any(len(own) != len(sources) for own in scores):
        numbers = [len(own) for own in scores]
        raise DataError(f"{PROGRAM} gave {numbers} scores for {counted(len(sources), 'line')}")
    return scores


def _one_line(text: str) -> str:
    """The text without what the program takes for the end of a line."""
    return text.replace("\r", " ").replace("\n", " ")
