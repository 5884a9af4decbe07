"""Subtitles, SRT and WebVTT: texts with the time for which they are shown.

Two files of one film are aligned by time: texts that are shown together translate each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path

from transduce.data.formats.pair import Pair
from transduce.data.formats.tally import Tally
from transduce.data.lines import read_lines
from transduce.data.streams import bare_name, is_empty, named
from transduce.errors import DataError

SUFFIXES = (".srt", ".vtt")
_TIME = r"(?:(\d{1,3}):)?(\d{1,2}):(\d{1,2})[,.](\d{1,3})"
_TIMES = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}(?:\s(?!.*-->).*)?")
_TAGS = re.compile(
    r"</?(?:[ibu]|c|v|lang|ruby|rt|font)(?:[.\s][^<>]*)?>|<[\d:.]+>|\{\\[^{}]*\}", re.IGNORECASE
)
_NOT_TEXT = ("NOTE", "STYLE", "REGION")
_SHARED = 0.5
"""Two texts belong together if they are shown together for so much of the shorter time."""
_MOST = 4
"""So many texts of one side may belong together; more is a fault of the times."""


@dataclass
class Cue:
    """One text, its begin and end in milliseconds, and its line."""

    text: str
    begin: int
    end: int
    line: int


def read_cues(path: str | Path) -> list[Cue]:
    """The texts of a file in order, each as one line without the tags; DataError names file and line."""
    file, blocks = named(path), _blocks(path)
    vtt = bare_name(path).endswith(".vtt")
    if vtt and not is_empty(path):
        first = next(blocks, None)
        if first is None or not first[1][0].startswith("WEBVTT"):
            raise DataError(f"{file}:1: does not begin with WEBVTT; a file of WebVTT does")
        if any("-->" in line for line in first[1]):
            raise DataError(f"{file}:{first[0]}: no empty line after WEBVTT; a text follows after one")
    cues = []
    for line, block in blocks:
        if vtt and block[0].split(" ")[0] in _NOT_TEXT:
            continue
        cues.append(_cue(block, line, file, vtt))
    return cues


def _blocks(path: str | Path) -> Iterator[tuple[int, list[str]]]:
    """Runs of lines that are not empty, and the number of the first."""
    block: list[str] = []
    number = 0
    for number, line in enumerate(read_lines(path), 1):
        if line.strip():
            block.append(line)
        elif block:
            yield number - len(block), block
            block = []
    if block:
        yield number + 1 - len(block), block


def _cue(block: list[str], line: int, file: str, vtt: bool) -> Cue:
    """The text of a block: a number or name perhaps, the times, the lines of text."""
    at = next((place for place, text in enumerate(block) if "-->" in text), None)
    found = None if at is None or at > 1 else _TIMES.fullmatch(block[at])
    if at is None or found is None or (at == 1 and not vtt and not block[0].strip().isdecimal()):
        raise without_times(file, line)
    if any("-->" in text for text in block[at + 1 :]):
        raise times_inside(file, line + at)
    begin, end = (_milliseconds(found.groups()[side : side + 4]) for side in (0, 4))
    if end < begin:
        raise DataError(f"{file}:{line + at}: ends before it begins; mend the times")
    text = " ".join(part for text in block[at + 1 :] if (part := _TAGS.sub("", text).strip()))
    return Cue(unescape(text) if vtt else text, begin, end, line + at)


def without_times(file: str, line: int) -> DataError:
    """The error of a text without its times; ``line`` is its first."""
    return DataError(
        f"{file}:{line}: no number and times such as 00:01:02,500 --> 00:01:04,000 in front of a text; "
        "an empty line ends a text"
    )


def times_inside(file: str, line: int) -> DataError:
    """The error of a text that goes on with the times of another."""
    return DataError(f"{file}:{line}: times inside a text; an empty line ends a text")


def _milliseconds(parts: tuple[str | None, ...]) -> int:
    hours, minutes, seconds = (int(part or 0) for part in parts[:3])
    return ((hours * 60 + minutes) * 60 + seconds) * 1000 + int((parts[3] or "").ljust(3, "0"))


def read_subtitle_pair(
    source_path: str | Path, target_path: str | Path, tally: Tally, corpus: int = 0
) -> Iterator[Pair]:
    """The texts that are shown at the same time, joined where one stands for several of the other side.

    What has no counterpart is counted in ``tally``. ``line`` is that of the first source text.
    """
    sources, targets = read_cues(source_path), read_cues(target_path)
    file, other = named(source_path), named(target_path)
    for ours, theirs in _groups(sources, targets):
        if not ours or not theirs:
            name, cue = (file, ours[0]) if ours else (other, theirs[0])
            tally.skip(name, "without a text at the same time", cue.line, len(ours) + len(theirs))
        elif max(len(ours), len(theirs)) > _MOST:
            tally.skip(file, f"in groups of more than {_MOST}", ours[0].line, len(ours))
            tally.skip(other, f"in groups of more than {_MOST}", theirs[0].line, len(theirs))
        else:
            source, target = (" ".join(cue.text for cue in cues if cue.text) for cues in (ours, theirs))
            yield Pair(source, target, file, ours[0].line, corpus=corpus)


def _groups(sources: list[Cue], targets: list[Cue]) -> Iterator[tuple[list[Cue], list[Cue]]]:
    """Texts that hang together by time, in the order of time; each text is in one group."""
    line = sorted(
        [(cue.begin, cue.end, 0, cue) for cue in sources] + [(cue.begin, cue.end, 1, cue) for cue in targets],
        key=lambda item: item[:3],
    )
    group: tuple[list[Cue], list[Cue]] = ([], [])
    for _, _, side, cue in line:
        if any(group) and not any(_together(cue, before) for before in group[1 - side]):
            yield group
            group = ([], [])
        group[side].append(cue)
    if any(group):
        yield group


def _together(one: Cue, other: Cue) -> bool:
    shared = min(one.end, other.end) - max(one.begin, other.begin)
    shorter = min(one.end - one.begin, other.end - other.begin)
    return (shared > 0 and shared >= _SHARED * shorter) or (shorter == 0 and shared == 0)
