"""The page in a real browser: typing, words, swapping, documents, history, the inspector, errors, access."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browser import page_of
from running_server import Running, running
from tiny_translator import sentences
from transduce.decoding.translator import Translator

TEXT = sentences(1, seed=3, words=(3, 4))[0]


@pytest.fixture(scope="module")
def both(folder: Path) -> Iterator[Running]:
    """A server of both directions, with a limit on what may be asked."""
    with running([f"en-de={folder}", f"de-en={folder}"], max_characters=300) as found:
        yield found


@pytest.fixture
def page(both: Running) -> Iterator[Any]:
    with page_of(both.url, refused=True) as found:
        found.set_default_timeout(20_000)
        found.locator("#from option").nth(1).wait_for(state="attached")
        found.select_option("#from", "en")
        yield found


def translated(page: Any, text: str, source: str = "en") -> str:
    """What the page shows for a text."""
    if page.input_value("#from") != source:
        page.select_option("#from", source)
    with page.expect_response("**/v1/stream") as coming:
        page.fill("#source", text)
    assert coming.value.ok
    page.locator("#output:not(.waiting) .word").first.wait_for()
    return str(page.locator("#output").inner_text())


def test_typing_gives_what_the_model_says(page: Any, both: Running, translator: Translator) -> None:
    shown = translated(page, f"{TEXT}\n\n{TEXT}")
    output = both.translated(TEXT)
    assert [line.strip() for line in shown.split("\n") if line.strip()] == [output, output]
    assert page.locator("#output p").count() == 3  # an empty line is a line
    page.fill("#source", "")
    page.locator("#output .word").first.wait_for(state="detached")


def test_another_word_is_chosen_by_keyboard(page: Any) -> None:
    before = translated(page, TEXT)
    page.locator("#output .word").first.focus()
    page.keyboard.press("Enter")
    page.locator(".choices small").first.wait_for()
    options = page.locator(".choices [role=option]")
    assert options.count() == 5
    assert options.first.get_attribute("aria-selected") == "true"
    texts = [str(text).strip() for text in page.locator(".choices small").all_inner_texts()]
    other = next(at for at, text in enumerate(texts) if text != before.strip())
    for _ in range(other):
        page.keyboard.press("ArrowDown")
    assert options.nth(other).get_attribute("aria-selected") == "true"
    page.keyboard.press("Enter")
    page.locator(".choices").wait_for(state="detached")
    assert page.locator("#output").inner_text().strip() == texts[other]
    page.keyboard.press("Enter")
    page.locator(".choices").wait_for()
    page.keyboard.press("Escape")
    page.locator(".choices").wait_for(state="detached")
    assert page.evaluate("document.activeElement.className") == "word"


def test_confidence_is_shown_by_shade_and_in_words(page: Any) -> None:
    translated(page, TEXT)
    word = page.locator("#output .word").first
    sure = int(str(word.get_attribute("title")).split()[0])
    doubt = float(word.evaluate("e => e.style.getPropertyValue('--doubt')"))
    assert doubt == pytest.approx(0.6 * (1 - sure / 100) ** 1.5, abs=0.02)
    page.uncheck("#shade")
    assert word.evaluate("e => getComputedStyle(e).backgroundColor") == "rgba(0, 0, 0, 0)"


def test_swapping(page: Any) -> None:
    output = translated(page, TEXT).strip()
    page.keyboard.press("Alt+s")
    assert page.input_value("#from") == "de"
    assert page.input_value("#to") == "en"
    assert page.input_value("#source") == output


def test_what_is_refused_is_said(page: Any) -> None:
    page.fill("#source", "a" * 400)
    page.locator("#problem").wait_for()
    assert "300" in page.locator("#problem").inner_text()
    translated(page, TEXT)
    assert page.locator("#problem").is_hidden()


def test_documents(page: Any, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(f"<p>{TEXT}</p>")
    page.select_option("#from", "en")
    with page.expect_download() as coming:
        page.set_input_files("#file", tmp_path / "a.html")
    assert coming.value.suggested_filename == "a.de.html"
    assert Path(coming.value.path()).read_text().startswith("<p>")
    (tmp_path / "bad.docx").write_text("no zip")
    page.set_input_files("#file", tmp_path / "bad.docx")
    page.locator("#problem").wait_for()


def test_history_is_kept_in_the_browser_and_forgotten(page: Any) -> None:
    translated(page, TEXT)
    page.reload()
    page.click("#tab-history")
    entry = page.locator("#past button")
    assert entry.count() == 1
    assert TEXT in entry.inner_text()
    entry.click()
    assert page.input_value("#source") == TEXT
    page.locator("#output .word").first.wait_for()
    page.click("#tab-history")
    page.click("#forget")
    assert page.locator("#past li").count() == 0


def test_the_inspector_follows_the_sentence(page: Any) -> None:
    translated(page, TEXT)
    page.focus("#tab-translate")
    page.keyboard.press("ArrowRight")
    page.locator("#tree svg").wait_for()
    assert page.input_value("#sentence") == TEXT
    heads = page.locator("#attention .overview button")
    assert heads.count() > 1
    heads.nth(1).click()
    tokens = page.locator('#attention .token[data-side="column"]').count()
    page.fill("#sentence", f"{TEXT} {TEXT}")
    page.locator('#attention .token[data-side="column"]').nth(tokens).wait_for()
    # the head that was chosen stays chosen
    assert page.locator("#attention .overview button").nth(1).get_attribute("aria-pressed") == "true"
    assert page.locator("#tree g.best").count() > 0


@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 360)])
def test_everybody_can_use_it(both: Running, scheme: str, width: int) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs axe-playwright-python"
    ).Axe()
    with page_of(both.url, color_scheme=scheme, viewport={"width": width, "height": 800}) as page:
        translated(page, TEXT)
        page.locator("#output .word").first.click()
        page.locator(".choices small").first.wait_for()
        found = {"translate": axe.run(page)}
        page.keyboard.press("Escape")
        page.click("#tab-inspect")
        page.locator("#tree svg").wait_for()
        found["inspect"] = axe.run(page)
        page.click("#tab-history")
        found["history"] = axe.run(page)
        for view, report in found.items():
            assert report.violations_count == 0, f"{view}: {report.generate_report()}"
        # nothing is wider than the window
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_right_to_left(folder: Path) -> None:
    with running([f"en-ar={folder}"]) as server, page_of(server.url) as page:
        translated(page, TEXT)
        assert page.locator("#output").get_attribute("dir") == "rtl"


def test_nothing_comes_from_another_host(both: Running) -> None:
    asked: list[str] = []
    with page_of("about:blank") as page:
        page.on("request", lambda request: asked.append(request.url))
        page.goto(both.url)
        translated(page, TEXT)
        page.click("#tab-inspect")
        page.locator("#tree svg").wait_for()
    assert asked
    assert all(url.startswith((both.url, "blob:", "data:")) for url in asked)


def test_files_are_sent_once_and_others_refused(both: Running) -> None:
    answer = both.call("/static/page.js")
    assert answer.headers["content-type"].startswith("text/javascript")
    assert both.call("/static/page.js", headers={"if-none-match": answer.headers["etag"]}).status == 304
    assert both.call("/static/nothing.js").status == 404
    assert both.call("/static/..%2fpage.py").status == 404
    assert "script-src 'self'" in both.call("/").headers["content-security-policy"]
