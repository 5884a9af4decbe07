from __future__ import annotations

import errno
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from transduce.data import preparation as module
from transduce.data.config import DataConfig
from transduce.data.corpora import choose_held_out
from transduce.data.formats.pair import Pair
from transduce.data.preparation import automatic_valid_pairs, automatic_vocabulary
from transduce.data.prepare import open_prepared, prepare
from transduce.data.tokenizer import Tokenizer
from transduce.errors import ConfigError, DataError

Pairs = Callable[..., Iterator[Pair]]
Write = Callable[..., str]
SHARED = Path(__file__).parents[2].parent / "shared" / "data"


@pytest.fixture
def corpus(write: Write, pairs: Pairs) -> DataConfig:
    text = list(pairs(300))
    return DataConfig(
        source=(write("train.en", [pair.source for pair in text]),),
        target=(write("train.de", [pair.target for pair in text]),),
        valid_pairs=20,
    )


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_two_files_are_all_it_takes(tmp_path: Path, corpus: DataConfig) -> None:
    said: list[str] = []
    prepared = prepare(corpus, tmp_path / "data", max_length=99, seed=1, say=said.append)
    assert len(prepared.valid) == len(prepared.valid_pairs) == 20
    report = prepared.report
    assert report.pairs == 300
    assert report.held_out == 20
    assert len(prepared.train) == report.kept == 280 - report.repeats_held_out
    assert prepared.tokenizer.vocabulary < 4000
    assert said == [
        "the prepared data will take up to 0 MiB of disk",
        "choosing 20 of 300 pairs for validation",
        "learning 4,000 bpe subwords",
        "turning 300 pairs into tokens",
    ]
    assert prepared.lines()[1] == "training: 20 of 300 pairs held out for validation"


def test_the_same_data_and_seed_give_the_same_bytes_in_any_folder(tmp_path: Path, corpus: DataConfig) -> None:
    (tmp_path / "moved").mkdir()
    moved = [shutil.copy(path, tmp_path / "moved") for path in (*corpus.source, *corpus.target)]
    other = DataConfig(source=(moved[0],), target=(moved[1],), valid_pairs=20)
    prepare(corpus, tmp_path / "one", max_length=99, seed=1)
    prepare(other, tmp_path / "two", max_length=99, seed=1)
    one, two = content(tmp_path / "one"), content(tmp_path / "two")
    assert one.keys() == two.keys()
    for name in one:
        if name not in ("valid.jsonl", "files.json"):  # which tell the folders and times of the files
            assert one[name] == two[name], name


def test_prepared_data_are_used_again_until_something_changes(
    tmp_path: Path, corpus: DataConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data"
    first = prepare(corpus, folder, max_length=99, seed=1)
    assert not first.reused
    monkeypatch.setattr(module, "read_corpora", None)  # not read again
    second = prepare(corpus, folder, max_length=99, seed=1)
    monkeypatch.undo()
    assert second.reused
    assert second.report == first.report
    assert second.valid_report == first.valid_report
    assert second.valid_pairs == first.valid_pairs
    assert second.tokenizer.sha256 == first.tokenizer.sha256
    assert not prepare(corpus, folder, max_length=50, seed=1).reused
    assert not prepare(corpus, folder, max_length=50, seed=2).reused
    with open(corpus.source[0], "r+b") as file:
        file.write(b"Q")
    assert not prepare(corpus, folder, max_length=50, seed=2).reused
    assert prepare(corpus, folder, max_length=50, seed=2).reused


@pytest.mark.parametrize(
    "name", ["tokenizer.model", "train/meta.json", "valid/source.tokens", "valid.jsonl", "prepared.json"]
)
def test_incomplete_data_are_made_again(tmp_path: Path, corpus: DataConfig, name: str) -> None:
    folder = tmp_path / "data"
    prepare(corpus, folder, max_length=99, seed=1)
    whole = content(folder)
    (folder / name).unlink()
    with pytest.raises(DataError, match=r"prepare (it|the data)|no such tokenizer"):
        open_prepared(folder)
    assert not prepare(corpus, folder, max_length=99, seed=1).reused
    assert {n: c for n, c in content(folder).items() if n != "files.json"} == {
        n: c for n, c in whole.items() if n != "files.json"
    }


def test_a_foreign_tokenizer_in_the_folder_is_noticed(
    tmp_path: Path, corpus: DataConfig, tokenizer: Tokenizer
) -> None:
    prepare(corpus, tmp_path / "data", max_length=99, seed=1)
    tokenizer.save(tmp_path / "data" / "tokenizer.model")
    with pytest.raises(DataError, match="was made with another tokenizer"):
        open_prepared(tmp_path / "data")


def test_no_held_out_source_is_trained_on(tmp_path: Path, write: Write, pairs: Pairs) -> None:
    text = list(pairs(200, longest=2))  # short, so that most sentences occur several times
    times = Counter(pair.source for pair in text)
    config = DataConfig(
        tsv=(write("p.tsv", [f"{pair.source}\t{pair.target}" for pair in text]),), valid_pairs=10
    )
    prepared = prepare(config, tmp_path / "data", max_length=99, seed=1)
    held_out = [pair.source for pair in prepared.valid_pairs]
    trained = [prepared.tokenizer.decode(prepared.train.source(i)) for i in range(len(prepared.train))]
    assert len(set(held_out)) == 10
    assert not set(held_out) & set(trained)
    repeats = sum(times[source] for source in held_out) - 10
    assert repeats > 0
    assert prepared.report.repeats_held_out == repeats
    assert len(trained) == 200 - 10 - repeats == prepared.report.kept
    share = f"{100 * repeats / 200:.1f} %"
    assert f"training: {repeats} of 200 pairs dropped ({share}): their source is held out for validation" in (
        prepared.lines()
    )


def test_held_out_pairs_are_drawn_by_the_seed_and_not_by_the_order(pairs: Pairs) -> None:
    text = [*pairs(500), Pair(" ", "x", "made", 501), Pair("y", "", "made", 502)]
    one = choose_held_out(text, 30, seed=1)
    assert one == choose_held_out(iter(text), 30, seed=1)
    assert {pair.source for pair in one} == {pair.source for pair in choose_held_out(text[::-1], 30, seed=1)}
    assert one == sorted(one, key=lambda pair: pair.line)
    assert {pair.source for pair in one} != {pair.source for pair in choose_held_out(text, 30, seed=2)}
    assert len({pair.source for pair in one}) == 30
    everything = choose_held_out(text, 10_000, seed=-3)
    assert {pair.source for pair in everything} == {pair.source for pair in text[:-2]}


def test_unequal_files_are_refused_before_anything_is_made(tmp_path: Path, write: Write) -> None:
    config = DataConfig(source=(write("s.en", ["a"] * 5),), target=(write("t.de", ["b"] * 4),))
    with pytest.raises(DataError, match=r"s\.en has 5 lines but \S*t\.de has 4"):
        prepare(config, tmp_path / "data", max_length=99, seed=1)
    assert content(tmp_path / "data") == {}
    good = write("g.tsv", ["a\tb"] * 5)
    config = DataConfig(tsv=(good,), valid_source=config.source, valid_target=config.target)
    with pytest.raises(DataError, match=r"s\.en has 5 lines but \S*t\.de has 4"):
        prepare(config, tmp_path / "data", max_length=99, seed=1)


def test_validation_files_and_a_given_tokenizer(
    tmp_path: Path, corpus: DataConfig, write: Write, tokenizer: Tokenizer
) -> None:
    tokenizer.save(tmp_path / "given.model")
    overlong = "x" * 200
    config = DataConfig(
        source=corpus.source,
        target=corpus.target,
        valid_tsv=(write("v.tsv", ["the dog\tder Hund\textra", "\tleer", f"{overlong}\tx"]),),
        tokenizer=str(tmp_path / "given.model"),
        max_length=60,
    )
    prepared = prepare(config, tmp_path / "data", max_length=1000, seed=1)
    assert prepared.tokenizer.sha256 == tokenizer.sha256
    assert len(prepared.train) == 300
    assert [pair.source for pair in prepared.valid_pairs] == ["the dog", overlong]
    assert len(prepared.valid) == 1
    assert prepared.valid_report.lines()[1:4] == [
        "1 of 3 pairs dropped (33.3 %): 1 pair with an empty side",
        "1 of 3 pairs dropped (33.3 %): longest source 202 tokens (limit 60)",
        "lines with more than two columns, the others not used: 1",
    ]
    assert open_prepared(tmp_path / "data").valid_pairs == prepared.valid_pairs
    tokenizer_of_other_text = Tokenizer.train(["something else"], 330, strict=False)
    tokenizer_of_other_text.save(tmp_path / "given.model")
    assert not prepare(config, tmp_path / "data", max_length=1000, seed=1).reused


def test_a_vocabulary_that_the_text_cannot_fill(tmp_path: Path, corpus: DataConfig) -> None:
    config = DataConfig(source=corpus.source, target=corpus.target, vocabulary=8000)
    with pytest.raises(DataError, match=r"data\.vocabulary is 8000, .*set data\.vocabulary=\d+, or 0"):
        prepare(config, tmp_path / "data", max_length=99, seed=1)


def test_missing_files(tmp_path: Path, corpus: DataConfig) -> None:
    with pytest.raises(ConfigError, match="no training files are named"):
        prepare(DataConfig(), tmp_path, max_length=99, seed=1)
    missing = DataConfig(source=corpus.source, target=(str(tmp_path / "no.de"),))
    with pytest.raises(DataError, match=r"no\.de: cannot be read: No such file or directory; check the path"):
        prepare(missing, tmp_path, max_length=99, seed=1)
    with pytest.raises(DataError, match="is a folder"):
        prepare(DataConfig(tsv=(str(tmp_path),)), tmp_path, max_length=99, seed=1)
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"file: cannot be written"):
        prepare(corpus, tmp_path / "file", max_length=99, seed=1)


def test_files_that_no_run_wrote_are_left_alone(tmp_path: Path, corpus: DataConfig) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "mine.txt").write_text("mine")
    with pytest.raises(DataError, match=r"holds mine\.txt, which no run wrote; choose another output folder"):
        prepare(corpus, tmp_path / "data", max_length=99, seed=1)
    assert content(tmp_path / "data") == {"mine.txt": b"mine"}


def test_a_tiny_corpus_of_one_sentence_says_what_is_wrong(tmp_path: Path, write: Write) -> None:
    with pytest.raises(DataError, match="none of 3 pairs is left to train on: all are held out"):
        prepare(DataConfig(tsv=(write("p.tsv", ["a\tb"] * 3),)), tmp_path / "d", max_length=99, seed=1)


def test_disk_use_is_bounded_and_nothing_temporary_stays(
    tmp_path: Path, corpus: DataConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data"
    for seed in range(3):
        prepare(corpus, folder, max_length=99, seed=seed)
    names = {path.name for path in folder.rglob("*")}
    assert names == {
        *("train", "valid", "tokenizer.model", "valid.jsonl", "prepared.json", "files.json", "meta.json"),
        *(f"{side}.{kind}" for side in ("source", "target") for kind in ("tokens", "offsets", "lengths")),
    }
    text = sum(os.path.getsize(path) for path in (*corpus.source, *corpus.target))
    assert sum(path.stat().st_size for path in (folder / "train").glob("*.*s")) < 3 * text

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module, "write_pairs", full)
    with pytest.raises(DataError, match="cannot be written: No space left on device"):
        prepare(corpus, folder, max_length=99, seed=9)
    assert not (folder / "prepared.json").exists()


def test_automatic_choices_grow_with_the_data() -> None:
    assert automatic_vocabulary(29_000) == 8_000
    assert automatic_vocabulary(4_500_000) == 37_000
    sizes = [automatic_vocabulary(10**power) for power in range(9)]
    assert sizes == sorted(sizes)
    assert [automatic_valid_pairs(pairs) for pairs in (1, 5, 200, 29_000, 10**7)] == [1, 1, 10, 1000, 1000]


def test_multi30k_survives_its_tokenizer(tmp_path: Path) -> None:
    files = {side: SHARED / "multi30k" / f"val.{side}.gz" for side in ("en", "de")}
    if not files["en"].exists():
        pytest.skip(f"needs {files['en']}")
    config = DataConfig(source=(str(files["en"]),), target=(str(files["de"]),), vocabulary=2000)
    prepared = prepare(config, tmp_path, max_length=256, seed=1)
    assert prepared.tokenizer.vocabulary == 2000
    assert prepared.report.pairs == 1014
    assert not prepared.report.warnings()
    for pair in prepared.valid_pairs:
        for text in (pair.source, pair.target):
            assert prepared.tokenizer.decode(prepared.tokenizer.encode(text)) == text
    assert json.loads((tmp_path / "prepared.json").read_text())["train"][0][0]["name"] == "val.en.gz"
