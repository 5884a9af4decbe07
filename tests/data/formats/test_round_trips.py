"""What is written in a format is read from it as it was: made texts of all kinds, and real ones."""

from __future__ import annotations

import io
import re
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from transduce.data.conversion import Inputs, convert
from transduce.data.formats.folders import read_pairs
from transduce.data.formats.mo import read_mo
from transduce.data.formats.pair import Pair
from transduce.data.formats.pair_file import read_pair_file
from transduce.data.formats.sides import Wanted
from transduce.data.formats.tally import Tally
from transduce.data.formats.text_pair import read_text_pair
from transduce.data.formats.writing import WRITERS, write_pairs
from transduce.data.lines import read_lines
from transduce.errors import DataError, UsageError

ENDE = Wanted("en", "de")
FORMATS = {
    "tsv": ".tsv", "csv": ".csv", "jsonl": ".jsonl", "parquet": ".parquet", "tmx": ".tmx", "xliff": ".xlf",
    "po": ".po", "sgm": ".sgm", "wmt-xml": ".xml",
}  # fmt: skip
XML = ("tmx", "xliff", "wmt-xml")
SHARED = Path(__file__).parents[4] / "shared" / "data" / "multi30k"
CATALOG = Path("/usr/share/locale/de/LC_MESSAGES")
anything = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
    [
        "\r",
        "a\r",
        "\r\n",
        "\n",
        " a ",
        "\t",
        '"',
        "\\",
        "&amp;",
        "<b>",
        "]]>",
        "\u2028",
        "\x85",
        "\x0c",
        "msgid",
        "-->",
        "\ufeff",
    ]
)


def test_every_format_that_is_written_is_tested() -> None:
    assert list(FORMATS) == list(WRITERS)


@pytest.mark.parametrize("kind", FORMATS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.tuples(anything, anything), max_size=5))
def test_made_texts(tmp_path: Path, kind: str, texts: list[tuple[str, str]]) -> None:
    if kind == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow (extra formats) is not installed")
    path, told = tmp_path / f"x{FORMATS[kind]}", Tally()
    pairs = [Pair(*both, "made", line) for line, both in enumerate(texts, 1)]
    forbidden = any(
        (ord(c) < 32 and c not in "\t\n\r") or c in "\ufffe\uffff"
        for both in texts
        for text in both
        for c in text
    )
    if kind in XML and forbidden:
        with pytest.raises(DataError, match=r"made:\d+: holds U\+.*, which XML cannot"):
            write_pairs(pairs, path, ENDE, told)
        return
    assert write_pairs(pairs, path, ENDE, told) == len(pairs) - told.count()
    read = Tally()
    found = [(pair.source, pair.target) for pair in read_pair_file(path, ENDE, read)]
    if kind == "tsv":
        assert len(found) == len(texts)
        changed = sum(
            a != b for one, other in zip(found, texts, strict=True) for a, b in zip(one, other, strict=True)
        )
        assert changed == sum(counts.total() for counts in told.changed.values())
        assert [_flat(both) for both in found] == [_flat(both) for both in texts]
    elif kind in ("po", "xliff"):
        full = [both for both in texts if both[0] and both[1]]
        assert [both for both in found if all(both)] == full
        assert len(found) + told.count() + read.count() == len(texts)
    else:
        assert found == texts


def _flat(texts: tuple[str, str]) -> tuple[list[str], list[str]]:
    """The texts without what TSV cannot hold: line breaks, and white space around them."""
    return tuple(text.replace("\t", " ").replace("\n", " ").rstrip("\r").split() for text in texts)  # type: ignore[return-value]


@pytest.mark.parametrize("kind", FORMATS)
def test_writing_twice_gives_the_same_bytes(tmp_path: Path, kind: str) -> None:
    if kind == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow (extra formats) is not installed")
    pairs = [Pair(f"a {n}", f"b {n}", "made", n) for n in range(30)]
    for ending in ("", ".gz", ".xz", ".bz2", ".zst"):
        names = [tmp_path / f"{n}{FORMATS[kind]}{ending}" for n in range(2)]
        for name in names:
            write_pairs(pairs, name, ENDE, Tally())
        assert names[0].read_bytes() == names[1].read_bytes()
        if kind != "parquet":
            assert [p[:2] for p in read_pair_file(names[0], ENDE, Tally())] == [p[:2] for p in pairs]


def test_two_text_files(tmp_path: Path) -> None:
    pairs = [Pair("a\u2028", "x", "made", 1), Pair("", "y\n z", "made", 2), Pair(" c ", "\x85", "made", 3)]
    tally = Tally()
    write_pairs(pairs, tmp_path / "t.gz", ENDE, tally)
    found = list(read_text_pair(tmp_path / "t.en.gz", tmp_path / "t.de.gz"))
    assert [p[:2] for p in found] == [("a\u2028", "x"), ("", "y z"), (" c ", "\x85")]
    assert tally.lines() == ["made: 1 text 1 with line breaks or tabs, written as spaces (first at 2)"]
    with pytest.raises(UsageError, match=r"two text files are named by their languages; say them"):
        write_pairs(pairs, tmp_path / "t", Wanted("en", ""), tally)


def test_a_source_that_comes_again_is_another_entry(tmp_path: Path) -> None:
    pairs = [Pair("a", "x", "m", 1), Pair("a", "y", "m", 2), Pair("a", "x", "m", 3)]
    write_pairs(pairs, tmp_path / "x.po", ENDE, Tally())
    assert [p[:2] for p in read_pair_file(tmp_path / "x.po", ENDE, Tally())] == [p[:2] for p in pairs]
    contexts = [line for line in read_lines(tmp_path / "x.po") if line.startswith("msgctxt")]
    assert contexts == ['msgctxt "2"', 'msgctxt "3"'], "two entries alike are an error for gettext"


def test_nothing_is_left_where_anything_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"source": "a", "target": "\\u0001"}\n')
    with pytest.raises(DataError, match=r"a.jsonl:1: holds U\+0001, which XML cannot; clean the text"):
        convert(Inputs(pairs=(str(tmp_path / "a.jsonl"),), wanted=ENDE), tmp_path / "b.tmx")
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"needs the Multi30k files in {SHARED}")
def test_real_sentences_go_through_all_formats_in_turn(tmp_path: Path) -> None:
    source, target = str(SHARED / "val.en.gz"), str(SHARED / "val.de.gz")
    expected = list(zip(read_lines(source), read_lines(target), strict=True))
    kinds = [kind for kind in FORMATS if kind != "parquet" or _pyarrow()]
    last = Inputs(source=(source,), target=(target,), wanted=ENDE)
    for number, kind in enumerate([*kinds, "text"]):
        name = tmp_path / f"{number}{FORMATS.get(kind, '')}"
        assert convert(last, name).pairs == len(expected)
        last = Inputs(pairs=(str(name),), wanted=ENDE)
    found = read_text_pair(tmp_path / f"{len(kinds)}.en", tmp_path / f"{len(kinds)}.de")
    assert [p[:2] for p in found] == expected


@pytest.mark.skipif(not CATALOG.is_dir(), reason=f"there are no catalogs in {CATALOG}")
@pytest.mark.parametrize("kind", [kind for kind in FORMATS if kind != "tsv"])
def test_real_messages(tmp_path: Path, kind: str) -> None:
    if kind == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow (extra formats) is not installed")
    read = [
        pair
        for path in sorted(CATALOG.glob("*.mo"))[:20]
        for pair in islice(read_mo(path, Wanted(), Tally()), 400)
    ]
    assert len(read) > 100
    if kind in XML:  # some programs beep
        read = [pair for pair in read if not re.search(r"[\0-\x08\x0b-\x1f]", pair.source + pair.target)]
    path = tmp_path / f"x{FORMATS[kind]}"
    write_pairs(read, path, ENDE, Tally())
    assert [p[:2] for p in read_pairs(str(path), ENDE, Tally())] == [p[:2] for p in read]


def _pyarrow() -> bool:
    try:
        import pyarrow  # noqa: F401 - only whether it is there
    except ImportError:
        return False
    return True


def test_standard_input_and_output(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a\tx\nb\ty\n")))
    convert(Inputs(pairs=("-",), kind="tsv", wanted=ENDE), "-", kind="jsonl")
    import sys

    sys.stdout.flush()
    assert capfdbinary.readouterr().out.count(b'{"translation": {"en": ') == 2
