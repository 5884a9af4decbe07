"""What a name stands for: files, folders, patterns, what two text files have in common, compressed or not."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from transduce.data.formats.folders import files_of
from transduce.data.formats.sides import Wanted
from transduce.errors import DataError, UsageError

Write = Callable[..., str]
TUV = '<tuv xml:lang="{}"><seg>{}</seg></tuv>'
TMX = f"<tmx><body><tu>{TUV.format('en', '{0}')}{TUV.format('de', 'x')}</tu></body></tmx>"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "c" / "deep").mkdir(parents=True)
    (tmp_path / "c" / ".hidden").mkdir()
    (tmp_path / "c" / ".hidden" / "h.tmx").write_text("no")
    (tmp_path / "c" / "b.tmx").write_text(TMX.format("tmx"))
    (tmp_path / "c" / "deep" / "a.csv").write_text("en,de\ncsv,x\n")
    (tmp_path / "c" / "text.en.gz").write_bytes(gzip.compress(b"text\n"))
    (tmp_path / "c" / "text.de").write_text("x\n")
    (tmp_path / "c" / "README.md").write_text("x\n")
    (tmp_path / "c" / "other.en").write_text("x\n")
    (tmp_path / "c" / "other.fr").write_text("x\n")
    (tmp_path / "c" / "page.xml").write_text("<html/>")
    return tmp_path / "c"


def test_a_folder_is_all_that_is_known_in_it(folder: Path, read) -> None:
    pairs, tally = read(str(folder), "en", "de")
    assert [p.source for p in pairs] == ["tmx", "csv", "text"]
    assert (
        f"{folder}: 3 read, 4 not, of no known format or other languages: README.md, other.en, other.fr, ..."
        in tally.lines()
    )


def test_a_pattern_and_a_common_beginning(folder: Path, read) -> None:
    assert [p.source for p in read(f"{folder}/**/*.csv", "en", "de")[0]] == ["csv"]
    assert [p.source for p in read(f"{folder}/text", "en", "de")[0]] == ["text"]
    assert [p.source for p in read(f"{folder}/text", "de", "")[0]] == ["x"]
    assert files_of(f"{folder}/text", Wanted("en", "de")) == [(f"{folder}/text.en.gz", f"{folder}/text.de")]
    with pytest.raises(
        DataError, match=r"text: is there in de, en; say which are meant with --source-language"
    ):
        read(f"{folder}/text")
    with pytest.raises(DataError, match=r"x\*: no file fits this pattern"):
        read(f"{folder}/x*")
    with pytest.raises(DataError, match=r"nothing: no such file or folder, and no two texts that begin so"):
        read(f"{folder}/nothing", "en", "de")


@pytest.mark.parametrize(("source", "target"), [("xx", "de"), ("en", "xx"), ("english", "german")])
def test_a_language_that_texts_are_not_in_is_named_with_those_that_they_are_in(
    tmp_path: Path, read, source: str, target: str
) -> None:
    (tmp_path / "c").mkdir()
    for language in ("en", "de"):
        (tmp_path / "c" / f"text.{language}").write_text("x\n")
    for name in ("c", "c/text", "c/t*"):
        with pytest.raises(
            DataError,
            match=rf"^{tmp_path}/{name}: has no text in '{source}' and '{target}' with its translation; its "
            "languages are: de, en; say which are meant with --source-language".replace("*", r"\*"),
        ):
            read(f"{tmp_path}/{name}", source, target)
    with pytest.raises(DataError, match=r"c/text: is there in de, en, and 'xx' is wanted; say which"):
        read(f"{tmp_path}/c/text", "xx")


def test_parts_of_a_corpus_are_not_mixed(tmp_path: Path, read) -> None:
    for part in ("train", "valid"):
        (tmp_path / f"{part}.tsv").write_text(f"{part}\tx\n")
    with pytest.raises(DataError, match=r"holds several parts of a corpus: train, valid; name one of them"):
        read(str(tmp_path))
    assert [p.source for p in read(f"{tmp_path}/train*")[0]] == ["train"]
    (tmp_path / "train.tsv").rename(tmp_path / "other-test.tsv")
    assert len(read(str(tmp_path))[0]) == 2, "a catalog of a program may be called test"
    (tmp_path / "training").mkdir()
    (tmp_path / "training" / "a.tsv").write_text("a\tx\n")
    assert [p.source for p in read(str(tmp_path / "training"))[0]] == ["a"]


def test_files_in_other_languages_are_left_out_of_a_folder_and_told(tmp_path: Path, read) -> None:
    for language in ("de", "fr"):
        header = f'msgid ""\nmsgstr "Language: {language}\\n"\n'
        (tmp_path / f"{language}.po").write_text(f'{header}\nmsgid "a"\nmsgstr "{language}"\n')
    pairs, tally = read(str(tmp_path), "en", "de")
    assert [p.target for p in pairs] == ["de"]
    assert tally.lines() == [f"{tmp_path / 'fr.po'}: left out, as it is in other languages"]
    with pytest.raises(DataError, match=r"fr.po: has no text in 'en' and 'es'"):
        read(str(tmp_path), "en", "es")
    with pytest.raises(DataError, match=r"fr.po: has no text in 'en' and 'de'"):
        read(str(tmp_path / "fr.po"), "en", "de")


def test_a_folder_with_nothing_known(tmp_path: Path, read) -> None:
    (tmp_path / "a.doc").write_text("")
    with pytest.raises(
        DataError, match=r"holds no parallel text that is known by its name: a.doc; name the files"
    ):
        read(str(tmp_path))


@pytest.mark.parametrize(
    ("ending", "compress"),
    [("gz", gzip.compress), ("zst", zstandard.compress), ("bz2", bz2.compress), ("xz", lzma.compress)],
)
def test_compressed_files(write: Write, read, ending: str, compress: Callable[[bytes], bytes]) -> None:
    for name, content in (("m.tmx", TMX.format("a")), ("p.tsv", "a\tx\n"), ("p.csv", "en,de\na,x\n")):
        assert [p.source for p in read(write(f"{name}.{ending}", compress(content.encode())))[0]] == ["a"]
    with pytest.raises(DataError, match=r"cut short or damaged"):
        read(write(f"m.tmx.{ending}", compress(TMX.encode())[:-9]))
    with pytest.raises(UsageError, match=r"parquet is read from the disk as it is"):
        read(write(f"m.parquet.{ending}", compress(b"")))


def test_standard_input_needs_its_format(read) -> None:
    with pytest.raises(UsageError, match=r"what standard input holds must be said with --format: tsv, csv"):
        read("-")
