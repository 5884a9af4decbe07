"""Everything that a server does for a request, whichever API it came through."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from transduce.data.formats.languages import is_code, normal
from transduce.decoding.config import TranslationOptions
from transduce.decoding.glossary import Glossary
from transduce.decoding.translation import Alternative, Translation
from transduce.documents.translate import TranslatedDocument, translate_document
from transduce.serving.asking import Lines, Look, Stream, Terms
from transduce.serving.config import ServingConfig
from transduce.serving.detection import detect
from transduce.serving.models import Leg, Loaded, Models
from transduce.serving.refusals import Refused
from transduce.serving.worker import Worker

Result = TypeVar("Result")
# Tells the reader of pages that what follows is UTF-8, whatever it says itself.
_UTF_8 = '<!doctype html><meta charset="utf-8">'


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """How texts are to be translated: options of `TranslationOptions`, and what is asked of each text."""

    options: Mapping[str, Any] = field(default_factory=dict)
    prefixes: Sequence[str] | None = None
    terms: Sequence[Terms] | None = None
    glossary: Glossary | None = None


@dataclass(frozen=True)
class TranslatedText:
    """A text line by line. Where there was nothing to do, every line is its own translation."""

    lines: tuple[Translation, ...]

    def output(self, rank: int) -> str:
        """The text of the outputs of this rank; a line that has fewer gives its last."""
        return "\n".join(line.alternatives[min(rank, len(line.alternatives) - 1)].text for line in self.lines)

    @property
    def text(self) -> str:
        """The best output."""
        return self.output(0)

    def others(self, most: int) -> list[str]:
        """At most so many other outputs, each once."""
        count = max(len(line.alternatives) for line in self.lines)
        every = dict.fromkeys(self.output(rank) for rank in range(count))
        return list(every)[1 : most + 1]


class Service:
    """Models, the worker that asks them, and what a server allows."""

    def __init__(self, models: Models, worker: Worker, config: ServingConfig) -> None:
        self.models, self.worker, self.config = models, worker, config
        self._documents = asyncio.Semaphore(config.documents)

    def source(self, source: str, texts: Sequence[str]) -> tuple[str, float]:
        """The code of the source language and how sure it is, in percent; ``auto`` is found out."""
        if source != "auto":
            return source, 100.0
        code, probability = detect("\n".join(texts), self.models.sources())[0]
        return code, round(100 * probability, 1)

    def options(self, leg: Leg, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """The options with which the leg's model is asked; refused where they make no sense, or too much."""
        usual: dict[str, Any] = {
            "beam": self.config.beam,
            "alpha": self.config.alpha,
            "protect": self.config.protect,
            "document": True,
        }
        options = {**usual, **wanted, "to": leg.to}
        if options["document"]:
            code = normal(leg.pair.source)
            options["language"] = code if is_code(code) else ""  # a pair may be called as one likes
        if options.get("samples"):
            options.pop("n_best", None)
        else:
            options["beam"] = max(options["beam"], options.get("n_best", 1))
        chosen = TranslationOptions.from_mapping(options)
        if chosen.rows > self.config.max_beam:
            raise Refused(
                400,
                f"{chosen.rows} hypotheses a line, but the limit is {self.config.max_beam}: ask for fewer",
            )
        return options

    async def translate(
        self, texts: Sequence[str], legs: Sequence[Leg], wanted: Wanted
    ) -> list[TranslatedText]:
        """What each text becomes, line by line, by one model after the other.

        What is asked of outputs is asked of the last model.
        """
        lines = [text.split("\n") for text in texts]
        flat = [line for of_text in lines for line in of_text]
        found = [_itself(line) for line in flat]
        for number, leg in enumerate(legs, 1):
            if number == len(legs):
                own = replace(
                    wanted, prefixes=_first(wanted.prefixes, lines, ""), terms=_first(wanted.terms, lines, ())
                )
            else:
                own = Wanted(
                    options={name: wanted.options[name] for name in ("document",) if name in wanted.options}
                )
            found = await self._lines(leg, [one.text for one in found], own)
        translated, at = [], 0
        for of_text in lines:
            translated.append(TranslatedText(tuple(found[at : at + len(of_text)])))
            at += len(of_text)
        return translated

    async def _lines(self, leg: Leg, lines: Sequence[str], wanted: Wanted) -> list[Translation]:
        request = Lines(
            model=leg.model,
            texts=lines,
            options=self.options(leg, wanted.options),
            prefixes=wanted.prefixes,
            terms=wanted.terms,
            glossary=wanted.glossary,
        )
        request.weigh()
        self.worker.submit(request)
        found: list[Translation] = await asyncio.wrap_future(request.future)
        return found

    async def html(self, texts: Sequence[str], legs: Sequence[Leg], wanted: Wanted) -> list[str]:
        """Each text of HTML with what is between its tags translated."""
        pages = [f"{_UTF_8}{text}".encode() for text in texts]
        found = await asyncio.gather(*(self._document(page, "html", legs, wanted, "q") for page in pages))
        return [one.content.decode()[len(_UTF_8) :] for one in found]

    async def document(
        self, content: bytes, format: str, legs: Sequence[Leg], name: str
    ) -> TranslatedDocument:
        """A document translated; so many at a time, as the server allows."""
        async with self._documents:
            return await self._document(content, format, legs, Wanted(), name)

    async def _document(
        self, content: bytes, format: str, legs: Sequence[Leg], wanted: Wanted, name: str
    ) -> TranslatedDocument:
        if not legs:
            return TranslatedDocument(content, 0, 0, ())
        loop = asyncio.get_running_loop()
        asked: list[Future[list[TranslatedText]]] = []
        is_left = False
        wanted = replace(wanted, options={**wanted.options, "protect": "all"})

        def translate(texts: list[str]) -> list[Translation]:
            if is_left:
                raise CancelledError
            asked.append(asyncio.run_coroutine_threadsafe(self.translate(texts, legs, wanted), loop))
            return [found.lines[0] for found in asked[-1].result()]

        languages = {"source_language": legs[0].pair.source, "target_language": legs[-1].pair.target}
        try:
            return await asyncio.to_thread(
                translate_document, content, format, translate, name=name, **languages
            )
        finally:  # the thread is not to go on where nobody waits for it
            is_left = True
            for future in asked:
                future.cancel()

    async def stream(
        self, text: str, legs: Sequence[Leg], wanted: Wanted, tell: Callable[[str], None]
    ) -> TranslatedText:
        """The text translated; pieces of the output are told while it is searched for."""
        if not legs:
            tell(text)
            return TranslatedText(tuple(_itself(line) for line in text.split("\n")))
        *before, last = legs
        if before:
            text = (await self.translate([text], before, Wanted()))[0].text
        options = self.options(last, wanted.options)
        lines = text.split("\n")
        prefix = wanted.prefixes[0] if wanted.prefixes else ""
        terms = wanted.terms[0] if wanted.terms else ()
        loop = asyncio.get_running_loop()

        def pieces() -> Generator[str, None, list[Translation]]:
            found = []
            for number, line in enumerate(lines, 1):
                if number > 1:
                    yield "\n"
                own = (prefix, terms) if number == 1 else ("", ())
                found.append(
                    (
                        yield from last.model.translator.stream_detailed(
                            line,
                            first_line=number,
                            prefix=own[0],
                            terms=own[1],
                            glossary=wanted.glossary,
                            **options,
                        )
                    )
                )
            return found

        def tell_there(piece: str) -> None:
            loop.call_soon_threadsafe(tell, piece)

        request = Stream(model=last.model, pieces=pieces, tell=tell_there)
        self.worker.submit(request)
        return TranslatedText(tuple(await asyncio.wrap_future(request.future)))

    async def look(self, model: Loaded, work: Callable[[], Result]) -> Result:
        """What ``work`` gives, done by the worker in its turn."""
        request = Look(model=model, work=work)
        self.worker.submit(request)
        result: Result = await asyncio.wrap_future(request.future)
        return result


def _itself(line: str) -> Translation:
    return Translation(line, (Alternative(line, 0.0, 0.0, 0, False, ()),))


def _first(items: Sequence[Any] | None, lines: Sequence[Sequence[str]], nothing: Any) -> list[Any] | None:
    """What is asked of each text as what is asked of its first line."""
    if items is None:
        return None
    return [
        own if number == 0 else nothing
        for own, of_text in zip(items, lines, strict=True)
        for number in range(len(of_text))
    ]
