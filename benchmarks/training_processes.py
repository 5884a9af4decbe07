"""Each system in a process of its own, by the Python of the environment that it is installed in."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from training_systems import SYSTEMS, installed


def version(name: str) -> str:
    """The installed version of the system's package."""
    package = "transduce" if name == "transduce" else SYSTEMS[name][2]
    (distribution, *_) = importlib.metadata.packages_distributions().get(package, [package])
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "from this checkout"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which systems run, and by which Python."""
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, help="default: all that are there")
    parser.add_argument(
        "--python",
        action="append",
        default=[],
        metavar="NAME=PATH",
        help="the Python of the environment that a system is installed in; can be given once for each",
    )
    parser.add_argument("--one", choices=SYSTEMS, help=argparse.SUPPRESS)


def settle(parser: argparse.ArgumentParser, given: argparse.Namespace) -> None:
    """Nothing; ``given.python`` is now a mapping and ``given.systems`` a list of systems that can run."""
    pairs = [pair.partition("=") for pair in given.python]
    for name, equals, path in pairs:
        told = f"--python {name}{equals}{path}"
        if name not in SYSTEMS:
            parser.error(f"{told}: the systems are {', '.join(SYSTEMS)}")
        if not os.access(path, os.X_OK) or Path(path).is_dir():
            parser.error(f"{told}: name a python program there is, as --python {name}=/path/to/python")
    given.python = {name: path for name, _, path in pairs}
    here = installed()
    given.systems = given.systems or [name for name in SYSTEMS if name in here or name in given.python]
    for name in given.systems:
        if name not in here and name not in given.python:
            parser.error(
                f"{name} is not installed here: install it, or name the Python that has it with "
                f"--python {name}=/path/to/python"
            )


def alone(python: str, words: list[str], **environment: str) -> dict[str, Any]:
    """What a script prints as JSON on its last line, run by ``python`` with this checkout's transduce."""
    path = os.pathsep.join([str(Path(__file__).parents[1] / "src"), os.environ.get("PYTHONPATH", "")])
    inherited = {**os.environ, "PYTHONPATH": path.rstrip(os.pathsep)}
    done = subprocess.run(
        [python, *words], stdout=subprocess.PIPE, text=True, env={**inherited, **environment}, check=False
    )
    if done.returncode:
        sys.exit(f"{python} {' '.join(words)} ended with exit status {done.returncode}: see above")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result
