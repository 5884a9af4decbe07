from __future__ import annotations

import contextlib
import gzip
import os
from pathlib import Path
from typing import Any

import pytest

from tiny_translator import save_tiny, sentences
from transduce.bundle import load_bundle
from transduce.cli.main import main
from transduce.data.crew import Crew
from transduce.decoding import bulk as module
from transduce.decoding.bulk import translate_folder
from transduce.decoding.translator import Translator
from transduce.errors import BundleError, DataError, TransduceError, UsageError

OPTIONS: dict[str, Any] = {"beam": 2, "max_extra": 3}
HOW = {"device": "cpu", "precision": "fp32", "engine": "torch", "threads": 1}


class Killed(BaseException):
    """What nothing catches."""


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PIECE", 3)
    monkeypatch.setattr("transduce.machine.set_threads", lambda threads: 1)  # it acts on the whole process


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_tiny(tmp_path_factory.mktemp("bulk") / "model", max_length=40)


@pytest.fixture
def texts(tmp_path: Path) -> dict[str, list[str]]:
    """Files in a folder, by their names in the output."""
    lines = {
        "a.txt": sentences(7, seed=1, words=(1, 4)),
        "b/c.txt": ["", *sentences(3, seed=2, words=(1, 4)), ""],
        "b/d.txt": sentences(6, seed=3, words=(1, 4)),
        "empty.txt": [],
    }
    folder = tmp_path / "in"
    (folder / "b").mkdir(parents=True)
    for name, text in lines.items():
        content = "\n".join(text).encode() + (b"\n" if name != "a.txt" and text else b"")
        if name == "b/d.txt":
            (folder / f"{name}.gz").write_bytes(gzip.compress(content))
        else:
            (folder / name).write_bytes(content)
    (folder / ".hidden").write_text("not read")
    return lines


def done(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text("utf-8")
        for path in folder.rglob("*")
        if path.is_file() and path.name != module.RECORD
    }


def expected(model: str, texts: dict[str, list[str]]) -> dict[str, str]:
    translator = Translator(load_bundle(model))
    return {
        name: "".join(f"{line}\n" for line in translator.translate(lines, **OPTIONS))
        for name, lines in texts.items()
    }


@pytest.mark.parametrize("workers", [1, 2])
def test_each_file_line_by_line_whoever_does_it(
    tmp_path: Path, model: str, texts: dict[str, list[str]], workers: int
) -> None:
    told: list[int] = []
    written = translate_folder(
        model,
        tmp_path / "in",
        tmp_path / "out",
        crew=Crew(workers=workers),
        told=told.append,
        how=HOW,
        **OPTIONS,
    )
    assert done(tmp_path / "out") == expected(model, texts)
    assert [str(path.relative_to(tmp_path / "out")) for path in written] == sorted(texts)
    assert sum(told) == 18
    assert max(told) == 3


def test_what_was_stopped_goes_on_and_no_half_file_is_ever_there(
    tmp_path: Path, model: str, texts: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = expected(model, texts)
    call: tuple[Any, ...] = (model, tmp_path / "in", tmp_path / "out")
    for last in range(1, 18):
        left = last

        def stop(lines: int) -> None:
            nonlocal left
            left -= lines
            if left <= 0:
                raise Killed

        with contextlib.suppress(Killed):
            translate_folder(*call, told=stop, how=HOW, **OPTIONS)
        found = done(tmp_path / "out")
        assert found.items() <= whole.items()
    said: list[str] = []
    translate_folder(*call, say=said.append, how=HOW, **OPTIONS)
    assert done(tmp_path / "out") == whole
    assert said == ["4 of 4 files are there already"]
    monkeypatch.setattr(Translator, "load", None)
    translate_folder(*call, how=HOW, **OPTIONS)  # nothing to do, and no model is loaded


def test_other_options_are_refused_and_a_changed_source_is_done_again(
    tmp_path: Path, model: str, texts: dict[str, list[str]]
) -> None:
    call: tuple[Any, ...] = (model, tmp_path / "in", tmp_path / "out")
    translate_folder(*call, how=HOW, **OPTIONS)
    with pytest.raises(UsageError, match=r"out: holds translations with other settings \(beam\)"):
        translate_folder(*call, how=HOW, beam=1, max_extra=3)
    translate_folder(*call, how={**HOW, "threads": 2}, **OPTIONS)  # which changes no output
    source = tmp_path / "in" / "a.txt"
    source.write_text("\n".join(sentences(2, seed=9)) + "\n")
    os.utime(source, ns=(1, 1))
    texts["a.txt"] = sentences(2, seed=9)
    said: list[str] = []
    translate_folder(*call, say=said.append, how=HOW, **OPTIONS)
    assert said[0] == "3 of 4 files are there already"
    assert done(tmp_path / "out") == expected(model, texts)


def test_back_translated_pairs_hold_the_original_beside_its_translation(
    tmp_path: Path, model: str, texts: dict[str, list[str]]
) -> None:
    translate_folder(model, tmp_path / "in", tmp_path / "out", pairs=True, tag="<bt> ", how=HOW, **OPTIONS)
    for name, content in expected(model, texts).items():
        lines = (tmp_path / "out" / name).read_text("utf-8").splitlines()
        pairs = [line.split("\t") for line in lines]
        assert [original for _, original in pairs] == texts[name]
        assert [made for made, _ in pairs] == [f"<bt> {line}" for line in content.splitlines()]


def test_long_lines_are_told_with_their_file(tmp_path: Path, model: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("a.\nb.\nc.\n" + "x " * 60 + "\n")
    said: list[str] = []
    translate_folder(model, tmp_path / "in", tmp_path / "out", say=said.append, how=HOW, **OPTIONS)
    assert len(said) == 1
    assert "in/a.txt: line 4 has " in said[0]


def test_what_cannot_be_done(tmp_path: Path, model: str, texts: dict[str, list[str]]) -> None:
    out = tmp_path / "out"
    with pytest.raises(DataError, match=r"nowhere: is no folder"):
        translate_folder(model, tmp_path / "nowhere", out)
    (tmp_path / "nothing").mkdir()
    with pytest.raises(DataError, match=r"nothing: holds no files"):
        translate_folder(model, tmp_path / "nothing", out)
    with pytest.raises(UsageError, match="whose files are read; choose another --output"):
        translate_folder(model, tmp_path / "in", tmp_path / "in" / "out")
    with pytest.raises(BundleError, match="no such model folder"):
        translate_folder(tmp_path / "no", tmp_path / "in", out)
    with pytest.raises(UsageError, match="beam is 0"):
        translate_folder(model, tmp_path / "in", out, beam=0)
    with pytest.raises(UsageError, match="ask for pairs as well"):
        translate_folder(model, tmp_path / "in", out, tag="<bt>")
    assert not out.exists()
    (tmp_path / "in" / "a.txt.gz").write_bytes(gzip.compress(b"x\n"))
    with pytest.raises(UsageError, match=r"a\.txt\.gz: two files would be translated to .*a\.txt; rename"):
        translate_folder(model, tmp_path / "in", out)


def test_another_number_of_lines_is_never_written(
    tmp_path: Path, model: str, texts: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Translator.translate_detailed
    monkeypatch.setattr(Translator, "translate_detailed", lambda *a, **k: real(*a, **k)[1:])
    with pytest.raises(TransduceError, match=r"a\.txt: 3 lines from line 1 on gave 2 translations"):
        translate_folder(model, tmp_path / "in", tmp_path / "out", how=HOW, **OPTIONS)
    assert done(tmp_path / "out") == {}


def test_the_command(
    tmp_path: Path, model: str, texts: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    call = ["bulk", model, "--input", "in", "--output", "out", "--beam", "2", "--set", "max_extra=3"]
    call += ["--device", "cpu", "--precision", "fp32", "--engine", "torch"]
    assert main(call) == 0
    assert done(tmp_path / "out") == expected(model, texts)
    assert capsys.readouterr().err.endswith("out: 4 files\n")
    assert main([*call, "--set", "alpha=1"]) == 2
    assert "other settings (alpha)" in capsys.readouterr().err
