"""Which languages are served, the way over several models, and folders that change while they are served."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path

import pytest

from running_server import running, wait_until
from tiny_translator import Echo, save_tiny, sentences, tiny_bundle
from transduce.bundle import CONFIG, WEIGHTS, save_bundle
from transduce.decoding.translator import Translator
from transduce.errors import UsageError
from transduce.serving.language_names import language_name
from transduce.serving.pairs import Pair, Spec, find_language, trained_pairs, way

AS_SERVED = {"protect": "all", "document": True, "beam": 2}


def test_a_model_is_named_with_or_without_its_languages(tmp_path: Path) -> None:
    assert Spec.read("models/a") == Spec(Path("models/a"))
    assert Spec.read("en-de=models/a=b") == Spec(Path("models/a=b"), (Pair("en", "de"),))
    assert Spec.read("en-de,de-en=a") == Spec(Path("a"), (Pair("en", "de"), Pair("de", "en")))
    assert Spec.read("pt_BR-zh_Hant=a") == Spec(Path("a"), (Pair("pt_BR", "zh_Hant"),))
    (tmp_path / "en-de=x").mkdir()
    assert Spec.read(str(tmp_path / "en-de=x")).pairs == ()


@pytest.mark.parametrize(
    ("data", "known", "pairs"),
    [
        ({"source_language": "en", "target_language": "de"}, (), ["en-de"]),
        ({"source": ["a/train.en.gz"], "target": ["a/train.de.gz"]}, (), ["en-de"]),
        ({"source": ["a.en", "b.fr"], "target": ["a.de", "b.de"]}, (), []),
        ({"source": ["a.txt"], "target": ["b.txt"]}, (), []),
        ({"languages": ["en:de", "de:en", "en:de"]}, ("de", "en"), ["en-de", "de-en"]),
        ({"languages": ["en:de", "en:fr"]}, ("de",), ["en-de"]),
        ({"languages": 3, "source": "x"}, (), []),
        (None, (), []),
    ],
)
def test_the_training_says_which_languages(data: object, known: tuple[str, ...], pairs: list[str]) -> None:
    assert [str(pair) for pair in trained_pairs({"recipe": {"data": data}}, known)] == pairs
    assert trained_pairs({}, known) == ()


def test_a_code_finds_its_language() -> None:
    assert find_language("DE", ["en", "de"]) == "de"
    assert find_language("deu", ["en", "de"]) == "de"
    assert find_language("de-AT", ["en", "de"]) == "de"
    assert find_language("de", ["de_AT", "en"]) == "de_AT"
    assert find_language("pt", ["pt_BR", "pt_PT"]) is None
    assert find_language("fr", ["en", "de"]) is None
    assert (language_name("pt_BR"), language_name("zh-Hant"), language_name("deu"), language_name("xx")) == (
        "Portuguese (BR)",
        "Chinese (Hant)",
        "German",
        "xx",
    )


def test_the_shortest_way_is_taken_and_no_longer_one_than_two() -> None:
    legs = [(Pair("en", "de"), 1), (Pair("de", "fr"), 2), (Pair("fr", "es"), 3), (Pair("en", "fr"), 4)]
    assert [place for _, place in way(legs, "en", "de")] == [1]
    assert [place for _, place in way(legs, "en", "fr")] == [4]
    assert [place for _, place in way(legs, "en", "es")] == [4, 3]
    assert way(legs, "es", "en") == []
    assert way(legs[:3], "en", "es") == []


def test_a_pivot_is_one_model_after_the_other(tmp_path: Path) -> None:
    first = save_tiny(tmp_path / "first", seed=1)
    second = save_tiny(tmp_path / "second", seed=4)
    text = sentences(1, seed=8, words=(1, 2))[0]
    with running([f"en-de={first}", f"de-fr={second}"], beam=2) as server:
        answer = server.call(
            "/v1/translate", {"text": text, "source": "en", "target": "fr", "n_best": 2}
        ).json
        languages = {one["code"]: one["targets"] for one in server.call("/languages").json}
        via = server.call("/v1/languages").json[0]["targets"]
        looked = server.call("/v1/tree", {"text": text, "source": "en", "target": "fr"})
    assert languages == {"en": ["de", "fr"], "de": ["fr"], "fr": []}
    assert [(one["code"], one["via"]) for one in via] == [("de", []), ("fr", ["de"])]
    assert answer["via"] == ["de"]
    assert answer["models"] == ["first", "second"]
    one, other = (Translator.load(folder, device="cpu", engine="torch") for folder in (first, second))
    between = one.translate([text], language="en", **AS_SERVED)
    (found,) = other.translate_detailed(between, language="de", n_best=2, **AS_SERVED)
    outputs = answer["translations"][0]["lines"][0]["outputs"]
    assert [output["text"] for output in outputs] == [output.text for output in found.alternatives]
    assert looked.status == 400
    assert "passes through another language" in looked.error


def test_into_the_same_language_there_is_nothing_to_do() -> None:
    with running(["en-de=echo"], lambda _: Echo()) as server:
        asked = {"q": "a\n b", "source": "en", "target": "en"}
        assert server.call("/translate", asked).json == {"translatedText": "a\n b"}
        assert server.call("/translate", {**asked, "format": "html"}).json == {"translatedText": "a\n b"}


def test_a_model_that_says_no_languages_is_refused_with_the_remedy(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"say it: en-de="), running([str(folder)]):
        pass
    with pytest.raises(UsageError, match="de-de is no pair of two languages"), running([f"de-de={folder}"]):
        pass


def test_languages_come_from_the_training(tmp_path: Path) -> None:
    bundle = tiny_bundle()
    training = {"recipe": {"data": {"source": ["train.en"], "target": ["train.de"]}}}
    save_bundle(tmp_path / "m", bundle.model, bundle.model.config, bundle.tokenizer, training)
    with running([str(tmp_path / "m")]) as server:
        assert server.call("/v1/models").json[0]["pairs"] == [{"source": "en", "target": "de"}]


def test_a_folder_that_is_replaced_is_served_without_a_request_lost(tmp_path: Path) -> None:
    folder = save_tiny(tmp_path / "model", seed=1)
    save_tiny(tmp_path / "new", seed=4)
    text = sentences(1, seed=8, words=(1, 2))[0]
    old, new = (
        Translator.load(path, device="cpu", engine="torch").translate([text], language="en", **AS_SERVED)[0]
        for path in (folder, tmp_path / "new")
    )
    assert old != new
    answers: list[str] = []
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            answers.append(server.translated(text))

    with running([f"en-de={folder}"], reload=0.05, beam=2) as server:
        asking = threading.Thread(target=ask)
        asking.start()
        try:
            wait_until(lambda: old in answers, 60)
            Path(folder).rename(tmp_path / "old")
            (tmp_path / "new").rename(folder)
            wait_until(lambda: new in answers, 60)
        finally:
            done.set()
            asking.join()
        assert set(answers) == {old, new}
        assert answers == sorted(answers, key=lambda one: one == new)  # never back to the old one
        assert server.call("/v1/models").json[0]["reloads"] == 1
        assert any(event["event"] == "reloaded" for event in server.events)


def test_a_folder_that_is_damaged_or_gone_keeps_the_old_model_serving_and_says_so(tmp_path: Path) -> None:
    folder = Path(save_tiny(tmp_path / "model"))
    with running([f"en-de={folder}"], reload=0.05, beam=2) as server:
        text = sentences(1, seed=8, words=(1, 2))[0]
        before = server.translated(text)

        def problem() -> str:
            return str(server.call("/v1/models").json[0]["problem"])

        weights = (folder / WEIGHTS).read_bytes()
        (folder / WEIGHTS).write_bytes(weights[:-1])
        wait_until(lambda: "damaged" in problem(), 60)
        assert server.translated(text) == before
        (folder / CONFIG).write_text("{")
        wait_until(lambda: "not valid JSON" in problem(), 60)
        shutil.rmtree(folder)
        wait_until(lambda: "no such model folder" in problem(), 60)
        assert server.translated(text) == before
        ready = server.call("/health/ready")
        assert ready.status == 200
        assert "an older state is served" in ready.json["warnings"][0]
        assert any(event["event"] == "not reloaded" for event in server.events)
        save_tiny(folder)
        wait_until(lambda: problem() == "None", 60)
        assert server.translated(text) == before
        assert json.loads(server.lines[-1])["event"]
