"""Folders of files translated, file by file, by several processes or the actors of a Ray cluster.

A file of the output appears under its name when it is complete, with as many lines as its source. Files that
are there are not translated again, so the same call goes on with what was stopped.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from transduce.bundle import load_tokenizer
from transduce.data.crew import ALONE, Crew
from transduce.data.lines import read_chunks
from transduce.decoding.config import TranslationOptions
from transduce.decoding.translator import Translator
from transduce.errors import DataError, TransduceError, UsageError
from transduce.files import atomic_writer, write_json

RECORD = ".bulk.json"
_PIECE = 500  # lines that a worker gets at a time
_PACKED = (".gz", ".zst")


@dataclass(frozen=True, kw_only=True)
class Piece:
    """Some lines of a file, the first of which has the number ``first``; none where the file is empty."""

    file: Path
    first: int
    lines: list[str]


@dataclass(frozen=True, kw_only=True)
class Done:
    """A piece, as many texts as it has lines, and what is to be told of them."""

    piece: Piece
    texts: list[str]
    warnings: list[str]


@dataclass(kw_only=True)
class Translating:
    """The work on a piece. The model is loaded by whoever does it, once."""

    models: tuple[str, ...]
    how: Mapping[str, Any]
    options: Mapping[str, Any]
    translator: Translator | None = field(default=None, init=False)

    def __call__(self, piece: Piece) -> Done:
        """The piece translated."""
        if self.translator is None:
            self.translator = Translator.load(list(self.models), **self.how)
        found = self.translator.translate_detailed(piece.lines, first_line=piece.first, **self.options)
        warnings = [warning for one in found for warning in one.warnings]
        return Done(piece=piece, texts=[one.text for one in found], warnings=warnings)


def translate_folder(  # noqa: PLR0913 - all but the first three by name, as in the command line
    model: str | Path | Sequence[str | Path],
    source: str | Path,
    output: str | Path,
    *,
    crew: Crew = ALONE,
    pairs: bool = False,
    tag: str = "",
    say: Callable[[str], None] = lambda line: None,
    told: Callable[[int], None] = lambda lines: None,
    how: Mapping[str, Any] | None = None,
    **options: Any,
) -> list[Path]:
    """The files in the folder ``output``, one for each text file in ``source`` and the folders in it.

    With ``pairs`` each line is translation, TAB, original: back-translation, if the model translates from the
    target language; ``tag`` then stands before each translation. ``say`` gets warnings and what was done
    already, ``told`` the number of lines after each piece. ``how`` goes to `Translator.load`, ``options`` are
    those of `Translator.translate`. Raises UsageError where ``output`` holds what another model, or other
    options, made.
    """
    models = tuple(str(one) for one in ([model] if isinstance(model, str | Path) else model))
    if tag and not pairs:
        raise UsageError(f"the tag {tag!r} stands in back-translated pairs: ask for pairs as well")
    TranslationOptions.from_mapping(options)
    for folder in models:
        load_tokenizer(folder)  # what is wrong with a model is said before others start
    source, output = Path(source), Path(output)
    names = _names(source, output)
    record = _Record(output, _made_from(models, how or {}, {**options, "pairs": pairs, "tag": tag}))
    todo = [path for path in names if not record.has(path, names[path])]
    if len(todo) < len(names):
        say(f"{len(names) - len(todo):,} of {len(names):,} files are there already")
    work = Translating(models=models, how=dict(how or {}), options=options)
    with closing(crew.in_order(work, _pieces(todo))) as results:
        for file, pieces in groupby(results, key=lambda done: done.piece.file):
            names[file].parent.mkdir(parents=True, exist_ok=True)
            with atomic_writer(names[file]) as out:
                for done in pieces:
                    out.write(_written(done, tag if pairs else None))
                    for warning in done.warnings:
                        say(f"{file}: {warning}")
                    told(len(done.texts))
            record.note(file, names[file])
    return [names[path] for path in names]


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


def _pieces(files: Sequence[Path]) -> Iterator[Piece]:
    """All files in pieces; one of no lines for a file that is empty."""
    for file in files:
        first = 1
        for lines in read_chunks(file, _PIECE):
            yield Piece(file=file, first=first, lines=lines)
            first += len(lines)
        if first == 1:
            yield Piece(file=file, first=1, lines=[])


def _written(done: Done, tag: str | None) -> bytes:
    """The lines of the output, one for each line of the piece; with a tag (maybe empty) they are pairs."""
    lines, texts = done.piece.lines, done.texts
    if len(texts) != len(lines):
        raise TransduceError(
            f"{done.piece.file}: {len(lines)} lines from line {done.piece.first} on gave {len(texts)} "
            "translations; please report it"
        )
    if tag is not None:
        texts = [f"{tag}{text}\t{line}" for line, text in zip(lines, texts, strict=True)]
    return "".join(f"{text}\n" for text in texts).encode()


def _made_from(models: Sequence[str], how: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """What decides the output: the models by their checksums, and the options that are not about speed."""
    speed = ("batch_tokens", "threads", "device")
    return {
        "models": [hashlib.sha256((Path(m) / "config.json").read_bytes()).hexdigest() for m in models],
        **{name: value for name, value in {**how, **options}.items() if name not in speed},
    }


class _Record:
    """Which files of the output are complete, and from what each was made."""

    def __init__(self, folder: Path, made_from: dict[str, Any]) -> None:
        self.folder, self.made_from = folder, json.loads(json.dumps(made_from))
        self.files: dict[str, list[int]] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            found = json.loads((folder / RECORD).read_bytes())
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            raise UsageError(f"{folder}: cannot be used ({error}); choose another --output") from None
        if found["made_from"] != self.made_from:
            changed = [n for n in self.made_from if self.made_from[n] != found["made_from"].get(n)]
            raise UsageError(
                f"{folder}: holds translations with other settings ({', '.join(changed) or 'fewer'}); "
                "choose another --output, or remove them"
            )
        self.files = found["files"]

    def has(self, source: Path, output: Path) -> bool:
        """Whether the output is there and its source is the file that it was made from."""
        return output.exists() and self.files.get(self._key(output)) == _stamp(source)

    def note(self, source: Path, output: Path) -> None:
        """Nothing; the output is complete."""
        self.files[self._key(output)] = _stamp(source)
        write_json(self.folder / RECORD, {"made_from": self.made_from, "files": self.files})

    def _key(self, output: Path) -> str:
        return output.relative_to(self.folder).as_posix()


def _stamp(path: Path) -> list[int]:
    found = os.stat(path)
    return [found.st_size, found.st_mtime_ns]
