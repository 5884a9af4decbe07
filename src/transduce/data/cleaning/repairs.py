"""Text that can be mended: wrong encodings, control characters, entities. Each repair is pure."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Sequence

from transduce.data.cleaning.config import CleaningConfig
from transduce.data.formats.pair import Pair
from transduce.errors import UsageError

Repair = Callable[[str, str], tuple[str, str]]
"""Source and target, mended; the very same strings where there is nothing to mend."""

# The first byte of a UTF-8 sequence and a later one of it, as Latin-1, Windows-1252 and their like show them;
# as Windows-1251 does; bytes that no encoding shows.
_MISREAD = re.compile(
    "[\u00c2-\u00f4\u0102\u0110\u0111\u0118\u0119\u0147\u0148\u0150-\u0155\u0160-\u017a]"
    "[\u0080-\u00bf\u0100-\u017f\u0192\u02c6-\u02dd\u2013-\u2044\u20ac\u2122]"
    "|[\u0420\u0421\u0432][\u0402-\u040f\u0452-\u045f\u0490\u0491\u00a0-\u00bb\u2013-\u2044\u20ac\u2116\u2122]"
    "|[\u0080-\u009f]"
)
# Ends of lines that are none here. Tabs and line feeds stay: what cannot hold them tells of it (see outputs).
_BREAKS = re.compile(" *[\x0b\x0c\r\x1c-\x1f\x85\u2028\u2029][\x0b\x0c\r\x1c-\x1f\x85\u2028\u2029 ]*")
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\ufeff\ufff9-\ufffb]+")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")


def repairs(config: CleaningConfig) -> list[tuple[str, Repair]]:
    """The repairs that are on, by name, in the order in which they are made."""
    wanted: list[tuple[str, bool, Repair]] = [
        ("mojibake", config.mojibake, mend_mojibake),
        ("controls", config.controls, mend_controls),
        ("entities", config.entities, mend_entities),
        ("nfc", config.nfc, compose),
    ]
    if config.mojibake:
        check_ftfy()
    return [(name, repair) for name, on, repair in wanted if on]


def mended(pair: Pair, mend: Sequence[tuple[str, Repair]]) -> tuple[Pair, tuple[str, ...]]:
    """The pair after these repairs, the same object where none changed it, and which of them did."""
    source, target = pair.source, pair.target
    done: tuple[str, ...] = ()
    for name, repair in mend:
        one, other = repair(source, target)
        if one is not source or other is not target:
            if (one, other) != (source, target):
                done = (*done, name)
            source, target = one, other
    return (pair._replace(source=source, target=target) if done else pair), done


def check_ftfy() -> None:
    """Nothing; raises UsageError where ftfy is not installed."""
    try:
        import ftfy  # noqa: F401
    except ImportError:
        raise UsageError(
            "mending wrongly decoded text needs ftfy; install it with `pip install 'transduce[cleaning]'`, "
            "or turn it off with cleaning.mojibake=false"
        ) from None


def mend_mojibake(source: str, target: str) -> tuple[str, str]:
    """The sides, decoded as they should have been where they were not; see ftfy on when that is certain."""
    return _decoded(source), _decoded(target)


def _decoded(text: str) -> str:
    if text.isascii() or not _MISREAD.search(text):
        return text
    import ftfy

    return ftfy.fix_encoding(text)


def mend_controls(source: str, target: str) -> tuple[str, str]:
    """The sides without characters that show nothing, and with a space for what breaks lines elsewhere."""
    return _without_controls(source), _without_controls(target)


def _without_controls(text: str) -> str:
    if text.isprintable():
        return text
    return _CONTROLS.sub("", _BREAKS.sub(" ", text))


def mend_entities(source: str, target: str) -> tuple[str, str]:
    """The sides with the characters for which entities stand, where only one side has any.

    Where both have some, they belong to the text: that of a manual, or of a page's source.
    """
    if ("&" in source or "&" in target) and bool(_ENTITY.search(source)) != bool(_ENTITY.search(target)):
        return _ENTITY.sub(_character, source), _ENTITY.sub(_character, target)
    return source, target


def _character(entity: re.Match[str]) -> str:
    text = html.unescape(entity.group())
    # An entity that is none stays, and one that would break the line too.
    return text if text.isprintable() or text == "\u00a0" else entity.group()


def compose(source: str, target: str) -> tuple[str, str]:
    """The sides in Unicode's composed form (NFC)."""
    return _composed(source), _composed(target)


def _composed(text: str) -> str:
    return text if unicodedata.is_normalized("NFC", text) else unicodedata.normalize("NFC", text)
