"""Every command and code block of the README and docs/ runs, in order, in one folder per document.

Only how long things take is changed: runs are cut to about a second of a small model, and the generated test
sets to a few lines; and torch is loaded once for all commands. ``./run demo`` and ``./run test`` are what the
continuous integration itself calls.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
SERVER = Path(__file__).with_name("command_server.py")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CHECKED_ELSEWHERE = ("./run ", ".ci/run", "git ", "torchrun ", "transduce corpus get ")

WRAPPER = """#!/usr/bin/env bash
# The real command; training and test sets are made small.
case "$1 $2" in
  "train "*) set -- "$@" --set training.max_minutes=0.02 --set training.threads=1 --set model.d_model=32 \\
      --set model.d_ff=64 --set training.average=2 --set training.valid_lines=10 ;;
  # A model that has hardly learned anything does not know where to end.
  "backtranslate "*|"distill "*) set -- "$@" --unfinished keep ;;
  "corpus generate") set -- "$@" --valid 20 --test 12 ;;
  "paper table1") set -- "$@" --lengths 16,32 --widths 16,32 --d 32 --n 32 --seconds 0 ;;
  "paper table3") set -- "$@" --rows base,D3 --seeds 1 --steps 3 --width-by 32 --depth-by 6 ;;
  "paper norms") set -- "$@" --at 0,2 --d-model 32 --layers 1 ;;
  "paper table4") set -- "$@" --preset tiny --set training.max_steps=3 --set model.d_model=32 \\
      --set model.d_ff=64 ;;
  "paper baselines") set -- "$@" --steps 3 --minutes 0 --d-model 32 --layers 1 ;;
esac
exec "{python}" -S "{server}" call "{socket}" "$@"
"""


def _blocks(path: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def server() -> Iterator[Path]:
    """The socket at which a process with torch loaded runs transduce commands, with warnings as errors."""
    if not hasattr(os, "fork"):
        pytest.skip("the commands are run by forks of one process")
    with tempfile.TemporaryDirectory() as folder:  # a socket's name must be short
        path = Path(folder) / "socket"
        command = [sys.executable, "-W", "error", str(SERVER), "serve", str(path)]
        with subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"}) as process:
            try:
                while not path.exists():
                    assert process.poll() is None, "the process that runs the commands has ended"
                    time.sleep(0.05)
                yield path
            finally:
                process.kill()


@pytest.fixture
def shell(tmp_path: Path, server: Path) -> dict[str, str]:
    binaries = tmp_path / "bin"
    binaries.mkdir()
    wrapper = binaries / "transduce"
    text = WRAPPER
    for name, value in (("python", sys.executable), ("server", SERVER), ("socket", server)):
        text = text.replace(f"{{{name}}}", str(value))
    wrapper.write_text(text, encoding="utf-8")
    wrapper.chmod(0o755)
    python = binaries / "python"
    python.write_text(f'#!/usr/bin/env bash\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    return {**os.environ, "PATH": f"{binaries}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}


def _shortened_python(code: str) -> str:
    return re.sub(
        r'"training\.max_minutes": [\d.]+',
        '"training.max_minutes": 0.02, "model.d_model": 32, "training.valid_lines": 10',
        code,
    )


def _run(language: str, code: str, folder: Path, environment: dict[str, str], server: Path) -> None:
    if language == "bash":
        lines = [line for line in code.split("\n") if not line.startswith(CHECKED_ELSEWHERE)]
        command = ["bash", "-euo", "pipefail", "-c", "\n".join(lines)]
    else:
        command = [sys.executable, "-S", str(SERVER), "run", str(server), _shortened_python(code)]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, (
        f"{code}\n--- stdout\n{done.stdout[-2000:]}\n--- stderr\n{done.stderr[-2000:]}"
    )


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_block_runs(document: Path, tmp_path: Path, shell: dict[str, str], server: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "recipes").symlink_to(ROOT / "recipes")
    for language, code in _blocks(document):
        if language in ("bash", "python"):
            _run(language, code, folder, shell, server)
        elif language == "toml":
            tomllib.loads(code)
            name = re.match(r"# (\S+\.toml)\n", code)
            assert name, f"a TOML block must begin with its file's name: {code}"
            (folder / name[1]).write_text(code, encoding="utf-8")
        elif language == "json":
            json.loads(code)
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
