"""``transduce translate``: lines in, lines out, in the same order and number; documents in place."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from transduce.cli.beside import Beside
from transduce.cli.documents import document_format, translate_one
from transduce.cli.ensemble import folders
from transduce.cli.partial import fingerprint, resumable
from transduce.cli.progress import Progress
from transduce.cli.rendering import Rendering
from transduce.cli.writing import check_output
from transduce.errors import UsageError

# Lines that are held at a time: enough to sort by length, and any file fits into memory.
CHUNK = 10_000


def translate(  # noqa: PLR0913 - a command's parameters are its flags
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model folder, as `train` writes it.")],
    *,
    input_file: Annotated[
        str, typer.Option("--input", metavar="FILE", help="Lines to translate (also .gz, .zst); - is stdin.")
    ] = "-",
    output_file: Annotated[
        str, typer.Option("--output", metavar="FILE", help="Where to write them (also .gz); - is stdout.")
    ] = "-",
    input_format: Annotated[
        str,
        typer.Option(
            "--format",
            help="po, xliff, tmx, srt, vtt, html, markdown, docx, odt, or text: lines. As --input is named.",
        ),
    ] = "",
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the --output of a run that was stopped.")
    ] = False,
    beam: Annotated[int, typer.Option(help="Hypotheses kept in the search; 1 is greedy.")] = 4,
    alpha: Annotated[float, typer.Option(help="Exponent of the length penalty.")] = 0.6,
    n_best: Annotated[int, typer.Option(help="Outputs per line; more than 1 needs --json.")] = 1,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object per line, with all outputs and their scores.")
    ] = False,
    scores: Annotated[bool, typer.Option("--scores", help="Write score, TAB, text.")] = False,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Say on stderr how the score and rank of each output come about."),
    ] = False,
    confidence: Annotated[
        bool, typer.Option("--confidence", help="With --json: how sure the model is of outputs and words.")
    ] = False,
    long_lines: Annotated[
        str, typer.Option(help="What to do with a line that is too long: split, truncate or error.")
    ] = "split",
    max_extra: Annotated[
        int, typer.Option(help="An output has at most this many more tokens than its source.")
    ] = 50,
    stop: Annotated[
        str, typer.Option(help="Leave a sentence when nothing can win (exact), or when a beam ended (full).")
    ] = "exact",
    min_length: Annotated[int, typer.Option(help="Least tokens of an output, its end not counted.")] = 1,
    flag_unusual: Annotated[
        bool,
        typer.Option("--flag-unusual", help="Warn of copies, repetition, odd lengths and missing ends."),
    ] = False,
    samples: Annotated[
        int, typer.Option(help="Draw so many outputs a line instead of searching; more than 1 needs --json.")
    ] = 0,
    temperature: Annotated[
        float, typer.Option(help="Of sampling: below 1 what is probable becomes more so.")
    ] = 1.0,
    top_k: Annotated[int, typer.Option(help="Sample from the K most probable tokens; 0: all.")] = 0,
    top_p: Annotated[float, typer.Option(help="Sample from the fewest tokens that reach this share.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Of sampling; text and seed decide a line's samples.")] = 0,
    prefix_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="How each output is to begin: one line for each of the input, maybe empty."
        ),
    ] = None,
    prefix_factor: Annotated[
        float, typer.Option(help="inf: prefixes are kept; else how many times likelier they become.")
    ] = float("inf"),
    glossary: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Terms that must be translated so: source TAB target, or TBX."),
    ] = None,
    glossary_inflect: Annotated[
        bool, typer.Option("--glossary-inflect", help="The words of a term may end otherwise.")
    ] = False,
    glossary_languages: Annotated[
        str, typer.Option(metavar="SOURCE:TARGET", help="The languages to take from a TBX file, e.g. en:de.")
    ] = "",
    no_repeat_ngram: Annotated[
        int, typer.Option(help="No so many tokens in a row twice in an output; 0: off.")
    ] = 0,
    repetition_penalty: Annotated[
        float, typer.Option(help="Exponent on the probability of tokens that came already; 1: off.")
    ] = 1.0,
    mbr: Annotated[
        str, typer.Option(help="Of --samples or --n-best, write the one of highest expected chrf or bleu.")
    ] = "",
    alignments: Annotated[
        str, typer.Option(metavar="FILE", help="Where to write word alignments, as 0-0 1-2 (also .gz).")
    ] = "",
    align: Annotated[
        bool, typer.Option("--align", help="Put word alignments into the lines that --json writes.")
    ] = False,
    alignment_layer: Annotated[
        int, typer.Option(help="Decoder layer whose attention aligns words; 0: the mean of all.")
    ] = 0,
    protect: Annotated[
        str,
        typer.Option(
            metavar="KINDS",
            help="Carry through: all, or tags, placeholders, urls, emails, numbers, with commas.",
        ),
    ] = "",
    document: Annotated[
        bool, typer.Option("--document", help="Lines are paragraphs: translate sentence by sentence.")
    ] = False,
    language: Annotated[str, typer.Option(help="The source's language for --document, e.g. en.")] = "",
    target_language: Annotated[
        str, typer.Option(help="The target's language, where a document must say it (TMX, XLIFF 2).")
    ] = "",
    shortlist: Annotated[
        bool, typer.Option("--shortlist", help="Choose among the tokens that `transduce shortlist` found.")
    ] = False,
    batch_tokens: Annotated[
        int, typer.Option(help="Sentences x beam x longest in one batch; 0: chosen for the device.")
    ] = 0,
    ensemble: Annotated[
        list[Path] | None,
        typer.Option(metavar="MODEL", help="A further model to ask as well; may be repeated."),
    ] = None,
    ensemble_by: Annotated[
        str, typer.Option(help="How models agree: mean of their probabilities, or of their logarithms: log.")
    ] = "mean",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:N or mps.")] = "auto",
    precision: Annotated[str, typer.Option(help="auto, fp32, bf16 or int8.")] = "auto",
    engine: Annotated[str, typer.Option(help="What computes the steps: auto, torch or openvino.")] = "auto",
    threads: Annotated[int, typer.Option(help="CPU threads; 0: all usable cores.")] = 0,
) -> None:
    """Translate lines of text, one line each, or a document in place; what it is, its name tells."""
    models = folders(model, ensemble, ensemble_by)
    of_lines = {"--resume": resume, "--json": as_json, "--scores": scores, "--explain": explain}
    of_lines |= {"--alignments": bool(alignments), "--prefix-file": prefix_file is not None}
    kind = document_format(input_file, input_format, target_language, of_lines)
    if not as_json:
        check_without_json(confidence, {"--n-best": n_best, "--samples": samples}, mbr)
    check_align(align, as_json, alignments, output_file)
    beside = [name for name in (prefix_file, glossary) if name is not None]
    for path in (output_file, *([alignments] if alignments else [])):
        check_output(path, input_file, *beside)
    from transduce import machine
    from transduce.data.lines import read_chunks
    from transduce.decoding.config import TranslationOptions
    from transduce.decoding.glossary import Glossary
    from transduce.decoding.shortlist import FILE as SHORTLIST
    from transduce.decoding.translator import Translator

    options: dict[str, Any] = {
        "beam": beam,
        "alpha": alpha,
        "n_best": n_best,
        "min_length": min_length,
        "stop": stop,
        "max_extra": max_extra,
        "samples": samples,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "seed": seed,
        "mbr": mbr,
        "batch_tokens": batch_tokens,
        "long_lines": long_lines,
        "flag_unusual": flag_unusual,
        "confidence": confidence,
        "prefix_factor": prefix_factor,
        "no_repeat_ngram": no_repeat_ngram,
        "repetition_penalty": repetition_penalty,
        "alignments": align or bool(alignments),
        "alignment_layer": alignment_layer,
        "protect": protect or ("all" if kind else ""),
        "document": document or bool(kind),
        "language": language,
        "shortlist": shortlist,
    }
    TranslationOptions.from_mapping(options)  # a wrong option is said before the model is loaded
    prefixes = Beside(prefix_file, input_file, "--prefix-file")
    terms = (
        None
        if glossary is None
        else Glossary.read(glossary, exact=not glossary_inflect, languages=glossary_languages)
    )
    machine.tune_allocator()
    translator = Translator.load(
        models,
        device=device,
        precision=precision,
        threads=threads,
        engine=engine,
        ensemble_by=ensemble_by,
    )
    if shortlist:
        _ = translator.shortlist  # a missing or damaged one is said before a file is opened
    if kind:
        translate_one(
            translator, (input_file, output_file), kind, (language, target_language), options, terms
        )
        return
    asked = input_file == "-" and sys.stdin is not None and sys.stdin.isatty()
    rendering = Rendering(as_json=as_json, scores=scores, explained=alpha if explain else None)
    made_from = {
        **{name: value for name, value in options.items() if name != "batch_tokens"},
        "model": [fingerprint(folder) for folder in models],
        "ensemble_by": ensemble_by,
        "device": translator.device,
        "precision": precision,
        "engine": engine,
        "json": as_json,
        "scores": scores,
        "links": bool(alignments),
        "glossary": None if glossary is None else fingerprint(glossary),
        "shortlist": fingerprint(models[0] / SHORTLIST) if shortlist else None,
        "glossary_inflect": glossary_inflect,
        "glossary_languages": glossary_languages,
    }
    chunks = read_chunks(input_file, 1 if asked else CHUNK)
    with (
        resumable([output_file, *([alignments] if alignments else [])], made_from, resume=resume) as files,
        Progress(input_file, "translated", quiet=asked) as progress,
    ):
        following = itertools.chain.from_iterable(chunks)
        outputs = [file.write for file in files.files]
        for chunk in files.rest(chunks, lambda count: prefixes.take(count, following)):
            beside_chunk = prefixes.take(len(chunk), following)
            first = files.lines + 1
            translations = translator.translate_detailed(
                chunk,
                first_line=first,
                progress=progress.within_chunk,
                prefixes=beside_chunk,
                glossary=terms,
                **options,
            )
            rendering.write(first, zip(chunk, translations, strict=True), progress.say, *outputs)
            files.done(chunk, beside_chunk)
            progress.finished(len(chunk))
        prefixes.finish()


def check_without_json(confidence: bool, counts: dict[str, int], mbr: str) -> None:
    """Nothing; refuses what only JSON lines have room for."""
    if confidence:
        raise UsageError("--confidence stands in JSON lines: add --json")
    for flag, count in counts.items():
        if count > 1 and not mbr:
            raise UsageError(
                f"{flag} {count} gives several outputs a line; add --json to have them as JSON lines"
            )


def check_align(align: bool, as_json: bool, alignments: str, output: str) -> None:
    """Nothing; refuses alignments that have no place to go."""
    if align and not as_json:
        raise UsageError("--align puts word alignments into JSON lines: add --json, or use --alignments FILE")
    if alignments == output:
        raise UsageError(f"{alignments}: is named twice; text and alignments need a file each")
