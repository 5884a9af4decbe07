from __future__ import annotations

import errno
import json
import pickle
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from transduce.data import shard_writer as module
from transduce.data.batching import collate
from transduce.data.formats.pair import Pair
from transduce.data.report import Report
from transduce.data.shard_writer import write_shards
from transduce.data.shards import TokenShards
from transduce.data.tokenizer import EOS_ID, Tokenizer
from transduce.errors import DataError

Pairs = Callable[..., Iterator[Pair]]


def made(texts: list[tuple[str, str]]) -> list[Pair]:
    return [Pair(source, target, "made", line) for line, (source, target) in enumerate(texts, 1)]


@pytest.mark.parametrize("chunk", [1, 7, 8192])
def test_shards_hold_what_the_tokenizer_gives_with_eos_on_both_sides(
    tmp_path: Path, tokenizer: Tokenizer, pairs: Pairs, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_CHUNK", chunk)
    text = list(pairs(50))
    shards = write_shards(text, tokenizer, tmp_path / "train", Report(limit=100))
    assert len(shards) == 50
    for i, pair in enumerate(text):
        assert shards.source(i).tolist() == [*tokenizer.encode(pair.source), EOS_ID]
        assert shards.target(i).tolist() == [*tokenizer.encode(pair.target), EOS_ID]
    assert shards.source_lengths.tolist() == [len(shards.source(i)) for i in range(50)]
    assert shards.target_lengths.tolist() == [len(shards.target(i)) for i in range(50)]
    assert shards.source(0).dtype == np.uint16
    for outside in (-1, 50):
        with pytest.raises(IndexError):
            shards.source(outside)


def test_a_pair_with_an_empty_side_is_dropped_as_a_pair(tmp_path: Path, tokenizer: Tokenizer) -> None:
    text = made(
        [
            ("the dog", "der Hund"),
            ("a cat", "ein Katze"),
            (" \u00a0\t", "Haus"),
            ("red", "rot"),
            ("tree", "Baum"),
        ]
    )
    report = Report(limit=100)
    shards = write_shards(text, tokenizer, tmp_path, report)
    kept = [tokenizer.decode(shards.source(i)) for i in range(4)]
    assert kept == ["the dog", "a cat", "red", "tree"]
    assert [tokenizer.decode(shards.target(i)) for i in range(4)] == ["der Hund", "ein Katze", "rot", "Baum"]
    assert "1 of 5 pairs dropped (20.0 %): 1 pair with an empty side" in report.lines()
    assert (report.pairs, report.kept, report.empty, report.too_long) == (5, 4, 1, 0)


def test_an_overlong_pair_is_dropped_and_said(tmp_path: Path, tokenizer: Tokenizer, pairs: Pairs) -> None:
    overlong = "x" * 298  # with the mark of the space before it, and the EOS, 300 tokens
    text = [*pairs(199), Pair(overlong, "x", "made", 200)]
    report = Report(limit=100)
    shards = write_shards(text, tokenizer, tmp_path, report)
    assert len(tokenizer.encode(overlong)) == 299
    assert report.lines()[-1] == "1 of 200 pairs dropped (0.5 %): longest source 300 tokens (limit 100)"
    assert len(shards) == 199
    assert report.longest_source == 300


def test_the_limit_counts_the_eos(tmp_path: Path, tokenizer: Tokenizer, pairs: Pairs) -> None:
    text = list(pairs(100))
    longest = 1 + max(len(tokenizer.encode(side)) for pair in text for side in pair[:2])
    assert len(write_shards(text, tokenizer, tmp_path, Report(limit=longest))) == 100
    assert len(write_shards(text, tokenizer, tmp_path, Report(limit=longest - 1))) < 100


def test_text_that_the_tokenizer_has_not_seen_is_warned_of(tmp_path: Path, tokenizer: Tokenizer) -> None:
    report = Report(limit=100)
    write_shards(made([("the dog", "собака")] * 3), tokenizer, tmp_path, report)
    (warning,) = report.warnings()
    assert "of the target tokens are single bytes" in warning
    assert report.source_bytes == 0
    assert warning == report.lines()[-1]


def test_the_report_survives_json(tmp_path: Path, tokenizer: Tokenizer, pairs: Pairs) -> None:
    report = Report(limit=9)
    shards = write_shards(pairs(80), tokenizer, tmp_path, report, corpus=[{"name": "made"}])
    assert Report(**json.loads(json.dumps(report.to_dict()))) == report
    meta = json.loads((tmp_path / "meta.json").read_text())
    assert meta == shards.meta
    assert meta["tokenizer"] == tokenizer.sha256
    assert meta["corpus"] == [{"name": "made"}]
    assert (meta["format"], meta["max_length"], meta["pairs"]) == (2, 9, report.kept)
    assert report.source_tokens == shards.source_lengths.sum()
    assert report.pairs == report.kept + report.too_long == 80


def test_nothing_left_is_an_error_that_says_why(tmp_path: Path, tokenizer: Tokenizer) -> None:
    with pytest.raises(
        DataError, match=r"none of 2 pairs for train can be used: .*2 pairs with an empty side"
    ):
        write_shards(made([("", "a"), ("b", "")]), tokenizer, tmp_path / "train", Report(limit=9))
    with pytest.raises(DataError, match="none of 0 pairs for train can be used: the files are empty"):
        write_shards([], tokenizer, tmp_path / "train", Report(limit=9))
    with pytest.raises(DataError, match="no complete token shards"):
        TokenShards.open(tmp_path / "train")


def test_an_interrupted_folder_is_never_taken_for_complete(
    tmp_path: Path, tokenizer: Tokenizer, pairs: Pairs
) -> None:
    write_shards(pairs(30), tokenizer, tmp_path, Report(limit=99))

    def interrupted() -> Iterator[Pair]:
        yield from pairs(10, seed=2)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_shards(interrupted(), tokenizer, tmp_path, Report(limit=99))
    with pytest.raises(DataError, match="no complete token shards; prepare the data again"):
        TokenShards.open(tmp_path)


@pytest.mark.parametrize("name", ["source.tokens", "target.offsets"])
def test_damaged_files_are_noticed(tmp_path: Path, tokenizer: Tokenizer, pairs: Pairs, name: str) -> None:
    write_shards(pairs(30), tokenizer, tmp_path, Report(limit=99))
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[:-2])
    with pytest.raises(DataError, match=f"{name}: is not {len(content)} bytes long"):
        TokenShards.open(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(DataError, match="no complete token shards"):
        TokenShards.open(tmp_path)
    (tmp_path / name).write_bytes(content)
    (tmp_path / "meta.json").write_text('{"format": 99}')
    with pytest.raises(DataError, match="format 99, expected 2"):
        TokenShards.open(tmp_path)


def test_a_full_disk_is_one_clear_line(
    tmp_path: Path, tokenizer: Tokenizer, pairs: Pairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: object, *_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module._Writer, "add", full)
    with pytest.raises(DataError, match="token shards cannot be written: No space left on device"):
        write_shards(pairs(30), tokenizer, tmp_path, Report(limit=99))


def test_large_vocabularies_get_wider_ids(
    tmp_path: Path, tokenizer: Tokenizer, pairs: Pairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = Tokenizer(tokenizer.model_bytes)
    large.vocabulary = 70_000
    large.byte_pieces = np.zeros(70_000, dtype=np.bool_)
    monkeypatch.setattr(large, "encode_batch", lambda texts, **_: [[69_999, 5] for _ in texts])
    shards = write_shards(pairs(3), large, tmp_path, Report(limit=9))
    assert shards.target(2).tolist() == [69_999, 5, EOS_ID]


def test_workers_get_the_name_of_the_folder_not_its_content(
    tmp_path: Path, tokenizer: Tokenizer, pairs: Pairs
) -> None:
    shards = write_shards(pairs(5000), tokenizer, tmp_path, Report(limit=99))
    sent = pickle.dumps(shards)
    assert len(sent) < 1000
    assert pickle.loads(sent).source(4999).tolist() == shards.source(4999).tolist()
    assert isinstance(shards.source(0).base, np.memmap)


def test_memory_does_not_grow_with_the_corpus(
    tmp_path: Path, tokenizer: Tokenizer, pairs: Pairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_CHUNK", 200)
    text = list(pairs(200))

    def peak(count: int) -> int:
        stream = (text[i % 200] for i in range(count))
        tracemalloc.start()
        try:
            shards = write_shards(stream, tokenizer, tmp_path / str(count), Report(limit=99))
            assert len(shards) == count
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    small, large = peak(400), peak(8000)
    assert large < small + 8000 * 2 * 12  # offsets and lengths, and none of the text


def test_collate_fills_up_on_the_right_and_shifts_the_target(
    tmp_path: Path, tokenizer: Tokenizer, pairs: Pairs
) -> None:
    shards = write_shards(pairs(40), tokenizer, tmp_path, Report(limit=99))
    ids = np.array([7, 3, 39, 3], dtype=np.int64)
    source, target_in, target_out = collate(shards, ids, start_id=2, pad_id=0)
    assert source.dtype == target_in.dtype == target_out.dtype == np.int64
    assert target_in.shape == target_out.shape
    for row, i in enumerate(ids):
        real = shards.source(i).tolist()
        assert source[row].tolist() == real + [0] * (source.shape[1] - len(real))
        out = shards.target(i).tolist()
        padding = [0] * (target_out.shape[1] - len(out))
        assert target_out[row].tolist() == out + padding
        assert target_in[row].tolist() == [2, *out[:-1], *padding]
        assert out[-1] == real[-1] == EOS_ID
    assert source.shape[1] == shards.source_lengths[ids].max()
    assert target_out.shape[1] == shards.target_lengths[ids].max()
    assert list(islice(target_in[:, 0], 4)) == [2, 2, 2, 2]
