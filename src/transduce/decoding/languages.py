"""Into which language, and as what kind of text: the tags in front of a source, as a translator is asked."""

from __future__ import annotations

from collections.abc import Sequence

from transduce.data.tags import domain_tag, language_tag
from transduce.data.tokenizer import Tokenizer
from transduce.errors import UsageError

Tags = tuple[int, ...]


def tags_asked(tokenizer: Tokenizer, to: str, domain: str) -> Tags:
    """The ids in front of every source; UsageError, with what the model knows, where it does not know them.

    ``to`` may be left out where the model knows one language. ``de-DE`` finds ``de``, and ``de`` a ``de_AT``
    that is the only German.
    """
    return tuple(
        tokenizer.tag_ids(
            (
                *((language_tag(_language(tokenizer.languages, to)),) if to or tokenizer.languages else ()),
                *((domain_tag(_domain(tokenizer.domains, domain)),) if domain else ()),
            )
        )
    )


def _language(known: Sequence[str], wanted: str) -> str:
    if not known:
        raise UsageError(f"to is {wanted!r}, but this model was trained without languages; leave it out")
    if not wanted:
        if len(known) > 1:
            raise UsageError(
                f"this model translates into {', '.join(known)}; say into which with to (--to {known[0]})"
            )
        return known[0]
    simple = {code: code.lower().replace("_", "-") for code in known}
    sought = wanted.lower().replace("_", "-")
    same = [code for code in known if simple[code] == sought]
    related = [code for code in known if simple[code].split("-")[0] == sought.split("-")[0]]
    if len(same) != 1 and (len(related) != 1 or not _contains(simple[related[0]], sought)):
        raise UsageError(f"to is {wanted!r}, but this model translates into {', '.join(known)}")
    return (same or related)[0]


def _contains(one: str, other: str) -> bool:
    """Whether one of two codes is the other with a region or script left out."""
    return f"{one}-".startswith(f"{other}-") or f"{other}-".startswith(f"{one}-")


def _domain(known: Sequence[str], wanted: str) -> str:
    if wanted not in known:
        there = ", ".join(known) or "none"
        raise UsageError(f"domain is {wanted!r}, but the domains that this model knows are: {there}")
    return wanted
