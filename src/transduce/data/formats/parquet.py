"""Parquet and Arrow files, as Hugging Face's ``datasets`` writes them: two columns, or ``translation``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from transduce.counts import counted
from transduce.data.formats.columns import Columns
from transduce.data.formats.pair import Pair
from transduce.data.formats.sides import Sides, Wanted
from transduce.data.formats.tally import Tally
from transduce.errors import DataError, UsageError

_ROWS = 4096
_ARROW = b"ARROW1"


def read_parquet(path: str | Path, wanted: Wanted, tally: Tally, corpus: int = 0) -> Iterator[Pair]:
    """The pairs of a Parquet file, some thousand rows at a time; ``line`` is the row, counted from 1.

    Rows with a null on a side are left out and counted in ``tally``.
    """
    with _explained(path):
        from pyarrow import parquet

        with parquet.ParquetFile(path, page_checksum_verification=True) as file:
            reader = _Rows(str(path), file.schema_arrow, wanted, tally, corpus)
            for batch in file.iter_batches(_ROWS, columns=reader.columns):
                yield from reader.pairs(batch)
            reader.finish(file.metadata.num_rows)


def read_arrow(path: str | Path, wanted: Wanted, tally: Tally, corpus: int = 0) -> Iterator[Pair]:
    """The pairs of an Arrow file (``data-*.arrow`` of a saved dataset), batch by batch, memory-mapped."""
    with _explained(path):
        import pyarrow
        from pyarrow import ipc

        with pyarrow.memory_map(str(path)) as mapped:
            if mapped.read(len(_ARROW)) == _ARROW:
                file = ipc.open_file(mapped)
                schema, batches = file.schema, (file.get_batch(n) for n in range(file.num_record_batches))
            else:
                mapped.seek(0)
                batches = ipc.open_stream(mapped)
                schema = batches.schema
            reader = _Rows(str(path), schema, wanted, tally, corpus)
            for batch in batches:
                batch.validate(full=True)
                for start in range(0, batch.num_rows, _ROWS):
                    yield from reader.pairs(batch.slice(start, _ROWS))
            reader.finish(reader.row)


class _Rows:
    """Turns batches of rows into pairs."""

    def __init__(self, file: str, schema: Any, wanted: Wanted, tally: Tally, corpus: int) -> None:
        self._file, self._tally, self._corpus = file, tally, corpus
        sides = Sides(file, wanted, tally)
        self._finish = sides.finish
        self.row = 0
        texts = {field.name: field for field in schema if _is_text(field.type)}
        nested = [field for field in schema if field.name == "translation" and _is_struct(field.type)]
        if nested:
            kept = [part.name for part in nested[0].type if _is_text(part.type)]
            self.columns = ["translation"]
            places = sides.of(kept)
            if places is None:
                sides.finish()
                raise DataError(
                    f"{file}: its column translation holds {', '.join(kept) or 'no text'}; two languages "
                    "are expected"
                )
            self._parts = [kept[place] for place in places]
        else:
            columns = Columns(file, wanted, tally)
            names = list(texts)
            self.columns = [names[place] for place in columns.of(names)]
            self._finish = columns.finish
            self._parts = []

    def pairs(self, batch: Any) -> Iterator[Pair]:
        """The pairs of the next rows."""
        if self._parts:
            rows = batch.column("translation").to_pylist()
            sources, targets = ([None if row is None else row[part] for row in rows] for part in self._parts)
        else:
            sources, targets = (batch.column(name).to_pylist() for name in self.columns)
        for source, target in zip(sources, targets, strict=True):
            self.row += 1
            if source is None or target is None:
                self._tally.skip(self._file, "without source or target", self.row)
            else:
                yield Pair(source, target, self._file, self.row, corpus=self._corpus)

    def finish(self, rows: int) -> None:
        """Nothing; DataError where there should have been another number of rows."""
        if rows != self.row:
            raise DataError(
                f"{self._file}: names {counted(rows, 'row')} but holds {self.row:,}; it is damaged: fetch it "
                "again"
            )
        self._finish()


def _is_text(kind: Any) -> bool:
    import pyarrow

    types = pyarrow.types
    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or (types.is_dictionary(kind) and types.is_string(kind.value_type))
    )


def _is_struct(kind: Any) -> bool:
    import pyarrow

    return bool(pyarrow.types.is_struct(kind))


@contextmanager
def _explained(path: str | Path) -> Iterator[None]:
    """What pyarrow raises becomes one line that names the file."""
    try:
        import pyarrow
    except ImportError:
        raise UsageError(
            f"{path}: reading and writing Parquet and Arrow needs pyarrow; install it with "
            "`pip install 'transduce[formats]'`"
        ) from None
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; check the path") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: holds text that is not UTF-8; it is damaged: fetch it again") from None
    except (pyarrow.ArrowException, OSError, OverflowError, MemoryError) as error:
        what = " ".join(str(error).split())[:200]
        raise DataError(f"{path}: is damaged, or no such file: {what}; fetch it again") from None
