"""Pairs as a gettext catalog in text (PO)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import blake2b

from transduce import __version__
from transduce.data.formats.pair import Pair
from transduce.data.formats.sides import Wanted
from transduce.data.formats.tally import Tally
from transduce.data.outputs import Sink

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "\a": "\\a", "\b": "\\b"}
_ESCAPES |= {"\f": "\\f", "\v": "\\v", "\0": "\\000"}
_SPECIAL = re.compile("[" + re.escape("".join(_ESCAPES)) + "]")


def with_source(pairs: Iterable[Pair], tally: Tally) -> Iterator[Pair]:
    """The pairs that a catalog can hold; those without a source text are left out, which ``tally`` counts."""
    for pair in pairs:
        if pair.source:
            yield pair
        else:
            tally.skip(pair.file, "without a source text, which a catalog cannot hold", pair.line)


def write_po(pairs: Iterable[Pair], file: Sink, languages: Wanted, tally: Tally) -> None:
    """Nothing; an entry for each pair, with a number as its context where a source comes again.

    Each has a source text (see `with_source`): in its place the header of a catalog stands.
    """
    header = [
        "Content-Type: text/plain; charset=UTF-8",
        "Content-Transfer-Encoding: 8bit",
        f"Language: {languages.target.replace('-', '_')}",
        *([f"X-Source-Language: {languages.source}"] if languages.source else []),
        f"X-Generator: Transduce {__version__}",
    ]
    file.write(
        b'msgid ""\nmsgstr ""\n' + "".join(f"{_quoted(f'{line}{chr(10)}')}\n" for line in header).encode()
    )
    seen: Counter[bytes] = Counter()
    for pair in pairs:
        key = blake2b(pair.source.encode(), digest_size=12).digest()
        seen[key] += 1
        context = f'msgctxt "{seen[key]}"\n' if seen[key] > 1 else ""
        file.write(f"\n{context}msgid {_quoted(pair.source)}\nmsgstr {_quoted(pair.target)}\n".encode())


def _quoted(text: str) -> str:
    return f'"{_SPECIAL.sub(lambda found: _ESCAPES[found[0]], text)}"'
