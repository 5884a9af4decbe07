from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from transduce.data import lines as module
from transduce.data.lines import count_lines, read_lines
from transduce.errors import DataError, UsageError

Write = Callable[..., str]
COMPRESS = {"gz": gzip.compress, "zst": zstandard.compress, "bz2": bz2.compress, "xz": lzma.compress}
SEPARATORS = "a\u2028b\u0085c\x0bd\x0ce\rf\x1cg\x1dh\x1ei\u2029j\x00k"


def test_only_a_line_feed_ends_a_line(write: Write) -> None:
    text = [SEPARATORS, "", SEPARATORS[::-1]]
    path = write("odd.txt", text)
    assert list(read_lines(path)) == text
    assert count_lines(path) == 3


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a", ["a"]),
        (b"a\nb", ["a", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\r\r\nb\rc\r\n\r\n", ["a\r", "b\rc", ""]),
        (b"a\r", ["a\r"]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),
        (b"\xef\xbb\xbf", []),
        (b" a \t\n\n", [" a \t", ""]),
    ],
)
def test_line_ends_and_byte_order_mark(write: Write, raw: bytes, expected: list[str]) -> None:
    path = write("text", raw)
    assert list(read_lines(path)) == expected
    assert count_lines(path) == len(expected)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=9), max_size=8),
    chunk=st.integers(1, 9),
)
def test_lines_do_not_depend_on_how_the_file_is_read(tmp_path: Path, text: list[str], chunk: int) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"\xef\xbb\xbf" + "".join(f"{line}\r\n" for line in text).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CHUNK", chunk)
        assert list(read_lines(path)) == text
        assert count_lines(path) == len(text)


@pytest.mark.parametrize("ending", COMPRESS)
def test_compressed_files_are_read_through(write: Write, ending: str) -> None:
    text = [f"line {i} \u2028 ü" for i in range(5000)]
    raw = "\n".join(text).encode()
    half = len(raw) // 2
    compress = COMPRESS[ending]
    path = write(
        f"text.{ending}", compress(raw[:half]) + compress(raw[half:])
    )  # several members, as from `cat`
    assert list(read_lines(path)) == text
    assert count_lines(path) == 5000


@pytest.mark.parametrize("ending", COMPRESS)
def test_a_truncated_compressed_file_is_an_error(write: Write, ending: str) -> None:
    raw = os.urandom(40_000).hex().encode()
    whole = COMPRESS[ending](raw)
    path = write(f"text.{ending}", whole[: len(whole) // 2])
    for read in (count_lines, lambda path: list(read_lines(path))):
        with pytest.raises(DataError, match=rf"text\.{ending}: cut short or damaged .*fetch the file again$"):
            read(path)


@pytest.mark.parametrize("ending", COMPRESS)
def test_a_file_that_is_not_compressed_as_its_name_says(write: Write, ending: str) -> None:
    with pytest.raises(DataError, match=rf"text\.{ending}: is not compressed.* without \.{ending}"):
        list(read_lines(write(f"text.{ending}", b"plain text\n")))
    compress = COMPRESS[ending]
    said = (
        "not valid UTF-8" if ending == "bz2" else rf"is compressed.* ends in \.{ending}"
    )  # "BZh" may be text
    for read in (lambda path: list(read_lines(path)),):
        with pytest.raises(DataError, match=rf"text\.txt:.* ?{said}"):
            read(write("text.txt", compress(b"some text\n")))


@pytest.mark.parametrize("ending", COMPRESS)
def test_damage_after_the_first_member_is_an_error(write: Write, ending: str) -> None:
    whole = COMPRESS[ending](b"one\n")
    cut = len(whole) - 8  # in the checksum of gz, and before the end of the others
    path = write(f"text.{ending}", whole + whole[:cut] + b"damaged!")
    with pytest.raises(DataError, match="cut short or damaged"):
        list(read_lines(path))


def test_padding_between_members_of_xz_is_none_of_the_text(write: Write) -> None:
    whole = lzma.compress(b"one\n")
    assert list(read_lines(write("text.xz", whole + b"\0" * 8 + whole + b"\0" * 4))) == ["one", "one"]


def test_lines_with_their_ends(write: Write) -> None:
    assert list(read_lines(write("t", b"a\r\nb\x0c\n\nc"), ends=True)) == ["a\r\n", "b\x0c\n", "\n", "c"]


def test_an_empty_file_needs_no_compression(write: Write) -> None:
    assert list(read_lines(write("text.gz", b""))) == []


def test_closed_standard_input_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(DataError, match="standard input is closed; name a file"):
        list(read_lines("-"))


def test_faults_of_standard_input_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"ok\n\xff\n")))
    with pytest.raises(DataError, match="standard input:2: not valid UTF-8"):
        list(read_lines("-"))


def test_zst_without_the_package_names_the_extra(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(UsageError, match=r"pip install 'transduce\[zstd\]'"):
        list(read_lines(write("text.zst", b"")))


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\r\nb\xe2\x80\xa8c")))
    assert list(read_lines("-")) == ["a", "b\u2028c"]


def test_standard_input_gives_a_line_as_soon_as_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    read_end, write_end = os.pipe()
    with open(read_end, encoding="utf-8") as stdin, open(write_end, "wb", buffering=0) as pipe:
        monkeypatch.setattr(sys, "stdin", stdin)
        lines = read_lines("-")
        for text in ("first", "second"):
            pipe.write(text.encode() + b"\n")
            assert next(lines) == text


def test_wrong_encodings_are_named_with_line_and_column(write: Write) -> None:
    lines = read_lines(write("latin.txt", b"ok\n\xc3\xa4 \xe4 x\n"))
    assert next(lines) == "ok"
    with pytest.raises(
        DataError, match=r"latin\.txt:2: not valid UTF-8 \(byte 0xe4 at column 3\); convert .*iconv -f LATIN1"
    ):
        next(lines)
    with pytest.raises(DataError, match=r"wide\.txt: is UTF-16 text; convert it with `iconv -f UTF-16"):
        list(read_lines(write("wide.txt", "hello\n".encode("utf-16"))))
    with pytest.raises(DataError, match=r"surrogate\.txt:1: not valid UTF-8 \(byte 0xed"):
        list(read_lines(write("surrogate.txt", "\ud800\n".encode(errors="surrogatepass"))))
    with pytest.raises(DataError, match=r"cut\.txt:3: not valid UTF-8 \(byte 0xe2 at column 2\)"):
        list(read_lines(write("cut.txt", b"\n\nx\xe2\x80")))


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for read in (count_lines, lambda path: list(read_lines(path))):
        with pytest.raises(DataError, match=r"none\.txt: no such file; check the path"):
            read(tmp_path / "none.txt")
        with pytest.raises(DataError, match="is a folder, expected a text file"):
            read(tmp_path)
    monkeypatch.setattr(
        Path, "open", lambda *_: (_ for _ in ()).throw(PermissionError(13, "Permission denied"))
    )
    with pytest.raises(DataError, match=r"locked: cannot be read: Permission denied"):
        list(read_lines(tmp_path / "locked"))


def test_no_reader_splits_lines_by_any_other_rule() -> None:
    folder = Path(module.__file__).parent
    files = [*folder.glob("*.py"), *folder.glob("formats/*.py")]
    assert len(files) > 10
    assert [path for path in files if "splitlines" + "(" in path.read_text("utf-8")] == []
