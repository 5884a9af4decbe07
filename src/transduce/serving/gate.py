"""What every request passes: its body is read within limits, its answer carries the headers that protect.

A client that leaves ends the work for it. Whatever goes wrong, one JSON object says so.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from transduce.serving.config import ServingConfig
from transduce.serving.logs import Log
from transduce.serving.metrics import Metrics
from transduce.serving.refusals import Refused, too_late

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

FILES = "/translate_file"
PROTECTING = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=(), payment=()"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        b"manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
)
_FORM = 1 << 16
"""What a form with a file has beside the file."""
_DISCARDED, _DISCARDING = 64 << 20, 2.0
"""Of a body that is refused so many bytes are taken, for so many seconds, so that the answer arrives."""


class Gone(Exception):
    """The client has left."""


class Gate:
    """The outermost layer of the server."""

    def __init__(self, app: App, config: ServingConfig, log: Log, metrics: Metrics) -> None:
        self._app, self._config, self._log, self._metrics = app, config, log, metrics

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Nothing; the request was answered."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _Answer(send, self._config.write_timeout)
        scope["state"]["told"] = answer.told
        begin = time.monotonic()
        self._metrics.in_flight.inc()
        try:
            await self._answered(scope, receive, answer)
        finally:
            self._metrics.in_flight.dec()
            seconds = time.monotonic() - begin
            path = scope.get("route_path") or _path(scope)
            self._metrics.requests.labels(scope["method"], path, answer.status or "left").inc()
            self._metrics.latency.labels(path).observe(seconds)
            self._log(
                "request",
                id=answer.id,
                method=scope["method"],
                path=path,
                status=answer.status,
                ms=round(1000 * seconds, 1),
                **answer.told,
            )

    async def _answered(self, scope: Message, receive: Receive, answer: _Answer) -> None:
        try:
            body = await self._body(scope, receive)
            async with asyncio.timeout(self._config.timeout):
                await _while_there(self._app(scope, _replayed(body), answer.send), receive, answer)
        except Gone:
            answer.told["left"] = True
        except Refused as error:
            await answer.refuse(error)
            await _discard(receive)
            await answer.end()
        except TimeoutError:
            await answer.refuse(too_late(self._config.timeout))
            await answer.end()
        except Exception as error:
            self._log.failure("failure", error, id=answer.id)
            await answer.refuse(Refused(500, f"internal error {answer.id}: the server's log has more"))
            await answer.end()

    async def _body(self, scope: Message, receive: Receive) -> bytes:
        limit = (
            self._config.max_file + _FORM
            if scope["path"] in (FILES, f"/v1{FILES}")
            else self._config.max_body
        )
        headers = dict(scope["headers"])
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length) > limit:
            raise _too_large(limit)
        if not length and b"transfer-encoding" not in headers:
            return b""
        chunks, size = [], 0
        try:
            async with asyncio.timeout(self._config.body_timeout):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Gone
                    chunks.append(message.get("body", b""))
                    size += len(chunks[-1])
                    if size > limit:
                        raise _too_large(limit)
                    if not message.get("more_body"):
                        return b"".join(chunks)
        except TimeoutError:
            raise Refused(
                408,
                f"the request was not complete within {self._config.body_timeout:g} seconds: send it faster",
            ) from None


class _Answer:
    """The answer to a request as it goes out: each part within its time, with the headers that protect."""

    def __init__(self, send: Send, timeout: float) -> None:
        self._send, self._timeout = send, timeout
        self.id = secrets.token_hex(8)
        self.status: int | None = None
        self.told: dict[str, Any] = {}
        self.is_ended = False

    async def send(self, message: Message) -> None:
        """Nothing; raises `Gone` where the client does not take it."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = {name for name, _ in message["headers"]}
            more = [pair for pair in PROTECTING if pair[0] not in own]
            message["headers"] = [*message["headers"], *more, (b"x-request-id", self.id.encode())]
        elif message["type"] == "http.response.body":
            self.is_ended = not message.get("more_body", False)
        try:
            async with asyncio.timeout(self._timeout):
                await self._send(message)
        except TimeoutError:
            raise Gone from None

    async def refuse(self, error: Refused) -> None:
        """Nothing; the error was sent, without its end, if nothing was sent before it."""
        if self.status is not None:
            self.is_ended = True  # what was begun breaks off: the client sees that it is not whole
            return
        body = error_body(error)
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
            *error_headers(error),
        ]
        await self.send({"type": "http.response.start", "status": error.status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body, "more_body": True})

    async def end(self) -> None:
        """Nothing; the answer is complete."""
        if not self.is_ended:
            await self.send({"type": "http.response.body", "body": b"", "more_body": False})


def error_body(error: Exception) -> bytes:
    """The error as LibreTranslate's clients expect it."""
    return json.dumps({"error": " ".join(str(error).split())}, ensure_ascii=True).encode()


def error_headers(error: Exception) -> Iterable[tuple[bytes, bytes]]:
    """When to ask again, if the error says it."""
    seconds = getattr(error, "retry_after", None)
    return [] if seconds is None else [(b"retry-after", str(seconds).encode())]


def _too_large(limit: int) -> Refused:
    return Refused(413, f"the request is larger than {limit:,} bytes: send less at once")


def _path(scope: Message) -> str:
    """The path of the route that answered, so that paths with names in them count as one."""
    route = scope.get("route")
    return str(getattr(route, "path", "other"))


async def _while_there(work: Awaitable[None], receive: Receive, answer: _Answer) -> None:
    """Nothing; the work is done. It is cancelled, and `Gone` raised, where the client leaves before that."""
    task = asyncio.current_task()
    assert task is not None
    is_left = False

    def leave(_: object) -> None:
        nonlocal is_left
        if not answer.is_ended and not leaving.cancelled():
            is_left = True
            task.cancel()

    leaving = asyncio.ensure_future(_disconnected(receive))
    leaving.add_done_callback(leave)
    try:
        await work
    except asyncio.CancelledError:
        if is_left and not task.uncancel():
            raise Gone from None
        raise
    finally:
        leaving.cancel()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _replayed(body: bytes) -> Receive:
    """What gives the body once, and then nothing more."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            await asyncio.Event().wait()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


async def _discard(receive: Receive) -> None:
    """Nothing; what is still coming of the body was taken: else the client would not hear the answer."""
    size = 0
    try:
        async with asyncio.timeout(_DISCARDING):
            while size < _DISCARDED:
                message = await receive()
                size += len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body"):
                    return
    except TimeoutError:
        return
