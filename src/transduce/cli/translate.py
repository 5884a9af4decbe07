"""``transduce translate``: lines in, lines out, in the same order and number."""

from __future__ import annotations

import gzip
import itertools
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from transduce.errors import UsageError

if TYPE_CHECKING:
    from transduce.decoding.translation import Translation

# Lines that are held at a time: enough to sort by length, and any file fits into memory.
CHUNK = 10_000
# A run that is not watched on a terminal says how far it is, so often (in seconds).
REPORT_EVERY = 60.0


def translate(  # noqa: PLR0913 - a command's parameters are its flags
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model folder, as `train` writes it.")],
    *,
    input_file: Annotated[
        str, typer.Option("--input", metavar="FILE", help="Lines to translate (also .gz, .zst); - is stdin.")
    ] = "-",
    output_file: Annotated[
        str, typer.Option("--output", metavar="FILE", help="Where to write them (also .gz); - is stdout.")
    ] = "-",
    beam: Annotated[int, typer.Option(help="Hypotheses kept in the search; 1 is greedy.")] = 4,
    alpha: Annotated[float, typer.Option(help="Exponent of the length penalty.")] = 0.6,
    n_best: Annotated[int, typer.Option(help="Outputs per line; more than 1 needs --json.")] = 1,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object per line, with all outputs and their scores.")
    ] = False,
    scores: Annotated[bool, typer.Option("--scores", help="Write score, TAB, text.")] = False,
    explain_score: Annotated[
        bool, typer.Option("--explain-score", help="Say on stderr how each score comes about.")
    ] = False,
    long_lines: Annotated[
        str, typer.Option(help="What to do with a line that is too long: split, truncate or error.")
    ] = "split",
    max_extra: Annotated[
        int, typer.Option(help="An output has at most this many more tokens than its source.")
    ] = 50,
    min_length: Annotated[int, typer.Option(help="Least tokens of an output, its end not counted.")] = 1,
    flag_unusual: Annotated[
        bool,
        typer.Option("--flag-unusual", help="Warn of outputs that copy the source or repeat themselves."),
    ] = False,
    batch_tokens: Annotated[
        int, typer.Option(help="Sentences x beam x longest in one batch; 0: chosen for the device.")
    ] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:N or mps.")] = "auto",
    precision: Annotated[str, typer.Option(help="auto, fp32 or bf16.")] = "auto",
    threads: Annotated[int, typer.Option(help="CPU threads; 0: all usable cores.")] = 0,
) -> None:
    """Translate lines of text; each line gives exactly one line, and empty lines stay empty."""
    if n_best > 1 and not as_json:
        raise UsageError(
            f"--n-best {n_best} gives several outputs a line; add --json to have them as JSON lines"
        )
    _check_output(output_file, input_file)
    from transduce import machine
    from transduce.data.lines import read_lines
    from transduce.decoding.config import TranslationOptions
    from transduce.decoding.translator import Translator

    options: dict[str, Any] = {
        "beam": beam,
        "alpha": alpha,
        "n_best": n_best,
        "min_length": min_length,
        "max_extra": max_extra,
        "batch_tokens": batch_tokens,
        "long_lines": long_lines,
        "flag_unusual": flag_unusual,
    }
    TranslationOptions.from_mapping(options)  # a wrong option is said before the model is loaded
    machine.tune_allocator()
    translator = Translator.load(model, device=device, precision=precision, threads=threads)
    asked = input_file == "-" and sys.stdin is not None and sys.stdin.isatty()
    size = 1 if asked else CHUNK
    lines, first = read_lines(input_file), 1
    with _opened(output_file) as output, _Progress(input_file, quiet=asked) as progress:
        while chunk := list(itertools.islice(lines, size)):
            translations = translator.translate_detailed(
                chunk, first_line=first, progress=progress.within_chunk, **options
            )
            for number, (line, translation) in enumerate(zip(chunk, translations, strict=True), first):
                for warning in translation.warnings:
                    progress.say(f"transduce: warning: {warning}")
                if explain_score and translation.source:
                    for rank, alternative in enumerate(translation.alternatives, 1):
                        progress.say(f"line {number}, output {rank}: {alternative.explain(alpha)}")
                output.write(_line(number, line, translation, as_json=as_json, scores=scores).encode())
            output.flush()
            first += len(chunk)
            progress.finished(len(chunk))


def _line(number: int, line: str, translation: Translation, *, as_json: bool, scores: bool) -> str:
    if as_json:
        fields = ("text", "score", "log_probability", "length", "truncated")
        outputs = [{name: getattr(a, name) for name in fields} for a in translation.alternatives]
        value = {"line": number, "source": line, "translations": outputs, "warnings": translation.warnings}
        return json.dumps(value, ensure_ascii=False) + "\n"
    if scores:  # an empty line has no score, but its TAB, so that columns stay columns
        score = f"{translation.alternatives[0].score:.4f}" if translation.source else ""
        return f"{score}\t{translation.text}\n"
    return translation.text + "\n"


def _check_output(path: str, source: str) -> None:
    """Nothing; refuses before the work starts what could not be written at its end."""
    if path == "-":
        return
    if not Path(path).parent.is_dir():
        raise UsageError(f"{path}: there is no folder {Path(path).parent}; make it first")
    if Path(path).is_dir():
        raise UsageError(f"{path}: is a folder; name a file in it")
    from transduce.files import same_file

    if same_file(path, source):
        raise UsageError(f"{path}: is the input as well; name another --output")
    if Path(path).suffix == ".zst":
        raise UsageError(
            f"{path}: .zst is read but not written; name the output .gz, or pipe it through zstd"
        )


@contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    """Where the bytes go: standard output, or a file that appears only when it is complete."""
    if path == "-":
        yield sys.stdout.buffer
        return
    from transduce.files import atomic_writer

    with atomic_writer(path) as raw:
        if Path(path).suffix != ".gz":
            yield raw
            return
        # Neither name nor time go into the file, so equal text gives equal bytes.
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as file:
            yield file  # type: ignore[misc]


class _Progress:
    """How far the run is: a bar where standard error is a terminal, else a line now and then."""

    def __init__(self, path: str, *, quiet: bool) -> None:
        self.lines, self.total, self.quiet = 0, 0, quiet
        self.began = self.reported = time.monotonic()
        self.bar: Any = None
        if not quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            if path != "-" and Path(path).suffix not in (".gz", ".zst"):
                from transduce.data.lines import count_lines

                self.total = count_lines(path)
            speed = TextColumn("{task.fields[speed]:.0f} lines/s")
            columns = (
                TextColumn("translated"),
                BarColumn(),
                MofNCompleteColumn(),
                speed,
                TimeRemainingColumn(),
            )
            self.bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self.task = self.bar.add_task("", total=self.total or None, speed=0.0)

    def __enter__(self) -> _Progress:
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def say(self, text: str) -> None:
        """Nothing; the line stands on standard error, above the bar if there is one."""
        if self.bar is None:
            print(text, file=sys.stderr)
        else:
            self.bar.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def within_chunk(self, done: int, _: int) -> None:
        """Nothing; shows that ``done`` more lines than the finished chunks' are translated."""
        now, lines = time.monotonic(), self.lines + done
        speed = lines / max(now - self.began, 1e-9)
        if self.bar is not None:
            self.bar.update(self.task, completed=lines, speed=speed)
        elif not self.quiet and now - self.reported >= REPORT_EVERY:
            self.reported = now
            self.say(f"{lines:,} lines translated, {speed:.0f} lines/s")

    def finished(self, lines: int) -> None:
        """Nothing; a chunk of so many lines is written."""
        self.lines += lines
        self.within_chunk(0, 0)
