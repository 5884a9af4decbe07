"""Preparation of a corpus that is cleaned first."""

from __future__ import annotations

import dataclasses
import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from transduce.data import preparation
from transduce.data.cleaning.config import CleaningConfig
from transduce.data.cleaning.kept import BITS, DROPPED, REPORT
from transduce.data.config import DataConfig
from transduce.data.formats.pair import Pair
from transduce.data.prepare import open_prepared, prepare
from transduce.errors import DataError
from transduce.training.settings import check_sections, resolve

Pairs = Callable[..., Iterator[Pair]]
Write = Callable[..., str]


def dirty(pairs: Pairs) -> list[Pair]:
    """300 pairs of which some are to be mended and some to be dropped."""
    found = []
    for number, pair in enumerate(pairs(300)):
        if number % 10 == 3:
            pair = pair._replace(source=pair.source + " 1990", target=pair.target + " 1991")
        elif number % 10 == 5:
            pair = pair._replace(source=pair.source + " &amp; more")
        elif number % 10 == 7:
            pair = pair._replace(target="")
        found.append(pair)
    return found


@pytest.fixture
def corpus(write: Write, pairs: Pairs) -> DataConfig:
    text = dirty(pairs)
    return DataConfig(
        source=(write("train.en", [pair.source for pair in text]),),
        target=(write("train.de", [pair.target for pair in text]),),
        valid_pairs=20,
        clean=True,
    )


def content(folder: Path) -> dict[str, bytes]:
    """All files but the one that knows when others were written."""
    found = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if name != "files.json"}


def read_dropped(folder: Path) -> list[dict[str, Any]]:
    raw = gzip.decompress((folder / DROPPED).read_bytes())
    return [json.loads(line) for line in raw.split(b"\n") if line]


def made(config: DataConfig, folder: Path, **more: Any) -> Any:
    return prepare(config, folder, max_length=99, seed=1, **more)


def test_it_is_the_preparation_of_what_cleaning_keeps(
    tmp_path: Path, corpus: DataConfig, write: Write, pairs: Pairs
) -> None:
    said: list[str] = []
    prepared = made(corpus, tmp_path / "data", say=said.append)
    dropped = read_dropped(tmp_path / "data")
    gone = {value["line"] for value in dropped}
    kept = [pair for pair in dirty(pairs) if pair.line not in gone]
    assert {value["filter"] for value in dropped} >= {"numbers", "empty"}
    by_hand = DataConfig(
        source=(write("kept.en", [pair.source.replace("&amp;", "&") for pair in kept]),),
        target=(write("kept.de", [pair.target for pair in kept]),),
        valid_pairs=20,
    )
    plain = made(by_hand, tmp_path / "plain")
    one, other = content(tmp_path / "data"), content(tmp_path / "plain")
    for name in (
        "tokenizer.model",
        *(name for name in one if name.endswith((".tokens", ".offsets", ".lengths"))),
    ):
        assert one[name] == other[name], name
    assert [p[:2] for p in prepared.valid_pairs] == [p[:2] for p in plain.valid_pairs]
    assert prepared.report == plain.report
    assert "cleaning 300 pairs" in said
    assert f"choosing 20 of {len(kept)} pairs for validation" in said
    assert prepared.lines()[0].startswith(
        f"cleaning: 300 pairs cleaned: {len(kept)} kept, {len(gone)} dropped"
    )


def test_it_is_off_unless_wanted(tmp_path: Path, corpus: DataConfig) -> None:
    assert not DataConfig().clean
    off = dataclasses.replace(corpus, clean=False)
    made(corpus, tmp_path / "data")
    prepared = made(off, tmp_path / "data")
    assert prepared.report.pairs == 300
    assert not {BITS, REPORT, DROPPED} & set(content(tmp_path / "data"))
    made(off, tmp_path / "new")
    old, new = content(tmp_path / "data"), content(tmp_path / "new")
    assert old == new
    assert b"cleaning" not in old["prepared.json"]


def test_it_is_used_again_until_a_setting_of_cleaning_changes(tmp_path: Path, corpus: DataConfig) -> None:
    first = made(corpus, tmp_path / "data")
    again = made(corpus, tmp_path / "data")
    assert again.reused
    assert again.lines() == first.lines()
    other = dataclasses.replace(corpus, cleaning=CleaningConfig(max_words=3))
    with pytest.raises(DataError, match="this run began with other data: cleaning changed"):
        made(other, tmp_path / "data", unchanged=True)
    assert made(other, tmp_path / "data").report.pairs < first.report.pairs
    assert len(open_prepared(tmp_path / "data").cleaning) > 2
    named = dataclasses.replace(other, source_language="en")
    with pytest.raises(DataError, match="languages changed"):
        made(named, tmp_path / "data", unchanged=True)


def test_processes_do_not_change_a_byte(
    tmp_path: Path, corpus: DataConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transduce.data.cleaning.cleaner.CHUNK", 50)
    for workers in (1, 2):
        made(dataclasses.replace(corpus, workers=workers), tmp_path / str(workers))
    one, other = content(tmp_path / "1"), content(tmp_path / "2")
    assert one == other


def test_what_was_cleaned_before_a_kill_is_not_cleaned_again(
    tmp_path: Path, corpus: DataConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(corpus, tmp_path / "whole")

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(preparation, "choose_held_out", killed)
        with pytest.raises(KeyboardInterrupt):
            made(corpus, tmp_path / "data")
    monkeypatch.setattr(preparation, "clean_once", None)
    made(corpus, tmp_path / "data")
    assert content(tmp_path / "data") == content(tmp_path / "whole")


def test_damaged_bits_are_made_again(
    tmp_path: Path, corpus: DataConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(preparation, "choose_held_out", killed)
        with pytest.raises(KeyboardInterrupt):
            made(corpus, tmp_path / "data")
    bits = tmp_path / "data" / BITS
    bits.write_bytes(bytes(len(bits.read_bytes())))
    made(corpus, tmp_path / "data")
    made(corpus, tmp_path / "whole")
    assert content(tmp_path / "data") == content(tmp_path / "whole")


def test_a_corpus_of_which_nothing_is_left_says_why(tmp_path: Path, corpus: DataConfig) -> None:
    config = dataclasses.replace(corpus, cleaning=CleaningConfig(min_words=100))
    with pytest.raises(
        DataError, match=r"train\.en: cleaning drops all 300 pairs; \S*dropped\.jsonl\.gz says"
    ):
        made(config, tmp_path / "data")
    assert len(read_dropped(tmp_path / "data")) == 300


def test_pairs_that_are_dropped_do_not_count_for_what_is_left(tmp_path: Path, write: Write) -> None:
    good, bad = ["A dog runs.", "The cat sleeps."], ["It was 1990."] * 30
    config = DataConfig(
        source=(write("s", [*good, *bad]),),
        target=(write("t", ["Ein Hund rennt.", "Die Katze schläft.", *["Es war 1991."] * 30]),),
        valid_pairs=2,
        clean=True,
    )
    with pytest.raises(DataError, match="none of 2 pairs is left to train on"):
        made(config, tmp_path / "data")


def test_settings_of_a_run() -> None:
    files = {"tsv": ["a.tsv"], "clean": True}
    given = {"preset": "tiny", "data": files, "cleaning": {"max_words": 7, "max_ratio": 2}}
    settings = resolve(given, pairs=100, device="cpu")
    assert settings.data.cleaning == CleaningConfig(max_words=7, max_ratio=2.0)
    stored = json.loads(json.dumps(settings.as_dict()))
    assert stored["cleaning"]["max_words"] == 7
    assert "cleaning" not in stored["data"]
    assert check_sections(stored) == settings.data
    # Turned off when the run goes on: what is stored of it is then of no account.
    assert not check_sections({**stored, "data": {**stored["data"], "clean": False}}).clean
    assert "cleaning" not in resolve({"data": {"tsv": ["a.tsv"]}}, pairs=100, device="cpu").as_dict()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"cleaning": {"max_words": 7}},
            r"cleaning\.max_words is set, but nothing is cleaned; add data\.clean",
        ),
        ({"cleaning": {"max_word_s": 7}, "data": {"clean": True}}, r"did you mean 'cleaning\.max_words'"),
        (
            {"cleaning": {"markup": 7}, "data": {"clean": True}},
            r"cleaning\.markup is 7; it must be true or false",
        ),
        ({"data": {"cleaning": {"markup": False}}}, r"data\.cleaning is a section of its own"),
        ({"cleaning": True}, r"cleaning is True; it must be a section"),
        ({"cleaning": {"max_ratio": 0.5}, "data": {"clean": True}}, r"cleaning\.max_ratio is 0\.5"),
    ],
)
def test_settings_that_make_no_sense(given: dict[str, Any], message: str) -> None:
    with pytest.raises(Exception, match=message):
        check_sections(given)
