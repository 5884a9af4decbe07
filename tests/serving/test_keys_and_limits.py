"""Who is let in and how much may be asked for; every limit answers at once, with its own status."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from running_server import Running, running, wait_until
from tiny_translator import Echo
from transduce.errors import DataError, TransduceError, UsageError
from transduce.serving.config import ServingConfig
from transduce.serving.keys import Keys, add_key, read_keys, remove_key
from transduce.serving.limits import MOST_CLIENTS, Caller, Rates
from transduce.serving.refusals import Refused

ASKED = {"q": "a", "source": "en", "target": "de"}


@pytest.fixture
def clock() -> SimpleNamespace:
    return SimpleNamespace(now=0.0)


def test_a_bucket_fills_with_time(clock: SimpleNamespace) -> None:
    rates, caller = Rates(lambda: clock.now), Caller("anna", 3, 0)
    for _ in range(3):
        rates.take(caller, 0)
    with pytest.raises(Refused, match=r"3 requests a minute are allowed; ask again in 20 s") as refused:
        rates.take(caller, 0)
    assert (refused.value.status, refused.value.retry_after) == (429, 20)
    clock.now = 19.9
    with pytest.raises(Refused, match="in 1 s"):
        rates.take(caller, 0)
    clock.now = 20.0
    rates.take(caller, 0)
    rates.take(Caller("berta", 3, 0), 0)  # others have their own


def test_characters_are_counted_too_and_what_never_fits_is_413(clock: SimpleNamespace) -> None:
    rates, caller = Rates(lambda: clock.now), Caller("anna", 0, 100)
    rates.take(caller, 60)
    with pytest.raises(Refused, match="100 characters a minute") as refused:
        rates.take(caller, 60)
    assert refused.value.retry_after == 12
    rates.take(caller, 40)
    with pytest.raises(Refused, match="101 characters at once") as refused:
        rates.take(caller, 101)
    assert refused.value.status == 413


def test_a_refused_request_costs_nothing(clock: SimpleNamespace) -> None:
    rates, caller = Rates(lambda: clock.now), Caller("anna", 2, 10)
    for _ in range(5):
        with pytest.raises(Refused):
            rates.take(caller, 11)
    rates.take(caller, 5)
    rates.take(caller, 5)


def test_memory_of_clients_is_bounded(clock: SimpleNamespace) -> None:
    rates = Rates(lambda: clock.now)
    for number in range(MOST_CLIENTS + 50):
        rates.take(Caller(str(number), 1, 0), 0)
    assert len(rates._buckets) == MOST_CLIENTS


def test_a_key_is_hashed_at_rest_and_found_by_its_secret(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    secrets = {name: add_key(path, name, 5, None) for name in ("anna", "berta")}
    text = path.read_text()
    assert not any(secret in text for secret in secrets.values())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    keys = Keys(path, lambda _: None)
    for name, secret in secrets.items():
        found = keys.find(secret)
        assert found is not None
        assert (found.name, found.requests_per_minute, found.characters_per_minute) == (name, 5, None)
    for wrong in ("", secrets["anna"][:-1], secrets["anna"] + "x", "\ud800"):
        assert keys.find(wrong) is None
    remove_key(path, "anna")
    assert [key.name for key in read_keys(path)] == ["berta"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "no such file; make a key with"),
        ("{", "not valid JSON"),
        ("[]", "holds no list of keys"),
        ('{"keys": [{"name": "a"}]}', "key 1 does not have the fields"),
        ('{"keys": [{"name": "a", "sha256": "00"}]}', "key 1 holds a value of the wrong kind"),
        ("[" * 10_000, "not valid JSON"),
    ],
)
def test_files_that_are_no_keys_are_refused_by_name(tmp_path: Path, text: str | None, told: str) -> None:
    path = tmp_path / "keys.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(DataError, match=told):
        read_keys(path)


def test_wrong_names_and_limits_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    add_key(path, "anna", None, None)
    for name, requests, told in (
        ("anna", None, "has a key 'anna' already"),
        ("a b", None, "must be 1 to 64 letters"),
        ("berta", -1, "a limit is -1"),
    ):
        with pytest.raises(UsageError, match=told):
            add_key(path, name, requests, None)
    with pytest.raises(UsageError, match="has no key 'berta'; its keys are: anna"):
        remove_key(path, "berta")


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Path, dict[str, str]]]:
    """A server with two keys, one of which may ask often."""
    path = tmp_path_factory.mktemp("keys") / "keys.json"
    secrets = {"few": add_key(path, "few", None, None), "many": add_key(path, "many", 0, 0)}
    limits = {"requests_per_minute": 2, "characters_per_minute": 50}
    with running(["en-de=echo"], lambda _: Echo(), keys=path, **limits) as found:
        yield found, path, secrets


def test_limits_are_those_of_the_key_or_of_the_address(
    keyed: tuple[Running, Path, dict[str, str]],
) -> None:
    server, _, secrets = keyed
    for sent in ({}, {"api_key": secrets["few"]}):
        statuses = [server.call("/translate", {**ASKED, **sent}).status for _ in range(3)]
        assert statuses == [200, 200, 429]
    slow = server.call("/translate", ASKED)
    assert slow.error.startswith("Slowdown: 2 requests a minute")
    assert 1 <= int(slow.headers["retry-after"]) <= 30
    bearer = {"authorization": f"Bearer {secrets['many']}"}
    assert {server.call("/translate", ASKED, headers=bearer).status for _ in range(5)} == {200}
    body = {"text": "a", "target": "de", "source": "en", "api_key": secrets["many"]}
    assert server.call("/v1/translate", body).status == 200
    assert server.call("/languages").status == 200  # what costs nothing is not counted


def test_a_wrong_key_is_403_and_keys_are_never_logged(keyed: tuple[Running, Path, dict[str, str]]) -> None:
    server, _, secrets = keyed
    for wrong in ("x", secrets["many"][:-1]):
        answer = server.call("/translate", {**ASKED, "api_key": wrong})
        assert (answer.status, answer.error) == (403, "Invalid API key")
    assert server.call("/frontend/settings").json["apiKeys"] is True
    server.call("/translate", {**ASKED, "api_key": secrets["many"]})
    log = "".join(server.lines)
    assert not any(secret in log for secret in secrets.values())
    assert any(event.get("key") == "many" for event in server.events)


def test_a_key_that_is_made_or_removed_counts_at_once(keyed: tuple[Running, Path, dict[str, str]]) -> None:
    server, path, _ = keyed
    secret = add_key(path, "new", 0, 0)
    wait_until(lambda: server.call("/translate", {**ASKED, "api_key": secret}).status == 200)
    remove_key(path, "new")
    wait_until(lambda: server.call("/translate", {**ASKED, "api_key": secret}).status == 403)
    good = path.read_bytes()
    path.write_text("{")

    def is_told() -> bool:
        server.call("/translate", {**ASKED, "api_key": secret})
        return any(event["event"] == "keys" for event in server.events)

    wait_until(is_told)
    path.write_bytes(good)


def test_a_required_key_is_required(tmp_path: Path) -> None:
    secret = add_key(tmp_path / "keys.json", "anna", None, None)
    with running(["en-de=echo"], lambda _: Echo(), keys=tmp_path / "keys.json", require_key=True) as server:
        assert server.call("/translate", ASKED).status == 403
        assert server.call("/detect", {"q": "a"}).status == 403
        asked = {"text": "a", "source": "en", "target": "de"}
        for path in ("/v1/translate", "/v1/stream", "/v1/attention", "/v1/tree", "/v1/alternatives"):
            assert server.call(path, asked).status == 403, path
        assert server.upload("/translate_file", "a.txt", b"a", source="en", target="de").status == 403
        assert server.call("/translate", {**ASKED, "api_key": secret}).status == 200


def test_a_proxys_word_for_an_address_is_taken_only_from_the_proxy() -> None:
    for proxy, statuses in (("127.0.0.1", [200, 200]), ("", [200, 429])):
        with running(["en-de=echo"], lambda _: Echo(), requests_per_minute=1, proxy=proxy) as server:
            found = [
                server.call("/translate", ASKED, headers={"x-forwarded-for": address}).status
                for address in ("10.0.0.1", "10.0.0.2")
            ]
            assert found == statuses, proxy


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"require_key": True}, "a key is required, but there is no file of keys"),
        ({"keys": Path("k"), "cors": ("*",)}, "pages of any origin"),
        ({"queue": 0}, "queue is 0; it must be 1 or more"),
        ({"timeout": 0.0}, "timeout is 0.0; it must be above 0"),
        ({"requests_per_minute": -1}, "requests_per_minute is -1; it must be 0 or more"),
        ({"port": 70_000}, "port is 70000"),
        ({"beam": 17}, "beam is 17; it must be from 1 to max_beam, 16"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, object], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        ServingConfig(**settings)  # type: ignore[arg-type]


def test_texts_and_keys_are_logged_only_where_asked_for(echo: Running) -> None:
    assert echo.translated("secret words") == "secret words"
    assert echo.call("/translate", {"q": "secret words"}).status == 400
    assert "secret" not in "".join(echo.lines)
    with running(["en-de=echo"], lambda _: Echo(), log_text=True) as server:
        server.translated("secret words")
        texts = [event["text"] for event in server.events if "text" in event]
    assert texts == [["secret words"]]


def test_every_answer_carries_the_headers_that_protect(echo: Running) -> None:
    for answer in (echo.call("/languages"), echo.call("/nothing"), echo.call("/translate", {"q": "a"})):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert "access-control-allow-origin" not in answer.headers
        assert "server" not in answer.headers


def test_other_pages_are_let_in_only_where_they_are_named() -> None:
    origin = "https://example.org"
    with running(["en-de=echo"], lambda _: Echo(), cors=(origin,)) as server:
        sent = {"origin": origin, "access-control-request-method": "POST"}
        asked = server.call("/translate", headers=sent, method="OPTIONS")
        assert asked.headers["access-control-allow-origin"] == origin
        other = server.call("/translate", ASKED, headers={"origin": "https://other.example"})
        assert "access-control-allow-origin" not in other.headers


def test_the_log_is_one_object_a_line(echo: Running) -> None:
    echo.call("/translate", ASKED)
    for line in echo.lines:
        assert line.endswith("\n")
        assert json.loads(line).keys() >= {"time", "level", "event"}
    with pytest.raises(TransduceError, match="must be"):
        ServingConfig(drain=-1.0)
