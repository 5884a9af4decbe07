"""Any file or folder that holds both sides of parallel text, read by what its name says it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from transduce.data.formats.csv_table import read_csv
from transduce.data.formats.json_lines import read_jsonl
from transduce.data.formats.mo import read_mo
from transduce.data.formats.pair import Pair
from transduce.data.formats.parquet import read_arrow, read_parquet
from transduce.data.formats.po import read_po
from transduce.data.formats.sgm import read_sgm
from transduce.data.formats.sides import Wanted
from transduce.data.formats.subtitles import SUFFIXES
from transduce.data.formats.tally import Tally
from transduce.data.formats.tbx import read_tbx_pairs
from transduce.data.formats.tmx import read_tmx
from transduce.data.formats.tsv import read_tsv
from transduce.data.formats.wmt_xml import read_wmt_xml
from transduce.data.formats.xliff import read_xliff
from transduce.data.formats.xml_file import root_of
from transduce.data.streams import bare_name, is_empty, named
from transduce.errors import DataError, UsageError

Reader = Callable[[str | Path, Wanted, Tally, int], Iterator[Pair]]


def _read_tsv(path: str | Path, wanted: Wanted, tally: Tally, corpus: int = 0) -> Iterator[Pair]:
    """The first column as source, the second as target, whatever the languages; others are told."""
    for pair in read_tsv(path, corpus):
        if pair.extra_columns:
            tally.more_columns(named(path), pair.line)
            pair = pair._replace(extra_columns=0)  # told once: training tells of those in ``data.tsv``
        yield pair


FORMATS: dict[str, tuple[tuple[str, ...], Reader]] = {
    "tsv": ((".tsv",), _read_tsv),
    "csv": ((".csv",), read_csv),
    "jsonl": ((".jsonl", ".ndjson"), read_jsonl),
    "parquet": ((".parquet",), read_parquet),
    "arrow": ((".arrow",), read_arrow),
    "tmx": ((".tmx",), read_tmx),
    "xliff": ((".xlf", ".xliff"), read_xliff),
    "po": ((".po", ".pot"), read_po),
    "mo": ((".mo", ".gmo"), read_mo),
    "tbx": ((".tbx",), read_tbx_pairs),
    "sgm": ((".sgm", ".sgml"), read_sgm),
    "wmt-xml": ((), read_wmt_xml),
}
"""Each format's name, the endings of its files, and its reader. What ``.xml`` is, its first element says."""
ROOTS = {
    "dataset": "wmt-xml",
    "mteval": "sgm",
    "tmx": "tmx",
    "xliff": "xliff",
    "tbx": "tbx",
    "martif": "tbx",
}
# Read by an Arrow reader from the disk, which no pipe and no compression can serve.
_FROM_DISK = ("parquet", "arrow")


def format_of(path: str | Path) -> str:
    """The format that a file's name tells, or where it ends in ``.xml`` its first element; else ""."""
    suffix = Path(bare_name(path)).suffix.lower()
    for name, (suffixes, _) in FORMATS.items():
        if suffix in suffixes:
            return name
    if suffix == ".xml":
        root = root_of(path) or next(iter(ROOTS))  # an empty file holds no pairs as any of them
        if root not in ROOTS:
            raise DataError(
                f"{path}: is XML of <{root}>; known are {', '.join(f'<{name}>' for name in ROOTS)}"
            )
        return ROOTS[root]
    return ""


def read_pair_file(
    path: str | Path, wanted: Wanted, tally: Tally, corpus: int = 0, kind: str = ""
) -> Iterator[Pair]:
    """The pairs of one file; ``kind`` is its format where the name does not tell it, as with ``-``.

    What is passed over and what is chosen by itself is for ``tally`` to tell. A file of no bytes holds no
    pairs in any format. UsageError where the file is of no known format.
    """
    name = kind or format_of(path)
    if name not in FORMATS:
        raise _unknown(path, name)
    if name in _FROM_DISK and (str(path) == "-" or bare_name(path) != Path(path).name):
        raise UsageError(f"{path}: {name} is read from the disk as it is; decompress it, or name a file")
    if is_empty(path):
        tally.leave_empty(named(path))
        return iter(())
    return FORMATS[name][1](path, wanted, tally, corpus)


def _unknown(path: str | Path, name: str) -> UsageError:
    if name:
        return UsageError(f"there is no format {name!r}; there are {', '.join(FORMATS)}")
    if str(path) == "-":
        piped = ", ".join(one for one in FORMATS if one not in _FROM_DISK)
        return UsageError(f"what standard input holds must be said with --format: {piped}")
    if Path(bare_name(path)).suffix.lower() in SUFFIXES:
        return UsageError(
            f"{path}: subtitles hold one language; give the files of both as --source and --target"
        )
    endings = ", ".join(suffix for suffixes, _ in FORMATS.values() for suffix in suffixes)
    return UsageError(
        f"{path}: its name tells no format that holds both sides; known are {endings}, .xml; two text "
        "files are given as --source and --target"
    )
