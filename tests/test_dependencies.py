"""docs/dependencies.md has a row for everything that pyproject.toml asks for, and for nothing else."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def _asked_for() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = list(project["project"]["dependencies"])
    for extra in project["project"]["optional-dependencies"].values():
        wanted += extra
    for group in project["dependency-groups"].values():
        wanted += [line for line in group if isinstance(line, str)]
    return {re.split(r"[<>=!\[ ;]", line)[0] for line in wanted}


def test_each_dependency_is_justified() -> None:
    rows = re.findall(r"^\| (`.*?) \|", (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8"), re.M)
    told = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    assert told == _asked_for()


def test_the_tested_versions_satisfy_the_lower_bounds() -> None:
    pinned = {
        name.lower().replace("_", "-"): version
        for name, version in re.findall(
            r"^([\w.-]+)==([\d.]+)", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.M
        )
    }
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    bounds = re.findall(r'"([\w-]+)>=([\d.]+)"', text)
    assert len(bounds) > 20
    for name, bound in bounds:
        # torch is a range there, and hatchling builds in an environment of its own
        if name in ("torch", "hatchling"):
            continue
        assert name.lower() in pinned, name
        assert _numbers(pinned[name.lower()]) >= _numbers(bound), name


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.strip(".").split(".")]
