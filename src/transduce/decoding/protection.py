"""What is not to be translated: tags, placeholders, addresses, numbers. Found in a line, and counted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from transduce.errors import UsageError

KINDS = ("tags", "placeholders", "urls", "emails", "numbers")

_NAME = r"[A-Za-z][\w:.-]*"
_VALUE = r"\"[^\"]*\"|'[^']*'|[^\s\"'<>=]+"
_NOT_IN_URL = '<>"“”„«»‹›'
_PATTERNS = {
    "tags": rf"<!--.*?-->|</{_NAME}\s*>|<{_NAME}(?:\s+[\w:.-]+(?:\s*=\s*(?:{_VALUE}))?)*\s*/?>",
    "urls": rf"(?:(?:https?|ftp)://|www\.)[^\s{_NOT_IN_URL}]*[^\s{_NOT_IN_URL}.,;:!?…'’‘()\[\]{{}}¿¡]",
    "emails": r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
    # {name} {0} {} {{name}} ${name}; %(name)s; %s %d %1$s %5.2f %@
    "placeholders": r"\{\{[^{}]*\}\}|\$?\{[^\s{}]*\}|%\(\w+\)[-+#0]*[\d.]*[A-Za-z]"
    r"|%(?:\d+\$)?[-+#0]*\d*(?:\.\d+)?(?:hh|h|ll|l|L|z|j|t)?[diouxXeEfFgGaAcsp@](?![A-Za-z])",
    "numbers": r"(?<!\w)\d+(?:[.,:/'\u00a0\u202f]?\d+)*(?!\w)",
}


@dataclass(frozen=True)
class Item:
    """Something protected: its kind, how it is written, and the character at which it begins."""

    kind: str
    text: str
    begin: int

    @property
    def end(self) -> int:
        """The character after it."""
        return self.begin + len(self.text)

    @property
    def key(self) -> tuple[str, str]:
        """What two equal items share: a number may be written with other separators in another language."""
        return self.kind, re.sub(r"\D", "", self.text) if self.kind == "numbers" else self.text


def kinds_of(names: str) -> frozenset[str]:
    """The kinds that ``names`` lists with commas; ``all`` is all of them, and nothing none."""
    wanted = [name.strip() for name in names.split(",")] if names else []
    for name in wanted:
        if name != "all" and name not in KINDS:
            raise UsageError(f"protect is {names!r}; choose all, or some of {', '.join(KINDS)}, with commas")
    return frozenset(KINDS if "all" in wanted else wanted)


def find_items(text: str, kinds: Iterable[str]) -> Iterator[Item]:
    """The protected items of ``text``, in order."""
    wanted = frozenset(kinds)
    # All kinds are looked for, so that a number within an address is never taken for a number.
    for match in _PATTERN.finditer(text):
        kind = match.lastgroup
        if kind in wanted:
            yield Item(kind, match.group(), match.start())


def lost_or_doubled(source: str, output: str, kinds: frozenset[str]) -> list[str]:
    """What the output has more or less often than the source, one message each; usually nothing.

    Numbers that only the output has are no mistake: words may become digits.
    """
    wanted = Counter[tuple[str, str]]()
    names: dict[tuple[str, str], str] = {}
    for item in find_items(source, kinds):
        wanted[item.key] += 1
        names.setdefault(item.key, item.text)
    found = Counter[tuple[str, str]]()
    for item in find_items(output, kinds):
        if item.kind != "numbers" or item.key in wanted:
            found[item.key] += 1
            names.setdefault(item.key, item.text)
    messages = []
    for key, name in names.items():
        if found[key] != wanted[key]:
            what = "lost" if found[key] < wanted[key] else "doubled" if wanted[key] else "invented"
            messages.append(f"{what}: {name} (in the source {wanted[key]}, in the output {found[key]})")
    return messages


_PATTERN = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _PATTERNS.items()))
