"""``transduce evaluate``: the scores of a model on a test set, or of a file of translations."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transduce.cli.models import (
    Device,
    Domain,
    Engine,
    Ensemble,
    EnsembleBy,
    Precision,
    Shortlist,
    Threads,
    To,
    folders,
)
from transduce.counts import counted
from transduce.errors import UsageError

if TYPE_CHECKING:
    from transduce.evaluation.evaluate import Evaluation


def evaluate(  # noqa: PLR0913 - a command's parameters are its flags
    model: Annotated[
        Path | None, typer.Argument(metavar="MODEL", help="A model folder; not with --hypotheses.")
    ] = None,
    *,
    source: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The text to translate, one sentence a line.")
    ] = None,
    reference: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Its translation by a person; may be repeated."),
    ] = None,
    pairs: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Both in one file (TMX, PO, CSV, SGM, ...), instead of the two."),
    ] = None,
    source_language: Annotated[
        str, typer.Option(metavar="CODE", help="With --pairs: the source, where the file holds several.")
    ] = "",
    target_language: Annotated[str, typer.Option(metavar="CODE", help="The same for the reference.")] = "",
    hypotheses: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Score this file instead of a model.")
    ] = None,
    beam: Annotated[int, typer.Option(help="Hypotheses kept in the search; 1 is greedy.")] = 4,
    alpha: Annotated[float, typer.Option(help="Exponent of the length penalty.")] = 0.6,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the translations to this file.")
    ] = None,
    paper_bleu: Annotated[
        bool, typer.Option("--paper-bleu", help="Also the paper's tokenised BLEU (no sacreBLEU figure).")
    ] = False,
    language: Annotated[str, typer.Option(help="Language of the reference, for --paper-bleu.")] = "de",
    to: To = "",
    domain: Domain = "",
    shortlist: Shortlist = False,
    ensemble: Ensemble = None,
    ensemble_by: EnsembleBy = "mean",
    device: Device = "auto",
    precision: Precision = "auto",
    engine: Engine = "auto",
    threads: Threads = 0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object for machines.")] = False,
) -> None:
    """Score a model on a test set, or a file of translations: sacreBLEU, chrF, TER and the recipe."""
    reference = reference or []
    _check_pairs(pairs, source, reference, source_language or target_language)
    _check(model, ensemble, source, hypotheses, output, pairs)
    _check_not_read(output, [source, Path(pairs) if pairs else None, *reference])
    from transduce import machine
    from transduce.decoding.translator import Translator
    from transduce.evaluation.evaluate import evaluate as evaluate_model
    from transduce.evaluation.evaluate import evaluate_file, evaluate_pairs

    paper = language if paper_bleu else None
    if hypotheses is not None:
        result = evaluate_file(hypotheses, reference, paper_bleu=paper)
    else:
        assert model is not None
        models = folders(model, ensemble, ensemble_by)
        machine.tune_allocator()
        translator = Translator.load(
            models,
            device=device,
            precision=precision,
            threads=threads,
            engine=engine,
            ensemble_by=ensemble_by,
        )
        options: dict[str, Any] = {"beam": beam, "alpha": alpha, "shortlist": shortlist, "paper_bleu": paper}
        options |= {"to": to, "domain": domain}
        options["progress"] = _count if sys.stderr.isatty() else None
        if pairs is not None:
            languages = f"{source_language}:{target_language}"
            result = evaluate_pairs(translator, pairs, languages=languages, **options)
        else:
            assert source is not None
            result = evaluate_model(translator, source, reference, **options)
    if output is not None:
        from transduce.files import write_bytes

        write_bytes(output, "".join(f"{line}\n" for line in result.hypotheses).encode())
    print(json.dumps(result.as_dict()) if as_json else describe(result))


def describe(result: Evaluation) -> str:
    """The scores as lines of text, each with the signature that it must be quoted with."""
    scores = result.scores
    rows = [("BLEU", scores.bleu, scores.signature), ("chrF2", scores.chrf, scores.chrf_signature)]
    if scores.ter is not None:
        rows.append(("TER", scores.ter, scores.ter_signature or ""))
    if result.paper is not None:
        rows.append(("paper BLEU", result.paper.bleu, result.paper.signature))
    lines = [f"{name:11}{value:6.2f}  {signature}" for name, value, signature in rows]
    lengths = f"{counted(scores.hypothesis_length, 'token')} against {scores.reference_length:,}"
    lines.append(
        f"{counted(scores.sentences, 'line')}, brevity penalty {scores.brevity_penalty:.3f} ({lengths})"
    )
    return "\n".join([*lines, f"recipe: {result.recipe}"])


def _count(done: int, total: int) -> None:
    print(
        f"\r{done:,} of {counted(total, 'line')} translated",
        end="\n" if done == total else "",
        file=sys.stderr,
    )


def _check_not_read(output: Path | None, read: list[Path | None]) -> None:
    from transduce.files import same_file

    for path in read:
        if output is not None and path is not None and same_file(output, path):
            raise UsageError(f"{output}: is read as well; name another --output")


def _check_pairs(pairs: str | None, source: Path | None, reference: list[Path], languages: str) -> None:
    if pairs is not None and (source is not None or reference):
        raise UsageError("--pairs holds source and reference: leave out --source and --reference")
    if pairs is None and not reference:
        raise UsageError("--reference is missing: the translation to compare with (or --pairs, for both)")
    if pairs is None and languages:
        raise UsageError("--source-language and --target-language are for --pairs: leave them out")


def _check(
    model: Path | None,
    ensemble: list[Path] | None,
    source: Path | None,
    hypotheses: Path | None,
    output: Path | None,
    pairs: str | None,
) -> None:
    if hypotheses is None:
        if model is None:
            raise UsageError("nothing to score: name a model folder (with --source), or --hypotheses FILE")
        if source is None and pairs is None:
            raise UsageError(f"--source is missing: the file that {model} is to translate")
        if output is not None and not output.absolute().parent.is_dir():
            raise UsageError(f"{output}: there is no folder {output.parent}; make it first")
    elif model is not None or source is not None or output is not None or ensemble or pairs:
        raise UsageError(
            "--hypotheses is scored as it is: leave out the models, --source, --pairs and --output"
        )
