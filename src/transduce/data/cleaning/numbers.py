"""Filters on numbers and addresses: what must be the same on both sides."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

from transduce.data.cleaning.config import CleaningConfig

_DIGIT = re.compile(r"\d")
_DIGITS = re.compile(r"\d+")
_NUMBER = re.compile(r"\d(?:[.,'’\u00a0\u202f\u066b\u066c]?\d)*")
_ADDRESS = re.compile(r"(?:https?://|ftp://|\bwww\.)(?:[\w.-]*@)?([\w.-]+)|[\w.+-]+@([\w-]+(?:\.[\w-]+)+)")


def numbers(source: str, target: str, config: CleaningConfig) -> str:
    """Why a pair is dropped in which each side has a long number that the other lacks.

    Separators do not count, nor what stands in words on the other side: ``1,500`` is ``1.500``, and may be
    ``fifteen hundred``. Short numbers are often written anew: ``5 p.m.`` is ``17 Uhr``.
    """
    if not (_DIGIT.search(source) and _DIGIT.search(target)):
        return ""
    one = _lacking(source, target, config.number_digits)
    other = _lacking(target, source, config.number_digits) if one else ""
    return f"{one} in source but {other} in target" if one and other else ""


def _lacking(text: str, other: str, digits: int) -> str:
    """The first number of so many digits that the other text has not among its digits; empty for none."""
    there = ""
    for found in _NUMBER.findall(text):
        number = _plain(found)
        if len(number) >= digits:
            there = there or _plain(other)
            if number not in there:
                return str(found)
    return ""


def _plain(text: str) -> str:
    """The digits of a text and nothing else, as 0 to 9."""
    found = "".join(_DIGITS.findall(text))
    return found if found.isascii() else "".join(str(unicodedata.digit(digit)) for digit in found)


def addresses(source: str, target: str, config: CleaningConfig) -> str:
    """Why a pair with other web or mail addresses on one side than on the other is dropped.

    Sites are told by the longest part of their name: ``en.example.org`` may become ``www.example.de``.
    """
    if "." not in source and "." not in target:
        return ""
    if not _may_have_address(source) and not _may_have_address(target):
        return ""
    one, other = _sites(source), _sites(target)
    if one == other:
        return ""
    missing = next(iter(sorted((one - other) or (other - one))))
    return f"{missing!r} is an address in {'source' if one[missing] > other[missing] else 'target'} only"


def _may_have_address(text: str) -> bool:
    return "@" in text or "://" in text or "www." in text


def _sites(text: str) -> Counter[str]:
    return Counter(_site(web or mail) for web, mail in _ADDRESS.findall(text))


def _site(host: str) -> str:
    parts = [part for part in host.lower().strip(".").split(".") if part != "www"]
    return max(parts[:-1] or parts or [host], key=len)
