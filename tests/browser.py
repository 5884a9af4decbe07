"""A headless Chromium for tests of pages; they are skipped, with the reason, where there is none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def page_of(url: str, *, refused: bool = False, **options: Any) -> Iterator[Any]:
    """The page at ``url``, without any network; a test fails for whatever the page says is wrong.

    With ``refused`` the server may refuse what it is asked.
    """
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the Python package playwright")
    program = next((path for name in NAMES if (path := shutil.which(name))), None)
    if program is None:
        pytest.skip("needs a Chromium: install the package chromium of your system")
    wrong: list[str] = []
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            context = browser.new_context(offline=url.startswith("file:"), **options)
            page = context.new_page()
            page.on("pageerror", lambda error: wrong.append(str(error)))
            page.on(
                "console", lambda message: wrong.append(message.text) if message.type == "error" else None
            )
            page.goto(url)
            yield page
        finally:
            browser.close()
    if refused:
        wrong = [line for line in wrong if "the server responded with a status of 4" not in line]
    assert wrong == []
