"""Bytes as text, and back to the same bytes."""

from __future__ import annotations

import codecs
from collections.abc import Callable

from transduce.errors import DataError

Encode = Callable[[str], bytes]
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

# Text to Python, but none that a file is written in; some take quadratic time.
_UNSUITABLE = {
    "idna",
    "punycode",
    "unicode_escape",
    "raw_unicode_escape",
    "undefined",
    "utf-7",
    "mbcs",
    "oem",
}


def marked_encoding(content: bytes) -> str:
    """The encoding that the byte order mark at the start tells; empty where there is none."""
    return next((name for mark, name in _MARKS if content.startswith(mark)), "")


def decode(content: bytes, encoding: str, name: str, *, errors: str = "strict") -> tuple[str, Encode]:
    """The text of ``content``, its byte order mark included, and what makes bytes of such a text.

    ``errors`` says what becomes of new characters that the encoding lacks: strict, a DataError, or
    xmlcharrefreplace. Raises DataError where the bytes are not text of that encoding, or could not be written
    the same again.
    """
    encoding = marked_encoding(content) or encoding
    try:
        if codecs.lookup(encoding).name in _UNSUITABLE:
            raise LookupError
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{name}:{line}: byte 0x{content[error.start]:02x} is not {encoding}; "
            "convert the file to UTF-8, or say its encoding right"
        ) from None
    except (LookupError, ValueError):
        raise DataError(f"{name}: names the encoding {encoding!r}, which is unknown") from None

    def encode(text: str) -> bytes:
        try:
            return text.encode(encoding, errors)
        except UnicodeEncodeError as error:
            raise DataError(
                f"{name}: its encoding {encoding} has no {error.object[error.start]!r}, which a translation "
                "needs; convert the file to UTF-8 first"
            ) from None

    try:
        same = text.encode(encoding) == content
    except UnicodeError:
        same = False
    if not same:
        raise DataError(f"{name}: {encoding} does not give the same bytes again; convert the file to UTF-8")
    return text, encode
