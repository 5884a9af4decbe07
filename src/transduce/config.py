"""Settings from TOML files, flags and ``--set a.b=c`` into frozen dataclasses, strictly.

An unknown name fails with "did you mean"; a value of the wrong type with its name and the type expected.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import tomllib
import types
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from transduce.errors import ConfigError

T = TypeVar("T")
Settings = dict[str, Any]


def read_toml(path: str | Path) -> Settings:
    """The settings in a TOML file; raises ConfigError naming the file, and the line where it is not TOML."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot read the settings ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: the settings are not UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from error


def parse_assignment(text: str) -> Settings:
    """The nested settings of one ``a.b=c``: c is read as TOML where it is TOML, else as a string."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ConfigError(
            f"--set {text!r} is not of the form section.name=value, e.g. training.max_steps=1000"
        )
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = value
    for part in reversed(name.strip().split(".")):
        parsed = {part: parsed}
    return typing.cast(Settings, parsed)


def merge(*layers: Mapping[str, Any]) -> Settings:
    """One mapping in which later layers win, section by section."""
    merged: Settings = {}
    for layer in layers:
        for name, value in layer.items():
            old = merged.get(name)
            both = isinstance(old, Mapping) and isinstance(value, Mapping)
            merged[name] = merge(typing.cast(Settings, old), value) if both else value
    return merged


def unknown_name(name: str, known: Iterable[str], what: str) -> ConfigError:
    """The error for a name that does not exist, with the nearest one that does."""
    known = sorted(known)
    # A section that all names share must not make them alike.
    section = name.rpartition(".")[0]
    prefix = f"{section}." if section and all(k.startswith(f"{section}.") for k in known) else ""
    bare = {k.removeprefix(prefix): k for k in known}
    near = [bare[k] for k in difflib.get_close_matches(name.removeprefix(prefix), bare, n=1, cutoff=0.5)]
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
    return ConfigError(f"there is no {what} {name!r}; {hint}")


def build(cls: type[T], values: Mapping[str, Any], section: str) -> T:
    """An instance of the dataclass ``cls`` with these fields; ``section`` is named in errors."""
    return cls(**checked(cls, values, section))


def checked(cls: type[Any], values: Mapping[str, Any], section: str) -> Settings:
    """The values, converted to their fields' types; raises ConfigError for unknown names and wrong types."""
    hints = _hints(cls)  # type: ignore[arg-type]  # a class is hashable, whatever its objects are
    names = {field.name for field in dataclasses.fields(cls)}
    result = {}
    for name, value in values.items():
        if name not in names:
            raise unknown_name(f"{section}.{name}", (f"{section}.{n}" for n in names), "setting")
        result[name] = _converted(value, hints[name], f"{section}.{name}")
    return result


@functools.cache
def _hints(cls: type[Any]) -> dict[str, Any]:
    """The types of the fields; kept, as working them out takes as long as a translated word."""
    return typing.get_type_hints(cls)


def _converted(value: Any, hint: Any, name: str) -> Any:
    if typing.get_origin(hint) is tuple:
        item = typing.get_args(hint)[0]
        if isinstance(value, str):
            value = (value,)
        if isinstance(value, list | tuple):
            return tuple(_converted(part, item, name) for part in value)
    elif typing.get_origin(hint) in (typing.Union, types.UnionType):
        if value is None:
            return None
        return _converted(value, next(t for t in typing.get_args(hint) if t is not type(None)), name)
    elif hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    elif hint is int and isinstance(value, float) and value.is_integer():
        return int(value)
    elif isinstance(value, hint) and not (hint is int and isinstance(value, bool)):
        return value
    expected = {int: "a whole number", float: "a number", bool: "true or false", str: "a string"}.get(
        hint, "a list"
    )
    raise ConfigError(f"{name} is {value!r}; it must be {expected}")
