"""SRT and WebVTT subtitles: the text of the cues is translated, numbers and times stay.

A sentence that goes on over several cues is translated as one and divided again among them, at the spaces
that come nearest to the cues' shares of its characters, after punctuation where that is near. A cue with
markup inside is translated by itself.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from transduce.data.formats.subtitles import times_inside, without_times
from transduce.documents.encodings import decode
from transduce.documents.entities import decoded
from transduce.documents.inline import says_something
from transduce.documents.slots import Lines, Opened, Part, Raw, Slot
from transduce.documents.translate import Reading
from transduce.errors import DataError

_TIME = r"(?:\d{1,4}:)?\d{1,2}:\d{1,2}[.,]\d{1,3}"
_TIMING = re.compile(rf"[ \t]*({_TIME})[ \t]*-->[ \t]*({_TIME})[^\n]*")
_TAG = re.compile(r"<[^<>\n]*>|\{\\[^{}\n]*\}")
_BEFORE = re.compile(r"<[^<>/\n][^<>\n]*>|\{\\[^{}\n]*\}|[♪♫#]\s+")
_AFTER = re.compile(r"(?:</[^<>\n]*>|\s+[♪♫])$")
_SENTENCE_END = re.compile(r"(?:[.!?…:。！？♪♫][\"'”’»)\]]*|[-–—])$")
_SPEAKER = re.compile(r"[-–—]\s*|>>\s*|\[")
_PAUSE = re.compile(r"[,;:.!?…–—]$")
# The most cues that one sentence is taken to go on over, and the longest silence within it in seconds.
_MOST_CUES, _SILENCE = 5, 2.0
# Characters of a line when it must be broken anew; longer only where the cue had longer ones.
_WIDTH = 42
_NOTE = re.compile(r"(?:NOTE|STYLE|REGION)(?:[ \t\n]|$)")

Spelling = Callable[[str], str]


@dataclass(frozen=True)
class _Cue:
    """The text of one cue (or of one speaker's line in it), without markup around the whole of it."""

    begin: int
    end: int
    text: str
    around: str
    rows: int
    width: int
    starts: float
    stops: float
    joins: bool


def open_subtitles(content: bytes, reading: Reading, *, vtt: bool) -> Opened:
    """The sentences of the cues as slots."""
    try:
        text, encode = decode(content, "utf-8", reading.name)
    except DataError:
        if vtt:
            raise
        text, encode = decode(content, "cp1252", reading.name)
    if vtt and not text.removeprefix("\ufeff").startswith("WEBVTT"):
        raise DataError(f"{reading.name}:1: a WebVTT file begins with WEBVTT; this one begins {text[:20]!r}")
    lines = Lines(text)
    cues = list(_cues(text, reading.name, lines, vtt))
    read, write = (_read_vtt, _write_vtt) if vtt else (_same, _same)
    slots = [
        _slot(text, group, f"{reading.name}:{lines.number(group[0].begin)}", read, write)
        for group in _sentences(cues)
        if says_something(" ".join(cue.text for cue in group))
    ]
    return Opened((Part(text, tuple(slots)),), lambda texts: encode(texts[0]))


def _cues(text: str, name: str, lines: Lines, vtt: bool) -> Iterator[_Cue]:
    """The cues, a blank line after each; speakers of one cue apart. DataError for a text without times."""
    for number, (first, end) in enumerate(_blocks(text)):
        rows = list(_rows(text, first, end))
        if vtt and _NOTE.match(rows[0][1]):
            continue
        place = next((place for place, (_, line) in enumerate(rows) if "-->" in line), None)
        is_header = vtt and number == 0
        if is_header and place is None:
            continue
        above = [] if place is None or is_header else [line.strip("\ufeff \t") for _, line in rows[:place]]
        if place is None or len(above) > 1 or not (vtt or all(line.isdecimal() for line in above)):
            raise without_times(name, lines.number(first))
        at, line = rows[place]
        timing = _TIMING.fullmatch(line)
        if timing is None:
            raise DataError(
                f"{name}:{lines.number(at)}: these are no times: {line.strip()!r}; "
                "expected 00:00:01,000 --> 00:00:02,000"
            )
        for other, line in rows[place + 1 :]:
            if _TIMING.fullmatch(line):  # an arrow alone may be text
                raise times_inside(name, lines.number(other))
        begin = min(rows[place + 1][0] if place + 1 < len(rows) else end, end)
        yield from _speakers(text, begin, end, _seconds(timing[1]), _seconds(timing[2]))


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Where the rows are between which there is no blank one."""
    begin = -1
    for at, line in _rows(text, 0, len(text)):
        if line.strip("\ufeff \t\r"):
            begin = at if begin < 0 else begin
        elif begin >= 0:
            yield begin, at
            begin = -1
    if begin >= 0:
        yield begin, len(text)


def _rows(text: str, begin: int, end: int) -> Iterator[tuple[int, str]]:
    while begin < end:
        stop = text.find("\n", begin, end)
        stop = end if stop < 0 else stop
        yield begin, text[begin:stop].removesuffix("\r")
        begin = stop + 1


def _seconds(time: str) -> float:
    value = 0.0
    for part in time.replace(",", ".").split(":"):
        value = 60 * value + float(part)
    return value


def _speakers(text: str, begin: int, end: int, starts: float, stops: float) -> Iterator[_Cue]:
    """The rows of a cue as one text, or several where each begins with the dash of a speaker."""
    rows = list(_rows(text, begin, end))
    groups: list[list[tuple[int, str]]] = []
    for row in rows:
        if not groups or _SPEAKER.match(_TAG.sub("", row[1]).lstrip()):
            groups.append([])
        groups[-1].append(row)
    for group in groups:
        first, last = group[0][0], group[-1][0] + len(group[-1][1])
        raw = text[first:last].rstrip()
        begin = first + len(raw) - len(raw.lstrip())
        lead, inner = _without_wrapping(raw.lstrip())
        dash = _SPEAKER.match(inner)
        skipped = 0 if dash is None or dash.group() == "[" else dash.end()
        inner = inner[skipped:]
        if inner.strip():
            begin += lead + skipped
            yield _Cue(
                begin=begin,
                end=begin + len(inner),
                text=" ".join(inner.split()),
                around=raw.lstrip()[:lead],
                rows=len(group),
                width=max(len(_TAG.sub("", row).strip()) for _, row in group),
                starts=starts,
                stops=stops,
                joins=len(groups) == 1 and not _TAG.search(inner) and not skipped,
            )


def _without_wrapping(text: str) -> tuple[int, str]:
    """The text without the tags and notes around all of it, and where it begins."""
    begin, end, inner = 0, len(text), text
    while found := _BEFORE.match(text, begin):
        begin = found.end()
    while end > begin and (found := _AFTER.search(text, max(begin, end - 80), end)):
        end = found.start()
    inner = text[begin:end]
    if not _TAG.search(inner):
        return begin, inner
    # Tags that end in the middle are left to the translation, those that place the cue are not.
    begin = 0
    while text.startswith("{\\", begin) and (found := _BEFORE.match(text, begin)):
        begin = found.end()
    return begin, text[begin:]


def _same(text: str) -> str:
    return text


def _read_vtt(text: str) -> str:
    """The text without the escapes of WebVTT."""
    return decoded(text)[0]


def _write_vtt(text: str) -> str:
    """The text as WebVTT has it: only tags keep their brackets."""
    pieces = re.split(f"({_TAG.pattern})", text)
    return "".join(piece if at % 2 else html.escape(piece, quote=False) for at, piece in enumerate(pieces))


def _sentences(cues: Sequence[_Cue]) -> Iterator[list[_Cue]]:
    """The cues in groups, each of which is translated together."""
    group: list[_Cue] = []
    for cue in cues:
        if group and not _goes_on(group, cue):
            yield group
            group = []
        group.append(cue)
    if group:
        yield group


def _goes_on(group: Sequence[_Cue], cue: _Cue) -> bool:
    last = group[-1]
    return (
        len(group) < _MOST_CUES
        and last.joins
        and cue.joins
        and cue.around == last.around
        and not _SENTENCE_END.search(last.text)
        and (cue.text[:1].islower() or last.text[-1:] == ",")
        and 0 <= cue.starts - last.stops <= _SILENCE
    )


def _slot(text: str, group: Sequence[_Cue], place: str, read: Spelling, write: Spelling) -> Slot:
    whole = read(" ".join(cue.text for cue in group))
    fill = partial(_filled, text, group, write)
    return Slot(begin=group[0].begin, end=group[-1].end, place=place, texts=(whole,), fill=fill)


def _filled(text: str, group: Sequence[_Cue], write: Spelling, outputs: Sequence[str], raw: Raw) -> str:
    """The cues of a sentence with the pieces of its translation."""
    pieces = []
    at = group[0].begin
    for cue, share in zip(group, divided(outputs[0], [len(cue.text) for cue in group]), strict=True):
        newline = "\r\n" if "\r\n" in text[max(0, cue.begin - 2) : cue.end + 2] else "\n"
        rows = _broken(share, cue).replace("\n", newline)
        pieces += [raw(at, cue.begin), write(rows or "…")]
        at = cue.end
    return "".join(pieces)


def divided(text: str, shares: Sequence[int]) -> list[str]:
    """The text in as many pieces as there are shares, in about these proportions; none is empty if possible.

    It is cut at spaces, and of two places that are about as good after punctuation.
    """
    words = text.split(" ")
    pieces: list[str] = []
    begin, total, length = 0, sum(shares), len(text)
    wanted = 0.0
    for number, share in enumerate(shares[:-1]):
        wanted += length * share / max(1, total)
        left = len(shares) - number - 1
        last = max(min(begin + 1, len(words)), len(words) - left)
        ends = range(min(begin + 1, last), last + 1)
        at = len(" ".join(words[:begin])) + (begin > 0)
        costs = []
        position = at
        for end in range(begin, last + 1):
            if end in ends:
                pause = bool(end and _PAUSE.search(words[end - 1]))
                costs.append((abs(position - wanted) * (0.6 if pause else 1.0), end))
            if end < len(words):
                position += len(words[end]) + 1
        end = min(costs)[1]
        pieces.append(" ".join(words[begin:end]))
        begin = end
    return [*pieces, " ".join(words[begin:])]


def _broken(text: str, cue: _Cue) -> str:
    """The text in rows of about one length: as many as it needs, at most those of the cue if it fits."""
    plain = len(_TAG.sub("", text))
    if cue.rows == 1 and plain <= max(_WIDTH, cue.width):
        return text
    rows = max(1, -(-plain // max(_WIDTH, cue.width)), min(cue.rows, -(-plain // _WIDTH)))
    return "\n".join(divided(text, [1] * rows)) if rows <= len(text.split(" ")) else text
