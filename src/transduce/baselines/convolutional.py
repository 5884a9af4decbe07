"""A convolutional translator, after Gehring et al. (2017, Convolutional Sequence to Sequence Learning).

Blocks of one convolution of kernel 3 with gated linear units and a residual connection; learned positions;
every decoder layer attends to the encoder's output plus its input, as in their section 3.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from transduce.baselines.predecessor import Predecessor
from transduce.model import masks
from transduce.model.config import OUTPUT_RESERVE, ModelConfig
from transduce.model.dropout import Dropout
from transduce.model.embeddings import Embeddings

KERNEL = 3
_HALF = math.sqrt(0.5)


@dataclass(frozen=True)
class ConvolutionalState:
    """What decoding remembers: the encoder's outputs, and each layer's last inputs per hypothesis."""

    keys: Float[Tensor, "sentences source d"]
    values: Float[Tensor, "sentences source d"]
    mask: Bool[Tensor, "sentences source"]
    layers: tuple[Float[Tensor, "rows past d"], ...]
    length: int

    @property
    def sentences(self) -> int:
        """The number of sentences whose memory is held."""
        return len(self.keys)

    def rows(
        self, hypotheses: Int[Tensor, " rows"], sentences: Int[Tensor, " kept"] | None = None
    ) -> ConvolutionalState:
        """The state whose hypothesis i is hypothesis ``hypotheses[i]`` of this one."""
        held = (self.keys, self.values, self.mask)
        if sentences is not None:
            held = (self.keys[sentences], self.values[sentences], self.mask[sentences])
        return ConvolutionalState(*held, tuple(x[hypotheses] for x in self.layers), self.length)


class _Block(nn.Module):
    """A convolution to twice the width, and a gated linear unit."""

    def __init__(self, config: ModelConfig, padding: int) -> None:
        super().__init__()
        self.drop = Dropout(config.dropout)
        self.convolution = nn.Conv1d(config.d_model, 2 * config.d_model, KERNEL, padding=padding)

    def forward(self, x: Float[Tensor, "batch length d"]) -> Float[Tensor, "batch out d"]:
        """The gated output at each position."""
        return nn.functional.glu(self.convolution(self.drop(x).transpose(1, 2)).transpose(1, 2), 2)


class ConvolutionalTranslator(Predecessor):
    """Gated convolutions in place of the stacks, with the interface of a `Transformer`."""

    def __init__(self, config: ModelConfig) -> None:
        nn.Module.__init__(self)
        self.config = config
        d, positions = config.d_model, config.max_length + OUTPUT_RESERVE
        self.embeddings = Embeddings(config)
        self.source_place = nn.Parameter(torch.empty(positions, d))
        self.target_place = nn.Parameter(torch.empty(positions, d))
        self.drop = Dropout(config.dropout)
        self.encoder_blocks = nn.ModuleList(_Block(config, KERNEL // 2) for _ in range(config.encoder_layers))
        self.decoder_blocks = nn.ModuleList(_Block(config, 0) for _ in range(config.decoder_layers))
        self.queries = nn.ModuleList(nn.Linear(d, d) for _ in range(config.decoder_layers))
        self.answers = nn.ModuleList(nn.Linear(d, d) for _ in range(config.decoder_layers))
        self.initialise()

    def initialise(self) -> None:
        """Nothing; N(0, 4 (1 - dropout) / inputs) before gated units, N(0, (1 - dropout) / inputs) elsewhere.

        Gehring et al., section 3.5; embeddings and positions N(0, 1 / d_model), biases 0.
        """
        keep = 1.0 - min(self.config.dropout, 0.9)
        for name, parameter in self.named_parameters():
            if name.startswith("embeddings") or name.endswith("_place"):
                nn.init.normal_(parameter, std=self.config.d_model**-0.5)
            elif parameter.dim() == 1:
                nn.init.zeros_(parameter)
            else:
                inputs = parameter[0].numel()
                gain = 4.0 if "convolution" in name else 1.0
                nn.init.normal_(parameter, std=math.sqrt(gain * keep / inputs))

    def start(self, source: Int[Tensor, "batch source"]) -> ConvolutionalState:  # type: ignore[override]
        """The state before the first target token."""
        seen = masks.source_mask(source, self.config.pad_id)[:, 0, 0]
        hidden = ~seen[:, :, None]
        embedded = self.embeddings.embed_source(source) + self.source_place[: source.shape[1]]
        x = embedded = self.drop(embedded).masked_fill(hidden, 0.0)
        for block in self.encoder_blocks:
            x = ((x + block(x)) * _HALF).masked_fill(hidden, 0.0)
        past = x.new_zeros(len(x), KERNEL - 1, self.config.d_model)
        layers = (past,) * self.config.decoder_layers
        return ConvolutionalState(x, (x + embedded) * _HALF, seen, layers, 0)

    def features(  # type: ignore[override]
        self, target: Int[Tensor, "rows new"], state: ConvolutionalState
    ) -> tuple[Float[Tensor, "rows new d_model"], ConvolutionalState]:
        """What is multiplied by the output matrix, for each of the new tokens, and the state after them."""
        new = target.shape[1]
        each = len(target) // state.sentences
        embedded = self.embeddings.embed_target(target) + self.target_place[state.length : state.length + new]
        x = embedded = self.drop(embedded)
        kept = []
        for block, query, answer, past in zip(
            self.decoder_blocks, self.queries, self.answers, state.layers, strict=True
        ):
            past = past if len(past) == len(target) else past.repeat_interleave(each, 0)
            seen = torch.cat([past, x], 1)
            kept.append(seen[:, -(KERNEL - 1) :])
            y = block(seen)
            asked = (query(y) + embedded) * _HALF
            y = (y + answer(self._attend(asked, state))) * _HALF
            x = (x + y) * _HALF
        held = ConvolutionalState(state.keys, state.values, state.mask, tuple(kept), state.length + new)
        return x, held

    def _attend(
        self, asked: Float[Tensor, "rows new d"], state: ConvolutionalState
    ) -> Float[Tensor, "rows new d"]:
        """The memory's weighted sum for each position; the hypotheses of a sentence share its memory."""
        queries = asked.reshape(state.sentences, -1, asked.shape[2])
        scores = queries @ state.keys.transpose(1, 2)
        weights = scores.masked_fill(~state.mask[:, None], torch.finfo(scores.dtype).min).softmax(2)
        return (weights @ state.values).view(asked.shape)
