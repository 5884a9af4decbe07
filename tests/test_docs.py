"""Every command and code block of the README and docs/ runs, in order, in one folder per document.

Only how long things take is changed: runs are cut to a few updates of a small model, generated corpora to
1,500 pairs and their test sets to a few lines; and torch is loaded once for all commands. A block that ends
with ``transduce serve`` leaves that server running for the blocks after it, at a free port. ``./run demo``
and ``./run test`` are what the continuous integration itself calls.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

import command_server
import served

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PROGRAM = command_server.__file__
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CHECKED_ELSEWHERE = ("./run ", ".ci/run", "git ", "torchrun ", "transduce corpus get ")

WRAPPER = """#!/usr/bin/env bash
# The real command; training and test sets are made small.
case "$1 $2" in
  "train "*)
    set -- "$@" --set training.max_steps=$([[ " $* " == *" --resume "* ]] && echo 6 || echo 4) \\
      --set training.save_every=2 --set training.valid_every=4 --set training.threads=1 \\
      --set training.average=2 --set training.valid_lines=4 --set model.d_model=32 --set model.d_ff=64
    # The shape is that of the model that it goes on from.
    [[ " $* " == *" --from "* ]] || set -- "$@" --set model.encoder_layers=1 --set model.decoder_layers=2 ;;
  # A model that has hardly learned anything does not know where to end.
  "backtranslate "*|"distill "*) set -- "$@" --unfinished keep ;;
  "corpus generate") set -- "$@" --valid 12 --test 6
    [[ "$*" != *" --pairs "[0-9][0-9][0-9][0-9]* ]] || set -- "$@" --pairs 1500 ;;
  "paper table1") set -- "$@" --lengths 16,32 --widths 16,32 --d 32 --n 32 --seconds 0 ;;
  "paper table3") set -- "$@" --rows base,D3 --seeds 1 --steps 3 --width-by 32 --depth-by 6 ;;
  "paper norms") set -- "$@" --at 0,2 --d-model 32 --layers 1 ;;
  "paper table4") head -n 2 trees.mrg > two.mrg  # each is parsed to a length of more than 300 tokens
    set -- "$@" --preset tiny --set training.max_steps=3 --set training.valid_every=3 --test two.mrg \\
      --set model.d_model=32 --set model.d_ff=64 --set model.encoder_layers=1 --set model.decoder_layers=1 ;;
  "paper baselines") set -- "$@" --steps 3 --minutes 0 --d-model 32 --layers 1 ;;
esac
[ "$1" != serve ] || set -- "$@" --port "$SERVING_PORT"
exec "{python}" -S "{program}" call "{server}" "$@"
"""
# `python -c CODE` is done by the server as well; so are the workers that a command starts.
PYTHON = """#!/usr/bin/env bash
[[ "$1" != -c ]] || exec "{python}" -S "{program}" run "{server}" "${@:2}"
exec "{python}" "$@"
"""


def _blocks(path: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(path.read_text(encoding="utf-8"))


@pytest.fixture
def server() -> Path:
    """Where a process with torch loaded runs transduce commands, with warnings as errors."""
    if not hasattr(os, "fork"):
        pytest.skip("the commands are run by forks of one process")
    return Path(served.server())


@pytest.fixture
def shell(tmp_path: Path, server: Path) -> dict[str, str]:
    binaries = tmp_path / "bin"
    binaries.mkdir()
    for name, text in (("transduce", WRAPPER), ("python", PYTHON)):
        for key, value in (("python", sys.executable), ("program", PROGRAM), ("server", server)):
            text = text.replace(f"{{{key}}}", str(value))
        (binaries / name).write_text(text, encoding="utf-8")
        (binaries / name).chmod(0o755)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    more = {"COMMAND_SERVER_PYTHON": str(binaries / "python"), "OMP_NUM_THREADS": "1", "SERVING_PORT": port}
    return {**os.environ, **more, "PATH": f"{binaries}:{os.environ['PATH']}"}


def _shortened_python(code: str) -> str:
    return re.sub(
        r'"training\.max_minutes": [\d.]+',
        '"training.max_steps": 4, "training.valid_every": 4, "model.d_model": 32, "training.valid_lines": 4',
        code,
    )


def _run(language: str, code: str, folder: Path, environment: dict[str, str], server: Path) -> None:
    code = code.replace("localhost:5000", f"localhost:{environment['SERVING_PORT']}")
    if language == "bash":
        left_out = CHECKED_ELSEWHERE if shutil.which("curl") else (*CHECKED_ELSEWHERE, "curl ")
        lines = [line for line in code.split("\n") if not line.startswith(left_out)]
        command = ["bash", "-euo", "pipefail", "-c", "\n".join(lines)]
    else:
        command = [sys.executable, "-S", PROGRAM, "run", str(server), _shortened_python(code)]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, (
        f"{code}\n--- stdout\n{done.stdout[-2000:]}\n--- stderr\n{done.stderr[-2000:]}"
    )


@contextmanager
def _serving(command: str, folder: Path, environment: dict[str, str]) -> Iterator[None]:
    """Nothing; meanwhile the command serves, and at the end it was stopped as systemd stops it."""
    said = folder.parent / "served"
    address = ("127.0.0.1", int(environment["SERVING_PORT"]))
    with said.open("w") as file:
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"], cwd=folder, env=environment, stdout=file, stderr=file
        )
    try:
        end = time.monotonic() + 120
        while True:
            assert process.poll() is None, said.read_text()
            assert time.monotonic() < end, said.read_text()
            with suppress(OSError), socket.create_connection(address, 1):
                break
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait(30)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_block_runs(document: Path, tmp_path: Path, shell: dict[str, str], server: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "recipes").symlink_to(ROOT / "recipes")
    with ExitStack() as servers:
        _run_all(document, folder, shell, server, servers)


def _run_all(document: Path, folder: Path, shell: dict[str, str], server: Path, servers: ExitStack) -> None:
    for language, code in _blocks(document):
        if language in ("bash", "python"):
            *before, last = code.rstrip("\n").split("\n")
            if not last.startswith("transduce serve "):
                _run(language, code, folder, shell, server)
                continue
            _run(language, "\n".join(before), folder, shell, server)
            servers.close()
            servers.enter_context(_serving(last, folder, shell))
        elif language == "toml":
            tomllib.loads(code)
            name = re.match(r"# (\S+\.toml)\n", code)
            assert name, f"a TOML block must begin with its file's name: {code}"
            (folder / name[1]).write_text(code, encoding="utf-8")
        elif language == "json":
            json.loads(code)
        elif language == "js":
            assert code.startswith("// translate-lines"), "interchange/test_javascript.py runs no other"
        else:
            assert not language, f"{document.name}: a block in {language!r} that nothing runs"


def test_the_readme_opens_with_the_two_commands() -> None:
    first = _blocks(ROOT / "README.md")[0][1]
    assert [line.split("#")[0].strip() for line in first.strip().split("\n")] == ["./run demo", "./run test"]
    assert "./run test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_leads_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (document.parent / target).exists(), target
