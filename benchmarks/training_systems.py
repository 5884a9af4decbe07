"""Training steps of Transduce and of its peers on the same batches, for `training_speed.py`.

Each system is a function of a model shape, a precision and a vocabulary that gives a step: from one batch
(source, target_in, target_out, padded with 0) to nothing, one update of all parameters later.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import torch
from torch import Tensor, nn

from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer
from transduce.training.config import TrainingConfig
from transduce.training.optimizer import adam
from transduce.training.precision import precision_context
from transduce.training.step import Batch, update

Step = Callable[[Batch], None]
Maker = Callable[[ModelConfig, str], Step]
PAD, SMOOTHING, RATE = 0, 0.1, 1e-4


def transduce_step(config: ModelConfig, precision: str) -> Step:
    """Ours, as `transduce train` runs it."""
    model = Transformer(config).train()
    training = TrainingConfig()
    optimizer = adam(model, training)

    def step(batch: Batch) -> None:
        update(model, optimizer, [batch], training, rate=RATE, precision=precision)

    return step


class _Plain(nn.Module):
    """torch.nn.Transformer with tied embeddings and sinusoids, as its tutorial puts it together."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.scale = config.d_model**0.5
        self.embedding = nn.Embedding(config.vocabulary, config.d_model, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=config.d_model**-0.5)
        place = torch.arange(config.max_length).unsqueeze(1)
        angle = place / 10_000 ** (torch.arange(0, config.d_model, 2) / config.d_model)
        self.register_buffer("positions", torch.stack((angle.sin(), angle.cos()), -1).flatten(1))
        self.dropout = nn.Dropout(config.dropout)
        self.transformer = nn.Transformer(
            config.d_model,
            config.heads,
            config.encoder_layers,
            config.decoder_layers,
            config.d_ff,
            config.dropout,
            batch_first=True,
            norm_first=config.norm == "pre",
        )

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        features = self.transformer(
            self._embedded(source),
            self._embedded(target),
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(target.shape[1]),
            tgt_is_causal=True,
            src_key_padding_mask=source == PAD,
            memory_key_padding_mask=source == PAD,
        )
        logits: Tensor = features @ self.embedding.weight.t()
        return logits

    def _embedded(self, ids: Tensor) -> Tensor:
        x: Tensor = self.dropout(self.embedding(ids) * self.scale + self.positions[: ids.shape[1]])
        return x


def _looped(forward: Callable[[Batch], Tensor], model: nn.Module, precision: str) -> Step:
    """The loop that a user writes around a model: cross-entropy, backward, fused Adam."""
    loss = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=SMOOTHING)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE, betas=(0.9, 0.98), eps=1e-9, fused=True)
    model.train()

    def step(batch: Batch) -> None:
        with precision_context("cpu", precision):
            value = loss(forward(batch).flatten(0, 1), batch.target_out.flatten())
        value.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def torch_step(config: ModelConfig, precision: str) -> Step:
    """torch.nn.Transformer in a plain loop."""
    model = _Plain(config)
    return _looped(lambda batch: model(batch.source, batch.target_in), model, precision)


def marian_step(config: ModelConfig, precision: str) -> Step:
    """Hugging Face's MarianMTModel in a plain loop."""
    from transformers import MarianConfig, MarianMTModel

    model = MarianMTModel(
        MarianConfig(
            vocab_size=config.vocabulary,
            d_model=config.d_model,
            encoder_layers=config.encoder_layers,
            decoder_layers=config.decoder_layers,
            encoder_attention_heads=config.heads,
            decoder_attention_heads=config.heads,
            encoder_ffn_dim=config.d_ff,
            decoder_ffn_dim=config.d_ff,
            dropout=config.dropout,
            activation_function="relu",
            max_position_embeddings=config.max_length,
            scale_embedding=True,
            pad_token_id=PAD,
            decoder_start_token_id=PAD,
            eos_token_id=2,
            forced_eos_token_id=None,
            use_cache=False,
        )
    )

    def forward(batch: Batch) -> Tensor:
        logits: Tensor = model(
            input_ids=batch.source,
            attention_mask=(batch.source != PAD).long(),
            decoder_input_ids=batch.target_in,
        ).logits
        return logits

    return _looped(forward, model, precision)


SYSTEMS: dict[str, tuple[str, Maker, str]] = {
    "transduce": ("Transduce", transduce_step, "torch"),
    "torch": ("torch.nn.Transformer, plain loop", torch_step, "torch"),
    "marian": ("HF MarianMTModel, plain loop", marian_step, "transformers"),
}


def installed() -> list[str]:
    """The systems whose library can be imported here."""
    return [name for name, (_, _, library) in SYSTEMS.items() if importlib.util.find_spec(library)]
