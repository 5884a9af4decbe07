"""Checks a built site: every link within it leads somewhere, and no page loads anything from another host.

python docs/check_site.py FOLDER
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src"}
LOADED_LINKS = {"stylesheet", "icon", "preload", "modulepreload", "preconnect", "manifest"}


class Page(HTMLParser):
    """The names that a page has, the places it leads to, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Nothing; what the element names, leads to or loads is noted."""
        given = {name: value or "" for name, value in attrs}
        self.names |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and LOADED_LINKS & set(given.get("rel", "").split()):
            self.loaded.append(given.get("href", ""))
        elif tag in LOADED and LOADED[tag] in given:
            self.loaded.append(given[LOADED[tag]])


def problems(folder: Path) -> list[str]:
    """A line for each link that leads nowhere and each thing that is loaded from another host."""
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in folder.rglob("*.html")}
    found = [] if pages else [f"{folder}: no page; build the site first, with ./run site"]
    for path, page in pages.items():
        name = path.relative_to(folder.resolve())
        for address in page.loaded:
            if urlsplit(address).netloc or not _target(path, address).is_file():
                found.append(f"{name}: loads {address}, which is not part of the site")
        for address in page.links:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = _target(path, address) if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                found.append(f"{name}: {address} leads nowhere")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].names:
                found.append(f"{name}: {address}: there is no such place on that page")
    return found


def _target(page: Path, address: str) -> Path:
    return (page.parent / unquote(urlsplit(address).path)).resolve()


if __name__ == "__main__":
    lines = problems(Path(sys.argv[1]))
    print("\n".join(lines) or "every link leads somewhere, and nothing comes from another host")
    sys.exit(bool(lines))
