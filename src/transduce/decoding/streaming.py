"""The text of a line piece by piece while its tokens come; joined, the pieces are the line.

Nothing that was given out is ever taken back: a character of several bytes waits for its last one, and white
space, which is stripped at the ends of a part and of a line, for what follows it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterable, Iterator

from transduce.data.surfaces import stable_surfaces
from transduce.data.tokenizer import Tokenizer
from transduce.decoding.config import TranslationOptions
from transduce.decoding.hypothesis import Hypothesis
from transduce.decoding.segmentation import separator_after
from transduce.decoding.sources import Source
from transduce.decoding.translation import Translation
from transduce.errors import UsageError

# The tokens of an output as they become certain, and in the end the whole output.
Tokens = Generator[list[int], None, Hypothesis]


def pieces_of_line(
    source: Source, parts: Iterable[Tokens], tokenizer: Tokenizer
) -> Generator[str, None, list[Hypothesis]]:
    """The pieces of what `assemble` makes of the parts' outputs; returns these. No piece is empty.

    The parts are asked for one after the other.
    """
    found: list[Hypothesis] = []
    gap, begun = source.indent, False
    for part, tokens in zip(source.parts, parts, strict=True):
        output = ""
        pieces = _pieces_of_part(tokens, tokenizer)
        while True:
            try:
                piece = next(pieces)
            except StopIteration as end:
                found.append(end.value)
                break
            yield gap + piece
            gap, begun, output = "", True, output + piece
        if begun:
            gap += separator_after(part, output)
    if rest := ("" if begun else gap) + source.trail:
        yield rest
    return found


def _pieces_of_part(tokens: Tokens, tokenizer: Tokenizer) -> Generator[str, None, Hypothesis]:
    """The pieces of one output without the white space at its ends."""
    ids: list[int] = []
    told = ""
    while True:
        try:
            certain = next(tokens)
        except StopIteration as end:
            output: Hypothesis = end.value
            text = tokenizer.decode(output.tokens).strip()
            break
        ids += certain
        text = "".join(stable_surfaces(tokenizer, ids)).strip() if certain else told
        if len(text) > len(told):
            yield text[len(told) :]
            told = text
    assert text.startswith(told), "what was given out is taken back"
    if len(text) > len(told):
        yield text[len(told) :]
    return output


def check_streamed(options: TranslationOptions) -> None:
    """Nothing; UsageError for options that need several whole outputs."""
    if options.outputs > 1:
        raise UsageError(
            "a stream is one output, given while it is searched for: leave out n_best, mbr, several samples"
        )


def in_one_piece(translate: Callable[[], Translation]) -> Generator[str, None, Translation]:
    """The text that ``translate`` gives, of which nothing is certain earlier; returns the translation."""
    translation = translate()
    if translation.text:
        yield translation.text
    return translation


def warned(pieces: Generator[str, None, Translation]) -> Iterator[str]:
    """The pieces; what is to be told of the line becomes Python warnings at its end."""
    translation = yield from pieces
    for warning in translation.warnings:
        warnings.warn(warning, stacklevel=2)
