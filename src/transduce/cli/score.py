"""``transduce score``: how probable a model finds given translations, line by line."""

from __future__ import annotations

import itertools
import json
import math
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transduce.cli.models import Device, Domain, Ensemble, EnsembleBy, Model, Threads, To, folders
from transduce.cli.progress import Progress
from transduce.cli.writing import check_output, opened
from transduce.counts import counted
from transduce.errors import UsageError

if TYPE_CHECKING:
    from transduce.data.tokenizer import Tokenizer
    from transduce.decoding.scoring import PairScore, Total

# Pairs that are held at a time: enough to sort by length, and any file fits into memory.
CHUNK = 10_000


def score(  # noqa: PLR0913 - a command's parameters are its flags
    model: Model,
    *,
    source: Annotated[str, typer.Option(metavar="FILE", help="The sources, one a line (also .gz, .zst).")],
    target: Annotated[
        str, typer.Option(metavar="FILE", help="Their translations; one of the two may be - for stdin.")
    ],
    output_file: Annotated[
        str, typer.Option("--output", metavar="FILE", help="Where to write (also .gz); - is stdout.")
    ] = "-",
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object per line, with the log P of every token.")
    ] = False,
    total: Annotated[
        bool, typer.Option("--total", help="Write one line with the figures of the whole instead.")
    ] = False,
    long_lines: Annotated[
        str, typer.Option(help="What to do with a side that is too long: split, truncate or error.")
    ] = "split",
    batch_tokens: Annotated[
        int, typer.Option(help="Pairs x longest in one batch; 0: chosen for the device.")
    ] = 0,
    to: To = "",
    domain: Domain = "",
    ensemble: Ensemble = None,
    ensemble_by: EnsembleBy = "mean",
    device: Device = "auto",
    precision: Annotated[str, typer.Option(help="auto, fp32, bf16 or (by ctranslate2) int8.")] = "auto",
    engine: Annotated[str, typer.Option(help="auto (PyTorch), torch or ctranslate2.")] = "auto",
    threads: Threads = 0,
) -> None:
    """Score given translations: log P, TAB, tokens, TAB, perplexity for each pair, in their order."""
    if source == target == "-":
        raise UsageError("--source and --target are both standard input; name a file for one of them")
    models = folders(model, ensemble, ensemble_by)
    check_output(output_file, source, target)
    from transduce import machine
    from transduce.data.formats.text_pair import read_text_pair
    from transduce.decoding.opening import scoring_engine
    from transduce.decoding.pairs import check_pairs
    from transduce.decoding.scoring import Total
    from transduce.decoding.translator import Translator

    options: dict[str, Any] = {"long_lines": long_lines, "batch_tokens": batch_tokens}
    check_pairs([], first_line=1, **options)  # a wrong option is said before the model is loaded
    options |= {"to": to, "domain": domain}
    machine.tune_allocator()
    translator = Translator.load(
        models,
        device=device,
        precision=precision,
        threads=threads,
        engine=scoring_engine(models, engine),
        ensemble_by=ensemble_by,
    )
    pairs, first, sums = read_text_pair(source, target), 1, Total()
    with opened(output_file) as output, Progress(source, "scored", quiet=False) as progress:
        while chunk := [(pair.source, pair.target) for pair in itertools.islice(pairs, CHUNK)]:
            scores = translator.score(chunk, first_line=first, progress=progress.within_chunk, **options)
            sums = sums.plus(scores)
            for number, ((text, translation), found) in enumerate(zip(chunk, scores, strict=True), first):
                for warning in found.warnings:
                    progress.say(f"transduce: warning: {warning}")
                if not total:
                    value = _value(number, text, translation, found, translator.bundle.tokenizer)
                    output.write((_json(value) if as_json else _row(found)).encode())
            output.flush()
            first += len(chunk)
            progress.finished(len(chunk))
        if total:
            output.write((_json(_total(sums)) if as_json else f"{describe(sums)}\n").encode())
    if not total:
        print(describe(sums), file=sys.stderr)


def describe(total: Total) -> str:
    """The figures of the whole in one line of text."""
    rest = f"; {total.impossible:,} of probability 0 left out" if total.impossible else ""
    perplexity = "" if total.perplexity is None else f", perplexity {total.perplexity:.4f}"
    sums = (
        f"{counted(total.lines, 'pair')}, {counted(total.tokens, 'token')}, log P {total.log_probability:.4f}"
    )
    return f"{sums}{perplexity}{rest}"


def _row(score: PairScore) -> str:
    """Columns that stay columns: a pair of empty lines has no perplexity, but its TAB."""
    perplexity = "" if score.perplexity is None else f"{score.perplexity:.4f}"
    return f"{score.log_probability:.4f}\t{score.length}\t{perplexity}\n"


def _value(number: int, source: str, target: str, score: PairScore, tokenizer: Tokenizer) -> dict[str, Any]:
    """What JSON tells of a pair; probability 0 has no logarithm there: null."""
    return {
        "line": number,
        "source": source,
        "target": target,
        "log_probability": _finite(score.log_probability),
        "length": score.length,
        "perplexity": _finite(score.perplexity),
        "tokens": [tokenizer.piece(token) for token in score.tokens],
        "token_log_probabilities": score.token_log_probabilities,
        "warnings": score.warnings,
    }


def _total(total: Total) -> dict[str, Any]:
    return {
        "pairs": total.lines,
        "impossible": total.impossible,
        "tokens": total.tokens,
        "log_probability": total.log_probability,
        "perplexity": _finite(total.perplexity),
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"
