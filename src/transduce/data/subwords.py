"""Learning a subword vocabulary with the sentencepiece library."""

from __future__ import annotations

import io
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import sentencepiece

from transduce.counts import counted
from transduce.errors import DataError

# sentencepiece skips lines above 4,192 bytes; ours are cut below that, so that nothing is skipped.
_LONGEST = 1000
# Characters that sentencepiece reserves for itself: a training line that holds one would be skipped.
_RESERVED = ("\u2581", "\u2585", "\0", "\ue000")
# Rarer characters than one in ten thousand are spelled as bytes instead of taking a place in the vocabulary.
_COVERAGE = 0.9999
_CHUNK = 10_000
_OVERHEAD = 260  # 256 bytes and 4 reserved ids
Item = TypeVar("Item")


def learn(
    lines: Iterable[str],
    vocabulary: int,
    *,
    subwords: str,
    sample: int,
    seed: int,
    strict: bool,
    tags: Sequence[str] = (),
) -> bytes:
    """A serialised sentencepiece model; see ``Tokenizer.train``.

    Lines longer than 1,000 characters are cut at spaces into several, for learning only. ``tags`` are
    control symbols: ids of their own that text is never turned into.
    """
    text = [part for line in reservoir(lines, sample, seed) for part in _parts(line, tags)]
    if not text:
        raise DataError("there is no text to learn subwords from: every line is empty")
    alphabet = _alphabet(text, vocabulary)
    symbols: dict[str, Any] = {"control_symbols": list(tags)} if tags else {}
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(_only(alphabet, line) for line in text),
            model_writer=model,
            vocab_size=vocabulary,
            model_type=subwords,
            character_coverage=1.0,
            hard_vocab_limit=False,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            byte_fallback=True,
            pad_id=0,
            eos_id=1,
            bos_id=2,
            unk_id=3,
            minloglevel=4,
            **symbols,
        )
    except RuntimeError as error:
        raise DataError(f"sentencepiece could not learn {vocabulary} {subwords} subwords: {error}") from None
    content = model.getvalue()
    if strict:
        found: int = sentencepiece.SentencePieceProcessor(model_proto=content).vocab_size()
        if found < vocabulary:
            raise DataError(
                f"data.vocabulary is {vocabulary}, but {counted(len(text), 'line')} of text have no more "
                f"than {found} subwords in them; set data.vocabulary={found}, or 0 to have it chosen"
            )
    return content


def reservoir(lines: Iterable[Item], size: int, seed: int) -> list[Item]:
    """At most ``size`` of the lines, each set of that size equally likely, in one pass.

    Li's algorithm L: the gap to the next line that enters is drawn, so most lines cost nothing.
    """
    chosen: list[Item] = []
    draw = random.Random(seed)
    weight, entering = 1.0, 0
    for index, line in enumerate(lines):
        if index < size:
            chosen.append(line)
            if len(chosen) < size:
                continue
        elif index < entering:
            continue
        else:
            chosen[draw.randrange(size)] = line
        weight *= math.exp(math.log(1.0 - draw.random()) / size)
        gap = int(math.log(1.0 - draw.random()) / math.log1p(-weight)) if weight < 1 else 0
        entering = index + 1 + gap
    return chosen


def _parts(line: str, tags: Sequence[str]) -> Iterator[str]:
    for reserved in (*_RESERVED, *tags):  # a piece that is spelled like a tag would be taken for it
        if reserved in line:
            line = line.replace(reserved, " ")
    while len(line) > _LONGEST:
        cut = line.rfind(" ", 1, _LONGEST) if " " in line[1:_LONGEST] else _LONGEST
        yield line[:cut]
        line = line[cut:].lstrip(" ")
    if line.strip():
        yield line


def _alphabet(text: list[str], vocabulary: int) -> set[str]:
    """The characters that get a place of their own: the frequent ones, in at most half of the vocabulary."""
    counts = np.zeros(0x110000, dtype=np.int64)
    for start in range(0, len(text), _CHUNK):
        codes = np.frombuffer("".join(text[start : start + _CHUNK]).encode("utf-32-le"), dtype="<u4")
        counts += np.bincount(codes, minlength=len(counts))
    counts[ord(" ")] = 0
    order = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    covered = np.cumsum(counts[order]) - counts[order]
    frequent = order[covered < _COVERAGE * counts.sum()][: max(1, (vocabulary - _OVERHEAD) // 2)]
    return {" ", *map(chr, frequent.tolist())}


def _only(alphabet: set[str], line: str) -> str:
    """The line with a space for every character outside the alphabet."""
    if alphabet.issuperset(line):
        return line
    return "".join(character if character in alphabet else " " for character in line)
