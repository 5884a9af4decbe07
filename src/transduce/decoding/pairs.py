"""Pairs of lines as token ids that the model can take: empty sides apart, over-long ones by policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from transduce.counts import counted
from transduce.data.tokenizer import EOS_ID, UNK_ID, Tokenizer
from transduce.decoding.config import LONG_LINES
from transduce.decoding.languages import Tags
from transduce.decoding.segmentation import split_sentences
from transduce.decoding.sources import read_sources
from transduce.errors import DataError, UsageError

Ids = tuple[int, ...]
Target = str | Sequence[int]


@dataclass(frozen=True)
class Limits:
    """How many tokens the model takes on each side, the end included."""

    source: int
    target: int


@dataclass(frozen=True)
class Parts:
    """One pair: what is to be scored, part by part, and what to tell of it.

    Sources are without the end, targets with it unless they were cut. ``possible`` is False for a pair that
    no translator forms: nothing has a translation. No parts at all are a pair of empty lines.
    """

    source: str
    target: str
    sources: tuple[Ids, ...]
    targets: tuple[Ids, ...]
    possible: bool = True
    warnings: tuple[str, ...] = ()


def check_pairs(
    pairs: Sequence[tuple[str, Target]], *, long_lines: str, batch_tokens: int, first_line: int
) -> None:
    """Nothing; raises UsageError, naming the line, for what are no pairs, and for wrong options."""
    if long_lines not in LONG_LINES:
        raise UsageError(f"long_lines is {long_lines!r}; choose one of {', '.join(LONG_LINES)}")
    if batch_tokens < 0:
        raise UsageError(f"batch_tokens is {batch_tokens}; use 0 to have it chosen")
    for number, pair in enumerate(pairs, first_line):
        sides = isinstance(pair, Sequence) and not isinstance(pair, str) and len(pair) == 2
        if not sides or not isinstance(pair[0], str) or not isinstance(pair[1], Sequence):
            raise UsageError(f"pair {number} is {pair!r}; score takes a list of (source, target)")


def read_pairs(
    pairs: Sequence[tuple[str, Target]],
    tokenizer: Tokenizer,
    *,
    limits: Limits,
    long_lines: str,
    first_line: int = 1,
    tags: Tags = (),
) -> list[Parts]:
    """The parts of each pair; texts are stripped of white space at both ends.

    ``tags`` stand in front of the ids of each source.
    A target may be given as the ids of an output of the search; its ends say where its parts end, and its
    source is then split as for translating. ``long_lines`` is split (sentence by sentence, where both sides
    have as many), truncate or error; warnings and errors name the line, the first is ``first_line``.
    """
    limits = Limits(max(2, limits.source - len(tags)), limits.target)
    texts = [source.strip() for source, _ in pairs]
    sources = tokenizer.encode_batch(texts)
    lines = [target.strip() if isinstance(target, str) else "" for _, target in pairs]
    targets = tokenizer.encode_target_batch(lines)
    found = []
    for i, (_, target) in enumerate(pairs):
        number = first_line + i
        if not isinstance(target, str):
            found.append(_of_ids(texts[i], target, tokenizer, limits, long_lines, number))
        elif not sources[i] and targets[i]:
            told = f"line {number}: an empty source has no translation: this pair has probability 0"
            found.append(Parts(texts[i], lines[i], (), (), possible=False, warnings=(told,)))
        elif not sources[i]:
            found.append(Parts(texts[i], lines[i], (), ()))
        elif len(sources[i]) < limits.source and len(targets[i]) < limits.target:
            found.append(Parts(texts[i], lines[i], (tuple(sources[i]),), ((*targets[i], EOS_ID),)))
        else:
            ids = (tuple(sources[i]), tuple(targets[i]))
            found.append(_long((texts[i], lines[i]), ids, tokenizer, limits, long_lines, number))
    return [replace(one, sources=tuple(tags + ids for ids in one.sources)) for one in found]


def _of_ids(
    source: str, target: Sequence[int], tokenizer: Tokenizer, limits: Limits, policy: str, line: int
) -> Parts:
    """The parts of a target that is given as ids."""
    for token in target:
        if not (token == EOS_ID or UNK_ID < token < tokenizer.vocabulary):
            raise UsageError(
                f"line {line}: the target's token {token} is no subword of this model; give ids as "
                "`Alternative.tokens` has them"
            )
    (read,) = read_sources([source], tokenizer, max_length=limits.source, long_lines=policy, first_line=line)
    targets: list[Ids] = []
    begin = 0
    for at, token in enumerate(target, 1):
        if token == EOS_ID or at == len(target):
            targets.append(tuple(target[begin:at]))
            begin = at
    if len(targets) != len(read.ids):
        raise UsageError(
            f"line {line}: the target has {counted(len(targets), 'output')} for "
            f"{counted(len(read.ids), 'part')} of the source; give the tokens of a whole output, each part's "
            "end included"
        )
    return Parts(source, tokenizer.decode(target), read.ids, tuple(targets), warnings=read.warnings)


def _long(
    texts: tuple[str, str],
    ids: tuple[Ids, Ids],
    tokenizer: Tokenizer,
    limits: Limits,
    policy: str,
    line: int,
) -> Parts:
    """The parts of a pair of which a side is longer than the model takes."""
    sizes = f"{len(ids[0])} and {counted(len(ids[1]), 'token')}"
    problem = (
        f"line {line}: its sides have {sizes}, the model takes {limits.source - 1} and {limits.target - 1}"
    )
    if policy == "error":
        raise DataError(
            f"{problem}; long lines are set to be an error: use split or truncate, or shorten the line"
        )
    if policy == "split":
        sides = split_sentences(texts[0]), split_sentences(texts[1])
        counts = f"{len(sides[0])} and {counted(len(sides[1]), 'sentence')}"
        if len(sides[0]) == len(sides[1]) > 1:
            grouped = _grouped(sides, tokenizer, limits)
            told = f"{problem}; scored in {counted(len(grouped), 'part')} (long lines: split)"
            if any(len(s) >= limits.source or len(t) >= limits.target for s, t in grouped):
                told = (
                    f"{problem}; scored in {counted(len(grouped), 'part')}, what is too long of one cut off"
                )
            kept = [_cut(s, t, limits) for s, t in grouped]
            sources, targets = tuple(s for s, _ in kept), tuple(t for _, t in kept)
            return Parts(*texts, sources, targets, warnings=(told,))
        told = f"{problem}; the rest is cut off, as the sides have {counts} and cannot be split alike"
    else:
        told = f"{problem}; the rest is cut off (long lines: truncate)"
    cut = _cut(*ids, limits)
    return Parts(*texts, (cut[0],), (cut[1],), warnings=(told,))


def _cut(source: Ids, target: Ids, limits: Limits) -> tuple[Ids, Ids]:
    """What the model takes of both; the end of a target that is cut does not count."""
    whole = len(target) < limits.target
    return source[: limits.source - 1], (*target, EOS_ID) if whole else target[: limits.target - 1]


def _grouped(
    sides: tuple[list[str], list[str]], tokenizer: Tokenizer, limits: Limits
) -> list[tuple[Ids, Ids]]:
    """The ids of as many sentences at a time as fit on both sides, at least one."""
    groups: list[tuple[Ids, Ids]] = []
    texts = "", ""
    for sentences in zip(*sides, strict=True):
        longer = texts[0] + sentences[0], texts[1] + sentences[1]
        ids = _both(longer, tokenizer)
        if not groups:
            groups, texts = [ids], longer
        elif len(ids[0]) < limits.source and len(ids[1]) < limits.target:
            groups[-1], texts = ids, longer
        else:
            texts = sentences
            groups.append(_both(texts, tokenizer))
    return groups


def _both(texts: tuple[str, str], tokenizer: Tokenizer) -> tuple[Ids, Ids]:
    source, target = (text.strip() for text in texts)
    return tuple(tokenizer.encode(source)), tuple(tokenizer.encode_target(target))
