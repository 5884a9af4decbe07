"""Writes docs/settings.md, errors.md and api.md from the source: settings, messages, public names.

python docs/reference.py [--check]
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import transduce

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "transduce"
SETTINGS = (
    ("model", "transduce.model.config", "ModelConfig", "The shape of a model (sections 3.1 to 3.5)."),
    ("training", "transduce.training.config", "TrainingConfig", "How it is trained (section 5)."),
    ("data", "transduce.data.config", "DataConfig", "What it is trained on."),
    (
        "cleaning",
        "transduce.data.cleaning.config",
        "CleaningConfig",
        "What `data.clean` and `corpus clean` do.",
    ),
    (
        "translation",
        "transduce.decoding.config",
        "TranslationOptions",
        "How lines are translated (section 6.1).",
    ),
)
ERRORS = {
    "UsageError": 2,
    "ConfigError": 2,
    "DataError": 1,
    "BundleError": 1,
    "TrainingError": 1,
    "TransduceError": 1,
}


def main() -> int:
    """Zero; one where --check finds that the pages are not what the source says."""
    pages = {"settings.md": settings_page(), "errors.md": errors_page(), "api.md": api_page()}
    stale = []
    for name, text in pages.items():
        path = ROOT / "docs" / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
            if "--check" not in sys.argv:
                path.write_text(text, encoding="utf-8")
    if stale and "--check" in sys.argv:
        print(f"{', '.join(stale)}: not what the source says; run python docs/reference.py", file=sys.stderr)
        return 1
    return 0


def settings_page() -> str:
    """Every setting with its default and what it does, from the dataclasses."""
    lines = [
        "# Settings",
        "",
        "Made by `docs/reference.py` from the dataclasses. In a run's TOML file the names stand below",
        "`[model]`, `[training]`, `[data]` and `[cleaning]`; on the command line as `--set training.seed=2`.",
        "Presets change some defaults, and `transduce train` chooses others by the amount of data and says",
        "so. Those of translating are flags of `transduce translate`, and arguments of `Translator`.",
    ]
    for section, module, name, about in SETTINGS:
        lines += ["", f"## {section}", "", about, "", "| setting | default | what |", "|---|---|---|"]
        for field, default, text in fields_of(module, name):
            lines.append(f"| `{section}.{field}` | {default} | {text} |")
    return "\n".join(lines) + "\n"


def fields_of(module: str, name: str) -> Iterator[tuple[str, str, str]]:
    """Name, default and description of each field; an error for a field that nothing is said of."""
    kind = getattr(importlib.import_module(module), name)
    (tree,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(tree, ast.ClassDef)
    for at, node in enumerate(tree.body):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        after = tree.body[at + 1]
        said = after.value if isinstance(after, ast.Expr) else None
        if not isinstance(said, ast.Constant) or not isinstance(said.value, str):
            raise SystemExit(f"{module}.{name}.{node.target.id} has no text below it that says what it does")
        default = "must be given" if node.value is None else shown(kind.__dataclass_fields__[node.target.id])
        yield node.target.id, default, cell(" ".join(said.value.split()))


def shown(field: Any) -> str:
    """A default as one writes it in TOML."""
    value = field.default
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, str):
        return f'`"{value}"`'
    if value == ():
        return "`[]`"
    return f"`{value:,}`".replace(",", "_") if isinstance(value, int | float) else "see its own section"


def cell(text: str) -> str:
    """Text of a docstring as Markdown in a table."""
    return re.sub(r"``([^`]*)``", r"`\1`", text).replace("|", "\\|").replace("<", "&lt;")


def errors_page() -> str:
    """Every message of an error that a user can meet, by the file that it comes from."""
    lines = [
        "# Error messages",
        "",
        "Made by `docs/reference.py` from the source. A message is one line that names what is wrong and the",
        "way out; `…` stands for what it names (files, lines, values). Exit code 2: the command was called",
        "wrongly; 1: something is wrong with a file, a model or a run. `TRANSDUCE_DEBUG=1` shows where one",
        "came from.",
    ]
    for path in sorted(SOURCE.rglob("*.py")):
        found = list(dict.fromkeys(messages_of(path)))
        if found:
            lines += [
                "",
                f"## {path.relative_to(SOURCE).as_posix()}",
                "",
                "| exit code | message |",
                "|---|---|",
            ]
            lines += [f"| {code} | {cell(text)} |" for code, text in found]
    return "\n".join(lines) + "\n"


def api_page() -> str:
    """Every public name, with the place that the site takes its text from."""
    lines = [
        "# Python",
        "",
        "Made by `docs/reference.py`. Everything here is imported from `transduce` itself, as in",
        "`from transduce import Translator`, and loaded when it is first used. What is not here may change",
        "from one version to the next. Errors that are raised are subclasses of `TransduceError`.",
    ]
    for name, home in sorted(transduce._HOMES.items(), key=lambda item: item[0].lower()):
        value = getattr(importlib.import_module(home), name)
        first = (inspect.getdoc(value) or "").split("\n\n", maxsplit=1)[0]
        if not first:
            raise SystemExit(f"{home}.{name} has no docstring")
        lines += ["", f"## {name}", "", cell(" ".join(first.split())), ""]
        kind = "autoclass" if inspect.isclass(value) else "autofunction"
        lines += ["```{eval-rst}", f".. {kind}:: {home}.{name}", "```"]
    return "\n".join(lines) + "\n"


def messages_of(path: Path) -> Iterator[tuple[int, str]]:
    """Exit code and text of every error that a file makes."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and node.args and (name := error_of(node.func)):
            said = node.args[0]
            for one in (said.body, said.orelse) if isinstance(said, ast.IfExp) else (said,):
                text = " ".join("".join(pieces(one)).split())
                if re.search(r"[a-z]{3}", text):
                    yield ERRORS[name], text


def error_of(made_by: ast.expr) -> str:
    """The error that a call makes; readers of files have a method that adds file and line."""
    if isinstance(made_by, ast.Attribute):
        return "DataError" if made_by.attr == "fault" else ""
    return made_by.id if isinstance(made_by, ast.Name) and made_by.id in ERRORS else ""


def pieces(node: ast.AST) -> Iterator[str]:
    """The text of an expression; what is only known when it happens is an ellipsis."""
    if isinstance(node, ast.Constant):
        yield str(node.value)
    elif isinstance(node, ast.JoinedStr):
        for part in node.values:
            yield from pieces(part)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from pieces(node.left)
        yield from pieces(node.right)
    else:
        yield "…"


if __name__ == "__main__":
    sys.exit(main())
