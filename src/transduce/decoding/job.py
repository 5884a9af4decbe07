"""Lines on their way through a translator: read as sources, searched in batches, put together again."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace

from transduce.decoding.alignment import Aligner, trained_layer
from transduce.decoding.asked import Asked, Asker, Wishes, check_sampling, with_what_is_lacking
from transduce.decoding.batches import batches_by_rows
from transduce.decoding.confidence import with_word_confidences
from transduce.decoding.config import TranslationOptions
from transduce.decoding.engines import in_parallel
from transduce.decoding.hypothesis import Hypothesis
from transduce.decoding.languages import tags_asked
from transduce.decoding.minimum_risk import least_risk
from transduce.decoding.searcher import Searcher
from transduce.decoding.sentences import sentence_splitter
from transduce.decoding.sources import Source, read_sources
from transduce.decoding.streaming import pieces_of_line
from transduce.decoding.translation import Translation, assemble
from transduce.decoding.unusual import unusual

Progress = Callable[[int, int], None]
# For each line, for each of its parts, the outputs.
Found = Sequence[Sequence[Sequence[Hypothesis]]]


@dataclass(frozen=True)
class Job:
    """Lines as sources, numbered from ``first_line``, with what is asked of part p of line l at (l, p)."""

    searcher: Searcher
    options: TranslationOptions
    aligner: Aligner | None
    sources: list[Source]
    asked: Mapping[tuple[int, int], Asked]
    first_line: int

    @classmethod
    def read(
        cls,
        searcher: Searcher,
        asker: Asker,
        texts: Sequence[str],
        wishes: Wishes,
        options: TranslationOptions,
        first_line: int,
    ) -> Job:
        """The job that these texts are; what is wrong with them or the options is said here."""
        aligner = aligner_of(searcher, options.alignment_layer) if options.alignments else None
        sources = read_sources(
            texts,
            searcher.tokenizer,
            max_length=searcher.max_length,
            long_lines=options.long_lines,
            first_line=first_line,
            split=sentence_splitter(options.language) if options.document else None,
            tags=tags_asked(searcher.tokenizer, options.to, options.domain),
        )
        asked = asker.asked(sources, wishes, first_line=first_line)
        check_sampling(asked, options.samples)
        return cls(searcher, options, aligner, sources, asked, first_line)

    def hypotheses(self, progress: Progress | None) -> Found:
        """The outputs of all parts, searched or drawn; those of similar length together.

        ``progress`` is called with the numbers of finished and of all lines.
        """
        sources, options, searcher = self.sources, self.options, self.searcher
        found: list[list[list[Hypothesis]]] = [[[] for _ in source.ids] for source in sources]
        places = [(line, part) for line, source in enumerate(sources) for part in range(len(source.ids))]
        lengths = [len(sources[line].ids[part]) for line, part in places]
        missing = [len(source.ids) for source in sources]
        done = missing.count(0)

        def outputs_of(batch: list[int]) -> list[list[Hypothesis]]:
            ids = [sources[line].ids[part] for line, part in (places[i] for i in batch)]
            of_batch = [self.asked.get(places[i], Asked()) for i in batch]
            find = searcher.sample if options.samples else searcher.search
            return find(ids, options, of_batch)

        rows = [options.rows + self.asked.get(place, Asked()).extra_rows for place in places]
        budget = options.batch_tokens or searcher.shared_batch_tokens(lengths, rows)
        every = list(batches_by_rows(lengths, rows, budget))
        for batch, outputs in in_parallel(outputs_of, every, searcher.engine.workers):
            for i, hypotheses in zip(batch, outputs, strict=True):
                line, part = places[i]
                found[line][part] = hypotheses
                missing[line] -= 1
                done += missing[line] == 0
            if progress is not None:
                progress(done, len(sources))
        return found

    def stream(self) -> Generator[str, None, Translation]:
        """The only line's output piece by piece, part after part; returns what `translations` gives of it."""
        (source,) = self.sources
        parts = (
            self.searcher.stream(ids, self.options, self.asked.get((0, part), Asked()))
            for part, ids in enumerate(source.ids)
        )
        found = yield from pieces_of_line(source, parts, self.searcher.tokenizer)
        with self.searcher.ready():
            (translation,) = self.translations([[[output] for output in found]])
        return translation

    def translations(self, found: Found) -> list[Translation]:
        """What the lines become with these outputs of their parts, and what is to be told of each."""
        tokenizer, alpha = self.searcher.tokenizer, self.options.alpha
        translations = [
            self._finished(assemble(source, outputs, tokenizer, alpha=alpha), line)
            for line, (source, outputs) in enumerate(zip(self.sources, found, strict=True), self.first_line)
        ]
        if self.aligner is not None:
            translations = self.aligner.align(translations)
        return with_what_is_lacking(translations, self.asked, self.first_line)

    def _finished(self, translation: Translation, line: int) -> Translation:
        if self.options.mbr:
            translation = least_risk(translation, self.options.mbr)
        if self.options.confidence:
            translation = with_word_confidences(translation, self.searcher.tokenizer)
        if not self.options.flag_unusual:
            return translation
        reasons = unusual(translation.source, translation.alternatives[0])
        odd = tuple(f"line {line}: {reason}" for reason in reasons)
        return replace(translation, warnings=translation.warnings + odd)


def aligner_of(searcher: Searcher, layer: int = 0) -> Aligner:
    """What reads word alignments from the attention of one decoder layer (from 1).

    0 is the layer that was trained to align, or, where none was, the mean of all.
    """
    layer = layer or trained_layer(searcher.bundles[0].training, searcher.config.decoder_layers)
    return Aligner(searcher.model, searcher.tokenizer, layer, searcher.batch_tokens)
