"""The tokens that the sentences of a batch choose from, where that is not the whole vocabulary.

The output layer is computed for what any of the sentences may hold; each sentence then looks at its own part
of it only, so that its probabilities are the same in every batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import linear

from transduce.data.tokenizer import PAD_ID
from transduce.decoding.asked import Asked
from transduce.decoding.candidates import Scored
from transduce.decoding.shortlist import Shortlist
from transduce.model.cache import DecoderState
from transduce.model.transformer import Transformer


@dataclass(frozen=True)
class Choice:
    """``union`` holds the tokens of all sentences, ``tokens`` each one's own, both ascending.

    ``columns`` says where a sentence's own stand in the union; ``hidden`` is minus infinity where a row has
    been filled up to the length of the longest, and 0 elsewhere.
    """

    union: Int[Tensor, " union"]
    tokens: Int[Tensor, "sentences wide"]
    columns: Int[Tensor, "sentences wide"]
    hidden: Float[Tensor, "sentences wide"]

    @classmethod
    def of(cls, allowed: npt.NDArray[np.bool_], device: str | torch.device = "cpu") -> Choice:
        """The choice of sentences from ``allowed`` [sentences, vocabulary], which says what each may hold."""
        counts = allowed.sum(1)
        assert counts.all(), "every sentence needs a token to choose"
        real = np.arange(counts.max()) < counts[:, None]
        tokens = np.full(real.shape, PAD_ID, np.int64)
        tokens[real] = np.nonzero(allowed)[1]
        anywhere = allowed.any(0)
        columns = np.where(real, (np.cumsum(anywhere) - 1)[tokens], 0)
        hidden = np.where(real, 0.0, -np.inf).astype(np.float32)
        parts = (np.flatnonzero(anywhere), tokens, columns, hidden)
        return cls(*(torch.from_numpy(part).to(device) for part in parts))

    def kept(self, sentences: Int[Tensor, " kept"]) -> Choice:
        """The choice of the ``sentences`` that stay; the union stays as it is."""
        parts = (part.index_select(0, sentences) for part in (self.tokens, self.columns, self.hidden))
        return Choice(self.union, *parts)

    def own(self, logits: Float[Tensor, "rows union"]) -> Float[Tensor, "rows wide"]:
        """Of logits over the union each row's own, the rows of a sentence next to each other."""
        sentences, wide = self.columns.shape
        grouped = logits.view(sentences, -1, logits.shape[1])
        index = self.columns[:, None].expand(-1, grouped.shape[1], -1)
        return (grouped.gather(2, index) + self.hidden[:, None]).view(-1, wide)


def choice_of(
    shortlist: Shortlist, sources: Sequence[Sequence[int]], asked: Sequence[Asked], device: str | torch.device
) -> Choice:
    """What the outputs of these sources may hold.

    Of what is asked anything of, a prefix or terms, they may hold everything: it is fulfilled in any case.
    """
    every = shortlist.every
    rows = [
        shortlist.tokens(source) if one == Asked() else every
        for source, one in zip(sources, asked, strict=True)
    ]
    return Choice.of(np.stack(rows), device)


@dataclass(frozen=True)
class ChoosingState:
    """The model's state, what its sentences choose from, and the rows of the output matrix for the union."""

    model: DecoderState
    choice: Choice
    matrix: Float[Tensor, "union width"]

    @classmethod
    def start(cls, model: Transformer, state: DecoderState, choice: Choice) -> ChoosingState:
        """The state before the first target token."""
        return cls(state, choice, model.embeddings.output_with_bias[choice.union])

    def rows(
        self, hypotheses: Int[Tensor, " rows"], sentences: Int[Tensor, " kept"] | None = None
    ) -> ChoosingState:
        """The state whose hypothesis i is this one's ``hypotheses[i]``, for the ``sentences`` that stay."""
        choice = self.choice if sentences is None else self.choice.kept(sentences)
        return replace(self, model=self.model.rows(hypotheses, sentences), choice=choice)

    def step(self, model: Transformer, tokens: Int[Tensor, " rows"]) -> tuple[Scored, ChoosingState]:
        """What may follow each of ``tokens``, and the state after them."""
        features, state = model.features(tokens[:, None], self.model)
        widened, _ = model.embeddings.factors(features[:, 0])
        logits = self.choice.own(linear(widened, self.matrix).float())
        log_sum = logits.logsumexp(1, keepdim=True)
        scored = Scored(logits, log_sum, model.config.vocabulary, self.choice.tokens)
        return scored, replace(self, model=state)
