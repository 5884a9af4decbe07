"""Pairs as tables: TSV, CSV, JSON lines and Parquet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import IO, Any, cast

from transduce.data.formats.inline import one_line
from transduce.data.formats.languages import normal
from transduce.data.formats.pair import Pair
from transduce.data.formats.sides import Wanted
from transduce.data.formats.tally import Tally
from transduce.data.outputs import Sink
from transduce.errors import UsageError

_ROWS = 10_000
_BOM = "\ufeff"


def plain(text: str, pair: Pair, tally: Tally, *, tabs: bool = True) -> str:
    """The text on one line, without tabs unless ``tabs``: each as a space, which ``tally`` counts."""
    line = one_line(text).rstrip("\r")
    if not tabs:
        line = line.replace("\t", " ")
    if line != text:
        tally.change(pair.file, "with line breaks or tabs, written as spaces", pair.line)
    return line


def line_bytes(text: str, number: int) -> bytes:
    """A line of a text file; ``number`` counts from 0. A byte order mark that is text needs one before it."""
    mark = _BOM if number == 0 and text.startswith(_BOM) else ""
    return f"{mark}{text}\n".encode()


def write_tsv(pairs: Iterable[Pair], file: Sink, languages: Wanted, tally: Tally) -> None:
    """Nothing; source, TAB, target on each line."""
    for number, pair in enumerate(pairs):
        source, target = (plain(text, pair, tally, tabs=False) for text in (pair.source, pair.target))
        file.write(line_bytes(f"{source}\t{target}", number))


def write_csv(pairs: Iterable[Pair], file: Sink, languages: Wanted, tally: Tally) -> None:
    """Nothing; a row of names, then the pairs, as RFC 4180 has it."""
    text = io.TextIOWrapper(cast(IO[bytes], file), encoding="utf-8", newline="", write_through=True)
    rows = csv.writer(text)
    rows.writerow(_names(languages))
    rows.writerows((pair.source, pair.target) for pair in pairs)
    text.detach()


def write_jsonl(pairs: Iterable[Pair], file: Sink, languages: Wanted, tally: Tally) -> None:
    """Nothing; an object a line: as Hugging Face's ``translation`` where the languages are known."""
    names = _names(languages)
    for pair in pairs:
        sides = dict(zip(names, (pair.source, pair.target), strict=True))
        value = {"translation": sides} if languages.both else sides
        file.write(json.dumps(value, ensure_ascii=False).encode() + b"\n")


def write_parquet(pairs: Iterable[Pair], file: Sink, languages: Wanted, tally: Tally) -> None:
    """Nothing; two columns of text, or one of ``translation`` where the languages are known."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise UsageError(
            "writing Parquet needs pyarrow; install it with `pip install 'transduce[formats]'`"
        ) from None
    names = _names(languages)
    fields: Any = [pyarrow.field(name, pyarrow.string()) for name in names]
    if languages.both:
        fields = [pyarrow.field("translation", pyarrow.struct(fields))]
    schema = pyarrow.schema(fields)
    with parquet.ParquetWriter(file, schema, compression="zstd", write_page_checksum=True) as writer:
        for chunk in _chunks(pairs):
            sides = [[pair.source for pair in chunk], [pair.target for pair in chunk]]
            if languages.both:
                sides = [[dict(zip(names, both, strict=True)) for both in zip(*sides, strict=True)]]  # type: ignore[misc]
            writer.write_batch(
                pyarrow.record_batch(
                    [pyarrow.array(side, field.type) for side, field in zip(sides, schema, strict=True)],
                    schema=schema,
                )
            )


def _names(languages: Wanted) -> tuple[str, str]:
    """What the columns are called: the languages where they are known and differ."""
    if languages.both and normal(languages.source) != normal(languages.target):
        return languages.source, languages.target
    return "source", "target"


def _chunks(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    rest = iter(pairs)
    while chunk := list(islice(rest, _ROWS)):
        yield chunk
