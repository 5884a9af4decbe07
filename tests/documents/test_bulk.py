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
from transduce.decoding.translator import Translator
from transduce.documents import bulk as module
from transduce.documents.bulk import translate_folder
from transduce.documents.bulk_record import RECORD
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
        if path.is_file() and path.name != RECORD
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
    assert main([*call, "--gpus", "1"]) == 2
    assert "--gpus 1 is for the workers of a Ray cluster: add --ray" in capsys.readouterr().err
    assert main([*call, "--set", "prefix_factor=2"]) == 2
    assert "prefix_factor is 2, but no output is told how to begin" in capsys.readouterr().err
    assert main([*call, "--set", "alpha=1"]) == 2
    assert "other settings (alpha)" in capsys.readouterr().err


PAGE = "<p>{}</p>\n"
CATALOG = 'msgid "{}"\nmsgstr "{}"\n'


@pytest.mark.parametrize("workers", [1, 2])
def test_documents_are_translated_as_documents_and_lines_as_lines(
    tmp_path: Path, model: str, texts: dict[str, list[str]], workers: int
) -> None:
    pytest.importorskip("sentencex", reason="the extra `documents` is not installed")
    (text,) = (line.removesuffix(".") for line in sentences(1, seed=1, words=(3, 4)))
    (tmp_path / "in" / "x.html").write_text(PAGE.format(text))
    (tmp_path / "in" / "b" / "y.po").write_text(CATALOG.format(text, ""))
    (output,) = Translator(load_bundle(model)).translate([text], **OPTIONS)
    told: list[int] = []
    call: tuple[Any, ...] = (model, tmp_path / "in", tmp_path / "out")
    translate_folder(*call, crew=Crew(workers=workers), told=told.append, how=HOW, **OPTIONS)
    assert done(tmp_path / "out") == expected(model, texts) | {
        "x.html": PAGE.format(output),
        "b/y.po": "#, fuzzy\n" + CATALOG.format(text, output),
    }
    assert sum(told) == 20
    translate_folder(model, tmp_path / "in", tmp_path / "lines", format="text", how=HOW, **OPTIONS)
    lines = Translator(load_bundle(model)).translate([PAGE.format(text).strip()], **OPTIONS)
    assert (tmp_path / "lines" / "x.html").read_text() == f"{lines[0]}\n"


@pytest.mark.parametrize("workers", [1, 2])
def test_files_that_cannot_be_translated_keep_no_other_from_it(
    tmp_path: Path, model: str, texts: dict[str, list[str]], workers: int, capsys: Any
) -> None:
    folder = tmp_path / "in"
    (folder / "a_bad.txt").write_bytes(b"a.\nb.\nc.\nd.\n\xff\n" + b"e.\n" * 9)
    (folder / "b" / "bad.srt").write_text("1\n00:00:bad\nHi\n")
    (folder / "bad.tmx").write_text('<tmx version="1.4"><header srclang="en"/><body/></tmx>')
    (folder / "bad.po.gz").write_bytes(gzip.compress(b""))
    said: list[str] = []
    call: tuple[Any, ...] = (model, folder, tmp_path / "out")
    how = {"crew": Crew(workers=workers), "how": HOW, **OPTIONS}
    with pytest.raises(
        DataError, match=r"^4 of 8 files could not be .*a_bad.*bad\.srt.*bad\.po\.gz.*bad\.tmx"
    ):
        translate_folder(*call, say=said.append, **how)
    assert done(tmp_path / "out") == expected(model, texts)
    assert [line.removeprefix(f"not translated: {folder}/")[:40] for line in said] == [
        "a_bad.txt:5: not valid UTF-8 (byte 0xff ",
        "b/bad.srt:1: no number and times such as",
        "bad.po.gz: documents are translated in p",
        "bad.tmx: a TMX file has any number of la",
    ]
    arguments = ["bulk", model, "--input", str(folder), "--output", str(tmp_path / "out"), "--set"]
    arguments += ["max_extra=3", "--beam", "2", "--precision", "fp32", "--engine", "torch", "--device", "cpu"]
    assert main(arguments) == 1
    assert "error: 4 of 8 files could not be translated" in capsys.readouterr().err
    for name in ("b/bad.srt", "bad.tmx", "bad.po.gz"):
        (folder / name).unlink()
    (folder / "a_bad.txt").write_text("")
    translate_folder(*call, say=said.append, **how)  # mended, and the others are not done again
    assert said[4:] == ["4 of 5 files are there already"]
    assert done(tmp_path / "out") == expected(model, texts) | {"a_bad.txt": ""}


def test_lines_that_a_model_cannot_take_are_told_with_their_file_and_documents_make_no_pairs(
    tmp_path: Path, model: str, texts: dict[str, list[str]]
) -> None:
    (tmp_path / "in" / "long.txt").write_text("a.\nb.\nc.\n" + "x " * 60 + "\n")
    (tmp_path / "in" / "x.md").write_text("a\n")
    with pytest.raises(
        DataError, match=r"^2 of 6 files .*in/long\.txt, .*x\.md \(the first: .*long\.txt: .*4"
    ):
        translate_folder(
            model, tmp_path / "in", tmp_path / "out", pairs=True, long_lines="error", how=HOW, **OPTIONS
        )
    assert sorted(done(tmp_path / "out")) == sorted(texts)
    with pytest.raises(UsageError, match="format is 'pdf'; choose text or one of po, "):
        translate_folder(model, tmp_path / "in", tmp_path / "out", format="pdf")
