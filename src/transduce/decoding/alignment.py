"""Which source words an output's words come from, read from the attention to the source (section 3.2.3).

The output is given to the decoder as if it were known, in one pass; the search has no part in it. The weight
of a source word for an output word is the attention from the steps that predict the output word's tokens
(their mean) to the source word's tokens (their sum), averaged over the heads of all layers or of one.
docs/translating.md has the measurements behind that choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from transduce.data.tokenizer import Tokenizer
from transduce.decoding.translation import Alternative, OutputPart, Translation
from transduce.decoding.words import words_by_character, words_of_tokens
from transduce.errors import UsageError
from transduce.model.attention_record import recorded_weights
from transduce.model.transformer import Transformer

Links = tuple[tuple[int, int], ...]
Weights = Float[Tensor, "output_words source_words"]
# Weights that lie no further apart count as equal, and the first word is taken.
TIE = 1e-6


@dataclass(frozen=True)
class Aligner:
    """What aligns outputs of ``model`` with their sources; ``layer`` counts from 1, 0 is the mean of all."""

    model: Transformer
    tokenizer: Tokenizer
    layer: int = 0
    batch_tokens: int = 8_192

    def __post_init__(self) -> None:
        layers = self.model.config.decoder_layers
        if not 0 <= self.layer <= layers:
            raise UsageError(
                f"alignment_layer is {self.layer}, but the decoder has the layers 1 to {layers}; "
                "0 is the mean of all"
            )

    def align(self, translations: Sequence[Translation]) -> list[Translation]:
        """The translations with the `mutual_links` of every output."""
        pairs = [(t.source, a) for t in translations for a in t.alternatives]
        links = iter([mutual_links(weights) for weights in self.weights(pairs)])
        return [
            replace(t, alternatives=tuple(replace(a, alignment=next(links)) for a in t.alternatives))
            for t in translations
        ]

    def weights(self, pairs: Sequence[tuple[str, Alternative]]) -> list[Weights]:
        """How much each output word looks at each source word, for sources and their outputs.

        Words are what ``str.split()`` makes of a text.
        """
        results = [_empty(source, output) for source, output in pairs]
        source_words = [words_by_character(source) for source, _ in pairs]
        output_words = [words_by_character(output.text) for _, output in pairs]
        jobs = [(line, part) for line, (_, output) in enumerate(pairs) for part in output.parts]
        jobs.sort(key=lambda job: -len(job[1].tokens) - len(job[1].source_ids))
        begin = 0
        while begin < len(jobs):
            longest = len(jobs[begin][1].tokens) + len(jobs[begin][1].source_ids)
            batch = jobs[begin : begin + max(1, self.batch_tokens // longest)]
            for (line, part), attention in zip(batch, self._attention([p for _, p in batch]), strict=True):
                outputs = self._membership(part.tokens, part.begin, output_words[line], len(results[line]))
                sources = self._membership(
                    part.source_ids, part.source_begin, source_words[line], results[line].shape[1]
                )
                results[line] += (outputs / outputs.sum(0).clamp(min=1)).T @ attention @ sources
            begin += len(batch)
        return results

    @torch.inference_mode()
    def _attention(self, parts: Sequence[OutputPart]) -> list[Float[Tensor, "tokens source"]]:
        """The attention from the step that predicts each output token to each source token, ends left out."""
        config, device = self.model.config, next(self.model.parameters()).device
        sources = [torch.tensor([*part.source_ids, config.eos_id]) for part in parts]
        targets = [torch.tensor([config.start_id, *part.tokens[:-1]]) for part in parts]
        source, target = (
            torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=config.pad_id).to(device)
            for rows in (sources, targets)
        )
        decoder: Iterable[Any] = self.model.decoder.layers
        layers = [layer.cross_attention for layer in decoder]
        chosen = layers if self.layer == 0 else [layers[self.layer - 1]]
        with recorded_weights(chosen) as recorded:
            self.model.features(target, self.model.start(source))
        mean = torch.stack([recorded[layer].float().mean(1) for layer in chosen]).mean(0).cpu()
        return [
            weights[: len(part.tokens), : len(part.source_ids)]
            for part, weights in zip(parts, mean, strict=True)
        ]

    def _membership(
        self, ids: Sequence[int], begin: int, words: Sequence[int], count: int
    ) -> Float[Tensor, "tokens words"]:
        """1 where a token has a part in a word of the text that it stands in from character ``begin`` on."""
        member = torch.zeros(len(ids), count)
        for token, some in enumerate(words_of_tokens(self.tokenizer, ids, begin, words)):
            member[token, list(some)] = 1.0
        return member


def guided_layer(asked: int, layers: int) -> int:
    """The decoder layer that alignments guide, from 1; 0 asks for the last but one, as Garg et al. (2019)."""
    return asked or max(1, layers - 1)


def trained_layer(training: Mapping[str, Any], layers: int) -> int:
    """The decoder layer that was trained to align, by a model's ``training``; 0 where none was."""
    recipe = training.get("recipe")
    if not isinstance(recipe, dict) or not recipe.get("data", {}).get("alignments"):
        return 0
    return guided_layer(int(recipe.get("training", {}).get("guided_layer", 0)), layers)


def mutual_links(weights: Weights) -> Links:
    """The pairs (source word, output word) of which each is the one that the other has most to do with."""
    if not weights.numel():
        return ()
    best_source = _first_best(weights)
    best_output = _first_best(weights.T)
    return tuple(
        sorted(
            (source, output)
            for output, source in enumerate(best_source)
            if best_output[source] == output and weights[output, source] > 0
        )
    )


def pharaoh(links: Links) -> str:
    """The links as ``0-0 1-2``: source word, output word, both counted from 0."""
    return " ".join(f"{source}-{output}" for source, output in links)


def _first_best(weights: Tensor) -> list[int]:
    """For each row the first column whose weight ties with the highest."""
    best: list[int] = (weights >= weights.amax(1, keepdim=True) - TIE).int().argmax(1).tolist()
    return best


def _empty(source: str, output: Alternative) -> Weights:
    return torch.zeros(len(output.text.split()), len(source.split()))
