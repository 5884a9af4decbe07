"""The wheel: what is in it, and that an environment without anything else of ours trains by it."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        str(ROOT),
        "--no-deps",
        "--quiet",
        "--wheel-dir",
        str(folder),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "hatchling" in done.stderr and done.returncode:
        pytest.skip("hatchling cannot be had: no package index can be reached")
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob("*.whl")
    return path


def test_the_wheel_holds_all_of_the_package_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    package = {
        str(path.relative_to(ROOT / "src"))
        for path in (ROOT / "src" / "transduce").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in names if ".dist-info/" not in name} == package
    assert "transduce/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_an_environment_with_the_wheel_trains_and_translates(wheel: Path, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    site = tmp_path / "site"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(wheel)],
        check=True,
        env=environment,
    )
    environment["PYTHONPATH"] = str(site)

    def transduce(*arguments: str, **given: str) -> str:
        command = [sys.executable, "-W", "error", "-m", "transduce", *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True, **given
        ).stdout

    where = [sys.executable, "-c", "import transduce; print(transduce.__file__)"]
    found = subprocess.run(where, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.startswith(str(site))
    transduce("corpus", "generate", "--pairs", "300", "--output", "corpus")
    settings = ["--set", "training.max_steps=5", "--set", "model.d_model=32", "--set", "data.vocabulary=400"]
    transduce(
        "train", "--source", "corpus/train.en", "--target", "corpus/train.de", "--output", "m", *settings
    )
    assert transduce("translate", "m", input="The dog sleeps.\n\nA cat runs.\n").count("\n") == 3
