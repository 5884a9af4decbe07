"""``transduce translate`` on documents: catalogs, subtitles, pages and office files, translated in place."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transduce.cli.progress import Progress
from transduce.cli.writing import opened
from transduce.errors import UsageError

if TYPE_CHECKING:
    from transduce.decoding.glossary import Glossary
    from transduce.decoding.translation import Translation
    from transduce.decoding.translator import Translator

LINES = "text"


def document_format(path: str, wanted: str, target_language: str, refused: Mapping[str, bool]) -> str:
    """The format of the document to translate; empty for lines of text.

    ``wanted`` is what --format says: empty for what the name tells, or text. ``refused`` has the flags that
    do not go with documents and whether they were given, ``target_language`` the one that goes with no lines.
    """
    from transduce.documents.translate import FORMATS, format_of

    if wanted not in ("", LINES, *FORMATS):
        raise UsageError(f"--format {wanted}: choose {LINES} or one of {', '.join(FORMATS)}")
    unpacked = Path(path).with_suffix("") if Path(path).suffix in (".gz", ".zst") else None
    if not wanted and unpacked is not None and format_of(unpacked):
        raise UsageError(f"{path}: documents are translated in place; decompress it, or say --format {LINES}")
    found = "" if wanted == LINES else wanted or format_of(path)
    if target_language and not found:
        raise UsageError("--target-language is for documents; lines of text say no language: leave it out")
    for flag, is_given in refused.items():
        if found and is_given:
            raise UsageError(
                f"{flag} is for lines of text, and {path} is translated as {found}; leave it out, or say "
                f"--format {LINES}"
            )
    return found


def translate_one(
    translator: Translator,
    files: tuple[str, str],
    kind: str,
    languages: tuple[str, str],
    options: Mapping[str, Any],
    glossary: Glossary | None,
) -> None:
    """Nothing; the first file is translated into the second, and warnings are told.

    ``languages`` are those of source and target, maybe empty.
    """
    from transduce.documents.translate import read_bytes, standard_input, translate_document

    source, output = files
    content = standard_input() if source == "-" else read_bytes(source)
    name = "standard input" if source == "-" else source
    with Progress("-", "translated", quiet=False) as progress:

        def translate(texts: list[str]) -> Sequence[Translation]:
            if progress.bar is not None:
                progress.bar.update(progress.task, total=len(texts))
            return translator.translate_detailed(
                texts, progress=progress.within_chunk, glossary=glossary, **options
            )

        done = translate_document(
            content,
            kind,
            translate,
            source_language=languages[0],
            target_language=languages[1],
            name=name,
        )
        for warning in done.warnings:
            progress.say(f"transduce: warning: {warning}")
    with opened(output) as file:
        file.write(done.content)
    print(f"{'standard output' if output == '-' else output}: {done.summary}", file=sys.stderr)
