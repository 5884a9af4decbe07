from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jaxtyping
import pytest

from tiny_translator import sentences, tiny_bundle
from transduce.bundle import load_bundle, save_bundle
from transduce.cli import partial
from transduce.cli import translate as command
from transduce.cli.main import main
from transduce.decoding.translator import Translator

LINES = sentences(40)


@pytest.fixture(autouse=True)
def _files(in_a_folder: None) -> None:
    bundle = tiny_bundle()
    save_bundle("model", bundle.model, bundle.model.config, bundle.tokenizer, {})
    for name, lines in (("a", LINES[:30]), ("c", LINES[30:])):
        Path(name).write_text("".join(f"{line}\n" for line in lines))
        with gzip.open(f"{name}.out.gz", "wt") as file:
            file.writelines(f"{line[::-1]}\n" for line in lines)


def call(*flags: str) -> list[str]:
    return ["shortlist", "model", "--source", "a", "--target", "a.out.gz", *flags]


def test_what_was_learned_is_said_and_translate_goes_by_it(capsys: Any) -> None:
    assert main(call("--source", "c", "--target", "c.out.gz", "--candidates", "3", "--frequent", "0")) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("model/shortlist.safetensors: up to 3 candidates for each of ")
    assert captured.out.endswith(" source tokens, from 40 pairs\n")
    assert captured.err == "".join(f"round {number} of 5 over 40 pairs\n" for number in range(1, 6))
    flags = ["translate", "model", "--input", "c", "--beam", "1", "--max-extra", "3", "--engine", "torch"]
    assert main([*flags, "--output", "with", "--shortlist", "--precision", "fp32"]) == 0
    expected = Translator(load_bundle("model")).translate(LINES[30:], beam=1, max_extra=3, shortlist=True)
    assert Path("with").read_text() == "".join(f"{line}\n" for line in expected)


def test_mistakes_are_one_line(capsys: Any) -> None:
    def said(code: int, *arguments: str) -> str:
        capsys.readouterr()
        assert main(list(arguments)) == code
        lines = capsys.readouterr().err.strip().split("\n")
        return lines[-1].removeprefix("transduce: error: ")

    assert "a has 30 lines but c.out.gz has 10: they are not aligned" in said(
        1, "shortlist", "model", "--source", "a", "--target", "c.out.gz"
    )
    assert said(2, *call("--target", "c.out.gz")).startswith("1 source and 2 target files")
    assert said(2, *call("--candidates", "0")).startswith("candidates is 0; it must lie between 1 and 500")
    assert said(1, "shortlist", "absent", *call()[2:]).startswith("absent: no such model folder")
    assert said(1, "translate", "model", "--input", "a", "--shortlist").startswith(
        "model/shortlist.safetensors: there is no shortlist beside this model; make one with"
    )
    assert not Path("model/shortlist.safetensors").exists()


@pytest.fixture
def unchecked() -> Iterator[None]:
    """No shape is checked meanwhile."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.filterwarnings("ignore:.*looks tokenised")
def test_what_is_evaluated_with_it_is_what_is_translated_with_it(capsys: Any) -> None:
    assert main(call("--candidates", "3", "--frequent", "0")) == 0
    flags = ["--shortlist", "--beam", "2", "--engine", "torch", "--precision", "fp32"]
    assert main(["translate", "model", "--input", "c", "--output", "x", *flags]) == 0
    capsys.readouterr()
    assert main(["evaluate", "model", "--source", "c", "--reference", "c", "--output", "y", *flags]) == 0
    assert Path("x").read_bytes() == Path("y").read_bytes()
    assert "--beam 2 --alpha 0.6 --shortlist | cpu fp32 torch | " in capsys.readouterr().out
    assert main(["translate", "model", "--input", "c", "--output", "x", *flags[1:]]) == 0
    assert Path("x").read_bytes() != Path("y").read_bytes()


def test_another_shortlist_is_another_run(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(command, "CHUNK", 4)
    monkeypatch.setattr(partial, "NOTE_EVERY", 0.0)
    assert main(call("--candidates", "3", "--frequent", "5")) == 0
    Path("long").write_text("".join(f"{line}\n" for line in [*LINES[:8], "de " * 400]))
    flags = ["translate", "model", "--input", "long", "--output", "out", "--shortlist", "--beam", "1"]
    flags += ["--max-extra", "3", "--engine", "torch", "--long-lines", "error"]
    assert main(flags) == 1
    assert main(call("--candidates", "4", "--frequent", "5")) == 0
    capsys.readouterr()
    assert main([*flags, "--resume"]) == 2
    assert "out.partial: was written with shortlist '" in capsys.readouterr().err
