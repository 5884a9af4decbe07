from __future__ import annotations

import re
from pathlib import Path

import pytest
from fakes import same, upper
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.data.formats.subtitles import read_cues
from transduce.documents.subtitles import divided
from transduce.documents.translate import translate_document
from transduce.errors import DataError


def cue(number: int, text: str, begin: int | None = None) -> str:
    begin = 2 * number if begin is None else begin
    return f"{number}\n00:00:{begin:02},000 --> 00:00:{begin + 1:02},500\n{text}\n"


def srt(text: str, function: object = upper) -> str:
    return translate_document(text.encode(), "srt", function).content.decode()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello there.", "HELLO THERE."),
        ("<i>Hello there.</i>", "<i>HELLO THERE.</i>"),
        ("{\\an8}<i>Hello</i> there.", "{\\an8}<i>HELLO</i> THERE."),
        ("- Hello.\n- Who is it?", "- HELLO.\n- WHO IS IT?"),
        ("♪ la la la ♪", "♪ LA LA LA ♪"),
        ("a < b & c", "A < B & C"),
        ("...", "..."),
        ("1984", "1984"),
        ("one -> two --> three", "ONE -> TWO --> THREE"),
        ("this row is rather long, so there\nis a second one of that length.",) * 2,
    ],
)
def test_the_text_of_cues_is_translated_and_nothing_else(text: str, expected: str) -> None:
    for newline in ("\n", "\r\n"):
        before, after = (
            ("\ufeff" + cue(1, words) + "\n" + cue(2, "End.")).replace("\n", newline)
            for words in (text, expected.upper() if expected == text else expected)
        )
        assert srt(before) == after.replace("End.", "END.")


def test_a_sentence_over_several_cues_is_translated_as_one_and_divided_again() -> None:
    heard: list[str] = []
    text = "\n".join(
        [cue(1, "When the rain had stopped,"), cue(2, "we went home\nto eat."), cue(3, "So it was.")]
    )
    new = translate_document(text.encode(), "srt", lambda texts: (heard.extend(texts), upper(texts))[1])
    assert heard == ["When the rain had stopped, we went home to eat.", "So it was."]
    assert new.content.decode() == "\n".join(
        [cue(1, "WHEN THE RAIN HAD STOPPED,"), cue(2, "WE WENT HOME\nTO EAT."), cue(3, "SO IT WAS.")]
    ) or new.content.decode() == "\n".join(
        [cue(1, "WHEN THE RAIN HAD STOPPED,"), cue(2, "WE WENT HOME TO EAT."), cue(3, "SO IT WAS.")]
    )


@pytest.mark.parametrize(
    "cues",
    [
        [cue(1, "He said nothing"), cue(2, "Nobody did.")],  # no small letter
        [cue(1, "the end."), cue(2, "and so on")],  # a sentence has ended
        [cue(1, "the <b>end</b> of"), cue(2, "the story")],  # markup inside
        [cue(1, "and then"), cue(2, "it rained", 40)],  # a long silence
        [cue(1, "<i>the end of</i>"), cue(2, "the story")],  # other markup around
    ],
)
def test_cues_that_are_no_one_sentence_are_translated_one_by_one(cues: list[str]) -> None:
    heard: list[str] = []
    translate_document("\n".join(cues).encode(), "srt", lambda texts: (heard.extend(texts), texts)[1])
    assert len(heard) == 2


def test_fewer_words_than_cues_leave_no_cue_empty() -> None:
    text = "\n".join([cue(1, "it was"), cue(2, "so very"), cue(3, "good")])
    assert srt(text, lambda texts: ["Ja"]) == "\n".join([cue(1, "Ja"), cue(2, "…"), cue(3, "…")])


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.text(st.sampled_from("ab,."), min_size=1, max_size=6), min_size=1, max_size=20),
    st.lists(st.integers(0, 30), min_size=1, max_size=6),
)
def test_pieces_are_the_whole_and_none_is_empty_without_need(words: list[str], shares: list[int]) -> None:
    pieces = divided(" ".join(words), shares)
    assert len(pieces) == len(shares)
    assert " ".join(piece for piece in pieces if piece) == " ".join(words)
    assert sum(bool(piece) for piece in pieces) == min(len(words), len(shares))


def test_pieces_have_about_their_shares_and_end_at_commas() -> None:
    assert divided("aa bb cc dd", [1, 1]) == ["aa bb", "cc dd"]
    assert divided("a b c d e f g h i j", [4, 6]) == ["a b c d", "e f g h i j"]
    assert divided("aa bb, cc dd ee", [10, 9]) == ["aa bb,", "cc dd ee"]


VTT = """WEBVTT - title

STYLE
::cue { color: red }

NOTE a note
of two lines

intro
00:01.000 --> 00:02.000 align:start
<v Bob>Tom &amp; <b>Jerry</b> ran</v>

00:03.000 --> 00:04.000
<c.loud>stop!</c>
"""


def test_vtt_keeps_notes_styles_settings_and_escapes() -> None:
    new = translate_document(VTT.encode(), "vtt", upper).content.decode()
    assert new == VTT.replace("Tom &amp; <b>Jerry</b> ran", "TOM &amp; <b>JERRY</b> RAN").replace(
        "stop!", "STOP!"
    )
    with pytest.raises(DataError, match=r"x:1: a WebVTT file begins with WEBVTT"):
        translate_document(b"1\n", "vtt", same, name="x")


def test_times_that_are_none_are_refused_with_their_line_and_latin_subtitles_are_read() -> None:
    with pytest.raises(DataError, match=r"x:2: these are no times: '00:00 -> 1 --> x'"):
        translate_document(b"1\n00:00 -> 1 --> x\nHi\n", "srt", same, name="x")
    text = cue(1, "caf\xe9 ol\xe9").encode("latin-1")
    assert translate_document(text, "srt", upper).content == cue(1, "CAF\xc9 OL\xc9").encode("latin-1")


DAMAGED = {
    "no arrow": ("1\n00:00:01,000 -> 00:00:02,000\nHi\n", 1, "no number and times"),
    "no end": ("1\n00:00:bad\nHi\n", 1, "no number and times"),
    "a gap in a text": (cue(1, "Hi\n\nthere"), 5, "no number and times"),
    "a text above": ("Hi\n1\n" + cue(1, "there").partition("\n")[2], 1, "no number and times"),
    "no number": ("Hi\n" + cue(1, "there").partition("\n")[2], 1, "no number and times"),
    "no gap": (cue(1, "Hi") + cue(2, "there"), 5, "times inside a text"),
}


@pytest.mark.parametrize("damage", DAMAGED)
@pytest.mark.parametrize("kind", ["srt", "vtt"])
def test_a_damaged_cue_is_refused_with_its_line_as_where_a_corpus_is_read(
    damage: str, kind: str, tmp_path: Path
) -> None:
    text, line, message = DAMAGED[damage]
    text, line = cue(3, "Before.") + "\n" + text + "\n" + cue(9, "After."), line + 4
    if kind == "vtt":
        text, line = "WEBVTT\n\n" + text, line + 2
        if damage == "no number":  # a name
            return
    with pytest.raises(DataError, match=rf"^x:{line}: {message}"):
        translate_document(text.encode(), kind, same, name="x")
    (tmp_path / f"x.{kind}").write_text(text)
    with pytest.raises(DataError, match=rf"x\.{kind}:\d+: {message}"):
        read_cues(tmp_path / f"x.{kind}")


TEXTS = st.sampled_from(
    ["hi there", "to be", "and so,", "<i>oh no</i>", "- who\n- me", "one\ntwo", "{\\an8}up", "♪ x ♪", "42"]
)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(TEXTS, st.sampled_from(["\n", "\n\n"])), max_size=8))
def test_all_but_the_letters_of_the_cues_stays(cues: list[tuple[str, str]]) -> None:
    text = "".join(cue(number, words) + gap for number, (words, gap) in enumerate(cues, 1))
    new = srt(text)
    # Capitals for letters; and where a sentence was divided anew, other spaces and line ends.
    assert sorted(re.findall(r"</?i>|[^\s<>]+", new.lower())) == sorted(re.findall(r"</?i>|[^\s<>]+", text))
    assert re.findall(r"\d+\n[\d:,]+ --> [\d:,]+\n", new) == re.findall(r"\d+\n[\d:,]+ --> [\d:,]+\n", text)
    assert not re.search(r"[a-z]", re.sub(r"</?i>|\{\\an8\}", "", new))
    assert srt(text, same) == text
