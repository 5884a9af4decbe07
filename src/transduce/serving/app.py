"""The routes of a server put together, and what becomes of errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from transduce import __version__
from transduce.errors import TransduceError
from transduce.serving.admission import Admission
from transduce.serving.config import ServingConfig
from transduce.serving.gate import App, Gate
from transduce.serving.libretranslate import LibreTranslate
from transduce.serving.logs import Log
from transduce.serving.metrics import CONTENT_TYPE, Metrics
from transduce.serving.page import Page
from transduce.serving.parameters import explained_all
from transduce.serving.refusals import Refused, status_of
from transduce.serving.service import Service
from transduce.serving.v1 import OwnApi

State = Callable[[], dict[str, Any]]


def build_app(service: Service, config: ServingConfig, log: Log, metrics: Metrics, state: State) -> App:
    """The server's application; ``state`` says what is wrong with the server: dead, busy and warnings."""
    app = FastAPI(
        title="Transduce",
        version=__version__,
        description="Translation: the API of LibreTranslate, and beside it /v1.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    app.exception_handler(TransduceError)(_refused)
    app.exception_handler(HTTPException)(_http)
    app.exception_handler(RequestValidationError)(_invalid)
    app.exception_handler(Exception)(_internal)
    admission = Admission(config, log, metrics)
    app.include_router(LibreTranslate(service, admission, config).router())
    app.include_router(OwnApi(service, admission, config).router())
    app.include_router(Page().router())

    @app.get("/health", tags=["health"])
    @app.get("/health/live", tags=["health"])
    async def live() -> Response:
        """Whether the server works at all; where it does not, starting it again may help."""
        problems = state()["dead"]
        return _health(problems)

    @app.get("/health/ready", tags=["health"])
    async def ready() -> Response:
        """Whether requests would be answered now; where not, they should go elsewhere."""
        found = state()
        return _health([*found["dead"], *found["busy"]], warnings=found["warnings"])

    @app.get("/spec", include_in_schema=False)
    async def spec() -> Any:
        """The OpenAPI document, where LibreTranslate has it."""
        return app.openapi()

    if config.metrics:

        @app.get("/metrics", tags=["health"])
        async def prometheus() -> Response:
            """What Prometheus collects."""
            found = state()
            metrics.queue.set(service.worker.waiting)
            metrics.ready.set(not (found["dead"] or found["busy"]))
            return Response(metrics.text(), media_type=CONTENT_TYPE)

    inner: Any = app
    if config.cors:
        inner = CORSMiddleware(
            app,
            allow_origins=list(config.cors),
            allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type"],
            max_age=86_400,
        )
    return Gate(inner, config, log, metrics)


def _health(problems: list[str], **more: Any) -> Response:
    if problems:
        return JSONResponse({"status": "error", "error": "; ".join(problems), **more}, 503)
    return JSONResponse({"status": "ok", **more})


def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, TransduceError)
    seconds = error.retry_after if isinstance(error, Refused) else None
    headers = None if seconds is None else {"retry-after": str(seconds)}
    return JSONResponse({"error": " ".join(str(error).split())}, status_of(error), headers)


def _http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": str(error.detail)}, error.status_code, error.headers)


def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return JSONResponse({"error": f"Invalid request: {explained_all(error.errors())}"}, 422)


def _internal(request: Request, _: Exception) -> Response:
    return JSONResponse({"error": "internal error: the server's log has more"}, 500)
