"""A recurrent translator with attention, after Bahdanau et al. (2015) and Wu et al. (2016, GNMT).

The encoder's first layer reads in both directions, the others from left to right; the decoder's bottom layer
asks the attention (additive, Bahdanau's equation in A.1.2), whose answer goes into every layer above it, as
in GNMT, so that a known target is read by whole layers and not step by step.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from transduce.baselines.predecessor import Predecessor
from transduce.model import masks
from transduce.model.config import ModelConfig
from transduce.model.dropout import Dropout
from transduce.model.embeddings import Embeddings

Layer = tuple[Float[Tensor, "rows d"], Float[Tensor, "rows d"]]


@dataclass(frozen=True)
class RecurrentState:
    """What decoding remembers: the encoder's output per sentence, and each layer's (h, c) per hypothesis."""

    memory: Float[Tensor, "sentences source d"]
    keys: Float[Tensor, "sentences source d"]
    mask: Bool[Tensor, "sentences source"]
    layers: tuple[Layer, ...]
    length: int

    @property
    def sentences(self) -> int:
        """The number of sentences whose memory is held."""
        return len(self.memory)

    def rows(
        self, hypotheses: Int[Tensor, " rows"], sentences: Int[Tensor, " kept"] | None = None
    ) -> RecurrentState:
        """The state whose hypothesis i is hypothesis ``hypotheses[i]`` of this one."""
        held = (self.memory, self.keys, self.mask)
        if sentences is not None:
            held = (self.memory[sentences], self.keys[sentences], self.mask[sentences])
        layers = tuple((h[hypotheses], c[hypotheses]) for h, c in self.layers)
        return RecurrentState(*held, layers, self.length)


class RecurrentTranslator(Predecessor):
    """LSTMs of width d_model in place of the stacks, with the interface of a `Transformer`.

    Training, search and evaluation go by that interface, so they are the same for both. Of ``config`` the
    widths of heads and of the feed-forward layers, norms and positions play no part.
    """

    def __init__(self, config: ModelConfig) -> None:
        nn.Module.__init__(self)
        self.config = config
        d = config.d_model
        self.embeddings = Embeddings(config)
        self.drop = Dropout(config.dropout)
        self.forward_lstm = nn.LSTM(d, d, batch_first=True)
        self.backward_lstm = nn.LSTM(d, d, batch_first=True)
        self.join = nn.Linear(2 * d, d)
        self.upper_encoder = nn.ModuleList(
            nn.LSTM(d, d, batch_first=True) for _ in range(config.encoder_layers - 1)
        )
        self.bottom = nn.LSTM(d, d, batch_first=True)
        self.upper_decoder = nn.ModuleList(
            nn.LSTM(2 * d, d, batch_first=True) for _ in range(config.decoder_layers - 1)
        )
        self.query, self.key = nn.Linear(d, d, bias=False), nn.Linear(d, d)
        self.score = nn.Linear(d, 1, bias=False)
        self.out = nn.Linear(2 * d, d)
        self.initialise()

    def initialise(self) -> None:
        """Nothing; matrices uniform, variance 1 / fan_avg; embeddings N(0, 1 / d); forget gates open."""
        for name, parameter in self.named_parameters():
            if name.startswith("embeddings"):
                nn.init.normal_(parameter, std=self.config.d_model**-0.5)
            elif parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)
            else:
                nn.init.zeros_(parameter)
        for module in self.modules():
            if isinstance(module, nn.LSTM):
                # Gates are input, forget, cell, output; open forget gates keep gradients alive at first.
                bias = module.get_parameter("bias_ih_l0")
                nn.init.ones_(bias.detach()[module.hidden_size : 2 * module.hidden_size])

    def start(self, source: Int[Tensor, "batch source"]) -> RecurrentState:  # type: ignore[override]
        """The state before the first target token: the source read in both directions."""
        seen = masks.source_mask(source, self.config.pad_id)[:, 0, 0]
        x = self.drop(self.embeddings.embed_source(source))
        there = self.forward_lstm(x)[0]
        # Turned round within its own length, so that the way back begins at each sentence's end.
        turned = _turned(seen)
        back = self.backward_lstm(x.gather(1, _wide(turned, x)))[0]
        x = self.join(torch.cat([there, back.gather(1, _wide(turned, back))], 2))
        for layer in self.upper_encoder:
            x = x + layer(self.drop(x))[0]
        zeros = x.new_zeros(len(x), self.config.d_model)
        layers = ((zeros, zeros),) * self.config.decoder_layers
        return RecurrentState(x, self.key(x), seen, layers, 0)

    def features(  # type: ignore[override]
        self, target: Int[Tensor, "rows new"], state: RecurrentState
    ) -> tuple[Float[Tensor, "rows new d_model"], RecurrentState]:
        """What is multiplied by the output matrix, for each of the new tokens, and the state after them."""
        each = len(target) // state.sentences
        held = state.layers if len(state.layers[0][0]) == len(target) else _repeated(state.layers, each)
        x, kept = self._run(self.bottom, self.drop(self.embeddings.embed_target(target)), held[0])
        context = self._attend(x, state)
        layers = [kept]
        for layer, past in zip(self.upper_decoder, held[1:], strict=True):
            y, kept = self._run(layer, self.drop(torch.cat([x, context], 2)), past)
            x = x + y
            layers.append(kept)
        features = torch.tanh(self.out(self.drop(torch.cat([x, context], 2))))
        new = RecurrentState(
            state.memory, state.keys, state.mask, tuple(layers), state.length + target.shape[1]
        )
        return features, new

    @staticmethod
    def _run(layer: nn.Module, x: Tensor, past: Layer) -> tuple[Tensor, Layer]:
        y, (h, c) = layer(x, (past[0][None].contiguous(), past[1][None].contiguous()))
        return y, (h[0], c[0])

    def _attend(self, x: Float[Tensor, "rows new d"], state: RecurrentState) -> Float[Tensor, "rows new d"]:
        """The memory's weighted sum for each position; the hypotheses of a sentence share its memory."""
        queries = self.query(x).reshape(state.sentences, -1, 1, x.shape[2])
        scores = self.score(torch.tanh(queries + state.keys[:, None])).squeeze(3)
        weights = scores.masked_fill(~state.mask[:, None], torch.finfo(scores.dtype).min).softmax(2)
        gathered: Tensor = weights @ state.memory
        return gathered.view(x.shape)


def _repeated(layers: tuple[Layer, ...], each: int) -> tuple[Layer, ...]:
    """One state a sentence as ``each`` hypotheses of it."""
    return tuple((h.repeat_interleave(each, 0), c.repeat_interleave(each, 0)) for h, c in layers)


def _turned(seen: Bool[Tensor, "batch source"]) -> Int[Tensor, "batch source"]:
    """The places of each row's real tokens from last to first; padding stays where it is (at the end)."""
    lengths = seen.sum(1, keepdim=True)
    places = torch.arange(seen.shape[1], device=seen.device).expand_as(seen)
    return torch.where(places < lengths, lengths - 1 - places, places)


def _wide(places: Tensor, like: Tensor) -> Tensor:
    return places[:, :, None].expand(-1, -1, like.shape[2])
