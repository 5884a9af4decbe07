"""The two sides of parallel text in a file each: plain text, subtitles or SGM test sets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from transduce.data.formats.pair import Pair
from transduce.data.formats.sgm import read_sgm_side
from transduce.data.formats.subtitles import SUFFIXES, read_cues, read_subtitle_pair
from transduce.data.formats.tally import Tally
from transduce.data.formats.text_pair import read_text_pair, unequal
from transduce.data.lines import read_lines
from transduce.data.streams import bare_name, is_empty, named
from transduce.errors import DataError, UsageError

_SGM = (".sgm", ".sgml", ".xml")
# What nobody calls a file of one side, and whose lines are no text.
_BOTH = (".tmx", ".xlf", ".xliff", ".po", ".pot", ".mo", ".gmo", ".tbx", ".parquet", ".arrow")


def is_plain(path: str | Path) -> bool:
    """Whether a file of one side is plain text by its name, a segment a line; UsageError for one of both."""
    suffix = Path(bare_name(path)).suffix.lower()
    if suffix in _BOTH:
        raise UsageError(f"{path}: holds both sides; give it with --pairs (data.pairs)")
    return suffix not in (*SUFFIXES, *_SGM)


def read_side(path: str | Path) -> Iterator[str]:
    """The segments of a file of one side, each on one line."""
    suffix = Path(bare_name(path)).suffix.lower()
    if suffix in SUFFIXES:
        return (cue.text for cue in read_cues(path))
    if suffix in _SGM:
        return iter(read_sgm_side(path)[0])
    is_plain(path)
    return read_lines(path)


def read_two_files(
    source_path: str | Path, target_path: str | Path, tally: Tally, corpus: int = 0
) -> Iterator[Pair]:
    """The pairs of two files: lines by their order, subtitles by time, segments of SGM by their numbers."""
    suffixes = [Path(bare_name(path)).suffix.lower() for path in (source_path, target_path)]
    for path in (source_path, target_path):
        if is_empty(path):
            tally.leave_empty(named(path))
    if is_plain(source_path) and is_plain(target_path):
        return read_text_pair(source_path, target_path, corpus)
    if all(suffix in SUFFIXES for suffix in suffixes):
        return read_subtitle_pair(source_path, target_path, tally, corpus)
    if any(suffix in SUFFIXES for suffix in suffixes):
        raise UsageError(
            f"{source_path} and {target_path}: subtitles are aligned by their times, which only one of them "
            "has; give subtitles of both languages"
        )
    return _by_number(source_path, target_path, corpus)


def _by_number(source_path: str | Path, target_path: str | Path, corpus: int) -> Iterator[Pair]:
    (sources, numbers), (targets, others) = _numbered(source_path), _numbered(target_path)
    if len(sources) != len(targets):
        raise unequal(source_path, len(sources), target_path, len(targets))
    if numbers and others and numbers != others:
        one, other = next((a, b) for a, b in zip(numbers, others, strict=True) if a != b)
        raise DataError(
            f"{source_path} has segment {one[1]!r} of the document {one[0]!r} where {target_path} has "
            f"{other[1]!r} of {other[0]!r}: they are not aligned"
        )
    for line, (source, target) in enumerate(zip(sources, targets, strict=True), 1):
        yield Pair(source, target, str(source_path), line, corpus=corpus)


def _numbered(path: str | Path) -> tuple[list[str], list[tuple[str, str]]]:
    return (list(read_lines(path)), []) if is_plain(path) else read_sgm_side(path)
