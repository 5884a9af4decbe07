"""What `transduce translate` fills in is no training data before somebody has reviewed it."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes import upper

from transduce import read_corpus, translate_file
from transduce.documents.translate import format_of
from transduce.errors import UsageError

FILES = {
    "a.po": (
        'msgid ""\nmsgstr "Language: de\\n"\n\nmsgid "a dog"\nmsgstr ""\n\nmsgid "b"\nmsgstr "B!"\n',
        "#, fuzzy\n",
    ),
    "a.xlf": (
        '<xliff version="1.2"><file source-language="en" target-language="de" original="x" datatype="y">'
        "<body>"
        '<trans-unit id="1"><source>a dog</source></trans-unit>'
        '<trans-unit id="2"><source>b</source><target>B!</target></trans-unit></body></file></xliff>',
        ' state="needs-review-translation" state-qualifier="mt-suggestion"',
    ),
    "b.xliff": (
        '<xliff version="2.0" srcLang="en" trgLang="de"><file id="f"><unit id="u"><segment>'
        "<source>a dog</source></segment><segment><source>b</source>"
        "<target>B!</target></segment></unit></file></xliff>",
        ' state="initial" subState="transduce:needs-review"',
    ),
    "a.tmx": (
        '<tmx version="1.4"><header srclang="en"/><body><tu><tuv xml:lang="en"><seg>a dog</seg></tuv></tu>'
        '<tu><tuv xml:lang="en"><seg>b</seg></tuv><tuv xml:lang="de"><seg>B!</seg></tuv></tu></body></tmx>',
        '<prop type="x-transduce">needs-review</prop>',
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_what_is_filled_in_is_read_when_its_mark_is_taken_away(name: str, tmp_path: Path) -> None:
    text, mark = FILES[name]
    source, output = tmp_path / name, tmp_path / f"new-{name}"
    source.write_text(text)
    done = translate_file(source, output, upper, target_language="de")
    assert done.filled == 1
    assert output.read_text().count(mark) == 1

    def pairs() -> list[tuple[str, str]]:
        read = read_corpus(output, source_language="en", target_language="de")
        return [(pair.source, pair.target) for pair in read]

    assert pairs() == [("b", "B!")]
    output.write_text(output.read_text().replace(mark, ""))
    assert sorted(pairs()) == [("a dog", "A DOG"), ("b", "B!")]


def test_a_file_is_known_by_its_name_and_never_written_over_itself(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("hi")
    with pytest.raises(UsageError, match=r"its name tells no format; name one of po, xliff"):
        translate_file(path, tmp_path / "b.txt", upper)
    with pytest.raises(UsageError, match="is the input as well"):
        translate_file(path, path, upper, format="html")
    assert translate_file(path, tmp_path / "b.txt", upper, format="html").content == b"HI"
    assert (tmp_path / "b.txt").read_bytes() == b"HI"
    assert [format_of(name) for name in ("A.PO", "a.docx", "a.po.gz", "a")] == ["po", "docx", "", ""]
