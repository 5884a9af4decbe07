"""Lines of text as token ids that the model can take: empty lines apart, over-long ones by policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from transduce.counts import counted
from transduce.data.tokenizer import Tokenizer
from transduce.decoding.languages import Tags
from transduce.decoding.segmentation import Part, parts_of, split_to_fit
from transduce.decoding.sentences import Split
from transduce.errors import DataError, UsageError


@dataclass(frozen=True)
class Source:
    """One line: its parts (one, unless it was split; none, if it is empty), their ids, and what to tell.

    White space at either end of a line is not part of it: it is kept in ``indent`` and ``trail`` where the
    line is a paragraph of a document, and given up otherwise. Ids do not include the end.
    """

    text: str
    parts: tuple[Part, ...]
    ids: tuple[tuple[int, ...], ...]
    warnings: tuple[str, ...] = ()
    indent: str = ""
    trail: str = ""


def check_texts(texts: Any, first_line: int) -> None:
    """Nothing; raises UsageError, naming the line, for what is no list of strings."""
    if isinstance(texts, str):
        raise UsageError("translate takes a list of lines and got one string; write translate([text])")
    if not isinstance(texts, Sequence):
        raise UsageError(
            f"translate takes a list of lines and got a {type(texts).__name__}; write translate(list(...))"
        )
    for number, text in enumerate(texts, first_line):
        if not isinstance(text, str):
            raise UsageError(f"line {number} is {text!r}, not a string; translate takes a list of strings")


def read_sources(
    texts: Sequence[str],
    tokenizer: Tokenizer,
    *,
    max_length: int,
    long_lines: str,
    first_line: int = 1,
    split: Split | None = None,
    tags: Tags = (),
) -> list[Source]:
    """One source per text; ``max_length`` counts the end of a sentence and its ``tags`` too.

    A longer line is split into parts, truncated, or refused with DataError, as ``long_lines`` says; each way
    the number of the line (the first is ``first_line``) is told. With ``split`` a line is a paragraph: its
    sentences are the parts, and only a sentence can be too long. ``tags`` stand in front of the ids of each
    part.
    """
    limit = max(1, max_length - 1 - len(tags))
    if split is not None:
        reader = _Paragraphs(tokenizer, limit, long_lines, split)
        paragraphs = [reader.read(text, number) for number, text in enumerate(texts, first_line)]
        return [_tagged(paragraph, tags) for paragraph in paragraphs]
    stripped = [text.strip() for text in texts]
    sources = []
    for number, (text, ids) in enumerate(
        zip(stripped, tokenizer.encode_batch(stripped), strict=True), first_line
    ):
        if not ids:
            sources.append(Source(text, (), ()))
        elif len(ids) <= limit:
            sources.append(Source(text, (Part(text, ""),), (tuple(ids),)))
        else:
            sources.append(_long(text, ids, tokenizer, limit, long_lines, number))
    return [_tagged(source, tags) for source in sources]


def _tagged(source: Source, tags: Tags) -> Source:
    return replace(source, ids=tuple(tags + ids for ids in source.ids)) if tags else source


def _long(text: str, ids: list[int], tokenizer: Tokenizer, limit: int, policy: str, line: int) -> Source:
    problem = f"line {line} has {counted(len(ids), 'token')}, the model takes {limit} and the end"
    if policy == "error":
        raise DataError(
            f"{problem}; long lines are set to be an error: use split or truncate, or shorten the line"
        )
    if policy == "truncate":
        told = f"{problem}; the rest is cut off (long lines: truncate)"
        return Source(text, (Part(text, ""),), (tuple(ids[:limit]),), (told,))
    parts = split_to_fit(text, lambda part: len(tokenizer.encode(part)) <= limit)
    encoded = tokenizer.encode_batch([part.text for part in parts])
    kept = [(part, tuple(ids)) for part, ids in zip(parts, encoded, strict=True) if ids]
    told = f"{problem}; translated in {counted(len(kept), 'part')} (long lines: split)"
    # A single character of many bytes can be longer than a tiny limit: there is nothing left to split.
    return Source(text, tuple(p for p, _ in kept), tuple(i[:limit] for _, i in kept), (told,))


@dataclass(frozen=True)
class _Paragraphs:
    """Reads lines that are paragraphs of several sentences."""

    tokenizer: Tokenizer
    limit: int
    long_lines: str
    split: Split

    def read(self, line: str, number: int) -> Source:
        """The line as sentences that fit, with the white space around it."""
        text = line.strip()
        indent = line[: len(line) - len(line.lstrip())]
        trail = line[len(indent) + len(text) :]
        sentences = parts_of(self.split(text))
        parts: list[Part] = []
        ids: list[tuple[int, ...]] = []
        told: list[str] = []
        encoded = self.tokenizer.encode_batch([part.text for part in sentences])
        for part, found in zip(sentences, encoded, strict=True):
            if len(found) <= self.limit:
                parts.append(part)
                ids.append(tuple(found))
                continue
            cut = _long(part.text, found, self.tokenizer, self.limit, self.long_lines, number)
            parts += cut.parts[:-1]
            parts.append(Part(cut.parts[-1].text, cut.parts[-1].separator + part.separator))
            ids += cut.ids
            told += [warning.replace(" has ", " has a sentence of ", 1) for warning in cut.warnings]
        return Source(text, tuple(parts), tuple(ids), tuple(told), indent, trail)
