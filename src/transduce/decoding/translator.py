"""Text in, text out: lines are tokenised, searched in batches of similar length, and put back in order."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from transduce import machine
from transduce.bundle import Bundle, load_bundle
from transduce.data.tokenizer import EOS_ID
from transduce.decoding.alignment import Aligner
from transduce.decoding.asked import Asked, Asker, Wishes, check_sampling, guide_of, with_what_is_lacking
from transduce.decoding.batches import batches_by_rows
from transduce.decoding.beam_search import beam_search
from transduce.decoding.choice import Choice, choice_of
from transduce.decoding.confidence import with_word_confidences
from transduce.decoding.config import SearchOptions, TranslationOptions
from transduce.decoding.engines import Engine, in_parallel, pick_engine
from transduce.decoding.ensemble import Ensemble, check_together, joint_logits
from transduce.decoding.glossary import Glossary
from transduce.decoding.guide import Guide, Guides
from transduce.decoding.hypothesis import Hypothesis
from transduce.decoding.minimum_risk import least_risk
from transduce.decoding.next_words import LONGEST, ForcedGuide, NextWord, WordGuide, words_found
from transduce.decoding.noise import key_of
from transduce.decoding.pairs import Ids, Limits, Target, check_pairs, read_pairs
from transduce.decoding.protected import translate_protected
from transduce.decoding.protection import kinds_of
from transduce.decoding.sampling import OutputIds, sample
from transduce.decoding.scoring import PairScore, score_parts, shifted, token_log_probabilities
from transduce.decoding.sentences import sentence_splitter
from transduce.decoding.shortlist import Shortlist, read_shortlist
from transduce.decoding.sources import check_texts, read_sources
from transduce.decoding.terms import Term
from transduce.decoding.translation import Translation, assemble
from transduce.decoding.unusual import unusual
from transduce.errors import UsageError
from transduce.model.config import OUTPUT_RESERVE

Progress = Callable[[int, int], None]
# Sentences x beam x tokens of the longest, when nothing is said: where a step no longer gains from more rows.
BATCH_TOKENS = {"cpu": 8_192, "cuda": 131_072, "mps": 32_768}
# Logits that force-decoding holds at a time.
FORCED_LOGITS = {"cpu": 1 << 25, "cuda": 1 << 29, "mps": 1 << 27}
# Where several workers share the lines, each gets this many batches, unless they would be smaller than that.
BATCHES_EACH, LEAST_SHARED = 3, 1_024


class Translator:
    """A model and its tokenizer, ready to translate lines of text.

    Lines are stripped of white space at both ends; empty ones stay empty without asking the model. The
    same line gives the same output whatever stands beside it.
    """

    def __init__(
        self,
        bundle: Bundle | Sequence[Bundle],
        *,
        device: str = "cpu",
        precision: str = "fp32",
        engine: str = "torch",
        ensemble_by: str = "mean",
    ) -> None:
        self.bundles = (bundle,) if isinstance(bundle, Bundle) else tuple(bundle)
        check_together(self.bundles, ensemble_by)
        self.bundle, self.device, self.precision = self.bundles[0], device, precision
        self.ensemble_by = ensemble_by
        models = [one.model.to(device) for one in self.bundles]
        self._model = models[0]
        self._max_length = min(model.config.max_length for model in models)
        self._asker = Asker(self.bundle.tokenizer)
        engines = [
            pick_engine(engine, model, device=device, precision=precision, forbidden=self._forbidden)
            for model in models
        ]
        joint = Ensemble(engines, by=ensemble_by, forbidden=self._forbidden)
        self.engine: Engine = joint if len(engines) > 1 else engines[0]

    @classmethod
    def load(
        cls,
        folder: str | Path | Sequence[str | Path],
        *,
        device: str = "auto",
        precision: str = "auto",
        threads: int = 0,
        engine: str = "auto",
        ensemble_by: str = "mean",
    ) -> Translator:
        """The translator in a model folder, or of the models in several folders together.

        ``device`` is auto, cpu, cuda, cuda:N or mps; ``precision`` is auto, fp32, bf16 or int8; ``threads``
        bounds the CPU threads of the whole process (0: torch's choice), which never exceed the usable cores.
        ``engine`` is auto, torch or openvino (see `transduce.decoding.engines`). Several models must have one
        vocabulary; ``ensemble_by`` averages their probabilities (mean) or the logarithms of these (log).
        """
        device = machine.pick_device(device)
        precision = machine.pick_precision(precision, device)
        machine.set_threads(threads)
        folders = [folder] if isinstance(folder, str | Path) else list(folder)
        return cls(
            [load_bundle(one, device) for one in folders],
            device=device,
            precision=precision,
            engine=engine,
            ensemble_by=ensemble_by,
        )

    def translate(
        self,
        texts: Sequence[str],
        *,
        progress: Progress | None = None,
        prefixes: Sequence[str] | None = None,
        terms: Sequence[Sequence[Term | str]] | None = None,
        glossary: Glossary | None = None,
        **options: Any,
    ) -> list[str]:
        """The translation of each text, in their order; `TranslationOptions` lists the options.

        ``prefixes`` holds for each text how its output is to begin, or an empty string: "Ein Hun" may go on
        as "Ein Hund"; with a space at its end, the last word is complete. ``terms`` holds for each text what
        its output must contain (`Term`; a string is an exact one), and ``glossary`` finds such terms.
        ``progress`` is called with the numbers of finished and of all texts. What is worth telling of a line,
        such as that it was split or lacks a term, is a Python warning that names the line.
        """
        if not TranslationOptions.from_mapping(options).one_is_chosen:
            raise UsageError(
                "translate gives one text a line; translate_detailed gives n_best or samples of them"
            )
        translations = self.translate_detailed(
            texts, progress=progress, prefixes=prefixes, terms=terms, glossary=glossary, **options
        )
        for translation in translations:
            for warning in translation.warnings:
                warnings.warn(warning, stacklevel=2)
        return [translation.text for translation in translations]

    def translate_detailed(
        self,
        texts: Sequence[str],
        *,
        progress: Progress | None = None,
        first_line: int = 1,
        prefixes: Sequence[str] | None = None,
        terms: Sequence[Sequence[Term | str]] | None = None,
        glossary: Glossary | None = None,
        **options: Any,
    ) -> list[Translation]:
        """The same with all ``n_best`` outputs, scores, and warnings; lines are numbered from ``first_line``.

        With ``samples`` the outputs stand in the order drawn, so that the first is a draw like any other;
        with ``mbr`` the one with the highest expected score leads. Raises DataError for a line that is too
        long if ``long_lines="error"``.
        """
        check_texts(texts, first_line)
        chosen = self._checked(options)
        if chosen.protect:
            beside = {"prefixes": prefixes, "terms": terms, "glossary": glossary}
            rest = {**options, **beside, "protect": "", "progress": progress, "first_line": first_line}
            with self._ready():
                return translate_protected(
                    texts,
                    kinds_of(chosen.protect),
                    self.aligner(),
                    lambda bare: self.translate_detailed(bare, **rest),
                    first_line=first_line,
                )
        aligner = self.aligner(chosen.alignment_layer) if chosen.alignments else None
        sources = read_sources(
            texts,
            self.bundle.tokenizer,
            max_length=self._max_length,
            long_lines=chosen.long_lines,
            first_line=first_line,
            split=sentence_splitter(chosen.language) if chosen.document else None,
        )
        asked = self._asker.asked(sources, Wishes(prefixes, terms, glossary), first_line=first_line)
        check_sampling(asked, chosen.samples)
        found: list[list[list[Hypothesis]]] = [[[] for _ in source.ids] for source in sources]
        places = [(line, part) for line, source in enumerate(sources) for part in range(len(source.ids))]
        lengths = [len(sources[line].ids[part]) for line, part in places]
        missing = [len(source.ids) for source in sources]
        done = missing.count(0)
        with self._ready():

            def outputs_of(batch: list[int]) -> list[list[Hypothesis]]:
                ids = [sources[line].ids[part] for line, part in (places[i] for i in batch)]
                of_batch = [asked.get(places[i], Asked()) for i in batch]
                find = self.sample if chosen.samples else self.search
                return find(ids, chosen, of_batch)

            rows = [chosen.rows + asked.get(place, Asked()).extra_rows for place in places]
            budget = chosen.batch_tokens or self._shared(lengths, rows)
            every = list(batches_by_rows(lengths, rows, budget))
            for batch, outputs in in_parallel(outputs_of, every, self.engine.workers):
                for i, hypotheses in zip(batch, outputs, strict=True):
                    line, part = places[i]
                    found[line][part] = hypotheses
                    missing[line] -= 1
                    done += missing[line] == 0
                if progress is not None:
                    progress(done, len(sources))
        translations = [
            self._finished(assemble(source, outputs, self.bundle.tokenizer, alpha=chosen.alpha), line, chosen)
            for line, (source, outputs) in enumerate(zip(sources, found, strict=True), first_line)
        ]
        if aligner is not None:
            with self._ready():
                translations = aligner.align(translations)
        return with_what_is_lacking(translations, asked, first_line)

    def alternatives(self, text: str, prefix: str = "", *, count: int = 5, **options: Any) -> list[NextWord]:
        """The likeliest words that may follow in an output that begins with ``prefix``, best first.

        Each comes with its probability after the words before it and the best output that goes on with it.
        White space at the end of the prefix says that its last word is complete; else that word is the one in
        question ("Ein Hun": Hund, Hunde). An empty text has none. Raises UsageError for a text that is too
        long for the model.
        """
        chosen = TranslationOptions.from_mapping(options)
        if count < 1:
            raise UsageError(f"count is {count}; it must be at least 1")
        limits = self._max_length
        (source,) = read_sources([text], self.bundle.tokenizer, max_length=limits, long_lines="error")
        if not source.ids:
            return []
        asked = self._asker.asked([source], Wishes([prefix]), first_line=1).get((0, 0), Asked())
        spelling = self._asker.spelling
        with self._ready():
            first = SearchOptions(beam=2 * count + 4, n_best=2 * count + 4, alpha=0.0)
            most = torch.tensor([asked.least_tokens + LONGEST], device=self.device)
            (outputs,) = self._search(
                source.ids, most, first, WordGuide.start(asked.prefix, spelling, EOS_ID)
            )
            words = words_found(outputs, asked.prefix, spelling, count)
            forced = tuple(output.tokens[:-1] for output, _, _ in words)
            lengths = [max(len(source.ids[0]), len(tokens) + 1) + chosen.max_extra for tokens in forced]
            completions = self._search(
                list(source.ids) * len(words),
                torch.tensor(lengths, device=self.device),
                replace(chosen.search, n_best=1),
                ForcedGuide(forced, 0, spelling),
            )
        return [
            NextWord(
                word,
                math.exp(log_p),
                assemble(source, [found], self.bundle.tokenizer, alpha=chosen.alpha).alternatives[0],
            )
            for (_, word, log_p), found in zip(words, completions, strict=True)
        ]

    def score(
        self,
        pairs: Sequence[tuple[str, Target]],
        *,
        long_lines: str = "split",
        batch_tokens: int = 0,
        progress: Progress | None = None,
        first_line: int = 1,
    ) -> list[PairScore]:
        """How probable each target is as a translation of its source, in their order, token by token.

        A target is a text, or the tokens of an `Alternative`, which may be subwords that its text alone would
        not give. ``batch_tokens`` bounds pairs x tokens of the longest in a batch (0: chosen); ``long_lines``
        says what becomes of a side that is longer than the model takes: split sentence by sentence where
        both have as many (else cut off, with a warning), truncate, or error, which raises DataError.
        """
        check_pairs(pairs, long_lines=long_lines, batch_tokens=batch_tokens, first_line=first_line)
        most = self._max_length
        read = read_pairs(
            pairs,
            self.bundle.tokenizer,
            limits=Limits(most, most + OUTPUT_RESERVE),
            long_lines=long_lines,
            first_line=first_line,
        )
        logits = FORCED_LOGITS[torch.device(self.device).type] // len(self.bundles)
        budget = batch_tokens or min(self._budget(), logits // self._model.config.vocabulary)
        with self._ready():
            return score_parts(read, self.force_decode, budget, progress)

    def aligner(self, layer: int = 0) -> Aligner:
        """What reads word alignments from the attention of all decoder layers, or of one (from 1)."""
        return Aligner(self._model, self.bundle.tokenizer, layer, self._budget())

    def force_decode(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """Log P of each token of each target (ids as the search gives them), decoded as one batch."""
        config = self._model.config
        target_in, target_out = shifted(targets, config.start_id, config.pad_id)
        kind = torch.device(self.device).type
        with torch.inference_mode(), torch.autocast(kind, torch.bfloat16, enabled=self.precision == "bf16"):
            source, target_in = self._padded(sources), target_in.to(self.device)
            models = [bundle.model for bundle in self.bundles]
            logits = joint_logits(models, source, target_in, by=self.ensemble_by, forbidden=self._forbidden)
            return token_log_probabilities(
                logits, target_out.to(self.device), [len(target) for target in targets], self._forbidden
            )

    def search(
        self, ids: Sequence[Sequence[int]], options: TranslationOptions, asked: Sequence[Asked] = ()
    ) -> list[list[Hypothesis]]:
        """The best outputs of each source (ids without the end), searched as one batch.

        ``asked`` holds what each of them is to fulfil, or is empty.
        """
        asked = asked or [Asked()] * len(ids)
        limits = self._limits(ids, options, asked)
        beam = options.beam + max(one.extra_rows for one in asked)
        guide = self._guide(asked, options, limits)
        choice = self._choice(ids, options, asked)
        return self._search(ids, limits, replace(options.search, beam=beam), guide, choice)

    def _search(
        self,
        ids: Sequence[Sequence[int]],
        limits: Int[Tensor, " sentences"],
        options: SearchOptions,
        guide: Guide | None,
        choice: Choice | None = None,
    ) -> list[list[Hypothesis]]:
        config = self._model.config
        with torch.inference_mode():
            return beam_search(
                self.engine.step,
                self.engine.start(self._padded(ids), choice),
                max_lengths=limits,
                options=options,
                start_id=config.start_id,
                eos_id=config.eos_id,
                forbidden=self._forbidden,
                guide=guide,
            )

    def sample(
        self, ids: Sequence[Sequence[int]], options: TranslationOptions, asked: Sequence[Asked] = ()
    ) -> list[list[Hypothesis]]:
        """Outputs of each source (ids without the end) drawn at random, as one batch.

        Equal sources have equal samples: what is drawn depends on the source's ids, not on its place.
        """
        config = self._model.config
        asked = asked or [Asked()] * len(ids)
        limits = self._limits(ids, options, asked)
        keys = [key_of(options.seed, source) for source in ids]
        with torch.inference_mode():
            return sample(
                self.engine.step,
                self.engine.start(self._padded(ids), self._choice(ids, options, asked)),
                keys=torch.tensor(keys, device=self.device),
                max_lengths=limits,
                options=options.sampling,
                ids=OutputIds(config.start_id, config.eos_id, tuple(self._forbidden)),
                guide=self._guide(asked, options, limits),
            )

    def _guide(
        self, asked: Sequence[Asked], options: TranslationOptions, limits: Int[Tensor, " sentences"]
    ) -> Guides | None:
        vocabulary = self._model.config.vocabulary
        return guide_of(asked, options, limits=limits.tolist(), vocabulary=vocabulary, device=self.device)

    def _checked(self, options: dict[str, Any]) -> TranslationOptions:
        """The options; what is wrong with them or the shortlist is said before anything is translated."""
        chosen = TranslationOptions.from_mapping(options)
        if chosen.shortlist:
            _ = self.shortlist
        return chosen

    @cached_property
    def shortlist(self) -> Shortlist:
        """What ``shortlist=True`` goes by: read from the model's folder, unless one was set here."""
        if self.bundle.path is None:
            raise UsageError("this model lies in no folder that could hold a shortlist; load it from one")
        return read_shortlist(self.bundle.path, self.bundle.tokenizer)

    def _choice(
        self, ids: Sequence[Sequence[int]], options: TranslationOptions, asked: Sequence[Asked]
    ) -> Choice | None:
        return choice_of(self.shortlist, ids, asked, self.device) if options.shortlist else None

    def _limits(
        self, ids: Sequence[Sequence[int]], options: TranslationOptions, asked: Sequence[Asked]
    ) -> Int[Tensor, " sentences"]:
        lengths = [max(len(own), one.least_tokens) for own, one in zip(ids, asked, strict=True)]
        return torch.tensor([length + options.max_extra for length in lengths], device=self.device)

    @property
    def _forbidden(self) -> list[int]:
        """The ids that no output holds."""
        config = self._model.config
        return sorted({config.pad_id, config.bos_id, config.unk_id})

    def _padded(self, ids: Sequence[Sequence[int]]) -> Int[Tensor, "sentences source"]:
        """Sources as one batch on the device, the end after each."""
        config = self._model.config
        rows = [torch.tensor([*source, config.eos_id]) for source in ids]
        padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=config.pad_id)
        return padded.to(self.device)

    def _shared(self, lengths: Sequence[int], rows: Sequence[int]) -> int:
        """The budget of a batch with which several workers have about as much to do."""
        if self.engine.workers == 1:
            return self._budget()
        work = sum((length + 1) * count for length, count in zip(lengths, rows, strict=True))
        return min(self._budget(), max(LEAST_SHARED, work // (BATCHES_EACH * self.engine.workers)))

    def _budget(self) -> int:
        return BATCH_TOKENS[torch.device(self.device).type]

    @contextmanager
    def _ready(self) -> Iterator[None]:
        """The models in evaluation mode meanwhile, and as they were afterwards: they may be in training."""
        training = [bundle.model for bundle in self.bundles if bundle.model.training]
        for model in training:
            model.eval()
        try:
            yield
        finally:
            for model in training:
                model.train()

    def _finished(self, translation: Translation, line: int, options: TranslationOptions) -> Translation:
        if options.mbr:
            translation = least_risk(translation, options.mbr)
        if options.confidence:
            translation = with_word_confidences(translation, self.bundle.tokenizer)
        if not options.flag_unusual:
            return translation
        reasons = unusual(translation.source, translation.alternatives[0])
        odd = tuple(f"line {line}: {reason}" for reason in reasons)
        return replace(translation, warnings=translation.warnings + odd)
