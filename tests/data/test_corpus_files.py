"""The files of the embedded corpus: split without overlap, repeatable, whole or not there."""

import subprocess
import sys

import pytest

from transduce.data.corpus.generator import SPLITS, generate, split_of, write_corpus
from transduce.errors import UsageError

# In a process of its own, where no type checker slows each call down.
WRITE = """
import sys
from transduce.data.corpus.generator import write_corpus
write_corpus(sys.argv[1], *map(int, sys.argv[2:]), test=int(sys.argv[4]))
"""


def write(folder, pairs, seed, held_out):
    subprocess.run([sys.executable, "-c", WRITE, *map(str, (folder, pairs, seed, held_out))], check=True)


def read(folder, split):
    sides = [(folder / f"{split}.{side}").read_bytes().decode().split("\n") for side in ("en", "de")]
    assert sides[0].pop() == sides[1].pop() == ""
    assert len(sides[0]) == len(sides[1])
    return list(zip(*sides, strict=True))


def test_splits_never_share_a_sentence_whatever_the_seeds_and_sizes(tmp_path):
    seen: dict[str, dict[str, set[str]]] = {side: {split: set() for split in SPLITS} for side in ("en", "de")}
    for seed, pairs, held_out in (
        (1, 1, 3),
        (3, 20_000, 1000),
        (2, 200, 0),
        (-7, 5000, 50),
        (10**30, 9000, 500),
    ):
        folder = tmp_path / str(seed)
        write(folder, pairs, seed, held_out)
        for split, wanted in zip(SPLITS, (pairs, held_out, held_out), strict=True):
            found = read(folder, split)
            assert len(found) == wanted
            assert {split_of(german) for _, german in found} <= {split}
            if split != "train":
                assert len({german for _, german in found}) == wanted
            seen["en"][split].update(english for english, _ in found)
            seen["de"][split].update(german for _, german in found)
    for side in seen.values():
        assert side["train"]
        assert not side["train"] & side["valid"]
        assert not side["train"] & side["test"]
        assert not side["valid"] & side["test"]


def test_the_held_out_share_is_that_of_the_hash():
    splits = [split_of(german) for german in {german for _, german in generate(2000, 1)}]
    assert 0.88 < splits.count("train") / len(splits) < 0.92
    assert 0.03 < splits.count("valid") / len(splits) < 0.07


def test_more_training_pairs_leave_the_rest_as_it_was(tmp_path):
    write(tmp_path / "small", 500, 4, 40)
    write(tmp_path / "large", 3000, 4, 40)
    assert read(tmp_path / "large", "train")[:500] == read(tmp_path / "small", "train")
    for split in ("valid", "test"):
        assert read(tmp_path / "large", split) == read(tmp_path / "small", split)


def test_nothing_is_left_behind_when_writing_is_interrupted(tmp_path):
    def stop(done):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_corpus(tmp_path, 5000, seed=1, valid=1, test=1, progress=stop)
    assert list(tmp_path.iterdir()) == []


def test_progress_counts_up_to_everything(tmp_path):
    told: list[int] = []
    written = write_corpus(tmp_path, 1500, seed=1, valid=10, test=20, progress=told.append)
    assert sorted(written) == sorted(tmp_path.iterdir())
    assert told == sorted(told)
    assert len(told) > 1
    assert told[-1] == 1530


@pytest.mark.parametrize(
    ("sizes", "message"), [((0, 1, 1), "0 train"), ((1, -1, 1), "-1 valid"), ((1, 1, -5), "-5 test")]
)
def test_sizes_that_make_no_sense_are_refused(tmp_path, sizes, message):
    with pytest.raises(UsageError, match=f"^{message} pairs: ask for"):
        write_corpus(tmp_path / "new", sizes[0], 1, *sizes[1:])
    assert not (tmp_path / "new").exists()


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(UsageError, match="taken: is a file"):
        write_corpus(tmp_path / "taken", 1, 1)
