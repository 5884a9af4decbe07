"""Batches across requests: everybody gets exactly what the translator alone gives."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from running_server import Running, running
from tiny_translator import Echo, sentences, tiny_translator
from transduce.decoding.translator import Translator
from transduce.serving.asking import LeftError, Lines
from transduce.serving.batching import Batch, Waiting, translate
from transduce.serving.models import Loaded

AS_SERVED = {"protect": "all", "document": True, "language": "en"}


def request(costs: list[int], *, beam: int = 1, model: Loaded | None = None) -> Lines:
    """A request whose lines have so many tokens."""
    found = Lines(model=model or MODEL, texts=[f"{cost}" for cost in costs], options={"beam": beam})
    found.costs = list(costs)
    return found


MODEL = Loaded("none", tiny_translator(), {}, 0.0)


@settings(max_examples=60, deadline=None)
@given(
    asked=st.lists(
        st.tuples(st.lists(st.integers(1, 30), min_size=1, max_size=8), st.sampled_from([1, 2, 4])),
        max_size=8,
    ),
    budget=st.integers(1, 60),
)
def test_every_line_is_taken_once_in_order_within_the_budget_and_never_with_other_options(
    asked: list[tuple[list[int], int]], budget: int
) -> None:
    waiting = Waiting()
    requests = [request(costs, beam=beam) for costs, beam in asked]
    for one in requests:
        waiting.add(one)
    taken: dict[int, list[int]] = {id(one): [] for one in requests}
    while (batch := waiting.take(budget)) is not None:
        assert len({one.group for one in batch.requests}) == 1
        weights = [cost * one.rows for one, begin, end in batch.shares for cost in one.weigh()[begin:end]]
        assert len(weights) == 1 or sum(weights) <= budget
        for one, begin, end in batch.shares:
            taken[id(one)] += range(begin, end)
    assert all(taken[id(one)] == list(range(len(one.texts))) for one in requests)
    assert waiting.requests == 0


def test_a_short_request_does_not_wait_for_a_long_one() -> None:
    waiting = Waiting()
    long, short = request([10] * 100), request([10])
    waiting.add(long)
    waiting.add(short)
    batch = waiting.take(50)
    assert batch is not None
    assert {id(one): end - begin for one, begin, end in batch.shares} == {id(long): 4, id(short): 1}


def test_groups_take_turns() -> None:
    waiting = Waiting()
    one, other = request([10] * 10), request([10] * 10, beam=2)
    waiting.add(one)
    waiting.add(other)
    turns = [batch.requests for _ in range(4) if (batch := waiting.take(30)) is not None]
    assert turns == [[one], [other], [one], [other]]


def test_what_nobody_waits_for_is_not_taken() -> None:
    waiting = Waiting()
    left, kept = request([1, 1]), request([1])
    for one in (left, kept):
        waiting.add(one)
    left.future.cancel()
    batch = waiting.take(100)
    assert batch is not None
    assert batch.requests == [kept]
    assert waiting.take(100) is None


def test_warnings_name_the_lines_of_their_own_request() -> None:
    model = Loaded("echo", Echo(max_length=8), {}, 0.0)
    long = " ".join(sentences(6, seed=3))
    requests = [
        Lines(model=model, texts=texts, options={}) for texts in (["a", long], [long], ["a", "b", long])
    ]
    found = translate(Batch(tuple((one, 0, len(one.texts)) for one in requests)))
    told = [[re.match(r"line (\d+)", w)[1] for t in share for w in t.warnings] for share in found]  # type: ignore[index]
    assert told == [["2"], ["1"], ["3"]]
    last = translate(Batch(((requests[2], 1, 3),)))[0][1]
    assert last.warnings[0].startswith("line 3 ")


def test_a_batch_is_given_up_once_everybody_has_left() -> None:
    requests = [Lines(model=Loaded("echo", Echo(), {}, 0.0), texts=["a"], options={}) for _ in range(2)]
    batch = Batch(tuple((one, 0, 1) for one in requests))
    requests[0].future.cancel()
    assert len(translate(batch)) == 2
    requests[1].future.cancel()
    with pytest.raises(LeftError):
        translate(batch)


def test_concurrent_clients_get_what_the_translator_alone_gives(folder: Path, translator: Translator) -> None:
    clients = 6
    texts = sentences(2 * clients, seed=9, words=(1, 3))
    beams = [1, 2]
    expected = {
        beam: translator.translate_detailed(texts, beam=beam, max_extra=5, confidence=True, **AS_SERVED)
        for beam in beams
    }

    def ask(client: int) -> list[Any]:
        own = texts[2 * client : 2 * client + 2]
        asked = {
            "text": own,
            "source": "en",
            "target": "de",
            "beam": beams[client % 2],
            "confidence": True,
            "max_extra": 5,
        }
        answer = found.call("/v1/translate", asked, timeout=120)
        assert answer.status == 200, answer.body
        return [line for one in answer.json["translations"] for line in one["lines"]]

    with running([f"en-de={folder}"], gather=0.05) as found, ThreadPoolExecutor(clients) as pool:
        answers = list(pool.map(ask, range(clients)))
        metrics = found.call("/metrics").body.decode()
    for client, lines in enumerate(answers):
        alone = expected[beams[client % 2]][2 * client : 2 * client + 2]
        assert [line["source"] for line in lines] == texts[2 * client : 2 * client + 2]
        for line, one in zip(lines, alone, strict=True):
            assert line["outputs"][0]["text"] == one.text
            assert line["outputs"][0]["score"] == pytest.approx(one.alternatives[0].score, abs=1e-4)
            words = [word["confidence"] for word in line["outputs"][0]["words"]]
            assert words == pytest.approx(one.alternatives[0].word_confidences, abs=1e-4)
    batches = float(re.search(r"transduce_batch_requests_count (\S+)", metrics)[1])  # type: ignore[index]
    assert batches < clients  # some were translated together


def test_everybody_gets_their_own_whatever_else_is_asked(echo: Running) -> None:
    def ask(client: int) -> bool:
        texts = [f"{client} {number} {text}" for number, text in enumerate(sentences(5, seed=client))]
        return all(echo.translated(text) == text for text in texts)

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(ask, range(32)))
