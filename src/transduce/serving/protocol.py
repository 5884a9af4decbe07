"""HTTP as the server speaks it: clients that do not send or do not take what is due are not waited for."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from transduce.serving.gate import error_body
from transduce.serving.refusals import Refused


class Protocol(HttpToolsProtocol):
    """A connection. How long is waited, and for how many, is set by a subclass for one server."""

    header_timeout = 10.0
    write_timeout = 20.0
    most = 2_048
    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Nothing; the first headers are waited for."""
        super().connection_made(transport)
        if len(self.connections) > self.most:
            self._refuse(Refused(503, "too many connections"), b"503 Service Unavailable")
        else:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing; nothing is waited for any more."""
        self._no_longer()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Nothing; the rest of the headers is waited for."""
        super().on_message_begin()
        self._wait()

    def on_headers_complete(self) -> None:
        """Nothing; the request begins."""
        self._no_longer()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """Nothing; an answer that the client does not take is not kept for long."""
        super().on_response_complete()
        self._watch()

    def _watch(self) -> None:
        if left := self.transport.get_write_buffer_size():
            self.loop.call_later(self.write_timeout, self._is_taken, left)

    def _is_taken(self, before: int) -> None:
        if self.transport.get_write_buffer_size() >= before:
            self.transport.abort()
        else:
            self._watch()

    def send_400_response(self, msg: str) -> None:
        """Nothing; what is no HTTP was answered in the way of every other mistake."""
        self._no_longer()
        self._refuse(Refused(400, msg), b"400 Bad Request")

    def _wait(self) -> None:
        if self._waiting is None:
            self._waiting = self.loop.call_later(self.header_timeout, self._too_slow)

    def _no_longer(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _too_slow(self) -> None:
        self._waiting = None
        if not self.transport.is_closing():
            self._refuse(
                Refused(408, f"no request within {self.header_timeout:g} seconds"), b"408 Request Timeout"
            )

    def _refuse(self, error: Refused, status: bytes) -> None:
        body = error_body(error)
        head = (
            b"HTTP/1.1 " + status + b"\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
            b"connection: close\r\n\r\n" % len(body)
        )
        self.transport.write(head + body)
        self.transport.close()
