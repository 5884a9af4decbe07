"""SIGTERM while clients wait: what was begun is answered, and the process ends within ten seconds."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from running_server import running, wait_until
from tiny_translator import Echo, sentences
from transduce.cli.main import main
from transduce.serving.config import ServingConfig
from transduce.serving.run import LAST


@pytest.fixture
def process(folder: Path, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A server as it is started by the command, and its log."""
    log = tmp_path / "log"
    words = [
        sys.executable,
        "-m",
        "transduce",
        "serve",
        f"en-de={folder}",
        "--port",
        "0",
        "--engine",
        "torch",
    ]
    with log.open("wb") as file:
        found = subprocess.Popen(
            [*words, "--threads", "1"], stderr=file, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
    try:
        wait_until(lambda: '"serving"' in log.read_text() or found.poll() is not None, 200)
        yield found, log
    finally:
        found.kill()
        found.wait()


def test_sigterm_under_load(process: tuple[subprocess.Popen[bytes], Path]) -> None:
    server, log = process
    address = urlsplit(re.search(r'"address": "([^"]+)"', log.read_text())[1])  # type: ignore[index]

    def ask(text: str) -> tuple[int, dict[str, str]] | None:
        connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=60)
        body = json.dumps({"q": text, "source": "en", "target": "de"})
        try:
            connection.request("POST", "/translate", body, {"content-type": "application/json"})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        except (ConnectionError, http.client.HTTPException):  # it came when nobody listened any more
            return None
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(ask, text) for text in sentences(40, words=(1, 2))]
        wait_until(lambda: any(one.done() for one in asked), 100)
        server.send_signal(signal.SIGTERM)
        code = server.wait(100)
        answers = [one.result() for one in asked]
    assert code == 0, log.read_text()[-2000:]
    for answer in answers:
        if answer is not None:
            status, told = answer
            assert (status == 200 and told["translatedText"] is not None) or (status == 503 and told["error"])
    assert any(answer is not None and answer[0] == 200 for answer in answers)
    events = [json.loads(line) for line in log.read_text().split("\n") if line.startswith("{")]
    assert events[-1]["event"] == "ended"


def test_all_that_is_waited_for_at_the_end_is_less_than_ten_seconds() -> None:
    # On a machine that is busy otherwise, a measured time would say nothing.
    assert ServingConfig().drain + LAST < 10


def test_a_worker_that_does_not_come_to_an_end_is_left_behind() -> None:
    release = threading.Event()

    class Stuck(Echo):
        def translate_detailed(self, *_: Any, **__: Any) -> Any:
            release.wait(100)
            return []

    with running(["en-de=stuck"], lambda _: Stuck(), drain=1.0) as found:
        connection = found.connection()
        connection.request("POST", "/translate?source=en&target=de&q=a")
        wait_until(lambda: found.server.worker.busy_since is not None)
        server = found.server
    connection.close()
    assert server.is_stuck
    assert [event["worker"] for event in found.events if event["event"] == "ended"] == [False]
    release.set()


def test_a_server_that_is_told_to_stop_says_that_it_is_not_ready() -> None:
    with running(["en-de=echo"], lambda _: Echo()) as server:
        assert server.call("/health/ready").json == {"status": "ok", "warnings": []}
        assert server.call("/metrics").body.decode().count("\ntransduce_ready 1.0") == 1
        state = server.server._state
        server.server._http.should_exit = True
        assert state()["busy"] == ["the server is stopping"]


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["serve"], 2, "missing argument 'MODEL...'"),
        (["serve", "en-de=/nowhere"], 1, "/nowhere: no such model folder"),
        (["serve", "{folder}"], 2, "its training does not say between which languages"),
        (["serve", "en-de={folder}", "--queue", "0"], 2, "queue is 0; it must be 1 or more"),
        (["serve", "en-de={folder}", "--require-key"], 2, "name one with --keys FILE"),
        (["serve", "en-de={folder}", "--keys", "/nowhere"], 1, "transduce keys add NAME --file /nowhere"),
        (["serve", "en-de={folder}", "--host", "256.0.0.1"], 2, "256.0.0.1:5000 cannot be listened at"),
        (["keys", "add", "a b", "--file", "/nowhere"], 2, "must be 1 to 64 letters"),
        (["keys", "list", "--file", "/nowhere"], 1, "/nowhere: no such file"),
    ],
)
def test_mistakes_of_the_command(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, told: str
) -> None:
    assert main([argument.replace("{folder}", str(folder)) for argument in arguments]) == code
    (line,) = [line for line in capsys.readouterr().err.split("\n") if line]
    assert told in line


def test_keys_are_made_listed_and_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = ["--file", str(tmp_path / "keys.json")]
    assert main(["keys", "add", "anna", "--requests-per-minute", "5", *file]) == 0
    assert len(capsys.readouterr().out.strip()) >= 40
    assert main(["keys", "list", *file]) == 0
    assert capsys.readouterr().out == "anna\t5\t\n"
    assert main(["keys", "remove", "anna", *file]) == 0
    assert main(["keys", "list", *file]) == 0
    assert capsys.readouterr().out == ""
