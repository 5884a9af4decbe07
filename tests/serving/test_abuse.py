"""Clients that send nonsense, too much, too slowly, or leave: nothing hangs, and nobody else notices."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from running_server import Running, running, wait_until
from tiny_translator import Echo

HEAD = b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def hasty() -> Iterator[Running]:
    """A server that waits for nobody."""
    times = {"header_timeout": 1.0, "body_timeout": 1.0, "write_timeout": 0.5, "keep_alive": 1.0}
    with running(
        ["en-de=echo"], lambda _: Echo(), max_characters=4_000_000, max_body=8 << 20, **times
    ) as found:
        yield found


@pytest.fixture(autouse=True)
def _others_are_served(hasty: Running, echo: Running) -> Iterator[None]:
    yield
    for server in (hasty, echo):
        assert server.translated("others") == "others"


def connected(server: Running) -> socket.socket:
    return socket.create_connection((server.host, server.port), timeout=20)


def answered(connection: socket.socket) -> tuple[int, dict[str, str]]:
    """The status and what the answer holds, until the server has closed."""
    data = b""
    while piece := connection.recv(1 << 16):
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


@pytest.mark.parametrize(
    ("sent", "status", "told"),
    [
        (b"", 408, "no request within 1 seconds"),
        (b"POST /trans", 408, "no request within"),
        (HEAD + b"X-Slow: ", 408, "no request within"),
        (HEAD + b"Content-Length: 50\r\n\r\n{", 408, "was not complete within"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n", 408, "was not complete within"),
        (b"nonsense\r\n\r\n", 400, "Invalid HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, "Invalid HTTP"),
        (HEAD + b"Content-Length: -1\r\n\r\n", 400, "Invalid HTTP"),
        (HEAD + b"Content-Length: 99999999999\r\n\r\n", 413, "larger than"),
    ],
)
def test_requests_that_do_not_come_to_an_end(hasty: Running, sent: bytes, status: int, told: str) -> None:
    with connected(hasty) as connection:
        connection.sendall(sent)
        found, answer = answered(connection)
    assert found == status
    assert told in answer["error"]


def test_a_body_that_drips_is_not_waited_for(hasty: Running) -> None:
    with connected(hasty) as connection:
        connection.sendall(HEAD + b"Content-Length: 1000\r\n\r\n")
        begin = time.monotonic()
        while time.monotonic() < begin + 20:
            try:
                connection.sendall(b" ")
            except OSError:  # the server has closed
                break
            connection.settimeout(0.05)
            try:
                if b"408" in connection.recv(1 << 12):
                    break
            except TimeoutError:
                continue
        else:
            pytest.fail("the server still waits")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"null", 400),
        (b'{"q": "\xff", "source": "en", "target": "de"}', 400),
        (b'{"q": "\\ud800", "source": "en", "target": "de"}', 400),
        (b'{"q": ["a", "\\udfff"], "source": "en", "target": "de"}', 400),
        (b"[" * 100_000, 400),
        (b'{"q":' * 50_000, 400),
        (b'{"q": "a", "source": "en", "target": "de", "alternatives": 1e400}', 400),
        (b'{"q": "a", "source": "en", "target": "de", "alternatives": -5}', 200),
        (b'{"q": "a", "q": "b", "source": "en", "target": "de"}', 200),
    ],
)
@pytest.mark.parametrize("path", ["/translate", "/v1/translate"])
def test_bodies_that_are_no_good(echo: Running, path: str, body: bytes, status: int) -> None:
    if path.startswith("/v1"):
        body = body.replace(b'"q"', b'"text"').replace(b'"alternatives"', b'"n_best"')
        if b"-5" in body or body.count(b'"text"') == 2:
            return
    answer = echo.call(path, body=body, headers={"content-type": "application/json"})
    assert answer.status in ((status, 422) if path.startswith("/v1") and status == 400 else (status,)), (
        answer.body
    )
    if answer.status != 200:
        assert answer.error


@pytest.mark.parametrize("body", [b"q=%ff&source=en&target=de", b"q=\xff&source=en&target=de", b"&a=" * 200])
def test_forms_that_are_no_good(echo: Running, body: bytes) -> None:
    answer = echo.call("/translate", body=body, headers={"content-type": "application/x-www-form-urlencoded"})
    assert answer.status == 400
    assert answer.error


def test_multipart_that_is_no_good(echo: Running) -> None:
    for kind, body in (
        ("multipart/form-data", b"x"),
        ("multipart/form-data; boundary=e", b"x"),
        (
            "multipart/form-data; boundary=e",
            b'--e\r\nContent-Disposition: form-data; name="q"\r\n\r\n\xff\r\n--e--\r\n',
        ),
        ("multipart/form-data; boundary=e", b"--e\r\n" * 1000),
    ):
        answer = echo.call("/translate", body=body, headers={"content-type": kind})
        assert answer.status == 400, (kind, body[:40], answer.body)
    assert echo.call("/translate", body=b"x", headers={"content-type": "image/png"}).status == 415


@pytest.mark.parametrize(
    "text",
    [
        "\x00",
        "a\x00b",
        "\x01\x02\x1b[31m",
        "\r",
        "a\rb",
        "\u2028 \x85 \x0b",
        "\ufeff",
        "\ufffe\uffff",
        "\U0010ffff",
        "ﷺ" * 500,
    ],
)
def test_odd_characters_come_back(echo: Running, text: str) -> None:
    for path, asked in (
        ("/translate", {"q": text, "source": "en", "target": "de"}),
        ("/translate", {"q": text, "source": "en", "target": "de", "format": "html"}),
        ("/v1/translate", {"text": text, "source": "en", "target": "de"}),
    ):
        answer = echo.call(path, asked)
        assert answer.status == 200, answer.body
        assert isinstance(answer.json, dict)


def test_ten_million_bytes_are_refused_before_they_are_read(echo: Running) -> None:
    body = json.dumps({"q": "a" * 10_000_000, "source": "en", "target": "de"}).encode()
    answer = echo.call("/translate", body=body, headers={"content-type": "application/json"})
    assert answer.status == 413
    assert "larger than 1,048,576 bytes" in answer.error
    with connected(echo) as connection:  # nor is a client told to go on that asks first
        connection.sendall(HEAD + b"Expect: 100-continue\r\nContent-Length: 10000000\r\n\r\n")
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 413 ")


def test_a_chunked_body_is_measured_as_it_comes(echo: Running) -> None:
    with connected(echo) as connection:
        connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        piece = b"10000\r\n" + b"a" * 0x10000 + b"\r\n"
        threading.Thread(target=_sent, args=(connection, piece, 40), daemon=True).start()
        assert answered(connection)[0] == 413


def _sent(connection: socket.socket, piece: bytes, times: int) -> None:
    try:
        for _ in range(times):
            connection.sendall(piece)
        connection.sendall(b"0\r\n\r\n")
    except OSError:  # the server has closed
        return


def test_connections_that_are_killed_are_forgotten(hasty: Running) -> None:
    body = b'{"q": "a", "source": "en", "target": "de"}'
    for sent in (
        b"",
        HEAD,
        HEAD + b"Content-Length: 99\r\n\r\n{",
        HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body,
    ):
        for _ in range(10):
            connection = connected(hasty)
            connection.sendall(sent)
            # With no time to linger, closing is a reset.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
    state = hasty.server._http.server_state
    wait_until(lambda: not state.connections and not state.tasks)
    assert hasty.server.worker.waiting == 0


def test_a_reader_that_takes_nothing_is_left(hasty: Running) -> None:
    body = json.dumps({"q": "word " * 700_000, "source": "en", "target": "en"}).encode()
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect((hasty.host, hasty.port))
        connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        state = hasty.server._http.server_state
        wait_until(lambda: state.connections)
        wait_until(lambda: not state.connections and not state.tasks)


@pytest.mark.parametrize(
    "path", ["/nothing", "/download_file/..%2f..%2fetc%2fpasswd", "/v1/", "//", "/%00", "/%ff"]
)
def test_paths_that_are_not_there(echo: Running, path: str) -> None:
    answer = echo.call(path)
    assert answer.status == 404
    assert answer.error


def test_methods_that_do_not_fit(echo: Running) -> None:
    for method, path in (
        ("GET", "/translate"),
        ("POST", "/languages"),
        ("DELETE", "/v1/translate"),
        ("PUT", "/"),
    ):
        answer = echo.call(path, method=method)
        assert answer.status in (404, 405)
        assert answer.error
