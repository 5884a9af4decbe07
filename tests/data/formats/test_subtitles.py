from __future__ import annotations

from collections.abc import Callable

import pytest

from transduce.data.corpora import count_pairs, read_corpora
from transduce.data.formats.subtitles import Cue, read_cues, read_subtitle_pair
from transduce.data.formats.tally import Tally
from transduce.data.formats.two_files import read_side
from transduce.errors import DataError, UsageError

Write = Callable[..., str]
SRT = (
    "\ufeff1\r\n00:00:01,000 --> 00:00:02,500\r\n<i>Hello</i>\r\n- you\r\n\r\n\r\n"
    '2\r\n00:00:03,0 --> 00:01:04,250 X1:1\r\n{\\an8}Bye <font color="red">now</font>\r\n'
)
VTT = (
    "WEBVTT - title\n\nNOTE a\nb\n\nSTYLE\n::cue { }\n\n"
    "intro\n00:01.000 --> 00:02.500 line:0\n<v Ann>Hello</v> <c.x>&amp; you</c>\n\n"
    "00:03.000 --> 00:04.000\n<00:03.500>Bye\n"
)


def cue(begin: int, end: int, text: str) -> str:
    return f"00:00:{begin // 10:02},{begin % 10}00 --> 00:00:{end // 10:02},{end % 10}00\n{text}\n\n"


def test_srt(write: Write) -> None:
    assert read_cues(write("a.srt", SRT.encode())) == [
        Cue("Hello - you", 1000, 2500, 2), Cue("Bye now", 3000, 64250, 8)
    ]  # fmt: skip


def test_vtt(write: Write) -> None:
    assert read_cues(write("a.vtt", VTT.encode())) == [
        Cue("Hello & you", 1000, 2500, 10),
        Cue("Bye", 3000, 4000, 13),
    ]
    assert list(read_side(write("a.vtt", VTT.encode()))) == ["Hello & you", "Bye"]


def test_texts_are_aligned_by_time(write: Write) -> None:
    source = write(
        "a.srt",
        "".join(
            [
                cue(10, 20, "one"),
                cue(30, 40, "two"),
                cue(41, 50, "three"),
                cue(60, 70, "alone"),
                cue(80, 99, "four"),
            ]
        ).encode(),
    )
    target = write(
        "b.srt",
        "".join(
            [cue(11, 21, "eins"), cue(30, 50, "zwei drei"), cue(80, 89, "vier"), cue(90, 99, "und mehr")]
        ).encode(),
    )
    tally = Tally()
    pairs = list(read_subtitle_pair(source, target, tally))
    assert [(p.source, p.target) for p in pairs] == [
        ("one", "eins"), ("two three", "zwei drei"), ("four", "vier und mehr")
    ]  # fmt: skip
    assert tally.lines() == [f"{source}: 1 left out: 1 without a text at the same time (first at 10)"]
    assert [p.target for p in read_corpora([source], [target])] == [p.target for p in pairs]
    assert count_pairs([source], [target]) == 3


def test_no_text_is_lost_whatever_the_times(write: Write) -> None:
    import random

    draw = random.Random(1)
    for _ in range(50):
        sides = []
        for name in ("a.srt", "b.srt"):
            at, cues = 0, []
            for number in range(draw.randint(0, 12)):
                begin = at + draw.randint(-5, 15) if number else 0
                begin = max(begin, 0)
                at = begin + draw.randint(0, 30)
                cues.append(cue(begin, at, f"{name[0]}{number}"))
            sides.append((write(name, "".join(cues).encode()), len(cues)))
        tally = Tally()
        pairs = list(read_subtitle_pair(sides[0][0], sides[1][0], tally))
        words = [word for pair in pairs for text in pair[:2] for word in text.split()]
        assert len(words) == len(set(words))
        assert len(words) + tally.count() == sides[0][1] + sides[1][1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\n00:00:01,000 -> 00:00:02,000\nHi\n", r"a.srt:1: no number and times such as"),
        ("1\n00:00:01,000 --> 0:0:x\nHi\n", r"a.srt:1: no number and times"),
        ("x\n00:00:01,000 --> 00:00:02,000\nHi\n", r"a.srt:1: no number and times"),
        ("1\n00:00:03,000 --> 00:00:02,000\nHi\n", r"a.srt:2: ends before it begins"),
        (
            "1\n00:00:01,000 --> 00:00:02,000\nHi\n2\n00:00:03,000 --> 00:00:04,000\n",
            r"a.srt:2: times inside a text",
        ),
        ("1\n00:00:01,000 --> 00:00:02,000\nHi\n\nmore\n", r"a.srt:5: no number and times"),
    ],
)
def test_damage_is_named_with_its_line(write: Write, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_cues(write("a.srt", text.encode()))


def test_vtt_begins_as_such(write: Write) -> None:
    with pytest.raises(DataError, match=r"a.vtt:1: does not begin with WEBVTT"):
        read_cues(write("a.vtt", VTT.removeprefix("WEBVTT").encode()))


def test_subtitles_hold_one_side(write: Write, read) -> None:
    path = write("a.srt", SRT.encode())
    with pytest.raises(UsageError, match=r"a.srt: subtitles hold one language; .*--source and --target"):
        read(path)
    with pytest.raises(UsageError, match=r"aligned by their times, which only one of them has"):
        list(read_corpora([path], [write("b.txt", ["x"])]))
