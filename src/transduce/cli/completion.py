"""``transduce completion``: what makes a shell complete commands and flags; and the answers to the shell."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from transduce.errors import UsageError

SHELLS = ("bash", "zsh", "fish", "powershell")
VARIABLE = "_TRANSDUCE_COMPLETE"
"""In it the shell says that it asks, and how."""


def completion(
    shell: Annotated[str, typer.Argument(metavar="SHELL", help="bash, zsh, fish or powershell.")],
) -> None:
    """Print what makes a shell complete commands and flags; load it in the shell's start-up file."""
    if shell not in SHELLS:
        raise UsageError(f"shell {shell!r}: choose one of {', '.join(SHELLS)}")
    answer(None, f"source_{shell}")  # the script is the same whatever the commands are


def asked() -> str:
    """What the shell asks of this process; nothing where a person called it."""
    return os.environ.get(VARIABLE, "")


def answer(command: Any, instruction: str) -> int:
    """The exit code; what the shell asked for stands on standard output."""
    from typer.completion import get_completion_inspect_parameters, shell_complete

    get_completion_inspect_parameters()  # makes the shells known
    return shell_complete(command, {}, "transduce", VARIABLE, instruction)
