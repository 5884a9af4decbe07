"""``transduce corpus info``, ``convert`` and ``split``: parallel text in files of any format."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transduce.counts import counted

if TYPE_CHECKING:
    from transduce.data.conversion import Inputs
    from transduce.data.information import Information, Lengths, Side

Source = Annotated[
    list[str] | None, typer.Option(metavar="FILE", help="Text of one side: lines, SRT, VTT or SGM.")
]
Target = Annotated[
    list[str] | None, typer.Option(metavar="FILE", help="Its translation; as often as --source.")
]
SourceLanguage = Annotated[
    str, typer.Option(metavar="CODE", help="Language to read as the source where files hold several.")
]
TargetLanguage = Annotated[str, typer.Option(metavar="CODE", help="The same for the target.")]
OutputFormat = Annotated[
    str, typer.Option("--to", help="Format of OUT where its name does not tell it; text: a file a language.")
]
Format = Annotated[
    str, typer.Option("--format", help="Format of what is read where its name does not tell it: tmx, po, ...")
]


def inputs_of(
    files: list[str] | None,
    source: list[str] | None,
    target: list[str] | None,
    source_language: str,
    target_language: str,
    kind: str,
) -> Inputs:
    """What the arguments of these commands name."""
    from transduce.data.conversion import Inputs
    from transduce.data.formats.sides import Wanted

    return Inputs(
        pairs=tuple(files or ()),
        source=tuple(source or ()),
        target=tuple(target or ()),
        wanted=Wanted(source_language, target_language),
        kind=kind,
    )


def convert(
    files: Annotated[
        list[str],
        typer.Argument(metavar="[IN]... OUT", help="Files or folders to read, `-`; the file to write."),
    ],
    *,
    source: Source = None,
    target: Target = None,
    source_language: SourceLanguage = "",
    target_language: TargetLanguage = "",
    kind: Format = "",
    to: OutputFormat = "",
) -> None:
    """Write parallel text in another format: text, TSV, CSV, JSONL, Parquet, TMX, XLIFF, PO, SGM, XML."""
    from transduce.data.conversion import convert as convert_files

    *names, output = files
    inputs = inputs_of(names, source, target, source_language, target_language, kind)
    done = convert_files(inputs, output, kind=to)
    tell(done.notes)
    print(f"{output}: {counted(done.pairs, 'pair')}", file=sys.stderr)


def split(  # noqa: PLR0913 - a command's parameters are its flags
    files: Annotated[
        list[str] | None, typer.Argument(metavar="[IN]...", help="Files or folders to read.")
    ] = None,
    *,
    output: Annotated[Path, typer.Option(metavar="FOLDER", help="Where train, valid and test go.")],
    source: Source = None,
    target: Target = None,
    source_language: SourceLanguage = "",
    target_language: TargetLanguage = "",
    kind: Format = "",
    to: Annotated[
        str, typer.Option(help="Format of the three: text (a file a language), tsv, tmx, ...")
    ] = "text",
    valid: Annotated[int, typer.Option(help="Pairs for validation.")] = 1000,
    test: Annotated[int, typer.Option(help="Pairs for testing.")] = 1000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same parts.")] = 1,
) -> None:
    """Split parallel text into train, valid and test; no source text is in two of them."""
    from transduce.data.conversion import split as split_files

    inputs = inputs_of(files, source, target, source_language, target_language, kind)
    done = split_files(inputs, output, valid=valid, test=test, seed=seed, kind=to)
    tell(done.notes)
    for part, name in done.files.items():
        print(f"{name}: {counted(done.pairs[part], 'pair')}", file=sys.stderr)
    if done.left_out:
        print(f"left out: {counted(done.left_out, 'pair')} with a source of valid or test", file=sys.stderr)


def info(  # noqa: PLR0913 - a command's parameters are its flags
    files: Annotated[
        list[str] | None, typer.Argument(metavar="[FILE]...", help="Files or folders with both sides, `-`.")
    ] = None,
    *,
    source: Source = None,
    target: Target = None,
    source_language: SourceLanguage = "",
    target_language: TargetLanguage = "",
    kind: Format = "",
    tokenizer: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="A model folder or tokenizer: count tokens as well.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the lengths as PNG or SVG (extra plots).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object for machines.")] = False,
) -> None:
    """Say what parallel text holds: pairs, lengths, scripts, languages, repeats, tokens."""
    from transduce.data.formats.tally import Tally
    from transduce.data.information import describe
    from transduce.data.tokenizer import Tokenizer

    inputs = inputs_of(files, source, target, source_language, target_language, kind)
    if plot is not None:
        from transduce.figures import check_plot

        check_plot(plot)
    known = None
    if tokenizer is not None:
        known = Tokenizer.load(tokenizer / "tokenizer.model" if tokenizer.is_dir() else tokenizer)
    tally = Tally()
    found = describe(inputs.read(tally), tally, inputs.wanted, known)
    if plot is not None:
        from transduce.data.information_plot import plot_lengths

        plot_lengths(found, plot)
    tell(tally.lines())
    print(json.dumps(found.to_dict(), ensure_ascii=False) if as_json else "\n".join(rendered(found)))


def rendered(found: Information) -> list[str]:
    """What a person wants to know, a line each."""
    lines = [counted(found.pairs, "pair")]
    if any(found.languages):
        lines[0] += f", {found.languages[0] or 'not named'} to {found.languages[1] or 'not named'}"
    for count, what in (
        (found.repeated_pairs, "the same as an earlier pair"),
        (found.repeated_sources, "with the source of an earlier one"),
        (found.identical, "with the same text on both sides"),
    ):
        lines.append(f"{count:,} ({_share(count, found.pairs)}) {what}")
    rows: list[tuple[str, ...]] = [("", "mean", "median", "99 %", "longest")]
    for name, side in (("source", found.source), ("target", found.target)):
        rows += _rows(name, side)
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines += [
        "  ".join([row[0].ljust(widths[0]), *(row[n].rjust(widths[n]) for n in (1, 2, 3)), row[4]])
        for row in rows
    ]
    for name, side in (("source", found.source), ("target", found.target)):
        scripts = ", ".join(f"{script} {share:.1%}" for script, share in list(side.scripts().items())[:4])
        lines.append(
            f"{name}: {side.empty:,} empty; {counted(len(side.letters), 'different character')}; scripts: "
            f"{scripts or 'none'}"
        )
        if side.tokens.total:
            share = side.byte_tokens / side.tokens.total
            lines.append(f"{name}: {counted(side.tokens.total, 'token')}, {share:.2%} single bytes")
    return lines


def _rows(name: str, side: Side) -> list[tuple[str, ...]]:
    kinds: list[tuple[str, Lengths]] = [("characters", side.characters), ("words", side.words)]
    if side.tokens.total:
        kinds.append(("tokens", side.tokens))
    return [(f"{name} {kind}", *_figures(lengths.to_dict())) for kind, lengths in kinds]


def _figures(values: dict[str, Any]) -> tuple[str, ...]:
    at = f" ({values['longest_at']})" if values["longest_at"] else ""
    return (
        f"{values['mean']:.1f}",
        f"{values['median']:,}",
        f"{values['p99']:,}",
        f"{values['longest']:,}{at}",
    )


def _share(count: int, total: int) -> str:
    return f"{count / total:.1%}" if total else "0.0%"


def tell(notes: list[str]) -> None:
    """Nothing; the notes stand on stderr."""
    for note in notes:
        print(note, file=sys.stderr)
