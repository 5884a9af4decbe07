"""``transduce translate``: lines in, lines out, in the same order and number; documents in place."""

from __future__ import annotations

import itertools
import sys
from typing import Annotated, Any

import typer

from transduce.cli.beside import Beside
from transduce.cli.documents import document_format, translate_one
from transduce.cli.form import Form
from transduce.cli.line_writers import LineWriter, writer_of
from transduce.cli.models import (
    Device,
    Domain,
    Engine,
    Ensemble,
    EnsembleBy,
    Model,
    Precision,
    Shortlist,
    Threads,
    To,
    folders,
)
from transduce.cli.partial import Partial, Straight, fingerprint, resumable
from transduce.cli.progress import Progress
from transduce.cli.rendering import Rendering
from transduce.cli.writing import check_output

# Lines that are held at a time: enough to sort by length, and any file fits into memory.
CHUNK = 10_000


def translate(  # noqa: PLR0913 - a command's parameters are its flags
    model: Model,
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
    stream: Annotated[
        bool, typer.Option("--stream", help="Line after line, write each piece of text as it comes.")
    ] = False,
    alternatives: Annotated[
        int,
        typer.Option(metavar="N", help="With --json: instead, the N likeliest next words after each prefix."),
    ] = 0,
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
    paragraphs: Annotated[
        bool,
        typer.Option("--paragraphs", help="With --document: join lines up to a blank one, wrap them after."),
    ] = False,
    language: Annotated[str, typer.Option(help="The source's language for --document, e.g. en.")] = "",
    target_language: Annotated[
        str, typer.Option(help="The target's language, where a document must say it (TMX, XLIFF 2).")
    ] = "",
    to: To = "",
    domain: Domain = "",
    shortlist: Shortlist = False,
    batch_tokens: Annotated[
        int, typer.Option(help="Sentences x beam x longest in one batch; 0: chosen for the device.")
    ] = 0,
    ensemble: Ensemble = None,
    ensemble_by: EnsembleBy = "mean",
    device: Device = "auto",
    precision: Precision = "auto",
    engine: Engine = "auto",
    threads: Threads = 0,
) -> None:
    """Translate lines of text, one line each, or a document in place; what it is, its name tells."""
    models = folders(model, ensemble, ensemble_by)
    of_lines = {"--resume": resume, "--json": as_json, "--scores": scores, "--explain": explain}
    of_lines |= {"--alignments": bool(alignments), "--prefix-file": prefix_file is not None}
    of_lines |= {"--stream": stream, "--alternatives": bool(alternatives), "--paragraphs": paragraphs}
    kind = document_format(input_file, input_format, target_language, of_lines)
    form = Form(
        as_json=as_json,
        scores=scores,
        confidence=confidence,
        align=align,
        alignments=alignments,
        stream=stream,
        alternatives=alternatives,
        document=document,
        paragraphs=paragraphs,
        prefix_file=prefix_file,
        glossary=glossary,
        glossary_inflect=glossary_inflect,
        glossary_languages=glossary_languages,
    )
    form.check(n_best=n_best, samples=samples, mbr=mbr, output=output_file)
    beside = [name for name in (prefix_file, glossary) if name is not None]
    outputs = [output_file, *([alignments] if alignments else [])]
    for path in outputs:
        check_output(path, input_file, *beside)
    from transduce import machine
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
        "to": to,
        "domain": domain,
        "shortlist": shortlist,
    }
    form.check_options(options)  # a wrong option is said before the model is loaded
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
    rendering = Rendering(as_json=as_json, scores=scores, explained=alpha if explain else None)
    writer = writer_of(form, translator, options, terms, rendering)
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
        "alternatives": alternatives,
        "paragraphs": paragraphs,
        "glossary": None if glossary is None else fingerprint(glossary),
        "shortlist": fingerprint(models[0] / SHORTLIST) if shortlist else None,
        "glossary_inflect": glossary_inflect,
        "glossary_languages": glossary_languages,
    }
    with resumable(outputs, made_from, resume=resume) as files:
        write_all(writer, files, input_file, prefixes, form)


def write_all(
    writer: LineWriter, files: Partial | Straight, input_file: str, prefixes: Beside, form: Form
) -> None:
    """Nothing; all lines of the input have been given to the ``writer``."""
    from transduce.data.lines import read_chunks
    from transduce.decoding.paragraphs import whole_paragraphs

    asked = input_file == "-" and sys.stdin is not None and sys.stdin.isatty()
    chunks = read_chunks(input_file, 1 if asked or form.stream else CHUNK)
    if form.paragraphs:
        chunks = whole_paragraphs(chunks)
    following = itertools.chain.from_iterable(chunks)
    with Progress(input_file, "translated", quiet=asked or form.stream) as progress:
        for chunk in files.rest(chunks, lambda count: prefixes.take(count, following)):
            beside = prefixes.take(len(chunk), following)
            writer.write(files.lines + 1, chunk, beside, files.files, progress)
            files.done(chunk, beside)
            progress.finished(len(chunk))
        prefixes.finish()
