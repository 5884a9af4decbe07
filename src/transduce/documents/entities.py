"""Characters that a file writes as entities: read before translating, written the same way after."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")


def decoded(text: str) -> tuple[str, dict[str, str]]:
    """The text with its entities as characters, and how each of these characters was written.

    An entity that does not exist, or stands for several characters, stays as it is.
    """
    written: dict[str, str] = {}
    for entity in _ENTITY.findall(text):
        value = _character(entity)
        if value != entity:
            written.setdefault(value, entity)
    return _ENTITY.sub(lambda match: _character(match.group()), text), written


def _character(entity: str) -> str:
    value = html.unescape(entity)
    return entity if len(value) != 1 or value in "\n\r\0" else value


def encoded(text: str, written: Mapping[str, str]) -> str:
    """The text with these characters written so again."""
    return text.translate({ord(character): entity for character, entity in written.items()})


def decoded_message(text: str) -> tuple[str, dict[str, str]]:
    """The same for a text in which ``<`` and ``&`` may also stand for themselves, as in a catalog.

    A character that stands both ways stays as it is, for it could not be told apart afterwards.
    """
    plain = _ENTITY.sub("", text)
    written = {value: entity for value, entity in decoded(text)[1].items() if value not in plain}
    return _ENTITY.sub(lambda match: _if_known(match.group(), written), text), written


def _if_known(entity: str, written: Mapping[str, str]) -> str:
    value = _character(entity)
    return value if value in written else entity
