"""The worker: what happens when too much waits, when a client leaves, when time is over, when it dies."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from running_server import Answer, Running, running, wait_until
from tiny_translator import Echo


class Held(Echo):
    """A translator that says its sources again once it is let go; what begins with "die" kills its thread."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()
        self.asked: list[str] = []

    def translate_detailed(self, texts: Sequence[str], **options: Any) -> Any:
        self.asked += texts
        if any(text.startswith("die") for text in texts):
            raise SystemExit("killed")
        if any(text.startswith("fail") for text in texts):
            raise RuntimeError("not this one")
        while not self.go.wait(0.02):
            if options.get("progress"):
                options["progress"](0, len(texts))
        return super().translate_detailed(texts, **options)


@contextmanager
def held(**settings: Any) -> Iterator[tuple[Running, Held]]:
    translator = Held()
    with running(["en-de=held"], lambda _: translator, protect="", **settings) as found:
        try:
            yield found, translator
        finally:
            translator.go.set()


def ask(server: Running, text: str) -> Answer:
    return server.call("/translate", {"q": text, "source": "en", "target": "de"})


def waiting(server: Running) -> int:
    return server.server.worker.waiting


def test_a_full_queue_refuses_at_once_and_says_when_to_ask_again() -> None:
    with held(queue=2) as (server, translator), ThreadPoolExecutor(3) as pool:
        first = pool.submit(ask, server, "one")
        wait_until(lambda: translator.asked == ["one"])
        others = [pool.submit(ask, server, text) for text in ("two", "three")]
        wait_until(lambda: waiting(server) == 2)
        assert server.call("/health/ready").status == 503
        assert server.call("/health/live").status == 200
        refused = ask(server, "four")
        assert refused.status == 503
        assert "2 requests wait already" in refused.error
        assert int(refused.headers["retry-after"]) >= 1
        translator.go.set()
        answers = [one.result().json["translatedText"] for one in (first, *others)]
        assert answers == ["one", "two", "three"]
        assert "four" not in translator.asked


def test_what_a_client_asked_that_left_is_not_translated() -> None:
    with held() as (server, translator):
        first, second = server.connection(), server.connection()
        for connection, text in ((first, "one"), (second, "two")):
            connection.request("POST", "/translate?source=en&target=de&q=" + text)
            wait_until(lambda: translator.asked == ["one"])
        wait_until(lambda: waiting(server) == 1)
        second.close()
        wait_until(lambda: any(event.get("left") for event in server.events))
        first.close()  # nobody waits for the batch at hand either: it ends although it is held
        wait_until(lambda: sum(bool(event.get("left")) for event in server.events) == 2)
        wait_until(lambda: server.server.worker.busy_since is None)
        translator.go.set()
        assert ask(server, "three").json["translatedText"] == "three"
        assert translator.asked == ["one", "three"]


def test_time_that_is_over_is_504_and_frees_the_worker() -> None:
    with held(timeout=0.3) as (server, translator):
        answer = ask(server, "one")
        assert answer.status == 504
        assert "no translation within 0.3 seconds" in answer.error
        wait_until(lambda: server.server.worker.busy_since is None)
        assert not translator.go.is_set()
        assert waiting(server) == 0


def test_one_request_that_fails_does_not_harm_those_beside_it() -> None:
    with held() as (server, translator), ThreadPoolExecutor(4) as pool:
        first = pool.submit(ask, server, "one")
        wait_until(lambda: translator.asked == ["one"])
        others = [pool.submit(ask, server, text) for text in ("two", "fail", "three")]
        wait_until(lambda: waiting(server) == 3)
        translator.go.set()
        assert [one.result().status for one in (first, *others)] == [200, 200, 500, 200]
        assert "internal error" in others[1].result().error
        assert "not this one" not in others[1].result().error  # what code says may hold what was asked


def test_a_worker_that_dies_is_started_again_and_nobody_waits_for_the_dead_one() -> None:
    with held() as (server, translator), ThreadPoolExecutor(3) as pool:
        translator.go.set()
        dead = ask(server, "die")
        assert dead.status == 503
        assert "was interrupted" in dead.error
        wait_until(lambda: server.call("/health/live").status == 200)
        assert list(pool.map(lambda text: ask(server, text).status, ("one", "two"))) == [200, 200]
        assert [event["error"] for event in server.events if event["event"] == "worker died"] == [
            "SystemExit"
        ]
        assert "transduce_worker_deaths_total 1.0" in server.call("/metrics").body.decode()


def test_a_worker_that_dies_again_and_again_ends_the_server() -> None:
    with held() as (server, _):
        end = time.monotonic() + 60
        while server.server.worker.failure is not None or time.monotonic() < end:
            try:
                ask(server, "die")
            except OSError:  # the server has ended
                break
        assert any(event["event"] == "giving up" for event in server.events)


def test_a_stream_is_ended_when_its_reader_leaves() -> None:
    with running(["en-de=echo"], lambda _: Endless(), protect="") as server:
        connection = server.connection()
        connection.request(
            "POST",
            "/v1/stream",
            b'{"text": "word", "source": "en", "target": "de"}',
            {"content-type": "application/json"},
        )
        answer = connection.getresponse()
        assert answer.readline() == b"event: piece\n"
        assert waiting(server) == 1
        connection.close()
        answer.close()
        wait_until(lambda: waiting(server) == 0)


class Endless(Echo):
    """A translator whose streams do not end."""

    def stream_detailed(self, text: str, **_: Any) -> Any:
        while True:
            yield text
            time.sleep(0.01)


@pytest.mark.parametrize("path", ["/translate", "/v1/translate"])
def test_more_hypotheses_than_allowed_are_refused_at_once(echo: Running, path: str) -> None:
    asked = {"q": "a", "text": "a", "source": "en", "target": "de", "alternatives": 10_000, "n_best": 10_000}
    kept = {"q": ("q", "source", "target", "alternatives"), "text": ("text", "source", "target", "n_best")}
    names = kept["text" if "v1" in path else "q"]
    answer = echo.call(path, {name: asked[name] for name in names})
    assert answer.status == 400
    assert "10" in answer.error
