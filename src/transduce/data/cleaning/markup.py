"""A filter on what is left of markup: tags and brackets that only one side has."""

from __future__ import annotations

import re
from collections import Counter

from transduce.data.cleaning.config import CleaningConfig

_TAG = re.compile(r"<(/?)([A-Za-z][\w:.-]*)((?:\s[^<>]*)?/?)>|<(!--|!\[CDATA\[|[!?][A-Za-z])")
# Tags that are one without closing, attribute or slash as well: <file> and <Datei> are placeholders.
_NAMES = """
a abbr b big blockquote body br button center cite code dd div dl dt em embed font footer form h1 h2 h3
h4 h5 h6 head header hr html i iframe img input ins kbd label li link main meta nav object ol option p
pre s script section select small span strike strong style sub sup table tbody td textarea tfoot th thead
title tr tt u ul video wbr
"""
_HTML = frozenset(_NAMES.split())
_BRACKETS = ("[[", "]]", "{{", "}}", "[/", "{\\")


def markup(source: str, target: str, config: CleaningConfig) -> str:
    """Why a pair with a tag or bracket that only one side has is dropped.

    Tags that both have are part of the text, as in the catalogs of programs.
    """
    if "<" in source or "<" in target:
        one, other = _tags(source), _tags(target)
        if one != other:
            found = next(iter(sorted((one - other) + (other - one))))
            side, times = ("source", one[found]) if one[found] > other[found] else ("target", other[found])
            return f"{found} {_times(times)} in {side}, {_times(min(one[found], other[found]))} in the other"
    if "[" in source or "[" in target or "{" in source or "{" in target or "}" in source or "}" in target:
        for bracket in _BRACKETS:
            if (bracket in source) != (bracket in target):
                return f"{bracket} only in {'source' if bracket in source else 'target'}"
    return ""


def _tags(text: str) -> Counter[str]:
    return Counter(
        f"<{end}{name or other}>"
        for end, name, more, other in _TAG.findall(text)
        if other or end or more or name.lower() in _HTML
    )


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times" if count else "never"
