"""Searching by CTranslate2 instead of our own search: fast, by its own rules, and with fewer options.

CTranslate2 has no way to make single steps, so it is no engine of our search but another one. It leaves a
sentence when a beam of outputs has ended, which `SearchOptions` calls ``stop="full"``, and of these the best
one by the paper's length penalty is given. What it cannot do is refused by name.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Generator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NoReturn

import ctranslate2
import torch

from transduce.bundle import Bundle
from transduce.decoding.asked import Asked
from transduce.decoding.config import SearchOptions, TranslationOptions
from transduce.decoding.ctranslate2_model import write_model
from transduce.decoding.guide import Guide
from transduce.decoding.hypothesis import Hypothesis, length_penalty
from transduce.decoding.pairs import Ids
from transduce.decoding.searcher import Searcher
from transduce.errors import UsageError

# Our names of precisions, and what CTranslate2 computes with.
COMPUTE = {"fp32": "float32", "bf16": "bfloat16", "int8": "int8_float32"}
# What it does as our own search does; any other option must be left as it is.
_KNOWN = (
    "beam", "alpha", "n_best", "min_length", "stop", "max_extra", "mbr", "batch_tokens", "long_lines",
    "flag_unusual", "confidence", "no_repeat_ngram", "alignments", "alignment_layer", "protect", "document",
    "language", "to", "domain",
)  # fmt: skip
# Divides log P by 1, so that scores are log P; 0 would have the search stop by another rule.
_NO_PENALTY = 1e-9
# These look at the model's attention, so they need its weights.
_OF_WEIGHTS = ("alignments", "protect")

# Log P of an output, and of its tokens where these are known.
Scores = tuple[float, tuple[float, ...]]


class _Workers:
    """How many searches may run at the same time, each in a thread of one core."""

    name = "ctranslate2"

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def start(self, *_: Any) -> NoReturn:
        """Nothing: there are no single steps."""
        raise _refused("single steps")

    step = start


class CTranslate2Searcher(Searcher):
    """One model, asked through CTranslate2 on the CPU; ours, or one in its layout."""

    def __init__(self, bundles: Sequence[Bundle], *, precision: str) -> None:
        if len(bundles) != 1:
            raise _refused("an ensemble of several models")
        (bundle,) = bundles
        self.bundles, self.device, self.precision = tuple(bundles), "cpu", precision
        self.ensemble_by = "mean"
        self.model, self.config = bundle.model, bundle.model.config
        self.max_length = self.config.max_length
        self.has_weights = not next(self.model.parameters()).is_meta
        self.engine = _Workers(torch.get_num_threads())
        self.engine_name = self.engine.name
        self._told = False
        self._peer = self._loaded(bundle)
        self._pieces = [self.tokenizer.piece(i) for i in range(self.config.vocabulary)]
        self._ids = {piece: index for index, piece in enumerate(self._pieces)}

    def check(self, options: TranslationOptions) -> None:
        """Nothing; UsageError, with its name, for an option that CTranslate2 does not have."""
        usual = TranslationOptions()
        for field in fields(options):
            value = getattr(options, field.name)
            if field.name not in _KNOWN and value != getattr(usual, field.name):
                raise _refused(f"{field.name} = {value!r}")
        if options.stop == "exact" and not self._told:
            self._told = True
            warnings.warn(
                "CTranslate2 leaves a sentence when a beam of outputs has ended: stop is full, not exact",
                stacklevel=4,
            )
        for name in _OF_WEIGHTS:
            if getattr(options, name) and not self.has_weights:
                raise UsageError(
                    f"{name} looks at the attention, which an exported model does not show; load the model "
                    "folder that it was made from"
                )

    def search(
        self, ids: Sequence[Ids], options: TranslationOptions, asked: Sequence[Asked] = ()
    ) -> list[list[Hypothesis]]:
        """The best outputs of each source."""
        if any(one != Asked() for one in asked):
            raise _refused("what is asked of single lines: prefixes, terms and glossaries")
        limits = [len(source) + options.max_extra for source in ids]
        found = self._beams(ids, max(limits), options)
        # The library knows one limit for all sentences of a call: those that went on up to their own one are
        # searched again under it, so that no output depends on what stands beside it.
        for limit in sorted({*limits} - {max(limits)}):
            late = [
                i
                for i, own in enumerate(limits)
                if own == limit and max(output.length for output in found[i]) >= limit
            ]
            if late:
                again = self._beams([ids[i] for i in late], limit, options)
                for i, outputs in zip(late, again, strict=True):
                    found[i] = outputs
        return [outputs[: options.n_best] for outputs in found]

    def force_decode(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """Log P of each token of each target."""
        end = (self.config.eos_id,)
        scored = self._peer.score_batch(
            [self._text(source) for source in sources],
            # The end is added there, also to what was cut off before it.
            [self._text(target[:-1] if target[-1:] == end else target) for target in targets],
            max_input_length=0,
        )
        return [list(one.log_probs[: len(own)]) for one, own in zip(scored, targets, strict=True)]

    def sample(
        self, ids: Sequence[Ids], options: TranslationOptions, asked: Sequence[Asked] = ()
    ) -> list[list[Hypothesis]]:
        """Nothing: samples would not depend on the line and the seed alone."""
        raise _refused("samples")

    def find(
        self, ids: Sequence[Ids], limits: Sequence[int], options: SearchOptions, guide: Guide | None
    ) -> list[list[Hypothesis]]:
        """Nothing: there is no guided search."""
        raise _refused("alternatives at a place of an output")

    def stream(
        self, source: Ids, options: TranslationOptions, asked: Asked
    ) -> Generator[list[int], None, Hypothesis]:
        """Nothing: outputs come when they are complete."""
        raise _refused("streaming")

    def _beams(self, ids: Sequence[Ids], limit: int, options: TranslationOptions) -> list[list[Hypothesis]]:
        """All outputs of the beam for each source, the best by the paper's penalty first.

        Where ends are forbidden the library shares their probability out among the other tokens. So an empty
        output, which is forbidden usually, is left out here, unless that leaves fewer than are asked for.
        """
        if options.min_length != 1:
            return self._asked(ids, limit, options, least=options.min_length)
        found = [
            [output for output in outputs if output.tokens != (self.config.eos_id,)]
            for outputs in self._asked(ids, limit, options, least=0)
        ]
        short = [i for i, outputs in enumerate(found) if len(outputs) < options.n_best]
        if short:
            again = self._asked([ids[i] for i in short], limit, options, least=1)
            for i, outputs in zip(short, again, strict=True):
                found[i] = outputs
        return found

    def _asked(
        self, ids: Sequence[Ids], limit: int, options: TranslationOptions, *, least: int
    ) -> list[list[Hypothesis]]:
        """What the library finds; outputs that have ended come first, as in our own search."""
        results = self._peer.translate_batch(
            [self._text(source) for source in ids],
            beam_size=options.beam,
            num_hypotheses=options.beam,
            length_penalty=_NO_PENALTY,
            min_decoding_length=least,
            max_decoding_length=limit,
            no_repeat_ngram_size=options.no_repeat_ngram,
            max_input_length=0,
            return_scores=True,
            return_end_token=True,
        )
        found = []
        for source, one in zip(ids, results, strict=True):
            tokens = [tuple(self._ids[piece] for piece in pieces) for pieces in one.hypotheses]
            scores: list[Scores] = [(float(score), ()) for score in one.scores]
            if least or options.no_repeat_ngram or options.confidence:
                scores = self._scores(source, tokens)
            outputs = [
                self._hypothesis(own, score, options.alpha) for own, score in zip(tokens, scores, strict=True)
            ]
            found.append(sorted(outputs, key=lambda output: (output.truncated, -output.score)))
        return found

    def _scores(self, source: Ids, outputs: Sequence[Ids]) -> list[Scores]:
        """Log P of each output, and of its tokens, which the library's search does not tell."""
        gains = [tuple(row) for row in self.force_decode([source] * len(outputs), outputs)]
        return [(sum(own, 0.0), own) for own in gains]

    def _hypothesis(self, tokens: Ids, scores: Scores, alpha: float) -> Hypothesis:
        log_probability, gains = scores
        return Hypothesis(
            tokens=tokens,
            score=log_probability / length_penalty(len(tokens), alpha),
            log_probability=log_probability,
            truncated=tokens[-1:] != (self.config.eos_id,),
            token_log_probabilities=gains,
        )

    def _text(self, ids: Ids) -> list[str]:
        return [self._pieces[index] for index in ids]

    def _loaded(self, bundle: Bundle) -> Any:
        """The library's translator: of the folder, if it is in its layout, else of what is written for it."""
        kind, workers = COMPUTE[self.precision], self.engine.workers
        how = {"compute_type": kind, "inter_threads": workers, "intra_threads": 1, "max_queued_batches": -1}
        if not self.has_weights:
            return ctranslate2.Translator(str(bundle.path), **how)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            write_model(bundle, path, precision="float32", forbidden=self.forbidden)
            return ctranslate2.Translator(str(path), **how)


def _refused(what: str) -> UsageError:
    return UsageError(f"the engine ctranslate2 cannot do this: {what}; leave it out, or use the engine auto")
