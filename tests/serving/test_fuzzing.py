"""Requests that nobody thinks of: every answer is one of ours, and never the server's fault."""

from __future__ import annotations

import json
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from running_server import Running

QUICK = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.filter_too_much,
        HealthCheck.too_slow,
    ],
)
NAMES = st.sampled_from(
    [
        "q",
        "text",
        "source",
        "target",
        "format",
        "alternatives",
        "n_best",
        "beam",
        "prefix",
        "terms",
        "api_key",
        "x",
    ]
)
VALUES: Any = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 1 << 70)
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["en", "de", "auto", "html", "text", "<p>a</p>", "%s {x} https://a.b"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=8,
)
PATHS = st.sampled_from(
    [
        *("/translate", "/detect", "/suggest", "/translate_file"),
        *("/v1/translate", "/v1/stream", "/v1/alternatives"),
        *("/v1/attention", "/v1/tree", "/v1/translate_file"),
    ]
)
RIGHT = {"q": "a b", "text": "a b", "source": "en", "target": "de"}
ALLOWED = {200, 400, 403, 404, 405, 413, 415, 422}


def check(answer: Any) -> None:
    assert answer.status in ALLOWED, (answer.status, answer.body)
    if answer.status != 200:
        assert isinstance(answer.error, str)
        assert answer.error


@QUICK
@given(path=PATHS, own=st.dictionaries(NAMES, VALUES, max_size=6), is_right=st.booleans())
def test_any_json_is_answered(echo: Running, path: str, own: dict[str, Any], is_right: bool) -> None:
    if is_right and path.startswith("/v1"):
        own = {**{name: RIGHT[name] for name in ("text", "source", "target")}, **own}
    elif is_right:
        own = {**RIGHT, **own}
    body = json.dumps(own).encode("utf-8", "surrogatepass")
    check(echo.call(path, body=body, headers={"content-type": "application/json"}))


@QUICK
@given(
    path=PATHS,
    body=st.binary(max_size=200),
    kind=st.sampled_from(
        [
            "application/json",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=a",
            "text/x",
            "",
        ]
    ),
)
def test_any_bytes_are_answered(echo: Running, path: str, body: bytes, kind: str) -> None:
    check(echo.call(path, body=body, headers={"content-type": kind}))


@QUICK
@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), min_size=1, max_size=3))
def test_any_text_keeps_its_lines_and_any_html_its_tags(echo: Running, texts: list[str]) -> None:
    found = echo.translated(texts)
    assert [text.count("\n") for text in found] == [text.count("\n") for text in texts]
    pages = [f"<p>{text.replace('<', '&lt;').replace('&', '&amp;')}</p>" for text in texts]
    for page, new in zip(pages, echo.translated(pages, format="html"), strict=True):
        assert new.startswith("<p>")
        assert new.endswith("</p>")
        assert new.count("<") == page.count("<")


@pytest.fixture(scope="module")
def schema(echo: Running) -> Any:
    return schemathesis.openapi.from_url(f"{echo.url}/openapi.json")


def test_the_openapi_document_is_kept_to(echo: Running, schema: Any) -> None:
    """Of each operation some cases that the document allows: none fails, and each answer is as it says."""
    for result in schema.get_all_operations():
        operation = result.ok()

        @settings(max_examples=8, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy())
        def run(case: Any) -> None:
            answer = case.call()
            assert answer.status_code in ALLOWED, (case.as_curl_command(), answer.text)
            checks = schemathesis.checks
            case.validate_response(
                answer,
                checks=[checks.not_a_server_error, checks.CHECKS.get_one("response_schema_conformance")],
            )

        run()
