"""The pages of settings and errors are what the source says."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[1] / "docs" / "reference.py"


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pages_are_up_to_date(reference: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["reference.py", "--check"])
    assert reference.main() == 0, "run python docs/reference.py"


def test_a_page_that_is_not_is_noticed(
    reference: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["reference.py", "--check"])
    monkeypatch.setattr(reference, "errors_page", lambda: "other")
    assert reference.main() == 1
    assert "errors.md: not what the source says" in capsys.readouterr().err


def test_messages_of_all_kinds(reference: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "raise DataError(f'{path}:{line}: no ' + 'number')\n"
        "raise self.fault('a second <seg> in one')\n"
        "raise ValueError('ours alone')\n"
        "raise UsageError(f'choose {one}' if one else 'nothing')\n"
    )
    found = list(reference.messages_of(tmp_path / "a.py"))
    assert found == [
        (1, "…:…: no number"),
        (1, "a second <seg> in one"),
        (2, "choose …"),
        (2, "nothing"),
    ]
    assert reference.cell("a <seg> | ``b``") == "a &lt;seg> \\| `b`"
