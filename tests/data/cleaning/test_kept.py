from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.data.cleaning.cleaner import judged
from transduce.data.cleaning.config import CleaningConfig
from transduce.data.cleaning.dropped import as_columns, as_json, dropped_format
from transduce.data.cleaning.filters import Filters
from transduce.data.cleaning.kept import BITS, DROPPED, REPORT, Kept, clean_once
from transduce.data.cleaning.report import CleaningReport
from transduce.data.cleaning.verdict import Verdict
from transduce.data.crew import Crew
from transduce.data.formats.pair import Pair
from transduce.errors import DataError, UsageError

WORDS = ["dog", "cat", "Haus", "1990", "2001", "<b>", "&amp;", "ü", "Ã¼", "\t", "www.x.org", "\ufffd", ""]


def made(count: int, seed: int = 1) -> list[Pair]:
    """Pairs with everything in them that cleaning knows."""
    draw = random.Random(seed)
    return [
        Pair(
            " ".join(draw.choices(WORDS, k=draw.randint(0, 5))),
            " ".join(draw.choices(WORDS, k=draw.randint(0, 5))),
            "made",
            line,
        )
        for line in range(1, count + 1)
    ]


def verdicts(pairs: list[Pair], workers: int = 1) -> list[Verdict]:
    chunks = judged(pairs, Filters(CleaningConfig()), crew=Crew(workers=workers))
    return [verdict for chunk in chunks for verdict in chunk]


def test_kept_and_dropped_together_are_the_input_in_order(tmp_path: Path) -> None:
    pairs = made(1000)
    filters = Filters(CleaningConfig())
    report = clean_once(iter(pairs), filters, tmp_path)
    kept = {pair.line: pair for pair in Kept.open(filters, tmp_path).of(pairs)}
    lines = gzip.decompress((tmp_path / DROPPED).read_bytes()).decode().split("\n")[:-1]
    dropped = [json.loads(line) for line in lines]
    assert [d["line"] for d in dropped] == sorted(d["line"] for d in dropped)
    assert list(kept) == sorted(kept)
    assert sorted([*kept, *(d["line"] for d in dropped)]) == [pair.line for pair in pairs]
    for d in dropped:
        pair = pairs[d["line"] - 1]
        assert (d["file"], d["source"], d["target"]) == (pair.file, pair.source, pair.target)
        assert d["filter"] in report.filters
        assert d["reason"]
    assert (report.pairs, report.kept, report.dropped) == (1000, len(kept), len(dropped))
    assert report.repaired == sum(pair != pairs[pair.line - 1] for pair in kept.values()) > 20
    assert {name: found.count for name, found in report.filters.items()} == {
        name: sum(d["filter"] == name for d in dropped) for name in report.filters
    }


def test_reading_again_gives_what_the_filters_kept(tmp_path: Path) -> None:
    for count in (1, 7, 8, 9, 500):
        pairs = made(count, seed=count)
        clean_once(pairs, Filters(CleaningConfig()), tmp_path)
        kept = Kept.open(Filters(CleaningConfig()), tmp_path)
        expected = [v.mended for v in verdicts(pairs) if v.kept]
        assert list(kept.of(pairs)) == expected
        assert kept.count == len(expected)


def test_a_corpus_that_grew_or_shrank_is_noticed(tmp_path: Path) -> None:
    pairs = made(100)
    clean_once(pairs, Filters(CleaningConfig()), tmp_path)
    kept = Kept.open(Filters(CleaningConfig()), tmp_path)
    with pytest.raises(DataError, match="made: has grown since it was cleaned"):
        list(kept.of([*pairs, pairs[0]]))
    with pytest.raises(DataError, match="fewer than 100 pairs now"):
        list(kept.of(pairs[:-1]))


@pytest.mark.parametrize("name", [BITS, REPORT])
def test_what_is_damaged_is_refused(tmp_path: Path, name: str) -> None:
    clean_once(made(100), Filters(CleaningConfig()), tmp_path)
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:-2])
    with pytest.raises(DataError, match="prepare the data again"):
        Kept.open(Filters(CleaningConfig()), tmp_path)


def test_several_processes_decide_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transduce.data.cleaning.cleaner.CHUNK", 100)
    pairs = made(550)
    assert verdicts(pairs, workers=2) == verdicts(pairs)
    for workers in (1, 2):
        (tmp_path / str(workers)).mkdir()
        clean_once(pairs, Filters(CleaningConfig()), tmp_path / str(workers), crew=Crew(workers=workers))
    for name in (BITS, REPORT, DROPPED):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()


@given(st.text(max_size=20), st.text(max_size=20), st.text("\\\t\n\rtnr", max_size=20))
@settings(max_examples=200, deadline=None)
def test_the_side_file_loses_nothing(source: str, target: str, file: str) -> None:
    verdict = Verdict(Pair(source, target, file, 7), Pair("x", "y", file, 7), "length", "too\tlong")
    value = json.loads(as_json(verdict))
    assert value == {
        "filter": "length",
        "reason": "too\tlong",
        "file": file,
        "line": 7,
        "source": source,
        "target": target,
    }
    line = as_columns(verdict)
    assert line.count("\n") == 1
    assert line.count("\t") == 5
    plain = {"\\\\": "\\", "\\t": "\t", "\\n": "\n", "\\r": "\r"}
    columns = []
    for column in line[:-1].split("\t"):
        rest, text = column, ""
        while rest:
            size = 2 if rest[0] == "\\" else 1
            text += plain.get(rest[:size], rest[:size])
            rest = rest[size:]
        columns.append(text)
    assert columns == ["length", "too\tlong", file, "7", source, target]


def test_the_side_file_is_named_by_its_format() -> None:
    assert (
        dropped_format("a.jsonl") is dropped_format("a.jsonl.gz") is dropped_format("b.jsonl.zst") is as_json
    )
    assert dropped_format("a.tsv.gz") is as_columns
    with pytest.raises(UsageError, match=r"a\.csv: dropped pairs are written as \.jsonl or \.tsv"):
        dropped_format("a.csv")


def test_the_report_shows_five_examples_that_do_not_depend_on_order_or_place() -> None:
    def report(lines: list[int]) -> CleaningReport:
        found = CleaningReport.of(["length", "empty"], ["nfc"])
        for at, number in enumerate(lines):
            pair = Pair(f"s{number}", "t", f"file{at}", at)
            found.add(Verdict(pair, pair, "length", "why"))
        return found

    one, other = report(list(range(100))), report(list(range(99, -1, -1)))
    texts = [{v.pair.source for v in r.filters["length"].shown()} for r in (one, other)]
    assert texts[0] == texts[1]
    assert len(texts[0]) == 5
    assert texts[0] != {"s0", "s1", "s2", "s3", "s4"}
    shown = [v.pair.line for v in one.filters["length"].shown()]
    assert shown == sorted(shown)


def test_the_report_in_words() -> None:
    report = CleaningReport.of(["empty", "length"], ["controls"], ["script not checked"])
    good = Pair("a", "b", "f.en", 1)
    mended = Pair("a\tb", "c", "f.en", 2)
    long = Pair("x" * 200, "\x1b[31m", "f.en", 3)
    for verdict in (
        Verdict(good, good),
        Verdict(mended, mended._replace(source="a b"), repairs=("controls",)),
        Verdict(long, long, "length", "too long"),
    ):
        report.add(verdict)
    assert report.lines() == [
        "3 pairs cleaned: 2 kept, 1 dropped (33.3 %), 1 of those kept mended",
        "dropped by length: 1 (33.3 %)",
        f"    f.en:3: too long: {'x' * 79}… | \\u001b[31m",
        "mended by controls: 1 (33.3 %)",
        "    f.en:2: a\\u0009b -> a b",
        "nothing found by: empty",
        "script not checked",
    ]
    assert report.counts() == [line for line in report.lines()[:-2] if not line.startswith(" ")]
    value = report.to_dict()
    assert value["dropped"]["empty"] == {"count": 0, "examples": []}
    assert value["dropped"]["length"]["examples"][0]["reason"] == "too long"
    assert value["mended"]["controls"]["examples"][0]["mended_source"] == "a b"
