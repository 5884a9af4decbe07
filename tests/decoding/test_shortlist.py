"""What a shortlist holds, how it is learned, and its file."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from tiny_translator import sentences, tiny_bundle, tokenizer
from transduce.bundle import load_bundle, save_bundle
from transduce.data.tokenizer import EOS_ID, Tokenizer
from transduce.decoding import shortlist as module
from transduce.decoding.shortlist import (
    FILE,
    Shortlist,
    learn_shortlist,
    make_shortlist,
    read_shortlist,
    write_shortlist,
)
from transduce.decoding.translator import Translator
from transduce.errors import BundleError, DataError, UsageError


def dictionary(seed: int = 0) -> dict[str, str]:
    """For each made-up word another one that is its translation."""
    words = sorted({word.rstrip(".") for line in sentences(200) for word in line.split()})
    others = words[:]
    random.Random(seed).shuffle(others)
    return dict(zip(words, others, strict=True))


def translated(line: str, words: dict[str, str]) -> str:
    """Word by word, backwards."""
    return " ".join(words[word] for word in reversed(line.rstrip(".").split())) + "."


def test_an_output_may_hold_candidates_copies_frequent_tokens_bytes_and_the_end() -> None:
    candidates = np.zeros((12, 2), np.int32)
    candidates[6], candidates[7] = [9, 10], [3, 9]
    bytes_ = np.zeros(12, np.bool_)
    bytes_[[4, 5]] = True
    it = Shortlist(candidates, np.array([11], np.int32), bytes_)
    assert np.flatnonzero(it.tokens([6, 7])).tolist() == [EOS_ID, 4, 5, 6, 7, 9, 10, 11]
    assert np.flatnonzero(it.tokens([8])).tolist() == [EOS_ID, 4, 5, 8, 11]
    assert np.flatnonzero(it.every).tolist() == [1, *range(4, 12)]


def test_what_is_learned_covers_the_translations_of_new_text() -> None:
    words, it = dictionary(), tokenizer()
    lines = sentences(600, seed=1, words=(2, 6))
    learned = learn_shortlist(
        ((line, translated(line, words)) for line in lines), it, candidates=8, frequent=2
    )
    assert (learned.pairs, learned.left_out) == (600, 0)
    covered, size = [], []
    for line in sentences(50, seed=9, words=(2, 6)):
        allowed = learned.shortlist.tokens(it.encode(line))
        covered += allowed[it.encode(translated(line, words))].tolist()
        size.append((allowed & ~it.byte_pieces).sum() / (it.vocabulary - 256))
    assert np.mean(covered) > 0.95
    assert np.mean(size) < 0.7
    assert len(learned.shortlist.frequent) == 2
    assert it.encode(".")[-1] in learned.shortlist.frequent


def test_the_same_text_and_seed_give_the_same_and_only_a_sample_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "SAMPLE", 30)
    monkeypatch.setattr(module, "_ENCODED_AT_ONCE", 7)
    pairs = [(line, line[::-1]) for line in sentences(100)]
    one, same, other = (learn_shortlist(iter(pairs), tokenizer(), seed=seed) for seed in (1, 1, 2))
    assert one.pairs == 30
    assert np.array_equal(one.shortlist.candidates, same.shortlist.candidates)
    assert not np.array_equal(one.shortlist.candidates, other.shortlist.candidates)


def test_empty_and_very_long_sides_are_left_out_and_counted() -> None:
    pairs = [("ab", "de"), ("", "de"), ("ab", "  "), ("ab " * 300, "de")]
    learned = learn_shortlist(pairs, tokenizer())
    assert (learned.pairs, learned.left_out) == (1, 3)
    assert "from 1 pair (3 left out: a side empty or above 200 tokens)" in str(learned)
    with pytest.raises(DataError, match="nothing to learn a shortlist from: of 3 pairs"):
        learn_shortlist(pairs[1:], tokenizer())
    for options in ({"candidates": 0}, {"candidates": 501}, {"frequent": -1}):
        with pytest.raises(UsageError, match=f"{next(iter(options))} is "):
            learn_shortlist(pairs, tokenizer(), **options)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shortlist")
    bundle = tiny_bundle()
    save_bundle(folder / "model", bundle.model, bundle.model.config, bundle.tokenizer, {})
    lines = sentences(60)
    (folder / "a").write_text("".join(f"{line}\n" for line in lines))
    (folder / "b").write_text("".join(f"{line[::-1]}\n" for line in lines))
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A model with a shortlist, which may be spoilt."""
    copied = Path(shutil.copytree(made / "model", tmp_path / "model"))
    make_shortlist(copied, [made / "a"], [made / "b"], candidates=5)
    return copied


def test_the_file_gives_back_what_was_learned_and_the_model_loads_with_and_without_it(
    made: Path, folder: Path
) -> None:
    told: list[str] = []
    learned = make_shortlist(folder, [made / "a"], [made / "b"], candidates=5, told=told.append)
    found = read_shortlist(folder, tokenizer())
    assert np.array_equal(found.candidates, learned.shortlist.candidates)
    assert np.array_equal(found.frequent, learned.shortlist.frequent)
    assert found.candidates.shape[1] <= 5
    assert told == [f"round {number} of 5 over 60 pairs" for number in range(1, 6)]
    lines = sentences(3)
    before = Translator(load_bundle(made / "model")).translate(lines)
    translator = Translator(load_bundle(folder))
    assert translator.translate(lines) == before
    assert [bool(text) for text in translator.translate(lines, shortlist=True)] == [True] * 3
    assert {path.name for path in folder.iterdir()} - {path.name for path in (made / "model").iterdir()} == {
        FILE
    }


def rewritten(folder: Path, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> None:
    """Writes the file anew after a change of its tensors and of what it says of itself."""
    path = folder / FILE
    with safetensors.safe_open(path, "numpy") as file:
        about = json.loads(file.metadata()["shortlist"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    change(tensors, about)
    path.write_bytes(safetensors.numpy.save(tensors, {"shortlist": json.dumps(about)}))


def test_every_byte_that_is_lost_or_changed_is_noticed(folder: Path) -> None:
    path = folder / FILE
    whole = path.read_bytes()
    for content in (b"", whole[:7], whole[:-1], whole[:200], whole + b"x", b"\xff" * 40):
        path.write_bytes(content)
        with pytest.raises(BundleError, match=r"shortlist\.safetensors: is damaged .*make it again"):
            read_shortlist(folder, tokenizer())
    for place in range(len(whole) - 200, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(BundleError, match="other checksum"):
            read_shortlist(folder, tokenizer())


def test_what_does_not_belong_is_refused_with_the_remedy(folder: Path, made: Path) -> None:
    other = Tokenizer.train(sentences(300), 310)
    with pytest.raises(BundleError, match="belongs to another tokenizer than this model's; make it again"):
        read_shortlist(folder, other)
    rewritten(folder, lambda _, about: about.update(format=2))
    with pytest.raises(BundleError, match="format is 2, this version reads 1; upgrade"):
        read_shortlist(folder, tokenizer())
    with pytest.raises(BundleError, match="no shortlist beside this model; make one with `transduce shortl"):
        Translator(load_bundle(made / "model")).translate(["a"], shortlist=True)
    with pytest.raises(UsageError, match="lies in no folder"):
        Translator(tiny_bundle()).translate(["a"], shortlist=True)
    it = learn_shortlist([("ab", "de")], tokenizer()).shortlist
    for wrong in (it.candidates[:-1], it.candidates + 320, it.candidates - 1, it.candidates[0]):
        write_shortlist(folder / FILE, Shortlist(wrong, it.frequent, it.byte_pieces), tokenizer())
        with pytest.raises(BundleError, match="does not hold ids of this model's vocabulary"):
            read_shortlist(folder, tokenizer())


def test_files_that_are_not_aligned_are_refused_and_the_old_shortlist_stays(made: Path, folder: Path) -> None:
    before = (folder / FILE).read_bytes()
    short = folder.parent / "short"
    short.write_text("de\n")
    with pytest.raises(DataError, match=r"a has 60 lines but .*short has 1: they are not aligned"):
        make_shortlist(folder, [made / "a"], [short])
    with pytest.raises(UsageError, match="1 source and 2 target files"):
        make_shortlist(folder, [made / "a"], [made / "b", short])
    with pytest.raises(UsageError, match="0 source and 0 target files"):
        make_shortlist(folder, [], [])
    with pytest.raises(BundleError, match="no such model folder"):
        make_shortlist(folder / "absent", [made / "a"], [made / "b"])
    assert (folder / FILE).read_bytes() == before
