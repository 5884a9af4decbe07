"""The BLEU that the paper reports: tokenised, with compounds split, by multi-bleu (paper, section 6.1).

tensor2tensor's script ``utils/get_ende_bleu.sh`` defines it: Moses tokenisation of both sides, Unicode
punctuation replaced in the hypotheses only, ``rich-text`` split into ``rich ##AT##-##AT## text``, BLEU
without smoothing on what stands between the spaces. It is higher than sacreBLEU and no substitute for it.
"""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from transduce.errors import UsageError
from transduce.evaluation.scores import check_lines, reference_lists

_COMPOUND = re.compile(r"(\S)-(\S)")


@dataclass(frozen=True, kw_only=True)
class PaperBleu:
    """The paper's BLEU from 0 to 100; ``signature`` says how it came about and what it must not meet."""

    bleu: float
    signature: str
    brevity_penalty: float


def paper_bleu(
    hypotheses: Sequence[str],
    references: Sequence[str] | Sequence[Sequence[str]],
    *,
    language: str = "de",
    names: Sequence[str] = (),
) -> PaperBleu:
    """The paper's BLEU of detokenised ``hypotheses`` in ``language`` against one or several references.

    Compounds are split for German only, as in the paper's comparison. Needs the extra ``paper-bleu``.
    """
    lists = reference_lists(references)
    check_lines(hypotheses, lists, names)
    if not re.fullmatch("[a-z]{2}", language):
        raise UsageError(f"unknown language {language!r}: give the two letters of its code, such as de")
    tokenise, replace_punctuation, version = _moses(language)
    split = split_compounds if language == "de" else str
    bleu, penalty = multi_bleu(
        [split(tokenise(replace_punctuation(line))) for line in hypotheses],
        [[split(tokenise(line)) for line in lines] for lines in lists],
    )
    compounds = "split" if language == "de" else "whole"
    signature = (
        f"nrefs:{len(lists)}|case:mixed|tok:moses-{language}|compounds:{compounds}|smooth:none"
        f"|sacremoses:{version} (the paper's BLEU, not comparable with sacreBLEU)"
    )
    return PaperBleu(bleu=bleu, signature=signature, brevity_penalty=penalty)


def split_compounds(text: str) -> str:
    """The text with ``x-y`` as ``x ##AT##-##AT## y``, in one pass of matches that do not overlap.

    A single letter between two hyphens therefore keeps its second hyphen, as in the original script.
    """
    return _COMPOUND.sub(r"\1 ##AT##-##AT## \2", text)


def multi_bleu(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> tuple[float, float]:
    """BLEU (0 to 100) and brevity penalty of tokenised text, as ``multi-bleu.perl`` computes them.

    No smoothing: without a single common 4-gram in the whole text the score is 0.
    """
    from sacrebleu.metrics.bleu import BLEU

    metric = BLEU(tokenize="none", smooth_method="none", force=True)
    result = metric.corpus_score(hypotheses, references)
    return result.score, result.bp


def _moses(language: str) -> tuple[Callable[[str], str], Callable[[str], str], str]:
    """The tokenisation, the replacement of Unicode punctuation, and the version of the library."""
    try:
        from sacremoses import MosesPunctNormalizer, MosesTokenizer
    except ImportError as error:
        raise UsageError(
            "the paper's BLEU needs the Moses tokenizer: pip install 'transduce[paper-bleu]'"
        ) from error
    tokenizer, normalizer = MosesTokenizer(lang=language), MosesPunctNormalizer(lang=language)
    version = importlib.metadata.version("sacremoses")
    return lambda line: tokenizer.tokenize(line, return_str=True), normalizer.replace_unicode_punct, version
