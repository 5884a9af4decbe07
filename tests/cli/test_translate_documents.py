from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from few_lines import FAST

from tiny_translator import sentences
from transduce.bundle import load_bundle
from transduce.cli.main import main
from transduce.decoding.translator import Translator

pytestmark = pytest.mark.usefixtures("in_a_folder")

pytest.importorskip("sentencex", reason="the extra `documents` is not installed")
FIRST, SECOND = (line.removesuffix(".") for line in sentences(2, seed=1, words=(3, 4)))


def said(model: str, *lines: str) -> list[str]:
    return Translator(load_bundle(model)).translate(lines, beam=2, max_extra=3)


def test_a_catalog_is_filled_in_by_its_name(model: str, capsys: Any) -> None:
    entry = f'msgid "{FIRST}"\nmsgstr ""\n'
    Path("a.po").write_text(f'{entry}\nmsgid "x"\nmsgstr "y"\n')
    assert main(["translate", model, "--input", "a.po", "--output", "b.po", *FAST]) == 0
    (output,) = said(model, FIRST)
    assert Path("b.po").read_text() == (
        f'#, fuzzy\nmsgid "{FIRST}"\nmsgstr "{output}"\n\nmsgid "x"\nmsgstr "y"\n'
    )
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.endswith("b.po: 1 of 1 unit filled in\n")
    assert sorted(os.listdir()) == ["a.po", "b.po"]
    # As lines of text it is what it was before.
    assert main(["translate", model, "--input", "a.po", "--format", "text", *FAST]) == 0
    assert capsys.readouterr().out.count("\n") == 5


def test_a_page_from_standard_input_goes_to_standard_output(
    model: str, monkeypatch: pytest.MonkeyPatch, capfdbinary: Any
) -> None:
    page = f"<p>{FIRST}</p><script>no</script><p>{SECOND}</p>"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(page.encode())))
    assert main(["translate", model, "--format", "html", *FAST]) == 0
    first, second = said(model, FIRST, SECOND)
    escaped = [
        output.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") for output in (first, second)
    ]
    out = capfdbinary.readouterr().out.decode()
    assert out == f"<p>{escaped[0]}</p><script>no</script><p>{escaped[1]}</p>"


def test_tags_are_placed_by_the_alignment_and_none_is_lost(model: str) -> None:
    words = FIRST.split()
    Path("a.html").write_text(f"<p>{words[0]} <b>{words[1]}</b> <a href='x'>{' '.join(words[2:])}</a></p>")
    assert main(["translate", model, "--input", "a.html", "--output", "b.html", *FAST]) == 0
    new = Path("b.html").read_text()
    for tag in ("<p>", "<b>", "</b>", "<a href='x'>", "</a>", "</p>"):
        assert new.count(tag) == 1


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--input", "a.po", "--json"], "--json is for lines of text, and a.po is translated as po"),
        (["--input", "a.po", "--output", "b.po", "--resume"], "--resume is for lines of text"),
        (["--input", "a.po", "--format", "pdf"], "--format pdf: choose text or one of po, xliff"),
        (["--input", "a.html.gz"], "a.html.gz: documents are translated in place; decompress it"),
        (["--input", "a.txt", "--target-language", "de"], "--target-language is for documents"),
        (["--input", "a.tmx"], "a TMX file has any number of languages; say which to add"),
        (["--input", "a.po", "--output", "a.po"], "a.po: is the input as well"),
    ],
)
def test_what_does_not_go_together_is_refused(
    model: str, flags: list[str], message: str, capsys: Any
) -> None:
    for name in ("a.po", "a.html.gz", "a.txt", "a.tmx"):
        Path(name).write_text("")
    assert main(["translate", model, *flags]) == 2
    assert message in capsys.readouterr().err


def test_a_missing_or_damaged_document_is_one_line(model: str, capsys: Any) -> None:
    assert main(["translate", model, "--input", "none.docx"]) == 1
    assert capsys.readouterr().err == "transduce: error: none.docx: no such file; check the path\n"
    Path("bad.docx").write_bytes(b"no zip")
    assert main(["translate", model, "--input", "bad.docx", "--output", "x.docx"]) == 1
    assert capsys.readouterr().err.startswith("transduce: error: bad.docx: is no zip package")
    assert not Path("x.docx").exists()
