"""What `transduce translate` does with the lines it has read: translate, stream, or list the next words."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from transduce.cli.form import Form
from transduce.cli.partial import Sink
from transduce.cli.progress import Progress
from transduce.cli.rendering import Rendering, alignment_line

if TYPE_CHECKING:
    from transduce.decoding.glossary import Glossary
    from transduce.decoding.translation import Translation
    from transduce.decoding.translator import Translator

_FIELDS = ("text", "score", "log_probability", "length", "truncated")


@runtime_checkable
class LineWriter(Protocol):
    """Makes of some lines of the input what stands in the output for them."""

    def write(
        self,
        first: int,
        lines: Sequence[str],
        prefixes: Sequence[str] | None,
        files: Sequence[Sink],
        progress: Progress,
    ) -> None:
        """Nothing; what became of the ``lines``, of which the first is number ``first``, is in the files.

        The first of these is the output; a second one gets the word alignments.
        """
        ...


@dataclass(frozen=True)
class WholeLines:
    """Translates many lines together, so that those of similar length share a batch."""

    translator: Translator
    options: Mapping[str, Any]
    glossary: Glossary | None
    rendering: Rendering

    def write(
        self,
        first: int,
        lines: Sequence[str],
        prefixes: Sequence[str] | None,
        files: Sequence[Sink],
        progress: Progress,
    ) -> None:
        """See `LineWriter.write`."""
        translations = self.translator.translate_detailed(
            lines,
            first_line=first,
            progress=progress.within_chunk,
            prefixes=prefixes,
            glossary=self.glossary,
            **self.options,
        )
        pairs = zip(lines, translations, strict=True)
        self.rendering.write(first, pairs, progress.say, *(file.write for file in files))


@dataclass(frozen=True)
class Streamed:
    """Translates line after line and hands on each piece as it comes."""

    translator: Translator
    options: Mapping[str, Any]
    glossary: Glossary | None
    rendering: Rendering

    def write(
        self,
        first: int,
        lines: Sequence[str],
        prefixes: Sequence[str] | None,
        files: Sequence[Sink],
        progress: Progress,
    ) -> None:
        """See `LineWriter.write`."""
        output, *links = files
        for number, line in enumerate(lines, first):
            translation = self._streamed(line, number, prefixes[number - first] if prefixes else "", output)
            output.write(b"\n")
            output.flush()
            self.rendering.tell(number, translation, progress.say)
            for file in links:
                file.write(alignment_line(translation))

    def _streamed(self, line: str, number: int, prefix: str, output: Sink) -> Translation:
        pieces = self.translator.stream_detailed(
            line, first_line=number, prefix=prefix, glossary=self.glossary, **self.options
        )
        while True:
            try:
                piece = next(pieces)
            except StopIteration as end:
                translation: Translation = end.value
                return translation
            output.write(piece.encode())
            output.flush()


@dataclass(frozen=True)
class NextWords:
    """Lists the ``count`` likeliest next words after each line's prefix."""

    translator: Translator
    options: Mapping[str, Any]
    count: int

    def write(
        self,
        first: int,
        lines: Sequence[str],
        prefixes: Sequence[str] | None,
        files: Sequence[Sink],
        progress: Progress,
    ) -> None:
        """See `LineWriter.write`."""
        for number, line in enumerate(lines, first):
            prefix = prefixes[number - first] if prefixes else ""
            found = self.translator.alternatives(
                line, prefix, count=self.count, first_line=number, **self.options
            )
            words = [
                {"word": one.word, "probability": one.probability}
                | {name: getattr(one.completion, name) for name in _FIELDS}
                for one in found
            ]
            value = {"line": number, "source": line, "prefix": prefix, "alternatives": words}
            files[0].write((json.dumps(value, ensure_ascii=False) + "\n").encode())
            progress.within_chunk(number + 1 - first, len(lines))


@dataclass(frozen=True)
class Paragraphs:
    """Joins the lines of each paragraph, translates it, and wraps it again."""

    translator: Translator
    options: Mapping[str, Any]
    glossary: Glossary | None
    rendering: Rendering

    def write(
        self,
        first: int,
        lines: Sequence[str],
        prefixes: Sequence[str] | None,
        files: Sequence[Sink],
        progress: Progress,
    ) -> None:
        """See `LineWriter.write`; ``lines`` are whole paragraphs."""
        from transduce.decoding.paragraphs import translate_each

        write: Callable[[bytes], object] = files[0].write
        number = first
        for paragraph, translation in translate_each(
            self.translator,
            lines,
            first_line=first,
            progress=progress.within_chunk,
            glossary=self.glossary,
            **self.options,
        ):
            self.rendering.tell(number, translation, progress.say)
            if self.rendering.as_json:
                write(self.rendering.line(number, paragraph.text, translation).encode())
            else:
                write("".join(f"{line}\n" for line in paragraph.wrapped(translation.text)).encode())
            number += len(paragraph.lines)


def writer_of(
    form: Form,
    translator: Translator,
    options: Mapping[str, Any],
    glossary: Glossary | None,
    rendering: Rendering,
) -> LineWriter:
    """What makes output of that form."""
    if form.alternatives:
        return NextWords(translator, options, form.alternatives)
    if form.stream:
        return Streamed(translator, options, glossary, rendering)
    if form.paragraphs:
        return Paragraphs(translator, options, glossary, rendering)
    return WholeLines(translator, options, glossary, rendering)
