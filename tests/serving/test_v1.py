"""Our own API: what it answers is what Python gives, and mistakes are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from running_server import Running, running
from tiny_translator import sentences
from transduce.decoding.terms import Term
from transduce.decoding.translator import Translator
from transduce.inspection.attention_maps import attention_maps
from transduce.inspection.search_tree import Node, search_tree

PAIR = {"source": "en", "target": "de"}
SHORT = {"max_extra": 5}
TEXT = sentences(1, seed=11, words=(2, 2))[0]
AS_SERVED = {"document": True, "language": "en"}


@pytest.fixture(scope="module")
def quick(folder: Path) -> Any:
    with running([f"en-de={folder}"], beam=2) as found:
        yield found


def outputs_of(answer: Any) -> list[Any]:
    return [line["outputs"] for one in answer["translations"] for line in one["lines"]]


def test_outputs_scores_words_and_alignments_are_those_of_python(
    quick: Running, translator: Translator
) -> None:
    asked = {"text": TEXT, **PAIR, **SHORT, "n_best": 3, "confidence": True, "alignments": True, "alpha": 1.0}
    answer = quick.call("/v1/translate", asked).json
    options = {
        "beam": 3,
        "n_best": 3,
        "confidence": True,
        "alignments": True,
        "alpha": 1.0,
        **SHORT,
        **AS_SERVED,
    }
    (found,) = translator.translate_detailed([TEXT], **options)
    assert answer["source_language"] == "en"
    assert answer["translations"][0]["text"] == found.text
    (outputs,) = outputs_of(answer)
    for output, alternative in zip(outputs, found.alternatives, strict=True):
        assert output["text"] == alternative.text
        assert output["score"] == pytest.approx(alternative.score, abs=1e-4)
        assert output["confidence"] == pytest.approx(alternative.confidence, abs=1e-4)
        assert [word["text"] for word in output["words"]] == alternative.text.split()
        assert [word["confidence"] for word in output["words"]] == pytest.approx(alternative.word_confidences)
        assert output["alignment"] == [list(link) for link in alternative.alignment or ()]


def test_prefixes_terms_and_glossary_are_kept(quick: Running, translator: Translator) -> None:
    word = sentences(1, seed=12, words=(1, 1))[0][:-1]
    own = {"prefix": ["ab", ""], "terms": [[], [{"text": "de", "exact": True}]]}
    asked = {
        "text": [TEXT, TEXT],
        **PAIR,
        **SHORT,
        **own,
        "glossary": [{"source": TEXT.split()[0], "target": word}],
    }
    answer = quick.call("/v1/translate", asked)
    assert answer.status == 200, answer.body
    first, second = (outputs[0]["text"] for outputs in outputs_of(answer.json))
    assert first.startswith("ab")
    assert Term("de").found_in(second)
    assert Term(word).found_in(first)
    assert Term(word).found_in(second)


def test_a_stream_is_the_translation_piece_by_piece(quick: Running) -> None:
    text = f"{TEXT}\n\n{TEXT}"
    answer = quick.call("/v1/stream", {"text": text, **PAIR, **SHORT, "beam": 1, "confidence": True})
    assert answer.headers["content-type"].startswith("text/event-stream")
    *pieces, (name, end) = quick.events_of(answer)
    assert {name for name, _ in pieces} == {"piece"}
    assert len(pieces) > 3
    whole = quick.call("/v1/translate", {"text": text, **PAIR, **SHORT, "beam": 1, "confidence": True}).json
    assert name == "end"
    assert "".join(piece["text"] for _, piece in pieces) == end["text"] == whole["translations"][0]["text"]
    assert [line["source"] for line in end["lines"]] == [TEXT, "", TEXT]
    assert outputs_of({"translations": [end]})[0][0]["words"]


def test_a_mistake_of_a_stream_has_a_status_before_it_begins(quick: Running) -> None:
    asked = {"text": TEXT, **PAIR}
    assert quick.call("/v1/stream", {**asked, "beam": 99}).status == 400
    assert quick.call("/v1/stream", {**asked, "target": "xx"}).status == 400
    late = quick.events_of(quick.call("/v1/stream", {**asked, "samples": 2}))
    assert [(name, told["status"]) for name, told in late] == [("error", 400)]
    assert "a stream is one output" in late[0][1]["error"]


def test_the_likeliest_next_words(quick: Running, translator: Translator) -> None:
    answer = quick.call("/v1/alternatives", {"text": TEXT, "prefix": "a", "count": 2, **PAIR}).json
    found = translator.alternatives(TEXT, "a", count=2, beam=2)
    assert [(one["word"], one["text"]) for one in answer["words"]] == [
        (one.word.encode("utf-8", "surrogateescape").decode("utf-8", "replace"), one.completion.text)
        for one in found
    ]
    for one, other in zip(answer["words"], found, strict=True):
        assert one["probability"] == pytest.approx(other.probability, abs=1e-4)


def test_attention_of_all_layers_and_heads_with_its_labels(quick: Running, translator: Translator) -> None:
    answer = quick.call("/v1/attention", {"text": TEXT, "translation": "ab de", **PAIR}).json
    maps = attention_maps(translator.bundle, TEXT, "ab de")
    assert answer["source"] == list(maps.source)
    assert answer["target_in"] == list(maps.target_in)
    assert answer["target_out"] == list(maps.target_out)
    for kind in ("encoder", "decoder", "cross"):
        expected = getattr(maps, kind)
        assert len(answer[kind]) == expected.shape[0]
        for layer, heads in enumerate(answer[kind]):
            for head, rows in enumerate(heads):
                for given, right in zip(rows, expected[layer, head].tolist(), strict=True):
                    assert given == pytest.approx(right, abs=1e-4)
    own = quick.call("/v1/attention", {"text": TEXT, **PAIR}).json
    assert own["translation"] == translator.translate([TEXT])[0].strip()


def test_the_tree_has_every_hypothesis_under_its_parent(quick: Running, translator: Translator) -> None:
    answer = quick.call("/v1/tree", {"text": TEXT, "beam": 2, **PAIR}).json
    tree = search_tree(translator.bundle, TEXT, beam=2)
    assert (answer["output"], answer["reason"], answer["steps"]) == (tree.output, tree.reason, tree.steps)

    def paths(node: Node, before: tuple[str, ...]) -> list[tuple[tuple[str, ...], str]]:
        own = [] if node is tree.root else [((*before, node.piece), node.fate)]
        at = before if node is tree.root else (*before, node.piece)
        return own + [path for child in node.children for path in paths(child, at)]

    nodes = answer["nodes"]

    def path(number: int) -> tuple[str, ...]:
        node = nodes[number]
        return (*(path(node["parent"]) if node["parent"] >= 0 else ()), node["piece"])

    found = [(path(number), node["fate"]) for number, node in enumerate(nodes)]
    assert sorted(found) == sorted(paths(tree.root, ()))
    assert all(node["parent"] < number for number, node in enumerate(nodes))


def test_a_document_comes_back_as_the_answer(echo: Running) -> None:
    catalog = b'msgid "a b"\nmsgstr ""\n'
    answer = echo.upload("/v1/translate_file", "x.po", catalog, source="en", target="de")
    assert answer.status == 200
    assert b'msgstr "a b"' in answer.body
    assert answer.headers["content-disposition"] == 'attachment; filename="x.po"'


@pytest.mark.parametrize(
    ("name", "content", "status", "told"),
    [
        ("x.pdf", b"", 415, "file format not supported"),
        ("x.txt", b"\xff", 400, "byte 0 is not UTF-8"),
        ("x.docx", b"no zip", 400, "the file"),
        ("x.xlf", b"<xliff", 400, "the file"),
        ("x.txt", b"a" * ((10 << 20) + (1 << 17)), 413, "larger than"),
    ],
)
def test_files_that_cannot_be_translated(
    echo: Running, name: str, content: bytes, status: int, told: str
) -> None:
    answer = echo.upload("/v1/translate_file", name, content, source="en", target="de")
    assert answer.status == status, answer.body
    assert told in answer.error


def test_models_languages_and_limits(quick: Running) -> None:
    (model,) = quick.call("/v1/models").json
    assert (model["name"], model["heads"], model["encoder_layers"]) == ("tiny", 4, 2)
    assert model["problem"] is None
    assert quick.call("/v1/languages").json == [
        {"code": "en", "name": "English", "targets": [{"code": "de", "name": "German", "via": []}]}
    ]
    assert quick.call("/v1/limits").json["max_characters"] == 20_000


@pytest.mark.parametrize(
    ("path", "more", "status", "told"),
    [
        ("translate", {"text": 3}, 422, "text"),
        ("translate", {"beam": "wide"}, 422, "beam"),
        ("translate", {"beeam": 3}, 422, "beeam"),
        ("translate", {"beam": 17}, 400, "the limit is 16"),
        ("translate", {"samples": 99}, 400, "the limit is 16"),
        ("translate", {"temperature": 2.0}, 400, "nothing is sampled"),
        ("translate", {"mbr": "chrf"}, 400, "one output to choose from"),
        ("translate", {"protect": "nothing"}, 400, "protect is 'nothing'"),
        ("translate", {"text": ["a", "b"], "prefix": ["a"]}, 422, "1 for 2 texts"),
        ("translate", {"shortlist": True}, 500, "shortlist"),
        ("attention", {"text": "a\nb"}, 400, "one sentence"),
        ("attention", {"text": " "}, 400, "one sentence"),
        ("tree", {"text": "a " * 200}, 413, "a look takes"),
        ("tree", {"beam": 17}, 400, "the limit is 16"),
        ("alternatives", {"count": 0}, 422, "count"),
        ("alternatives", {"prefix": "a\nb"}, 400, "one line"),
    ],
)
def test_mistakes_are_told_with_their_status(
    quick: Running, path: str, more: dict[str, Any], status: int, told: str
) -> None:
    answer = quick.call(f"/v1/{path}", {"text": "a", **PAIR, **more})
    assert answer.status == status, answer.body
    assert told in answer.error
