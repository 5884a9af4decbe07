"""Table 4: from trees to a parser and back, whatever the parser writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from transduce.cli.main import main
from transduce.data.lines import read_lines
from transduce.errors import DataError
from transduce.paper.table4 import ALPHA, BEAM, EXTRA, parse, read_treebank, words_of, write_parallel

TREES = [
    f"(S (NP (DT the) (NN {noun})) (VP (VBZ {verb})) (. .))"
    for noun in ("dog", "cat", "cow")
    for verb in ("runs", "sits")
]


@pytest.fixture
def treebank(tmp_path: Path) -> Path:
    path = tmp_path / "trees.mrg"
    path.write_text("".join(f"{line}\n" for line in TREES * 10))
    return path


def test_sentences_and_lines_stay_aligned(treebank: Path, tmp_path: Path) -> None:
    trees = read_treebank(treebank)
    write_parallel(trees, tmp_path / "w", tmp_path / "l")
    words, lines = (list(read_lines(tmp_path / name)) for name in "wl")
    assert words[0] == "the dog runs ."
    assert lines[0] == "(S (NP XX XX )NP (VP XX )VP XX )S"
    assert len(words) == len(lines) == len(trees)


def test_what_is_no_treebank(tmp_path: Path) -> None:
    (tmp_path / "bad").write_text(f"{TREES[0]}\n(S (NP\n")
    with pytest.raises(DataError, match=r"bad:2: a bracket is not closed"):
        read_treebank(tmp_path / "bad")
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(DataError, match="empty: holds no tree"):
        read_treebank(tmp_path / "empty")


class Parrot:
    """Says what it was told to, whatever it is asked."""

    def __init__(self, lines: list[str]) -> None:
        self.lines, self.options = lines, dict[str, Any]()

    def translate(self, texts: list[str], progress: Any = None, **options: Any) -> list[str]:
        self.options = options
        return self.lines[: len(texts)]


def test_outputs_are_repaired_and_counted() -> None:
    parrot: Any = Parrot(["(S (NP XX XX )NP (VP XX )VP XX )S", "(S (NP XX", ""])
    trees, mended = parse(parrot.translate, ["the dog runs .", "a b c", "x"])
    assert mended == 2
    assert [len(tree.leaves()) for tree in trees] == [4, 3, 1]
    assert {name: parrot.options[name] for name in ("beam", "alpha", "max_extra")} == {
        "beam": BEAM,
        "alpha": ALPHA,
        "max_extra": EXTRA,
    }
    assert (BEAM, ALPHA, EXTRA) == (21, 0.3, 300)  # section 6.3
    parse(parrot.translate, ["a"], beam=1)
    assert parrot.options["beam"] == 1


def test_the_command(treebank: Path, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transduce.machine.tune_allocator", lambda: "")
    monkeypatch.setattr("transduce.paper.table4.EXTRA", 5)  # it has not learned to end
    small = {
        "data.vocabulary": 305,
        "model.d_model": 16,
        "model.d_ff": 16,
        "model.encoder_layers": 1,
        "model.decoder_layers": 1,
        "training.max_steps": 3,
        "training.save_every": 3,
    }
    (tmp_path / "test.mrg").write_text(f"{TREES[0]}\n{TREES[1]}\n")
    call = [
        "paper",
        "table4",
        "--train",
        str(treebank),
        "--test",
        str(tmp_path / "test.mrg"),
        "--preset",
        "tiny",
    ]
    call += [
        "--valid",
        str(treebank),
        "--output",
        str(tmp_path / "parser"),
        "--json",
        str(tmp_path / "f.json"),
    ]
    call += [word for name, value in small.items() for word in ("--set", f"{name}={value}")]
    assert main(call) == 0
    out = capsys.readouterr().out
    assert "Transformer (4 layers), WSJ only, section 23" in out
    assert "2 sentences" in out
    first = json.loads((tmp_path / "f.json").read_bytes())
    assert 0 <= first["f1"] <= 100
    assert main(call) == 0  # the finished parser is used
    assert json.loads((tmp_path / "f.json").read_bytes()) == first


def test_words_are_the_leaves(treebank: Path) -> None:
    assert words_of(read_treebank(treebank)[5]) == "the cow sits ."
