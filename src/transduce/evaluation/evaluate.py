"""Translate a test set and score it; every score comes with the recipe from which it can be repeated."""

from __future__ import annotations

import dataclasses
import shlex
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transduce import __version__
from transduce.config import build
from transduce.counts import counted
from transduce.data.corpora import read_corpora
from transduce.data.formats.sides import Wanted
from transduce.data.formats.tally import Tally
from transduce.data.formats.two_files import read_side
from transduce.decoding.job import Progress
from transduce.decoding.translator import Translator
from transduce.errors import DataError
from transduce.evaluation.paper_bleu import PaperBleu
from transduce.evaluation.paper_bleu import paper_bleu as score_as_paper
from transduce.evaluation.scores import Scores, check_lines, score


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """The scores of one test set, the translations in its order, and the recipe in one line."""

    scores: Scores
    paper: PaperBleu | None
    hypotheses: list[str]
    recipe: str

    def as_dict(self) -> dict[str, Any]:
        """Everything but the translations, flat, for JSON."""
        return {
            **dataclasses.asdict(self.scores),
            "paper_bleu": None if self.paper is None else self.paper.bleu,
            "paper_bleu_signature": None if self.paper is None else self.paper.signature,
            "recipe": self.recipe,
            "version": __version__,
        }


@dataclass(frozen=True, kw_only=True)
class _Search:
    """How a test set is translated; all of it stands in the recipe."""

    beam: int = 4
    alpha: float = 0.6
    shortlist: bool = False
    to: str = ""
    domain: str = ""

    def flags(self) -> list[str]:
        """The flags of ``transduce evaluate`` that stand for it."""
        flags = ["--beam", str(self.beam), "--alpha", f"{self.alpha:g}"]
        asked = (("--to", self.to), ("--domain", self.domain))
        flags += [word for flag, value in asked if value for word in (flag, value)]
        return [*flags, "--shortlist"] if self.shortlist else flags


def evaluate(
    model: str | Path | Sequence[str | Path] | Translator,
    source: str | Path,
    reference: str | Path | Sequence[str | Path],
    *,
    device: str = "auto",
    paper_bleu: str | None = None,
    progress: Progress | None = None,
    **search: Any,
) -> Evaluation:
    """The scores of a model (its folder, or a loaded Translator) on a file and one or several references.

    Several folders are an ensemble (see `Translator.load`). ``paper_bleu`` names the target language
    (``"de"``) to have the paper's tokenised BLEU beside sacreBLEU. ``device`` counts where folders are given.
    ``search`` is any of ``beam`` (4), ``alpha`` (0.6), ``shortlist`` (False), ``to`` and ``domain``, as
    `TranslationOptions` has them. Raises DataError before anything is translated where the files have
    different numbers of lines.
    """
    chosen, paths = build(_Search, search, "evaluation"), _paths(reference)
    lines, references = list(read_side(source)), [list(read_side(path)) for path in paths]
    check_lines(lines, references, [str(source), *paths])
    translator = model if isinstance(model, Translator) else Translator.load(model, device=device)
    hypotheses = translator.translate(lines, progress=progress, **dataclasses.asdict(chosen))
    command = [*_models(translator), "--source", str(source), *_flags(paths, paper_bleu), *chosen.flags()]
    names = [f"the translation of {source}", *paths]
    return _score(hypotheses, references, names, paper_bleu, [shlex.join(command), *_facts(translator)])


def evaluate_pairs(
    model: str | Path | Sequence[str | Path] | Translator,
    pairs: str | Path,
    *,
    languages: str = "",
    device: str = "auto",
    paper_bleu: str | None = None,
    progress: Progress | None = None,
    **search: Any,
) -> Evaluation:
    """The scores of a model on a file or folder that holds both sides, in any format (see docs/data.md).

    ``languages`` are source and target, such as ``en:de``, where the file holds several; ``search`` is that
    of `evaluate`. What is left out of the file, and languages that were chosen for want of a setting, are a
    warning.
    """
    chosen = build(_Search, search, "evaluation")
    source_language, _, target_language = languages.partition(":")
    tally, wanted = Tally(), Wanted(source_language, target_language)
    read = list(read_corpora(pairs=[str(pairs)], wanted=wanted, tally=tally))
    for line in tally.lines():
        warnings.warn(line, stacklevel=2)
    if not read:
        raise DataError(f"{pairs}: no pairs at all; name a file with text")
    translator = model if isinstance(model, Translator) else Translator.load(model, device=device)
    hypotheses = translator.translate(
        [pair.source for pair in read], progress=progress, **dataclasses.asdict(chosen)
    )
    command = [*_models(translator), "--pairs", str(pairs), *_flags([], paper_bleu)]
    for side, language in (("source", source_language), ("target", target_language)):
        command += [f"--{side}-language", language] if language else []
    command += chosen.flags()
    names = [f"the translation of {pairs}", str(pairs)]
    facts = [shlex.join(command), *_facts(translator)]
    return _score(hypotheses, [[pair.target for pair in read]], names, paper_bleu, facts)


def evaluate_file(
    hypotheses: str | Path,
    reference: str | Path | Sequence[str | Path],
    *,
    paper_bleu: str | None = None,
) -> Evaluation:
    """The scores of a file of detokenised translations, line by line, against one or several references."""
    paths = _paths(reference)
    references = [list(read_side(path)) for path in paths]
    command = shlex.join(["--hypotheses", str(hypotheses), *_flags(paths, paper_bleu)])
    names = [str(hypotheses), *paths]
    return _score(list(read_side(hypotheses)), references, names, paper_bleu, [command])


def _paths(reference: str | Path | Sequence[str | Path]) -> list[str]:
    return [str(reference)] if isinstance(reference, str | Path) else [str(path) for path in reference]


def _models(translator: Translator) -> list[str]:
    """The arguments of ``transduce evaluate`` that name the models."""
    first, *others = [str(bundle.path or "MODEL") for bundle in translator.bundles]
    named = [first, *(word for other in others for word in ("--ensemble", other))]
    return [*named, "--ensemble-by", translator.ensemble_by] if others else named


def _flags(references: list[str], paper_bleu: str | None) -> list[str]:
    """The flags of ``transduce evaluate`` that stand for these arguments."""
    flags = [word for path in references for word in ("--reference", path)]
    return flags if paper_bleu is None else [*flags, "--paper-bleu", "--language", paper_bleu]


def _score(
    hypotheses: list[str],
    references: list[list[str]],
    names: list[str],
    paper_bleu: str | None,
    facts: list[str],
) -> Evaluation:
    """The evaluation; ``facts`` are the arguments of the command and what else the recipe must say."""
    if hypotheses and not any(line.strip() for line in hypotheses):
        warnings.warn(f"{names[0]}: every line is empty", stacklevel=3)
    scores = score(hypotheses, references, names=names)
    paper = None
    if paper_bleu is not None:
        paper = score_as_paper(hypotheses, references, language=paper_bleu, names=names)
    facts = [f"transduce evaluate {facts[0]}", *facts[1:]]
    recipe = " | ".join([*facts, f"sacreBLEU {scores.signature}", f"Transduce {__version__}"])
    return Evaluation(scores=scores, paper=paper, hypotheses=hypotheses, recipe=recipe)


def _facts(translator: Translator) -> list[str]:
    """What a score depends on beside the arguments: how the models were trained, and arithmetic."""
    trained = [_training(bundle.training) for bundle in translator.bundles]
    if len(trained) > 1:
        trained = [[f"model {n}: {fact}" for fact in facts] for n, facts in enumerate(trained, 1)]
    return [*(fact for facts in trained for fact in facts), _arithmetic(translator)]


def _arithmetic(translator: Translator) -> str:
    return f"{translator.device} {translator.precision} {translator.searcher.engine_name}"


def _training(training: Mapping[str, Any]) -> list[str]:
    """What is to be told of a model's training."""
    facts = []
    if training.get("steps"):
        facts.append(counted(training["steps"], "update"))
    if start := training.get("start"):
        facts.append(f"started from weights {start['weights'][:12]}")
    if training.get("averaged"):
        facts.append(f"average of {counted(len(training['averaged']), 'checkpoint')}")
    elif training.get("ema"):
        facts.append(f"moving average with decay {training['ema']:g}")
    return facts
