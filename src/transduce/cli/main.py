"""The ``transduce`` command: its sub-commands, and what becomes of an exception.

Nothing heavy is imported here or at the top of any module of this package: ``transduce --help`` does not
load torch.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from typer.main import get_command

from transduce import __version__, machine
from transduce.cli.attention import attention
from transduce.cli.average import average
from transduce.cli.bulk import bulk
from transduce.cli.compare import compare
from transduce.cli.completion import answer, asked, completion
from transduce.cli.corpus import app as corpus
from transduce.cli.demo import demo
from transduce.cli.doctor import doctor
from transduce.cli.evaluate import evaluate
from transduce.cli.exporting import export, import_model, verify
from transduce.cli.heads import heads
from transduce.cli.inspect import inspect
from transduce.cli.paper import app as paper
from transduce.cli.positions import neighbours, positions
from transduce.cli.prune import prune
from transduce.cli.rerank import rerank
from transduce.cli.runs import runs
from transduce.cli.score import score
from transduce.cli.serve import keys_app, serve
from transduce.cli.shortlist import shortlist
from transduce.cli.synthetic import backtranslate, distill
from transduce.cli.train import train
from transduce.cli.translate import translate
from transduce.cli.tree import tree
from transduce.errors import TransduceError

# What it does, what runs, an example: in the order in which a new user meets them (typer lists groups last).
_COMMANDS: dict[str, tuple[str, Callable[..., None] | typer.Typer, str]] = {
    "demo": ("See it work: a corpus, a model and translations in minutes.", demo, "demo"),
    "train": (
        "Train a translator from parallel text.",
        train,
        "train --source train.en --target train.de --output model",
    ),
    "runs": ("List training runs and draw their curves.", runs, "runs . --curves"),
    "translate": ("Translate lines of text.", translate, "translate model < in.en > out.de"),
    "bulk": (
        "Translate folders of files, also on a Ray cluster.",
        bulk,
        "bulk model --input texts --output translated --ray local",
    ),
    "serve": ("Serve models over HTTP: LibreTranslate's API and more.", serve, "serve model"),
    "evaluate": (
        "Score a translator, or a file of translations.",
        evaluate,
        "evaluate model --source test.en --reference test.de",
    ),
    "compare": (
        "Compare systems on one test set.",
        compare,
        "compare a.de b.de --source test.en --reference test.de",
    ),
    "score": (
        "Say how probable given translations are.",
        score,
        "score model --source in.en --target in.de > scores.tsv",
    ),
    "rerank": (
        "Choose among outputs by other models, or by agreement.",
        rerank,
        "rerank other --input nbest.jsonl > out.de",
    ),
    "shortlist": (
        "Learn which tokens an output may hold.",
        shortlist,
        "shortlist model --source train.en --target train.de",
    ),
    "backtranslate": (
        "Make training pairs of text in one language.",
        backtranslate,
        "backtranslate de-en --input mono.de --output mono.en",
    ),
    "distill": (
        "Make a teacher's targets for a smaller model.",
        distill,
        "distill teacher --source train.en --output teacher.de",
    ),
    "average": (
        "Average checkpoints into one model.",
        average,
        "average run --last 5 --output averaged",
    ),
    "export": (
        "Write a model for another library.",
        export,
        "export model --to ctranslate2 --precision int8 --output small",
    ),
    "import": (
        "Make a model folder of another toolkit's model.",
        import_model,
        "import opus-mt-en-de --from huggingface --output model",
    ),
    "verify": ("Compare two models, ours or exported ones.", verify, "verify model small"),
    "inspect": ("Say what a model holds and costs.", inspect, "inspect model"),
    "attention": (
        "Show where the heads look for a sentence.",
        attention,
        'attention model --source "A dog runs." --output page.html',
    ),
    "heads": (
        "Say what each head does and how much it matters.",
        heads,
        "heads model --source test.en --target test.de",
    ),
    "prune": (
        "Keep the heads that matter most.",
        prune,
        "prune model --heads 2 --source in.en --target in.de --output small",
    ),
    "positions": ("Compare positions with the paper's.", positions, "positions model"),
    "neighbours": ("List the nearest subwords.", neighbours, "neighbours model dog"),
    "tree": ("Show how a search came to its output.", tree, 'tree model --source "A dog runs."'),
    "completion": ("Make a shell complete commands and flags.", completion, "completion bash"),
    "doctor": ("Say what this machine offers and what is missing.", doctor, "doctor"),
    "keys": ("Make keys for clients of a server.", keys_app, "keys add anna --file keys.json"),
    "paper": ("Make the paper's tables again.", paper, "paper table1"),
    "corpus": (
        "Look at parallel text, convert, split, get or generate it.",
        corpus,
        "corpus generate --pairs 10000 --seed 1 --output corpus",
    ),
}


def _print_version(wanted: bool) -> bool:
    if wanted:
        print(f"transduce {__version__}")
        raise typer.Exit
    return wanted


def _transduce(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Transduce: from parallel text to a translator, by the Transformer of 2017."""


def build_app() -> typer.Typer:
    """The typer application with every command."""
    examples = "\n".join(f"  transduce {example}" for _, _, example in _COMMANDS.values())
    app = typer.Typer(
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog=f"\b\nExamples:\n{examples}\n",
    )
    app.callback()(_transduce)
    for name, (summary, command, example) in _COMMANDS.items():
        shown = f"Example: transduce {example}"
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name, short_help=summary, epilog=shown)
        else:
            app.command(name, short_help=summary, epilog=shown)(command)
    return app


@functools.cache
def _command() -> Any:
    """The command line as it is parsed; put together once, which takes a tenth of a second."""
    return get_command(build_app())


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code of the command line ``arguments`` (default: the process's own).

    0 done, 1 the data or the run failed, 2 the call was wrong, 130 interrupted. Errors and warnings are one
    line each on stderr; TRANSDUCE_DEBUG=1 adds the traceback.
    """
    machine.tune_waiting()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - for as long as the process lives
    if sys.stdout is None:
        print("transduce: error: standard output is closed; send it to a file", file=sys.stderr)
        return 2
    shown, warnings.formatwarning = warnings.formatwarning, _format_warning
    terminated = _terminate_as_interrupt()
    try:
        code = _run(list(sys.argv[1:] if arguments is None else arguments))
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader has left (`| head`). What is still buffered must not be flushed at exit.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except _Terminated:
        print("transduce: terminated", file=sys.stderr)
        return 143
    except (KeyboardInterrupt, typer.Abort):
        print("transduce: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        if os.environ.get("TRANSDUCE_DEBUG", "0") not in ("", "0"):
            traceback.print_exc()
        message, code = _explain(error)
        print(f"transduce: error: {message}", file=sys.stderr)
        return code
    finally:
        warnings.formatwarning = shown
        if terminated is not None:
            signal.signal(signal.SIGTERM, terminated)


class _Terminated(KeyboardInterrupt):
    """SIGTERM, so that files under temporary names are removed on the way out."""


def _terminate_as_interrupt() -> Any:
    """The handler of SIGTERM that stood before; None where there is nothing to restore."""

    def stop(*_: object) -> None:
        raise _Terminated

    try:
        return signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not in the main thread: whoever runs us there handles signals
        return None


def _run(arguments: list[str]) -> int:
    """The exit code; raises whatever the command raises."""
    if asked():
        return answer(_command(), asked())
    if not arguments:
        with contextlib.redirect_stdout(sys.stderr):
            _run(["--help"])
        return 2
    command = _command()
    try:
        with command.make_context("transduce", arguments) as context:
            command.invoke(context)
    except typer.Exit as stop:
        return stop.exit_code
    return 0


def _explain(error: Exception) -> tuple[str, int]:
    """One line for the user, and the exit code."""
    if isinstance(error, TransduceError):
        return " ".join(str(error).splitlines()), error.exit_code
    if hasattr(error, "format_message"):  # what typer and click raise for a wrong call
        context = getattr(error, "ctx", None)
        path = "transduce" if context is None else context.command_path
        message = " ".join(error.format_message().split()).rstrip(".")
        return f"{message[:1].lower()}{message[1:]} (see {path} --help)", 2
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":  # Python's, torch's
        return "out of memory: use a smaller model, batch or beam, or a machine with more memory", 1
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename is not None else ""
        return f"{where}{error.strerror}", 1
    what = " ".join(f"{type(error).__name__}: {error}".split())
    return f"internal error: {what}; please report it; set TRANSDUCE_DEBUG=1 for the traceback", 1


def _format_warning(message: Warning | str, *_: object, **__: object) -> str:
    return f"transduce: warning: {' '.join(str(message).split())}\n"
