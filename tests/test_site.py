"""What a built site is refused for: links that lead nowhere, and whatever another host would have to give."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[1] / "docs" / "check_site.py"


@pytest.fixture(scope="module")
def check_site() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_site", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_links_and_hosts(check_site: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "index.html").write_text('<h1 id="Größe">x</h1><a href="../a.html#b">up</a>')
    (tmp_path / "style.css").write_text("")
    good = (
        '<link rel="stylesheet" href="style.css"><link rel="next" href="https://example.org/"><p id="b"></p>'
        '<a href="part/">1</a> <a href="part/index.html#Gr%C3%B6%C3%9Fe">2</a> <a href="#b">3</a>'
        '<a href="https://example.org/x">elsewhere</a> <a href="mailto:a@example.org">4</a>'
    )
    (tmp_path / "a.html").write_text(good)
    assert check_site.problems(tmp_path) == []
    bad = (
        '<script src="https://cdn.example.org/x.js"></script><img src="//example.org/i.png">'
        '<link rel="stylesheet" href="gone.css"><a href="c.html">1</a><a href="part/#nothing">2</a>'
    )
    (tmp_path / "a.html").write_text(good + bad)
    assert check_site.problems(tmp_path) == [
        "a.html: loads https://cdn.example.org/x.js, which is not part of the site",
        "a.html: loads //example.org/i.png, which is not part of the site",
        "a.html: loads gone.css, which is not part of the site",
        "a.html: c.html leads nowhere",
        "a.html: part/#nothing: there is no such place on that page",
    ]


def test_no_page_is_no_site(check_site: ModuleType, tmp_path: Path) -> None:
    assert "no page" in check_site.problems(tmp_path)[0]
