"""CSV, JSON lines, Parquet and Arrow."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from transduce.errors import DataError, UsageError

Write = Callable[..., str]


def texts(pairs: Any) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for pair in pairs]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"source,target\na,x\n", [("a", "x")]),
        (b"target,id,source\r\nx,1,a\r\n", [("a", "x")]),
        (b"en;de\na;x\n", [("a", "x")]),
        (b"id\ten\tde\n1\ta\tx\n", [("a", "x")]),
        (b'a,x\n"b ""q"", c","y\n\nz"\n', [("a", "x"), ('b "q", c', "y\n\nz")]),
        (b'a,"x\r\ny"\r\n', [("a", "x\r\ny")]),
        (b"\xef\xbb\xbfsource,target\n,\n", [("", "")]),
        (b"", []),
    ],
)
def test_csv(write: Write, read, content: bytes, expected: list[tuple[str, str]]) -> None:
    assert texts(read(write("p.csv", content))[0]) == expected


def test_names_of_sides_need_no_languages(write: Write, read) -> None:
    for name, content in (
        ("p.csv", b"id,source,target\n1,a,x\n"),
        ("p.jsonl", b'{"id": 1, "source": "a", "target": "x"}\n'),
    ):
        pairs, tally = read(write(name, content), "en", "de")
        assert texts(pairs) == [("a", "x")]
        assert tally.lines() == []


def test_csv_knows_lines_and_languages(write: Write, read) -> None:
    path = write("p.csv", b'id,de,en,fr\n1,"x\ny",a,u\n2,z,b,v\n')
    pairs, _ = read(path, "en", "de")
    assert [(p.source, p.target, p.line) for p in pairs] == [("a", "x\ny", 2), ("b", "z", 4)]
    with pytest.raises(DataError, match=r"p.csv: holds more than two languages: de, en, fr"):
        read(path)
    with pytest.raises(
        DataError, match=r"p.csv: has no text in 'en' and 'es'.*its languages are: de, en, fr"
    ):
        read(path, "en", "es")
    _, tally = read(write("q.csv", b"a,x\n"))
    assert "its first row names no columns: source is the first" in tally.lines()[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"source,target\na,x\nb\n", r"p.csv:3: 1 cells, where the first row has 2"),
        (b"source,target\na,x,y\n", r"p.csv:2: 3 cells"),
        (b"a,b,c\n", r"p.csv: which columns hold source and target is not clear; its columns are: a, b, c"),
        (b'source,target\n"a,x\n', r"p.csv:\d: is not valid CSV"),
        (b'source,target\n"a"b,x\n', r"p.csv:2: is not valid CSV"),
    ],
)
def test_damaged_csv_is_named(write: Write, read, content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(write("p.csv", content))


def test_json_lines(write: Write, read) -> None:
    lines: list[Any] = [
        {"source": "a\n\u2028", "target": "x"},
        {"id": 1, "src": "b", "tgt": "y"},
        {"id": 2, "en": "c", "de": "z"},
        {"translation": {"de": "u", "en": "d", "fr": "w"}},
        {"translation": {"de": "u"}},
        {"en": None, "de": "v"},
    ]
    path = write("p.jsonl", [*(json.dumps(line, ensure_ascii=False) for line in lines), ""])
    pairs, tally = read(path, "en", "de")
    assert texts(pairs) == [("a\n\u2028", "x"), ("b", "y"), ("c", "z"), ("d", "u")]
    assert [pair.line for pair in pairs] == [1, 2, 3, 4]
    assert dict(tally.skipped[path]) == {"without source or target": 2, "empty lines": 1}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"source": "a"', r"p.jsonl:2: is not valid JSON"),
        ('["a", "b"]', r"p.jsonl:2: is no object; .*is expected"),
        ('{"source": 1, "target": "x"}', r"p.jsonl:2: '1' is no text"),
        ('{"source": "\\ud800", "target": "x"}', r"p.jsonl:2: holds half a character"),
        ('{"source": "a", "source": "b", "target": "x"}', r"p.jsonl:2: .*a name stands twice"),
        (
            '{"text": "a"}',
            r"p.jsonl: which columns hold source and target is not clear; its columns are: text",
        ),
        ("[" * 100_000, r"p.jsonl:2: is not valid JSON"),
    ],
)
def test_damaged_json_is_named(write: Write, read, line: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(write("p.jsonl", ['{"source": "a", "target": "x"}', line]))


def test_parquet_and_arrow(tmp_path: Path, read) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow (extra formats) is not installed")
    from pyarrow import ipc, parquet

    flat = pyarrow.table({"id": ["1", "2", "3"], "de": ["x", "y", None], "en": ["a", "b\n", "c"]})
    nested = pyarrow.table({"translation": [{"en": "a", "de": "x"}, None, {"en": "b\n", "de": "y"}]})
    for table in (flat, nested):
        parquet.write_table(table, tmp_path / "t.parquet", row_group_size=2)
        with ipc.new_stream(tmp_path / "s.arrow", table.schema) as stream:
            stream.write_table(table)
        with ipc.new_file(tmp_path / "f.arrow", table.schema) as file:
            file.write_table(table)
        for name in ("t.parquet", "s.arrow", "f.arrow"):
            pairs, tally = read(str(tmp_path / name), "en", "de")
            assert texts(pairs) == [("a", "x"), ("b\n", "y")], name
            assert tally.count() == 1
            assert texts(read(str(tmp_path / name), "de", "en")[0]) == [("x", "a"), ("y", "b\n")]
            with pytest.raises(DataError, match="has no text in 'fr'"):
                read(str(tmp_path / name), "", "fr")
    whole = (tmp_path / "t.parquet").read_bytes()
    (tmp_path / "t.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"t.parquet: is damaged, or no such file"):
        read(str(tmp_path / "t.parquet"))


def test_a_dataset_that_was_saved_by_hugging_face(tmp_path: Path, read) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow (extra formats) is not installed")
    from pyarrow import ipc

    for part, text in (("train", "a"), ("test", "b")):
        folder = tmp_path / "saved" / part
        folder.mkdir(parents=True)
        names = []
        for number in range(2):
            names.append(f"data-0000{number}-of-00002.arrow")
            table = pyarrow.table({"translation": [{"en": f"{text}{number}", "de": "x"}]})
            with ipc.new_stream(folder / names[-1], table.schema) as stream:
                stream.write_table(table)
        (folder / "state.json").write_text(
            json.dumps({"_data_files": [{"filename": name} for name in names]})
        )
        (folder / "dataset_info.json").write_text("{}")
    (tmp_path / "saved" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    assert [p.source for p in read(str(tmp_path / "saved" / "train"), "en", "de")[0]] == ["a0", "a1"]
    with pytest.raises(DataError, match=r"saved: holds several parts of a corpus: test, train; name one"):
        read(str(tmp_path / "saved"), "en", "de")


def test_without_pyarrow_the_extra_is_named(tmp_path: Path, read, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=r"pip install 'transduce\[formats\]'"):
        read(str(tmp_path / "t.parquet"))
