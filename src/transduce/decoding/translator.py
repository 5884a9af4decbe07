"""Text in, text out: lines are tokenised, searched in batches of similar length, and put back in order."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from transduce import machine
from transduce.bundle import Bundle, load_bundle
from transduce.decoding.beam_search import beam_search
from transduce.decoding.config import TranslationOptions
from transduce.decoding.hypothesis import Hypothesis
from transduce.decoding.sources import read_sources
from transduce.decoding.translation import Translation, assemble, unusual
from transduce.errors import UsageError
from transduce.model.cache import DecoderState

Progress = Callable[[int, int], None]
# Sentences x beam x tokens of the longest, when nothing is said: where a step no longer gains from more rows.
BATCH_TOKENS = {"cpu": 8_192, "cuda": 131_072, "mps": 32_768}


class Translator:
    """A model and its tokenizer, ready to translate lines of text.

    Lines are stripped of white space at both ends; empty ones stay empty without asking the model. The
    same line gives the same output whatever stands beside it.
    """

    def __init__(self, bundle: Bundle, *, device: str = "cpu", precision: str = "fp32") -> None:
        self.bundle, self.device, self.precision = bundle, device, precision
        self._model = bundle.model.to(device)

    @classmethod
    def load(
        cls, folder: str | Path, *, device: str = "auto", precision: str = "auto", threads: int = 0
    ) -> Translator:
        """The translator in a model folder.

        ``device`` is auto, cpu, cuda, cuda:N or mps; ``precision`` is auto, fp32 or bf16; ``threads`` bounds
        the CPU threads of the whole process (0: torch's choice), which never exceed the usable cores.
        """
        device = machine.pick_device(device)
        precision = machine.pick_precision(precision, device)
        machine.set_threads(threads)
        return cls(load_bundle(folder, device), device=device, precision=precision)

    def translate(
        self, texts: Sequence[str], *, progress: Progress | None = None, **options: Any
    ) -> list[str]:
        """The translation of each text, in their order; `TranslationOptions` lists the options.

        ``progress`` is called with the numbers of finished and of all texts. What is worth telling of a line,
        such as that it was split, is a Python warning that names the line.
        """
        if TranslationOptions.from_mapping(options).n_best != 1:
            raise UsageError("translate gives one text a line; translate_detailed gives n_best of them")
        translations = self.translate_detailed(texts, progress=progress, **options)
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
        **options: Any,
    ) -> list[Translation]:
        """The same with all ``n_best`` outputs, scores, and warnings; lines are numbered from ``first_line``.

        Raises DataError for a line that is too long if ``long_lines="error"``.
        """
        if isinstance(texts, str):
            raise UsageError("translate takes a list of lines and got one string; write translate([text])")
        for number, text in enumerate(texts, first_line):
            if not isinstance(text, str):
                raise UsageError(
                    f"line {number} is {text!r}, not a string; translate takes a list of strings"
                )
        chosen = TranslationOptions.from_mapping(options)
        sources = read_sources(
            texts,
            self.bundle.tokenizer,
            max_length=self._model.config.max_length,
            long_lines=chosen.long_lines,
            first_line=first_line,
        )
        found: list[list[list[Hypothesis]]] = [[[] for _ in source.ids] for source in sources]
        places = [(line, part) for line, source in enumerate(sources) for part in range(len(source.ids))]
        lengths = [len(sources[line].ids[part]) for line, part in places]
        missing = [len(source.ids) for source in sources]
        done = missing.count(0)
        with self._ready():
            for batch in batches(lengths, chosen.batch_tokens or self._budget(), chosen.beam):
                ids = [sources[places[i][0]].ids[places[i][1]] for i in batch]
                for i, hypotheses in zip(batch, self.search(ids, chosen), strict=True):
                    line, part = places[i]
                    found[line][part] = hypotheses
                    missing[line] -= 1
                    done += missing[line] == 0
                if progress is not None:
                    progress(done, len(sources))
        return [
            self._finished(assemble(source, outputs, self.bundle.tokenizer, alpha=chosen.alpha), line, chosen)
            for line, (source, outputs) in enumerate(zip(sources, found, strict=True), first_line)
        ]

    def search(self, ids: Sequence[Sequence[int]], options: TranslationOptions) -> list[list[Hypothesis]]:
        """The best outputs of each source (ids without the end), searched as one batch."""
        config = self._model.config
        rows = [torch.tensor([*source, config.eos_id]) for source in ids]
        source = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=config.pad_id)
        limits = torch.tensor([len(source) + options.max_extra for source in ids], device=self.device)
        kind = torch.device(self.device).type
        with torch.inference_mode(), torch.autocast(kind, torch.bfloat16, enabled=self.precision == "bf16"):
            return beam_search(
                self._step,
                self._model.start(source.to(self.device)),
                max_lengths=limits,
                options=options.search,
                start_id=config.start_id,
                eos_id=config.eos_id,
                forbidden=sorted({config.pad_id, config.bos_id, config.unk_id}),
            )

    def _step(
        self, tokens: Int[Tensor, " rows"], state: DecoderState
    ) -> tuple[Float[Tensor, "rows vocabulary"], DecoderState]:
        logits, state = self._model.decode(tokens[:, None], state)
        return logits[:, 0], state

    def _budget(self) -> int:
        return BATCH_TOKENS[torch.device(self.device).type]

    @contextmanager
    def _ready(self) -> Iterator[None]:
        """The model in evaluation mode meanwhile, and as it was afterwards: it may be in training."""
        training = self._model.training
        self._model.eval()
        try:
            yield
        finally:
            self._model.train(training)

    def _finished(self, translation: Translation, line: int, options: TranslationOptions) -> Translation:
        if not options.flag_unusual:
            return translation
        odd = tuple(f"line {line}: {reason}" for reason in unusual(translation.source, translation.text))
        return replace(translation, warnings=translation.warnings + odd)


def batches(lengths: Sequence[int], batch_tokens: int, beam: int) -> Iterator[list[int]]:
    """The indices of ``lengths`` in batches, longest first, each at most ``batch_tokens`` or one sentence.

    A batch counts sentences x ``beam`` x its longest, the end included. Equal lengths keep their order.
    """
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    begin = 0
    while begin < len(order):
        count = max(1, batch_tokens // ((lengths[order[begin]] + 1) * beam))
        yield order[begin : begin + count]
        begin += count
