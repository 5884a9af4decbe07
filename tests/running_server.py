"""A server that really runs, in a thread of the test's process, and a client that hides nothing."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from transduce.decoding.translator import Translator
from transduce.serving.config import ServingConfig
from transduce.serving.logs import Log
from transduce.serving.run import TranslationServer


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        return str(self.json["error"])


class Running:
    """A server, the lines of its log, and calls of it."""

    def __init__(self, server: TranslationServer, lines: list[str]) -> None:
        self.server, self.lines = server, lines
        self.url = server.address
        self.host, self.port = urlsplit(self.url).hostname, urlsplit(self.url).port

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]

    def connection(self, timeout: float = 240) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)

    def call(
        self,
        path: str,
        json_body: Any = None,
        *,
        form: Mapping[str, Any] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        method: str = "",
        timeout: float = 240,
    ) -> Answer:
        sent = dict(headers or {})
        if json_body is not None:
            body = json.dumps(json_body).encode()
            sent.setdefault("content-type", "application/json")
        elif form is not None:
            body = urlencode(form).encode()
            sent.setdefault("content-type", "application/x-www-form-urlencoded")
        connection = self.connection(timeout)
        try:
            connection.request(method or ("GET" if body is None else "POST"), path, body, sent)
            answer = connection.getresponse()
            names = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, names, answer.read())
        finally:
            connection.close()

    def translated(self, text: str | list[str], **more: Any) -> Any:
        answer = self.call("/translate", {"q": text, "source": "en", "target": "de", **more})
        assert answer.status == 200, answer.body
        return answer.json["translatedText"]

    def upload(self, path: str, name: str, content: bytes, **fields: str) -> Answer:
        edge = "-----edge"
        parts = [
            f'--{edge}\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n{value}\r\n'.encode()
            for field, value in fields.items()
        ]
        head = f'--{edge}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode()
        body = b"".join([*parts, head, content, f"\r\n--{edge}--\r\n".encode()])
        return self.call(path, body=body, headers={"content-type": f"multipart/form-data; boundary={edge}"})

    def events_of(self, answer: Answer) -> list[tuple[str, Any]]:
        found = []
        for block in answer.body.decode().split("\n\n"):
            fields = dict(line.split(": ", 1) for line in block.split("\n") if line and line[0] != ":")
            if fields:
                found.append((fields["event"], json.loads(fields["data"])))
        return found


def wait_until(is_so: Any, seconds: float = 120) -> None:
    """Nothing; fails where it is not so within that time."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.02)


@contextmanager
def running(
    specs: Sequence[str], load: Callable[[Path], Translator] | None = None, **settings: Any
) -> Iterator[Running]:
    """A server of these models on a free port; ``load`` makes other translators of the folders."""
    lines: list[str] = []
    config = ServingConfig(**{"port": 0, "reload": 0.0, "timeout": 240.0, **settings})
    load = load or partial(Translator.load, device="cpu", engine="torch")
    server = TranslationServer(specs, config, load, Log(lines.append))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_until(lambda: server.is_started)
        yield Running(server, lines)
    finally:
        server.stop()
        thread.join(120)
        assert not thread.is_alive()
