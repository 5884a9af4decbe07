"""The chapters of docs/reading: what they import exists, what they claim is asserted; and (slow) all run."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import transduce

ROOT = Path(__file__).parents[1]
READING = ROOT / "docs" / "reading"
INDEX = READING / "index.md"
CHAPTERS = sorted(path for path in READING.glob("*.md") if path != INDEX)
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEAD = re.compile(r"\A---\njupytext:\n.*?\nkernelspec:\n.*?\n  name: python3\n---\n\n# \S", re.DOTALL)
MINUTES = 30  # for machines that do other things at the same time; five are promised for two idle cores


def _code(chapter: Path) -> str:
    """All cells of the chapter, one after the other, as one script."""
    return "\n\n".join(CELL.findall(chapter.read_text(encoding="utf-8")))


def _file_of(module: str) -> Path | None:
    """The source of a module of the toolkit, or of the one beside the chapters."""
    if module == "example":
        return READING / "example.py"
    base = ROOT / "src" / Path(*module.split("."))
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


def _defined(path: Path) -> set[str]:
    """The names that a module makes at its top level, without loading it."""
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            targets = [part for target in node.targets for part in ast.walk(target)]
            names |= {part.id for part in targets if isinstance(part, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names


def _missing(code: str) -> list[str]:
    """What the code takes from the toolkit, or from beside the chapters, though it is not there."""
    found = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            ours = [
                alias.name for alias in node.names if alias.name.split(".")[0] in ("transduce", "example")
            ]
            found += [name for name in ours if _file_of(name) is None]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in (
            "transduce",
            "example",
        ):
            module = node.module or ""
            path = _file_of(module)
            if path is None:
                found.append(module)
                continue
            there = set(transduce.__all__) if module == "transduce" else _defined(path)
            for name in (alias.name for alias in node.names):
                if name.startswith("_") or (name not in there and _file_of(f"{module}.{name}") is None):
                    found.append(f"{module}.{name}")
    return found


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_parses_and_imports_what_exists(chapter: Path) -> None:
    text = chapter.read_text(encoding="utf-8")
    assert HEAD.match(text), "a chapter begins with the lines that make it a notebook, and a title"
    code = _code(chapter)
    assert text.count("```{code-cell}") == len(CELL.findall(text)) > 1
    assert _missing(code) == []


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_asserts_what_it_says_and_shows_it(chapter: Path) -> None:
    code = _code(chapter)
    assert sum(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(code))) >= 3
    assert "plt.show()" in code


def test_imports_that_do_not_exist_are_noticed() -> None:
    assert (
        _missing("from transduce import Transformer\nfrom transduce.model import masks\nimport torch") == []
    )
    assert _missing("from transduce import Transformers") == ["transduce.Transformers"]
    assert _missing("from transduce.model.masks import causal, causal_mask") == [
        "transduce.model.masks.causal"
    ]
    assert _missing("from transduce.model.mask import x\nimport transduce.nothing") == [
        "transduce.model.mask",
        "transduce.nothing",
    ]
    assert _missing("from transduce.model.attention import _ProductAttention") == [
        "transduce.model.attention._ProductAttention"
    ]


def test_every_chapter_is_in_the_index_once() -> None:
    listed = re.search(r"```\{toctree\}\n.*?\n\n(.*?)```", INDEX.read_text(encoding="utf-8"), re.DOTALL)
    assert listed
    assert sorted(listed[1].split()) == [path.stem for path in CHAPTERS]


@pytest.mark.parametrize("chapter", [INDEX, *CHAPTERS], ids=lambda path: path.stem)
def test_every_link_leads_somewhere(chapter: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", CELL.sub("", chapter.read_text(encoding="utf-8"))):
        assert target.startswith("http") or (chapter.parent / target).exists(), target


@pytest.mark.slow
def test_every_chapter_runs(tmp_path: Path) -> None:
    """In one test, since the chapters share a model, which the first that needs it trains."""
    pytest.importorskip("matplotlib")
    environment = {
        **os.environ,
        "MPLBACKEND": "agg",
        "READING_FOLDER": str(tmp_path / "reading"),
        "PYTHONPATH": os.pathsep.join([str(READING), os.environ.get("PYTHONPATH", "")]),
    }
    ends = time.monotonic() + 60 * MINUTES
    for chapter in CHAPTERS:
        script = tmp_path / f"{chapter.stem}.py"
        script.write_text(_code(chapter), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, str(script)],
            cwd=READING,
            env=environment,
            capture_output=True,
            text=True,
            timeout=ends - time.monotonic(),
            check=False,
        )
        assert done.returncode == 0, f"{chapter.name}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
