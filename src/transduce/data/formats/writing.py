"""Pairs into a file of any format that can be written, or into two text files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

from transduce.data.formats.pair import Pair
from transduce.data.formats.pair_file import FORMATS
from transduce.data.formats.sides import Wanted
from transduce.data.formats.tally import Tally
from transduce.data.formats.write_po import with_source, write_po
from transduce.data.formats.write_tables import (
    line_bytes,
    plain,
    write_csv,
    write_jsonl,
    write_parquet,
    write_tsv,
)
from transduce.data.formats.write_xml import write_sgm, write_tmx, write_wmt_xml, write_xliff
from transduce.data.outputs import Sink, open_output
from transduce.data.streams import COMPRESSIONS, bare_name
from transduce.errors import UsageError

Writer = Callable[[Iterable[Pair], Sink, Wanted, Tally], None]
WRITERS: dict[str, Writer] = {
    "tsv": write_tsv,
    "csv": write_csv,
    "jsonl": write_jsonl,
    "parquet": write_parquet,
    "tmx": write_tmx,
    "xliff": write_xliff,
    "po": write_po,
    "sgm": write_sgm,
    "wmt-xml": write_wmt_xml,
}
TEXT = "text"
"""Two files, named by their languages."""


def output_format(path: str | Path, kind: str = "") -> str:
    """The format to write ``path`` in: ``kind``, or what its ending tells; without one, two text files.

    UsageError for what cannot be written, for an ending that tells nothing, and for a folder.
    """
    suffix = Path(bare_name(path)).suffix.lower()
    named = next((name for name, (suffixes, _) in FORMATS.items() if suffix in suffixes), "")
    wanted = kind or named or ("wmt-xml" if suffix == ".xml" else TEXT)
    if wanted not in (*WRITERS, TEXT):
        raise UsageError(f"{path}: {wanted} cannot be written; there are {TEXT}, {', '.join(WRITERS)}")
    if wanted == TEXT:
        _check_text_name(path, suffix, is_asked=bool(kind))
    return wanted


def _check_text_name(path: str | Path, suffix: str, *, is_asked: bool) -> None:
    if str(path) == "-":
        formats = ", ".join(WRITERS)
        raise UsageError(
            f"standard output takes one file, not two of text; say its format with --to: {formats}"
        )
    if Path(path).is_dir() or str(path).endswith(("/", os.sep)):
        raise UsageError(f"{path}: is a folder; name a file in it, such as {Path(path) / 'pairs.tsv'}")
    if suffix and not is_asked:
        endings = ", ".join(suffix for name in WRITERS for suffix in FORMATS[name][0])
        raise UsageError(
            f"{path}: the ending {suffix} tells no format that can be written; known are {endings}, .xml; "
            f"say the format with --to, or --to {TEXT} for two text files that begin so"
        )


def text_names(path: str | Path, languages: Wanted) -> tuple[str, str]:
    """The names of two text files: ``out`` gives ``out.en`` and ``out.de``, ``out.gz`` ``out.en.gz``."""
    if not languages.both or languages.source == languages.target:
        raise UsageError(
            f"{path}: two text files are named by their languages; say them with --source-language and "
            "--target-language, or give the output an ending such as .tsv"
        )
    name = Path(path)
    packed = name.suffix if name.suffix in COMPRESSIONS else ""
    stem = str(name).removesuffix(packed)
    return f"{stem}.{languages.source}{packed}", f"{stem}.{languages.target}{packed}"


def write_pairs(
    pairs: Iterable[Pair], path: str | Path, languages: Wanted, tally: Tally, kind: str = ""
) -> int:
    """How many pairs were written to ``path``, or to two text files that begin so; all of it or nothing."""
    written = 0

    def counted() -> Iterator[Pair]:
        nonlocal written
        for pair in pairs:
            written += 1
            yield pair

    wanted = output_format(path, kind)
    if wanted == "po":
        pairs = with_source(pairs, tally)
    if wanted == TEXT:
        with ExitStack() as stack:
            files = [stack.enter_context(open_output(name)) for name in text_names(path, languages)]
            for number, pair in enumerate(counted()):
                for text, file in zip((pair.source, pair.target), files, strict=True):
                    file.write(line_bytes(plain(text, pair, tally), number))
        return written
    with open_output(path) as file:
        WRITERS[wanted](counted(), file, languages, tally)
    return written
