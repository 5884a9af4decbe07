"""Text in, text out: a model folder as a translator of lines."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from transduce import machine
from transduce.bundle import Bundle
from transduce.decoding.alignment import Aligner
from transduce.decoding.asked import Asked, Asker, Wishes
from transduce.decoding.config import TranslationOptions
from transduce.decoding.glossary import Glossary
from transduce.decoding.job import Job, Progress, aligner_of
from transduce.decoding.languages import tags_asked
from transduce.decoding.next_words import NextWord, check_next_words, next_words
from transduce.decoding.opening import pick_arithmetic, pick_searcher, read_bundles
from transduce.decoding.pairs import Limits, Target, check_pairs, read_pairs
from transduce.decoding.protected import translate_protected
from transduce.decoding.protection import find_items, kinds_of
from transduce.decoding.scoring import PairScore, score_parts
from transduce.decoding.shortlist import Shortlist
from transduce.decoding.sources import check_texts, read_sources
from transduce.decoding.streaming import check_streamed, in_one_piece, warned
from transduce.decoding.terms import Term
from transduce.decoding.translation import Translation
from transduce.errors import UsageError
from transduce.model.config import OUTPUT_RESERVE


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
        self.searcher = pick_searcher(
            self.bundles, device=device, precision=precision, engine=engine, ensemble_by=ensemble_by
        )
        self.bundle, self.device, self.precision = self.bundles[0], device, precision
        self.ensemble_by = ensemble_by
        self._asker = Asker(self.bundle.tokenizer)

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
        ``engine`` is auto, torch, openvino (see `transduce.decoding.engines`), onnx, for a folder that was
        exported to it, or ctranslate2, which searches by its own rules; auto is what a folder was exported
        for. Several models must have one
        vocabulary; ``ensemble_by`` averages their probabilities (mean) or the logarithms of these (log).
        """
        folders = [folder] if isinstance(folder, str | Path) else list(folder)
        machine.set_threads(threads)
        chosen = pick_arithmetic(folders, device=device, precision=precision, engine=engine)
        return cls(read_bundles(folders, chosen), ensemble_by=ensemble_by, **asdict(chosen))

    @property
    def shortlist(self) -> Shortlist:
        """What ``shortlist=True`` goes by; BundleError where the model's folder has none."""
        return self.searcher.shortlist

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
        chosen.check_prefixes(given=prefixes is not None)
        if chosen.protect:
            beside = {"prefixes": prefixes, "terms": terms, "glossary": glossary}
            rest = {**options, **beside, "protect": "", "progress": progress, "first_line": first_line}
            with self.searcher.ready():
                return translate_protected(
                    texts,
                    kinds_of(chosen.protect),
                    self.aligner(),
                    lambda bare: self.translate_detailed(bare, **rest),
                    first_line=first_line,
                )
        wishes = Wishes(prefixes, terms, glossary)
        job = Job.read(self.searcher, self._asker, texts, wishes, chosen, first_line)
        with self.searcher.ready():
            return job.translations(job.hypotheses(progress))

    def stream(
        self,
        text: str,
        *,
        prefix: str = "",
        terms: Sequence[Term | str] = (),
        glossary: Glossary | None = None,
        **options: Any,
    ) -> Iterator[str]:
        """What `translate` gives for one text, piece by piece as it comes; joined, the pieces are the output.

        What was given is never taken back. Greedy search (``beam=1``) and a single sample give every token at
        once; a wider beam gives what all outputs that may still win begin with. The parts of a long line or
        a paragraph are translated one after the other; a text that has something to ``protect`` comes in one
        piece. Warnings come at the end.
        """
        return warned(self.stream_detailed(text, prefix=prefix, terms=terms, glossary=glossary, **options))

    def stream_detailed(
        self,
        text: str,
        *,
        first_line: int = 1,
        prefix: str = "",
        terms: Sequence[Term | str] = (),
        glossary: Glossary | None = None,
        **options: Any,
    ) -> Generator[str, None, Translation]:
        """The same pieces; the generator returns (see ``yield from``) the whole of it, with its warnings."""
        check_texts([text], first_line)
        chosen = self._checked(options)
        check_streamed(chosen)
        if any(find_items(text.strip(), kinds_of(chosen.protect))):
            beside: dict[str, Any] = {"prefixes": [prefix], "terms": [terms], "glossary": glossary}
            return in_one_piece(
                lambda: self.translate_detailed([text], first_line=first_line, **beside, **options)[0]
            )
        wishes = Wishes([prefix], [terms], glossary)
        chosen = replace(chosen, protect="")
        return Job.read(self.searcher, self._asker, [text], wishes, chosen, first_line).stream()

    def alternatives(
        self, text: str, prefix: str = "", *, count: int = 5, first_line: int = 1, **options: Any
    ) -> list[NextWord]:
        """The likeliest words that may follow in an output that begins with ``prefix``, best first.

        Each comes with its probability after the words before it and the best output that goes on with it.
        White space at the end of the prefix says that its last word is complete; else that word is the one in
        question ("Ein Hun": Hund, Hunde). An empty text has none. Raises DataError for a text that is too
        long for the model; errors call it line ``first_line``.
        """
        chosen = TranslationOptions.from_mapping(options)
        check_next_words(count, chosen)
        tokenizer, most = self.bundle.tokenizer, self.searcher.max_length
        tags = tags_asked(tokenizer, chosen.to, chosen.domain)
        sources = read_sources(
            [text], tokenizer, max_length=most, long_lines="error", first_line=first_line, tags=tags
        )
        if not sources[0].ids:
            return []
        asked = self._asker.asked(sources, Wishes([prefix]), first_line=first_line).get((0, 0), Asked())
        return next_words(self.searcher, sources[0], asked, self._asker.spelling, chosen, count)

    def score(
        self,
        pairs: Sequence[tuple[str, Target]],
        *,
        long_lines: str = "split",
        batch_tokens: int = 0,
        progress: Progress | None = None,
        first_line: int = 1,
        to: str = "",
        domain: str = "",
    ) -> list[PairScore]:
        """How probable each target is as a translation of its source, in their order, token by token.

        A target is a text, or the tokens of an `Alternative`, which may be subwords that its text alone would
        not give. ``batch_tokens`` bounds pairs x tokens of the longest in a batch (0: chosen); ``long_lines``
        says what becomes of a side that is longer than the model takes: split sentence by sentence where
        both have as many (else cut off, with a warning), truncate, or error, which raises DataError. ``to``
        and ``domain`` are those of `TranslationOptions`.
        """
        check_pairs(pairs, long_lines=long_lines, batch_tokens=batch_tokens, first_line=first_line)
        most = self.searcher.max_length
        read = read_pairs(
            pairs,
            self.bundle.tokenizer,
            limits=Limits(most, most + OUTPUT_RESERVE),
            long_lines=long_lines,
            first_line=first_line,
            tags=tags_asked(self.bundle.tokenizer, to, domain),
        )
        budget = batch_tokens or self.searcher.forced_batch_tokens
        with self.searcher.ready():
            return score_parts(read, self.searcher.force_decode, budget, progress)

    def aligner(self, layer: int = 0) -> Aligner:
        """What reads word alignments from the attention of all decoder layers, or of one (from 1)."""
        return aligner_of(self.searcher, layer)

    def _checked(self, options: dict[str, Any]) -> TranslationOptions:
        """The options; what is wrong with them is said before anything is translated."""
        chosen = TranslationOptions.from_mapping(options)
        self.searcher.check(chosen)
        return chosen

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages that ``to`` may name; none for a model of one pair of languages."""
        return self.bundle.tokenizer.languages

    @property
    def domains(self) -> tuple[str, ...]:
        """The kinds of text that ``domain`` may name."""
        return self.bundle.tokenizer.domains
