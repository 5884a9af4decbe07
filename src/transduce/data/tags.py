"""Tags in front of a source: into which language it is to be translated, and what kind of text it is.

A tag is one id of the tokenizer that no text is ever turned into: a text that holds the same characters stays
text. ``<2de>`` asks for German (Johnson et al., 2017); ``<news>`` names a domain, ``<bt>`` by custom sources
that were made by translating back (Caswell et al., 2019).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from transduce.counts import counted
from transduce.data.formats.languages import is_code, normal
from transduce.data.formats.pair import Pair
from transduce.data.formats.sides import Wanted
from transduce.errors import ConfigError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
# Pieces of this spelling are the tokenizer's own; a domain that begins with 2 would look like a language.
_TAKEN = re.compile(r"s|pad|unk|0x.*|2.*")


class Label(NamedTuple):
    """What a corpus is: ``languages`` as source:target, and a domain; empty where nothing is said."""

    languages: str = ""
    domain: str = ""


def language_tag(code: str) -> str:
    """The tag that asks for a language."""
    return f"<2{code}>"


def domain_tag(name: str) -> str:
    """The tag that names a domain."""
    return f"<{name}>"


def tags_of(label: Label) -> tuple[str, ...]:
    """What stands in front of a source of this label: the target language, then the domain."""
    target = label.languages.partition(":")[2]
    return (
        *((language_tag(target),) if target else ()),
        *((domain_tag(label.domain),) if label.domain else ()),
    )


def languages_of(label: Label) -> Wanted:
    """The languages to read of a corpus that holds several; none where the label's names are no codes."""
    source, _, target = label.languages.partition(":")
    is_pair = is_code(source) and is_code(target) and normal(source) != normal(target)
    return Wanted(source, target) if is_pair else Wanted()


def labels(languages: Sequence[str], domains: Sequence[str], count: int) -> tuple[Label, ...]:
    """The label of each of ``count`` corpora."""
    languages, domains = languages or [""] * count, domains or [""] * count
    return tuple(Label(*both) for both in zip(languages, domains, strict=True))


def labelled(pairs: Iterable[Pair], labels: Sequence[Label]) -> Iterator[Pair]:
    """The pairs, each with the label of its corpus."""
    if not any(map(any, labels)):
        yield from pairs
        return
    for pair in pairs:
        languages, domain = labels[pair.corpus]
        yield pair._replace(languages=languages, domain=domain)


def check_labels(languages: Sequence[str], domains: Sequence[str], count: int, prefix: str = "") -> None:
    """Nothing; raises ConfigError where there are not as many as corpora, or a name cannot be a tag."""
    for name, values in (("languages", languages), ("domains", domains)):
        if values and len(values) != count:
            raise ConfigError(
                f"data.{prefix}{name} holds {len(values)} for {counted(count, 'corpus')}; give one for each "
                f"pair of {'valid ' if prefix else ''}source and target files, then for each of tsv, then of "
                f"{'validation' if prefix else 'pairs'}"
            )
    for value in languages:
        source, colon, target = value.partition(":")
        if not (colon and _NAME.fullmatch(source) and _NAME.fullmatch(target)):
            raise ConfigError(
                f"data.{prefix}languages holds {value!r}; write source:target, e.g. en:de (letters, digits, "
                "- _ and .)"
            )
    for value in domains:
        if value and (not _NAME.fullmatch(value) or _TAKEN.fullmatch(value)):
            raise ConfigError(
                f"data.{prefix}domains holds {value!r}; a domain is named by letters, digits, - _ and ., "
                'does not begin with 2, and is not s, pad, unk or 0x...; "" is none'
            )
