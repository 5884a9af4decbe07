"""The page at ``/``: HTML, CSS and JavaScript that come from this server alone."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from importlib.resources.abc import Traversable

from fastapi import APIRouter, Request, Response

from transduce.serving.refusals import Refused

_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_ATTENTION = ("attention.css", "attention.js")
"""The view of `transduce attention`, which the page shows as well."""


class Page:
    """The files of the page, read once."""

    def __init__(self) -> None:
        own = files("transduce.serving") / "static"
        other = files("transduce.inspection") / "page"
        self._files = dict(_read(own))
        self._files |= {name: file for name, file in _read(other) if name in _ATTENTION}

    def router(self) -> APIRouter:
        """``/`` and ``/static/NAME``."""
        router = APIRouter(include_in_schema=False)
        router.get("/")(self.home)
        router.get("/static/{name}")(self.part)
        return router

    async def home(self, request: Request) -> Response:
        """The page itself."""
        return self._answer("index.html", request)

    async def part(self, name: str, request: Request) -> Response:
        """What the page consists of."""
        if name not in self._files:
            raise Refused(404, f"/static/{name[:100]}: there is no such file")
        return self._answer(name, request)

    def _answer(self, name: str, request: Request) -> Response:
        content, mark = self._files[name]
        # Asked for again each time, and sent again when it has changed: a new version shows at once.
        headers = {"etag": mark, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == mark:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=_TYPES[name.rpartition(".")[2]], headers=headers)


def _read(folder: Traversable) -> list[tuple[str, tuple[bytes, str]]]:
    """The files of a folder, each with a mark of its content."""
    found = [
        (path.name, path.read_bytes()) for path in folder.iterdir() if path.name.rpartition(".")[2] in _TYPES
    ]
    return [(name, (content, f'"{hashlib.sha256(content).hexdigest()[:16]}"')) for name, content in found]
