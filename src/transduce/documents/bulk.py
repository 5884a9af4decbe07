"""Folders of files translated, file by file, by several processes or the actors of a Ray cluster.

A file of the output appears under its name when it is complete: with as many lines as its source, or as the
same document. Files that are there are not translated again, so the same call goes on with what was stopped.
A file that cannot be translated keeps no other from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from transduce.bundle import load_tokenizer
from transduce.counts import counted
from transduce.data.crew import ALONE, Crew
from transduce.data.lines import read_chunks
from transduce.decoding.config import TranslationOptions
from transduce.decoding.translator import Translator
from transduce.documents.bulk_record import BulkRecord, made_from
from transduce.documents.translate import FORMATS, format_of, read_bytes, translate_document
from transduce.errors import DataError, TransduceError, UsageError
from transduce.files import atomic_writer, made_folder

_PIECE = 500  # lines that a worker gets at a time
_PACKED = (".gz", ".zst")
LINES = "text"


@dataclass(frozen=True, kw_only=True)
class Piece:
    """Some lines of a file, the first of which has the number ``first``; none where the file is empty.

    Or all of a document: its format ``kind`` and its ``content``. ``failure`` says why there is nothing.
    """

    file: Path
    first: int = 1
    lines: list[str] = field(default_factory=list)
    kind: str = ""
    content: bytes = b""
    failure: str = ""


@dataclass(frozen=True, kw_only=True)
class Done:
    """A piece, as many texts as it has lines or a new document, and what is to be told of them."""

    piece: Piece
    texts: list[str] = field(default_factory=list)
    content: bytes = b""
    filled: int = 0
    warnings: list[str] = field(default_factory=list)
    failure: str = ""


@dataclass(kw_only=True)
class Translating:
    """The work on a piece. The model is loaded by whoever does it, once."""

    models: tuple[str, ...]
    how: Mapping[str, Any]
    options: Mapping[str, Any]
    target_language: str = ""
    translator: Translator | None = field(default=None, init=False)

    def __call__(self, piece: Piece) -> Done:
        """The piece translated, or why it cannot be."""
        if piece.failure:
            return Done(piece=piece, failure=piece.failure)
        if self.translator is None:
            self.translator = Translator.load(list(self.models), **self.how)
        try:
            return (
                self._document(self.translator, piece) if piece.kind else self._lines(self.translator, piece)
            )
        except DataError as error:
            return Done(piece=piece, failure=_placed(piece.file, str(error)))

    def _lines(self, translator: Translator, piece: Piece) -> Done:
        found = translator.translate_detailed(piece.lines, first_line=piece.first, **self.options)
        warnings = [f"{piece.file}: {warning}" for one in found for warning in one.warnings]
        return Done(piece=piece, texts=[one.text for one in found], warnings=warnings)

    def _document(self, translator: Translator, piece: Piece) -> Done:
        options = {**self.options, "document": True, "protect": self.options.get("protect") or "all"}
        try:
            made = translate_document(
                piece.content,
                piece.kind,
                lambda texts: translator.translate_detailed(texts, **options),
                source_language=options.get("language", ""),
                target_language=self.target_language,
                name=str(piece.file),
            )
        except UsageError as error:  # what one document lacks, such as a language, another has
            return Done(piece=piece, failure=_placed(piece.file, str(error)))
        lacking = [f"{piece.file}: {made.summary}"] if made.filled < made.units else []
        warnings = [*made.warnings, *lacking]
        return Done(piece=piece, content=made.content, filled=made.filled, warnings=warnings)


class _FailedError(Exception):
    """Why a file is not translated."""


def translate_folder(  # noqa: PLR0913 - all but the first three by name, as in the command line
    model: str | Path | Sequence[str | Path],
    source: str | Path,
    output: str | Path,
    *,
    crew: Crew = ALONE,
    pairs: bool = False,
    tag: str = "",
    format: str = "",
    target_language: str = "",
    say: Callable[[str], None] = lambda line: None,
    told: Callable[[int], None] = lambda lines: None,
    how: Mapping[str, Any] | None = None,
    **options: Any,
) -> list[Path]:
    """The files in the folder ``output``, one for each file in ``source`` and the folders in it.

    What a file is, its name tells, unless ``format`` does: a document (see `translate_document`), which may
    need ``target_language``, or lines of text.

    With ``pairs`` each line is translation, TAB, original: back-translation, if the model translates from the
    target language; ``tag`` then stands before each translation. ``say`` gets warnings and what was done
    already, ``told`` the number of lines after each piece. ``how`` goes to `Translator.load`, ``options`` are
    those of `Translator.translate`. Raises UsageError where ``output`` holds what another model, or other
    options, made; and DataError, when all others are done, where files cannot be translated.
    """
    if format not in ("", LINES, *FORMATS):
        raise UsageError(f"format is {format!r}; choose {LINES} or one of {', '.join(FORMATS)}")
    models = tuple(str(one) for one in ([model] if isinstance(model, str | Path) else model))
    if tag and not pairs:
        raise UsageError(f"the tag {tag!r} stands in back-translated pairs: ask for pairs as well")
    TranslationOptions.from_mapping(options).check_prefixes(given=False)
    for folder in models:
        load_tokenizer(folder)  # what is wrong with a model is said before others start
    source, output = Path(source), Path(output)
    names = _names(source, output)
    given = {"format": format, "target_language": target_language}
    decisive = {**options, "pairs": pairs, "tag": tag, **{name: code for name, code in given.items() if code}}
    work = Translating(models=models, how=dict(how or {}), options=options, target_language=target_language)
    with made_folder(output):
        record = BulkRecord(output, made_from(models, how or {}, decisive))
        todo = [path for path in names if not record.has(path, names[path])]
        if len(todo) < len(names):
            say(f"{len(names) - len(todo):,} of {counted(len(names), 'file', 'are')} there already")
        failures: dict[Path, str] = {}
        with closing(crew.in_order(work, _pieces(todo, format, pairs))) as results:
            for file, pieces in groupby(results, key=lambda done: done.piece.file):
                try:
                    _write(names[file], pieces, tag if pairs else None, say, told)
                except _FailedError as error:
                    failures[file] = str(error)
                    say(f"not translated: {error}")
                else:
                    record.note(file, names[file])
        if failures:
            raise _failed(failures, len(names))
    return [names[path] for path in names]


def _failed(failures: Mapping[Path, str], files: int) -> DataError:
    return DataError(
        f"{len(failures):,} of {counted(files, 'file')} could not be translated: "
        f"{', '.join(map(str, failures))} (the first: {next(iter(failures.values()))}); the others are done, "
        "and the same call does these once they are mended"
    )


def _write(
    path: Path,
    pieces: Iterator[Done],
    tag: str | None,
    say: Callable[[str], None],
    told: Callable[[int], None],
) -> None:
    """Nothing; the file is there. _FailedError, and no file, where one of the pieces has failed."""
    with made_folder(path.parent), atomic_writer(path) as out:
        for done in pieces:
            if done.failure:
                raise _FailedError(done.failure)
            out.write(done.content if done.piece.kind else _written(done, tag))
            for warning in done.warnings:
                say(warning)
            told(done.filled if done.piece.kind else len(done.texts))


def _placed(file: Path, message: str) -> str:
    """The message with the name of the file that it is about."""
    return message if str(file) in message else f"{file}: {message}"


def _names(source: Path, output: Path) -> dict[Path, Path]:
    """Where each file's translation goes: the same place under ``output``, without .gz and .zst."""
    if not source.is_dir():
        raise DataError(f"{source}: is no folder; name a folder of text files")
    if output.resolve().is_relative_to(source.resolve()):
        raise UsageError(f"{output}: lies in {source}, whose files are read; choose another --output")
    names: dict[Path, Path] = {}
    for path in sorted(p for p in source.rglob("*") if p.is_file() and not _hidden(p, source)):
        inside = path.relative_to(source)
        name = output / (inside.with_suffix("") if path.suffix in _PACKED else inside)
        if name in names.values():
            raise UsageError(f"{path}: two files would be translated to {name}; rename one of them")
        names[path] = name
    if not names:
        raise DataError(f"{source}: holds no files; name a folder of text files")
    return names


def _hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)


def _pieces(files: Sequence[Path], format: str, pairs: bool) -> Iterator[Piece]:
    """All files in pieces; one of no lines for a file that is empty, and one that says why for a bad one."""
    for file in files:
        try:
            yield from _of_document(file, format, pairs) or _of_lines(file)
        except DataError as error:
            yield Piece(file=file, failure=_placed(file, str(error)))


def _of_lines(file: Path) -> Iterator[Piece]:
    first = 1
    for lines in read_chunks(file, _PIECE):
        yield Piece(file=file, first=first, lines=lines)
        first += len(lines)
    if first == 1:
        yield Piece(file=file)


def _of_document(file: Path, format: str, pairs: bool) -> list[Piece]:
    """The document as one piece; nothing where the file is lines of text."""
    packed = file.suffix in _PACKED
    kind = "" if format == LINES else format or format_of(file.with_suffix("") if packed else file)
    if kind and packed:
        raise DataError(f"{file}: documents are translated in place; decompress it")
    if kind and pairs:
        raise DataError(
            f"{file}: is a document ({kind}), and pairs are made of lines; take it out, or ask for the "
            f"format {LINES}: every file as lines"
        )
    return [Piece(file=file, kind=kind, content=read_bytes(file))] if kind else []


def _written(done: Done, tag: str | None) -> bytes:
    """The lines of the output, one for each line of the piece; with a tag (maybe empty) they are pairs."""
    lines, texts = done.piece.lines, done.texts
    if len(texts) != len(lines):
        raise TransduceError(
            f"{done.piece.file}: {counted(len(lines), 'line')} from line {done.piece.first} on gave "
            f"{len(texts)} translations; please report it"
        )
    if tag is not None:
        texts = [f"{tag}{text}\t{line}" for line, text in zip(lines, texts, strict=True)]
    return "".join(f"{text}\n" for text in texts).encode()
