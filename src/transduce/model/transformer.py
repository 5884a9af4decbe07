"""Figure 1: the Transformer. `encode`, `start`, `decode`, and `forward` for teacher forcing."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from transduce.model import masks
from transduce.model.cache import DecoderState
from transduce.model.config import ModelConfig
from transduce.model.dropout import Dropout
from transduce.model.embeddings import Embeddings
from transduce.model.positional_encoding import PositionalEncoding
from transduce.model.stacks import Decoder, Encoder


@dataclass(frozen=True)
class Memory:
    """The encoder's output, and which of its positions are real (None: all)."""

    output: Float[Tensor, "batch source d_model"]
    mask: Bool[Tensor, "batch 1 1 source"] | None


class Transformer(nn.Module):
    """The model of section 3: source ids and shifted target ids in, logits out.

    ``source`` is padded with ``pad_id`` (at the end, though either side gives the same) and each sentence
    ends in ``eos_id``. The model owns no loss, vocabulary, device or precision policy.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        if not isinstance(config, ModelConfig):
            raise TypeError(f"a Transformer is made of a ModelConfig, not {config!r}; see ModelConfig.named")
        self.config = config
        self.embeddings = Embeddings(config)
        self.source_positions = PositionalEncoding(config)
        self.target_positions = PositionalEncoding(config)
        self.source_dropout, self.target_dropout = Dropout(config.dropout), Dropout(config.dropout)
        self.encoder, self.decoder = Encoder(config), Decoder(config)
        self.initialise()

    def encode(self, source: Int[Tensor, "batch source"]) -> Memory:
        """What the encoder says of each source position."""
        mask = self._source_mask(source)
        real = None if mask is None else mask[:, 0, 0]
        x = self.source_dropout(self.source_positions(self.embeddings.embed_source(source), real=real))
        seen = mask
        if self.config.neighbourhood:
            near = masks.neighbourhood_mask(source.shape[1], 0, self.config.neighbourhood, source.device)
            seen = near if mask is None else near & mask
        return Memory(self.encoder(x, seen), mask)

    def start(self, source: Int[Tensor, "batch source"]) -> DecoderState:
        """The state before the first target token: the source encoded, and projected once for every layer."""
        memory = self.encode(source)
        return DecoderState(self.decoder.project_memory(memory.output), memory.mask, (), 0)

    def decode(
        self, target: Int[Tensor, "rows new"], state: DecoderState
    ) -> tuple[Float[Tensor, "rows new vocabulary"], DecoderState]:
        """Logits for the token after each of ``target``, and the state after them.

        ``target`` continues what ``state`` has seen; the first call's first token is ``config.start_id``.
        Teacher forcing is decoding many positions at once.
        """
        features, state = self.features(target, state)
        return self.embeddings.logits(features), state

    def features(
        self, target: Int[Tensor, "rows new"], state: DecoderState
    ) -> tuple[Float[Tensor, "rows new d_model"], DecoderState]:
        """What `decode` multiplies by the output matrix; the loss takes this to avoid holding all logits."""
        new, offset = target.shape[1], state.length
        assert target.shape[0] % state.sentences == 0, (
            f"{target.shape[0]} hypotheses cannot be shared out evenly among {state.sentences} sentences"
        )
        # A lone newest token may see all before it, so it needs no mask.
        mask = None if new == 1 else masks.causal_mask(new, offset, target.device)
        if self.config.neighbourhood:
            near = masks.neighbourhood_mask(new, offset, self.config.neighbourhood, target.device)
            mask = near if mask is None else near & mask
        x = self.target_dropout(self.target_positions(self.embeddings.embed_target(target), offset))
        pasts = state.self_attention or (None,) * self.config.decoder_layers
        x, kept = self.decoder(x, pasts, state.memory, mask, state.memory_mask)
        return x, DecoderState(state.memory, state.memory_mask, kept, offset + new)

    def forward(
        self, source: Int[Tensor, "batch source"], target_in: Int[Tensor, "batch target"]
    ) -> Float[Tensor, "batch target vocabulary"]:
        """Logits for every target position at once; ``target_in`` is the target shifted right by one.

        Raises ValueError where source and target have different numbers of rows.
        """
        if len(source) != len(target_in):
            raise ValueError(f"{len(source)} source rows but {len(target_in)} target rows: they are pairs")
        return self.decode(target_in, self.start(source))[0]

    def _source_mask(self, source: Tensor) -> Tensor | None:
        mask = masks.source_mask(source, self.config.pad_id)
        # To ask whether there is anything to hide costs nothing on a CPU, but would make a GPU wait.
        return None if source.device.type == "cpu" and bool(mask.all()) else mask

    def initialise(self) -> None:
        """Nothing; draws all parameters anew from torch's default generator.

        Matrices are uniform with variance 1 / fan_avg (``uniform_unit_scaling`` of 2017's code), embeddings
        N(0, 1 / d_model), biases 0, gains 1. With ``initialisation = "fused-2017"`` fan_avg is that of the
        fused Q, K, V matrix, as it was then; with ``"separate"`` each part counts as a matrix of its own.
        """
        if self.embeddings.target.is_meta:
            return  # nothing is stored: torch would load its compiler, for seconds, to draw nothing
        wide_k, wide_v = self.config.heads * self.config.d_k, self.config.heads * self.config.d_v
        fused = {"qkv": (wide_k, wide_k, wide_v), "kv": (wide_k, wide_v)}
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear):
                parts: tuple[int, ...] = (module.out_features,)
                if self.config.initialisation == "separate":
                    parts = fused.get(name.rpartition(".")[2], parts)
                for part in torch.split(module.weight.detach(), list(parts)):
                    limit = math.sqrt(3 * 2 / (module.in_features + part.shape[0]))
                    nn.init.uniform_(part, -limit, limit)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, nn.LayerNorm):
                module.reset_parameters()
            elif isinstance(module, Embeddings | PositionalEncoding):
                for table in module.parameters(recurse=False):
                    # The output's bias is no table: its deviation is 0.
                    nn.init.normal_(table, std=(table.ndim > 1) * self.config.d_model**-0.5)

    def recompute(self, wanted: bool = True) -> None:
        """Nothing; from now on the layers keep only their inputs for the backward pass, or all again."""
        self.encoder.recompute = self.decoder.recompute = wanted

    def parameter_count(self) -> int:
        """The number of trained values; tied matrices count once."""
        return sum(parameter.numel() for parameter in self.parameters())
