"""LibreTranslate's API: by its own client library, and by its documented examples."""

from __future__ import annotations

from pathlib import Path

import libretranslatepy
import pytest

from running_server import Running, running
from tiny_translator import Echo, sentences
from transduce.decoding.translator import Translator

AS_SERVED = {"protect": "all", "document": True, "language": "en"}


def test_the_client_library_translates_detects_and_lists_languages(
    server: Running, translator: Translator
) -> None:
    client = libretranslatepy.LibreTranslateAPI(server.url)
    for text in sentences(2, words=(1, 2)):
        assert client.translate(text, "en", "de") == translator.translate([text], **AS_SERVED)[0]
    assert client.languages() == [
        {"code": "en", "name": "English", "targets": ["de"]},
        {"code": "de", "name": "German", "targets": []},
    ]
    assert client.detect("Der Hund schläft heute unter dem Tisch, weil es draußen regnet.")[0] == {
        "confidence": pytest.approx(100, abs=30),
        "language": "de",
    }


def test_the_client_library_with_a_key(tmp_path: Path) -> None:
    from urllib.error import HTTPError

    from transduce.serving.keys import add_key

    secret = add_key(tmp_path / "keys.json", "anna", None, None)
    with running(["en-de=echo"], lambda _: Echo(), keys=tmp_path / "keys.json", require_key=True) as found:
        text = sentences(1)[0]
        assert libretranslatepy.LibreTranslateAPI(found.url, secret).translate(text, "en", "de")
        for wrong in (None, "wrong", secret[:-1]):
            with pytest.raises(HTTPError, match="403"):
                libretranslatepy.LibreTranslateAPI(found.url, wrong).translate(text, "en", "de")


def test_json_a_form_and_the_address_say_the_same(echo: Running) -> None:
    asked = {"q": sentences(1)[0], "source": "en", "target": "de"}
    from urllib.parse import urlencode

    answers = [
        echo.call("/translate", asked),
        echo.call("/translate", form=asked),
        echo.call(f"/translate?{urlencode(asked)}", method="POST"),
    ]
    assert [answer.status for answer in answers] == [200, 200, 200]
    assert len({answer.body for answer in answers}) == 1
    assert list(answers[0].json) == ["translatedText"]


def test_a_list_gives_a_list_and_lines_stay_lines(server: Running, translator: Translator) -> None:
    one, two, three = sentences(3, seed=4, words=(1, 2))
    texts = [f"{one}\n\n  {two}", three, ""]
    expected = [translator.translate(text.split("\n"), **AS_SERVED) for text in texts]
    assert server.translated(texts) == ["\n".join(lines) for lines in expected]


def test_alternatives_are_the_other_outputs(server: Running, translator: Translator) -> None:
    text = sentences(1, seed=5, words=(1, 2))[0]
    answer = server.call("/translate", {"q": text, "source": "en", "target": "de", "alternatives": 3}).json
    (found,) = translator.translate_detailed([text], n_best=4, **AS_SERVED)
    every = list(dict.fromkeys(output.text for output in found.alternatives))
    assert answer == {"translatedText": every[0], "alternatives": every[1:]}
    many = server.call("/translate", {"q": [text], "source": "en", "target": "de", "alternatives": 3}).json
    assert many == {"translatedText": [every[0]], "alternatives": [every[1:]]}


def test_auto_says_what_was_detected(echo: Running) -> None:
    asked = {"q": "The dog sleeps under the table.", "source": "auto", "target": "de"}
    found = echo.call("/translate", asked).json
    assert found["detectedLanguage"]["language"] == "en"
    assert 0 <= found["detectedLanguage"]["confidence"] <= 100
    many = echo.call("/translate", {**asked, "q": [asked["q"], "Yes."]}).json
    assert [one["language"] for one in many["detectedLanguage"]] == ["en", "en"]


def test_html_keeps_its_tags(echo: Running) -> None:
    one, two = sentences(2, seed=6, words=(3, 6))
    text = f'<p class="a">{one} <b>{two}</b></p>\n<script>x < y</script><meta charset="latin-1">é<br>'
    found = echo.translated(text, format="html")
    for kept in (
        '<p class="a">',
        "<b>",
        "</b>",
        "</p>",
        "\n<script>x < y</script>",
        '<meta charset="latin-1">',
    ):
        assert found.count(kept) == 1
    assert one in found
    assert two in found


def test_a_file_is_translated_and_fetched(echo: Running) -> None:
    content = "\n".join(sentences(3, seed=7)).encode()
    answer = echo.upload("/translate_file", "päge/../a b.txt", content, source="en", target="de")
    url = answer.json["translatedFileUrl"]
    assert url.startswith(f"{echo.url}/download_file/")
    fetched = echo.call(url.removeprefix(echo.url))
    assert fetched.body.decode() == echo.translated(content.decode())
    assert fetched.headers["content-disposition"] == 'attachment; filename="a_b.txt"'
    assert echo.call("/download_file/other.txt").status == 404


@pytest.mark.parametrize(
    ("asked", "status", "told"),
    [
        ({"source": "en", "target": "de"}, 400, "missing q parameter"),
        ({"q": "a", "target": "de"}, 400, "missing source parameter"),
        ({"q": "a", "source": "en"}, 400, "missing target parameter"),
        ({"q": "a", "source": "xx", "target": "de"}, 400, "xx is not supported; this server knows en, de"),
        ({"q": "a", "source": "de", "target": "en"}, 400, "en is not available as a target from de"),
        ({"q": "a", "source": "en", "target": "de", "format": "pdf"}, 400, "pdf format is not supported"),
        ({"q": "a", "source": "en", "target": "de", "alternatives": "many"}, 400, "is not a number"),
        ({"q": "a", "source": "en", "target": "de", "alternatives": 10_000}, 400, "must be <= 10"),
        ({"q": {"a": 1}, "source": "en", "target": "de"}, 400, "Invalid request: q"),
        ({"q": "a" * 20_001, "source": "en", "target": "de"}, 413, r"exceeds text limit (20,000)"),
        ({"q": ["a"] * 1_001, "source": "en", "target": "de"}, 400, "exceed the limit of 1,000"),
    ],
)
def test_mistakes_are_told(echo: Running, asked: dict[str, object], status: int, told: str) -> None:
    answer = echo.call("/translate", asked)
    assert answer.status == status
    assert told in answer.error


def test_settings_health_and_spec(echo: Running) -> None:
    settings = echo.call("/frontend/settings").json
    assert settings["charLimit"] == 20_000
    assert settings["apiKeys"] is False
    assert ".docx" in settings["supportedFilesFormat"]
    assert settings["language"]["source"] == {"code": "en", "name": "English"}
    assert echo.call("/health").json == {"status": "ok"}
    spec = echo.call("/spec").json
    assert {"/translate", "/detect", "/languages", "/translate_file", "/suggest"} <= spec["paths"].keys()


def test_suggestions_are_kept_only_where_asked_for(echo: Running, tmp_path: Path) -> None:
    import json

    asked = {"q": "a\nb", "s": "c", "source": "en", "target": "de"}
    assert echo.call("/suggest", asked).status == 403
    with running(["en-de=echo"], lambda _: Echo(), suggestions=tmp_path / "better.jsonl") as found:
        assert found.call("/suggest", asked).json == {"success": True}
        assert found.call("/suggest", form={**asked, "s": ""}).status == 400
    assert [json.loads(line) for line in (tmp_path / "better.jsonl").read_text().split("\n") if line] == [
        asked
    ]
