"""The embedded corpus as a whole: unambiguous, repeatable, well-formed, and split without overlap."""

import os
import re
import subprocess
import sys
import unicodedata
from collections import Counter
from itertools import islice

import pytest

from transduce.data.corpus.adjectives import adjectives
from transduce.data.corpus.generator import SPLITS, generate, split_of, write_corpus
from transduce.data.corpus.nouns import lexicon, pool
from transduce.data.corpus.times import time_choices
from transduce.data.corpus.verbs import verbs, verbs_of
from transduce.errors import UsageError

PAIRS = 100_000


def run(code, *arguments, hash_seed="0"):
    """What ``code`` prints in a process of its own, where no type checker slows each call down."""
    environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, check=True).stdout.decode()


STREAM = """
import sys
from transduce.data.corpus.generator import generate
print("\\n".join("\\t".join(pair) for pair in generate(int(sys.argv[1]), int(sys.argv[2]))))
"""


@pytest.fixture(scope="module")
def pairs():
    return stream(PAIRS, 1)


def stream(count, seed, hash_seed="0"):
    lines = run(STREAM, count, seed, hash_seed=hash_seed).replace(os.linesep, "\n").split("\n")[:-1]
    assert len(lines) == count
    return [tuple(line.split("\t")) for line in lines]


def test_one_english_sentence_never_has_two_german_ones(pairs):
    german: dict[str, str] = {}
    for english, translation in pairs:
        assert german.setdefault(english, translation) == translation
    assert len(german) > 0.95 * PAIRS


def test_sentences_are_well_formed(pairs):
    bad = re.compile(r"^[^A-ZÄÖÜ]|[^.?!]$|  | [,.?!]|,[^ ]|,,|,[.?!]|[^A-Za-zÄÖÜäöüß',.?! -]|[.?!].")
    for pair in islice(pairs, 0, None, 3):
        for sentence in pair:
            assert not bad.search(sentence), sentence
            assert unicodedata.is_normalized("NFC", sentence)
    lengths = Counter(len(english.split()) for english, _ in pairs)
    assert min(lengths) >= 2
    assert max(lengths) <= 40
    assert sum(count for length, count in lengths.items() if 3 <= length <= 25) > 0.98 * PAIRS
    assert 7 < sum(length * count for length, count in lengths.items()) / PAIRS < 11


def test_both_sides_end_alike(pairs):
    assert all(english[-1] == german[-1] for english, german in pairs)


SHARES = {
    "question": (r"\?$", 0.12, 0.25),
    "command": (r"!$", 0.02, 0.06),
    "dass": (r", dass ", 0.04, 0.12),
    "ob": (r", ob ", 0.01, 0.06),
    "weil": (r"\b[Ww]eil ", 0.01, 0.06),
    "obwohl": (r"\b[Oo]bwohl ", 0.01, 0.04),
    "wenn": (r"\b[Ww]enn ", 0.01, 0.04),
    "als": (r"^Als ", 0.004, 0.02),
    "nachdem": (r"\b[Nn]achdem .* (hatten?|hattest|waren?|warst)\b", 0.004, 0.02),
    "relative": (r", (\w+ )?(der|die|das|den|dem|denen|dessen|deren) ", 0.05, 0.15),
    "um ... zu": (r", um .*(zu \w+en|\w+zu\w+n)\.$", 0.01, 0.04),
    "nicht": (r"\bnicht\b", 0.03, 0.12),
    "kein": (r"\bkeine?[nmrs]?\b", 0.004, 0.04),
    "perfect": (r"\b(hat|habe|hast|haben|ist|bin|bist|sind)\b.* \w+(t|en)[.?,]", 0.2, 0.5),
    "contraction": (r"\b(im|am|zum|zur|vom|ins|ans|Im|Am)\b", 0.1, 0.35),
    "time of day": (r"\b(halb|Viertel|Uhr)\b", 0.02, 0.15),
    "date": (r"\b(am|Am|der) \w+st?t?en? (Januar|Februar|März|April|Mai|Juni|Juli|August|\w+ber)", 0.01, 0.1),
    "comparison": (r"er als | so \w+ wie ", 0.01, 0.05),
    "separable": (r" (auf|ein|an|ab|aus|mit|weg|zurück|kennen|hin|zu|vor)[.?!]$", 0.02, 0.15),
    "genitive": (r"(des|der|meines|meiner|unseres|ihrer|seines) \w+(s|er|e|n)\b", 0.01, 0.5),
}


@pytest.mark.parametrize("name", SHARES)
def test_each_construction_has_its_share(pairs, name):
    pattern, least, most = SHARES[name]
    found = re.compile(pattern)
    sample = pairs[:20_000]
    share = sum(bool(found.search(german)) for _, german in sample) / len(sample)
    assert least < share < most


def test_every_word_is_common_enough_to_be_learned(pairs):
    english = Counter(
        word for pair in pairs for word in pair[0].lower().rstrip(".?!").replace(",", "").split()
    )
    for members in lexicon().values():
        for noun in members:
            words = noun.english.lower().split()
            assert all(english[word] > 50 for word in words), noun.english
    for verb in (*verbs(), *verbs_of("that"), *verbs_of("whether"), *verbs_of("infinitive")):
        forms = {form.plain.split()[-1] for tense in verb.forms[:4] for form in tense}
        assert sum(english[form] for form in forms) > 150, verb.english
    for name in adjectives("expensive tired dark elegant wild round hot"):
        assert english[name.english[0]] > 50, name.english[0]


def test_the_space_of_sentences_is_huge():
    """Statements of one kind alone: the friendly boy visits the old castle on the third of May."""
    subjects = sum(len(person.adjectives) for person in pool("person"))
    objects = sum(
        len(noun.adjectives) for verb in verbs_of("accusative") for noun in pool(verb.things) if verb.things
    )
    times = sum(len(group) for group in time_choices()["past hour"])
    assert subjects * objects * times > 10**9


def test_a_seed_always_gives_the_same_pairs_and_a_longer_run_begins_with_a_shorter_one(pairs):
    assert list(generate(350, seed=1)) == pairs[:350]
    assert stream(1200, 1, hash_seed="12345") == pairs[:1200]
    assert len(set(stream(1200, 2)) & set(pairs[:1200])) < 100


def read(folder, split):
    sides = [(folder / f"{split}.{side}").read_bytes().decode().split("\n") for side in ("en", "de")]
    assert sides[0].pop() == sides[1].pop() == ""
    assert len(sides[0]) == len(sides[1])
    return list(zip(*sides, strict=True))


WRITE = """
import sys
from transduce.data.corpus.generator import write_corpus
write_corpus(sys.argv[1], *map(int, sys.argv[2:]), test=int(sys.argv[4]))
"""


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
        run(WRITE, folder, pairs, seed, held_out)
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


def test_short_sentences_too_are_split_by_what_they_say(pairs):
    """Were the split drawn by position, the many repeated short sentences would be in every split."""
    shares = Counter(split_of(german) for german in {german for _, german in pairs[:20_000]})
    assert 0.04 < shares["valid"] / shares.total() < 0.06
    assert 0.04 < shares["test"] / shares.total() < 0.06


def test_more_training_pairs_leave_the_rest_as_it_was(tmp_path):
    run(WRITE, tmp_path / "small", 500, 4, 40)
    run(WRITE, tmp_path / "large", 3000, 4, 40)
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
