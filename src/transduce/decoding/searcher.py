"""The searching level: models and the engine that makes their steps; ids of sources in, hypotheses out."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property

import torch
from jaxtyping import Int
from torch import Tensor

from transduce.bundle import Bundle
from transduce.data.tokenizer import Tokenizer
from transduce.decoding.asked import Asked, guide_of
from transduce.decoding.beam_search import Standing, beam_search_steps, outcome
from transduce.decoding.choice import Choice, choice_of
from transduce.decoding.config import SearchOptions, TranslationOptions
from transduce.decoding.engines import Engine, TeacherForcing, pick_engine
from transduce.decoding.ensemble import Ensemble, check_together, joint_logits
from transduce.decoding.guide import Guide
from transduce.decoding.hypothesis import Hypothesis
from transduce.decoding.noise import key_of
from transduce.decoding.pairs import Ids
from transduce.decoding.sampling import Drawn, OutputIds, sample_steps
from transduce.decoding.scoring import shifted, token_log_probabilities
from transduce.decoding.shared_prefix import SharedPrefix
from transduce.decoding.shortlist import Shortlist, read_shortlist
from transduce.errors import UsageError

# Sentences x beam x tokens of the longest, when nothing is said: where a step no longer gains from more rows.
BATCH_TOKENS = {"cpu": 8_192, "cuda": 131_072, "mps": 32_768}
# Logits that force-decoding holds at a time.
FORCED_LOGITS = {"cpu": 1 << 25, "cuda": 1 << 29, "mps": 1 << 27}
# Where several workers share the lines, each gets this many batches, unless they would be smaller than that.
BATCHES_EACH, LEAST_SHARED = 3, 1_024


class Searcher:
    """Models that are asked together, and what computes their steps.

    A source is its ids without the end, an output its ids as `Hypothesis.tokens` has them. Each call is one
    batch; whoever calls sees to it that the models are `ready`.
    """

    def __init__(
        self, bundles: Sequence[Bundle], *, device: str, precision: str, engine: str, ensemble_by: str
    ) -> None:
        check_together(bundles, ensemble_by)
        self.bundles, self.device, self.precision = tuple(bundles), device, precision
        self.ensemble_by = ensemble_by
        models = [bundle.model.to(device) for bundle in self.bundles]
        self.model, self.config = models[0], models[0].config
        self.max_length = min(model.config.max_length for model in models)
        engines = [
            pick_engine(
                engine,
                bundle.model,
                device=device,
                precision=precision,
                forbidden=self.forbidden,
                folder=bundle.path,
            )
            for bundle in self.bundles
        ]
        joint = Ensemble(engines, by=ensemble_by, forbidden=self.forbidden)
        self.engine: Engine = joint if len(engines) > 1 else engines[0]
        self.engine_name = self.engine.name

    @property
    def tokenizer(self) -> Tokenizer:
        """The one that all models have."""
        return self.bundles[0].tokenizer

    @property
    def forbidden(self) -> list[int]:
        """The ids that no output holds."""
        config = self.config
        return sorted({config.pad_id, config.bos_id, config.unk_id, *self.tokenizer.tags.values()})

    @cached_property
    def shortlist(self) -> Shortlist:
        """What ``shortlist=True`` goes by: read from the model's folder, unless one was set here."""
        if self.bundles[0].path is None:
            raise UsageError("this model lies in no folder that could hold a shortlist; load it from one")
        return read_shortlist(self.bundles[0].path, self.tokenizer)

    def check(self, options: TranslationOptions) -> None:
        """Nothing; raises for options that cannot be fulfilled here, before anything is translated."""
        if options.shortlist:
            _ = self.shortlist

    @contextmanager
    def ready(self) -> Iterator[None]:
        """The models in evaluation mode meanwhile, and as they were afterwards: they may be in training."""
        training = [bundle.model for bundle in self.bundles if bundle.model.training]
        for model in training:
            model.eval()
        try:
            yield
        finally:
            for model in training:
                model.train()

    def search(
        self, ids: Sequence[Ids], options: TranslationOptions, asked: Sequence[Asked] = ()
    ) -> list[list[Hypothesis]]:
        """The best outputs of each source; ``asked`` holds what each is to fulfil, or is empty."""
        with torch.inference_mode():
            return outcome(self._searched(ids, options, asked or [Asked()] * len(ids)))

    def find(
        self, ids: Sequence[Ids], limits: Sequence[int], options: SearchOptions, guide: Guide | None
    ) -> list[list[Hypothesis]]:
        """The best outputs of each source within its limit, the end counted, as the ``guide`` has them."""
        with torch.inference_mode():
            return outcome(self._found(ids, limits, options, guide))

    def sample(
        self, ids: Sequence[Ids], options: TranslationOptions, asked: Sequence[Asked] = ()
    ) -> list[list[Hypothesis]]:
        """Outputs of each source drawn at random.

        Equal sources have equal samples: what is drawn depends on the source's ids, not on its place.
        """
        with torch.inference_mode():
            return outcome(self._drawn(ids, options, asked or [Asked()] * len(ids)))

    def stream(
        self, source: Ids, options: TranslationOptions, asked: Asked
    ) -> Generator[list[int], None, Hypothesis]:
        """The tokens of the one output of a source, as soon as they are certain; returns the output.

        What is certain of the last step's tokens is said by the output alone.
        """
        shared = SharedPrefix()
        steps: Generator[Standing | Drawn, None, list[list[Hypothesis]]] = (
            self._drawn([source], options, [asked])
            if options.samples
            else self._searched([source], options, [asked])
        )
        while True:
            # Between the steps the caller's own modes hold.
            with self.ready(), torch.inference_mode():
                try:
                    step = next(steps)
                except StopIteration as end:
                    found: list[list[Hypothesis]] = end.value
                    return found[0][0]
                certain = step.tokens[0].tolist() if isinstance(step, Drawn) else shared.after(step)
            yield certain

    def force_decode(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """Log P of each token of each target."""
        target_in, target_out = shifted(targets, self.config.start_id, self.config.pad_id)
        kind = torch.device(self.device).type
        with torch.inference_mode(), torch.autocast(kind, torch.bfloat16, enabled=self.precision == "bf16"):
            source, target_in = self.padded(sources), target_in.to(self.device)
            if isinstance(self.engine, TeacherForcing):
                logits = self.engine.forced(source, target_in)
            else:
                models = [bundle.model for bundle in self.bundles]
                logits = joint_logits(
                    models, source, target_in, by=self.ensemble_by, forbidden=self.forbidden
                )
            return token_log_probabilities(
                logits,
                target_out.to(self.device),
                [len(target) for target in targets],
                self.forbidden,
                unknown=None if self.tokenizer.knows_all else self.config.unk_id,
            )

    def padded(self, ids: Sequence[Ids]) -> Int[Tensor, "sentences source"]:
        """Sources as one batch on the device, the end after each."""
        rows = [torch.tensor([*source, self.config.eos_id]) for source in ids]
        padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=self.config.pad_id)
        return padded.to(self.device)

    @property
    def batch_tokens(self) -> int:
        """How large a batch may be where nothing is said."""
        return BATCH_TOKENS[torch.device(self.device).type]

    def shared_batch_tokens(self, lengths: Sequence[int], rows: Sequence[int]) -> int:
        """The size of a batch with which several workers have about as much to do."""
        if self.engine.workers == 1:
            return self.batch_tokens
        work = sum((length + 1) * count for length, count in zip(lengths, rows, strict=True))
        return min(self.batch_tokens, max(LEAST_SHARED, work // (BATCHES_EACH * self.engine.workers)))

    @property
    def forced_batch_tokens(self) -> int:
        """How large a batch of known targets may be: the logits of all their tokens are held at once."""
        logits = FORCED_LOGITS[torch.device(self.device).type] // len(self.bundles)
        return min(self.batch_tokens, logits // self.config.vocabulary)

    def _searched(
        self, ids: Sequence[Ids], options: TranslationOptions, asked: Sequence[Asked]
    ) -> Generator[Standing, None, list[list[Hypothesis]]]:
        limits = self._limits(ids, options, asked)
        beam = options.beam + max(one.extra_rows for one in asked)
        guide = self._guide(asked, options, limits)
        choice = self._choice(ids, options, asked)
        return (yield from self._found(ids, limits, replace(options.search, beam=beam), guide, choice))

    def _found(
        self,
        ids: Sequence[Ids],
        limits: Sequence[int],
        options: SearchOptions,
        guide: Guide | None,
        choice: Choice | None = None,
    ) -> Generator[Standing, None, list[list[Hypothesis]]]:
        steps = beam_search_steps(
            self.engine.step,
            self.engine.start(self.padded(ids), choice),
            max_lengths=torch.tensor(limits, device=self.device),
            options=options,
            start_id=self.config.start_id,
            eos_id=self.config.eos_id,
            forbidden=self.forbidden,
            guide=guide,
        )
        return (yield from steps)

    def _drawn(
        self, ids: Sequence[Ids], options: TranslationOptions, asked: Sequence[Asked]
    ) -> Generator[Drawn, None, list[list[Hypothesis]]]:
        limits = self._limits(ids, options, asked)
        keys = [key_of(options.seed, source) for source in ids]
        steps = sample_steps(
            self.engine.step,
            self.engine.start(self.padded(ids), self._choice(ids, options, asked)),
            keys=torch.tensor(keys, device=self.device),
            max_lengths=torch.tensor(limits, device=self.device),
            options=options.sampling,
            ids=OutputIds(self.config.start_id, self.config.eos_id, tuple(self.forbidden)),
            guide=self._guide(asked, options, limits),
        )
        return (yield from steps)

    def _guide(
        self, asked: Sequence[Asked], options: TranslationOptions, limits: Sequence[int]
    ) -> Guide | None:
        vocabulary = self.config.vocabulary
        return guide_of(asked, options, limits=limits, vocabulary=vocabulary, device=self.device)

    def _choice(
        self, ids: Sequence[Ids], options: TranslationOptions, asked: Sequence[Asked]
    ) -> Choice | None:
        return choice_of(self.shortlist, ids, asked, self.device) if options.shortlist else None

    def _limits(self, ids: Sequence[Ids], options: TranslationOptions, asked: Sequence[Asked]) -> list[int]:
        lengths = [max(len(own), one.least_tokens) for own, one in zip(ids, asked, strict=True)]
        return [length + options.max_extra for length in lengths]
