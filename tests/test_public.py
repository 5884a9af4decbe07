"""The public surface: tests/public.txt has every public name with its signature: no change is an accident.

`python tests/test_public.py > tests/public.txt` writes it anew; what changed then shows in the commit, and
belongs into CHANGELOG.md.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import transduce

WRITTEN = Path(__file__).with_name("public.txt")


def surface() -> Iterator[str]:
    """A line for each public name, and for each public member of a class."""
    for name in sorted(transduce.__all__):
        value = getattr(transduce, name)
        if not inspect.isclass(value):
            yield f"{name}{signature(value)}" if callable(value) else name
            continue
        bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
        yield f"class {name}({bases})"
        if not issubclass(value, Exception):
            yield f"  {name}{signature(value)}"
        for member, own in sorted(inspect.getmembers_static(value)):
            if member.startswith("_") or not defined_here(value, member):
                continue
            if isinstance(own, property) or not callable(getattr(value, member)):
                yield f"  .{member}"
            else:
                yield f"  .{member}{signature(getattr(value, member))}"


def defined_here(kind: type, member: str) -> bool:
    """Whether the member comes from our own classes; a dataclass's fields stand in its signature."""
    if dataclasses.is_dataclass(kind) and member in {field.name for field in dataclasses.fields(kind)}:
        return False
    owner = next((base for base in kind.__mro__ if member in vars(base)), object)
    return owner.__module__.startswith("transduce")


def signature(value: Any) -> str:
    """The signature without addresses in memory, which change."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(inspect.signature(value)))


def test_the_public_surface_is_what_is_written() -> None:
    assert "\n".join(surface()) + "\n" == WRITTEN.read_text(encoding="utf-8"), (
        "the public surface has changed: if it is meant, run python tests/test_public.py > tests/public.txt "
        "and say it in CHANGELOG.md"
    )


def test_every_public_name_is_documented_and_typed() -> None:
    for name in transduce.__all__:
        value = getattr(transduce, name)
        assert inspect.getdoc(value), name
        members = [value]
        if inspect.isclass(value):
            members = [
                getattr(value, member)
                for member in vars(value)
                if not member.startswith("_") and inspect.isroutine(getattr(value, member))
            ]
        for member in members:
            assert inspect.getdoc(member), f"{name}.{member}"
            if inspect.isroutine(member):
                typed = inspect.signature(member)
                assert typed.return_annotation is not inspect.Signature.empty, f"{name}.{member}"
                for parameter in typed.parameters.values():
                    assert parameter.annotation is not inspect.Parameter.empty or parameter.name in (
                        "self",
                        "cls",
                    ), f"{name}.{member}: {parameter}"


if __name__ == "__main__":
    print("\n".join(surface()))
