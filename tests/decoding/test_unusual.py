from __future__ import annotations

import pytest

from tiny_translator import tiny_bundle
from transduce.decoding.translation import Alternative, OutputPart
from transduce.decoding.translator import Translator
from transduce.decoding.unusual import unusual


def odd(
    source: str, output: str, *, lengths: tuple[int, int] = (9, 10), truncated: bool = False
) -> list[str]:
    """What is odd of an output; ``lengths`` are tokens of source (without its end) and output."""
    parts = (OutputPart((5,) * lengths[0], 0, (5,) * lengths[1], 0),)
    found = Alternative(output, -1.0, -1.0, lengths[1], truncated, (), parts=parts)
    return unusual(source, found)


def test_copies_and_repetition() -> None:
    assert odd("a b c d", "e f g h") == []
    assert odd("a b c d", "a b c d") == ["100% of the output's words are copied from the source"]
    assert odd("Berlin", "Berlin") == []
    assert odd("a b c d e", "a b c x y") == []
    (reason,) = odd("something", "la " * 60)
    assert reason.startswith("the output repeats itself (compression ratio ")


@pytest.mark.parametrize(
    ("source", "output", "which"),
    [
        (9, 10, ""),
        (9, 32, ""),
        (9, 33, "long"),
        (34, 11, ""),
        (35, 11, "short"),
        (1, 12, ""),
        (1, 13, "long"),
    ],
)
def test_lengths_that_differ_too_much(source: int, output: int, which: str) -> None:
    # (5 + longer) / (5 + shorter), ends counted, may be 2.5: 37.5 / 15, 40 / 16, 17.5 / 7.
    expected = f"the output is oddly {which}: {output} tokens for {source + 1} of the source"
    assert odd("a", "b", lengths=(source, output)) == ([expected] if which else [])


def test_a_missing_end() -> None:
    assert odd("a", "b", truncated=True) == ["the output has no end: it ran into its limit of 10 tokens"]


@pytest.mark.usefixtures("shapes_unchecked")
def test_outputs_without_an_end_are_warned_of_by_line() -> None:
    it = Translator(tiny_bundle(ends=-300.0))
    (_, found) = it.translate_detailed(["", "ab"], max_extra=1, beam=1, flag_unusual=True, first_line=7)
    assert found.truncated
    assert (
        f"line 8: the output has no end: it ran into its limit of {found.alternatives[0].length} tokens"
        in (found.warnings)
    )
