"""Nothing that a run leaves, and no line of the source, can run code when it is read."""

from __future__ import annotations

import ast
import pickletools
from collections.abc import Iterator
from pathlib import Path

import torch
from toy import toy_call

from transduce.training import checkpoint as checkpoint_module
from transduce.training.run import train


def _is_pickle(content: bytes) -> bool:
    if content[:4] == b"PK\x03\x04":  # what torch.save writes
        return True
    try:
        return bool(list(pickletools.genops(content)))
    except Exception:
        return False


def test_no_file_of_a_run_is_a_pickle(tmp_path: Path) -> None:
    run = train(tmp_path / "run", **toy_call(tmp_path)).folder
    files = [path for path in run.rglob("*") if path.is_file()]
    assert len(files) > 20
    assert [path.name for path in files if _is_pickle(path.read_bytes())] == []
    torch.save({"a": 1}, tmp_path / "pickled")
    assert _is_pickle((tmp_path / "pickled").read_bytes())


def _calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def test_no_source_line_reads_or_writes_pickles() -> None:
    forbidden = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib"}
    source = Path(checkpoint_module.__file__).parents[1]
    files = sorted(source.rglob("*.py"))
    assert len(files) > 90
    for file in files:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not forbidden & {name.split(".")[0] for name in names}, file
        for name, call in _calls(tree):
            keywords = {k.arg: ast.unparse(k.value) for k in call.keywords}
            assert name != "torch.load" or keywords.get("weights_only") == "True", file
            assert name not in ("torch.save", "eval", "exec"), file
            assert keywords.get("allow_pickle", "False") == "False", file
