"""Transduce and its peers in training on the same batches, for `training_speed.py`.

Each system is a function of a model's shape and a precision that gives a `Training`: its step takes a batch
(source, target_in, target_out, padded with 0) to the loss, one update of all parameters later.
"""

from __future__ import annotations

import importlib.util

import torch
from torch import Tensor, nn

from training_loop import RATE, SMOOTHING, Maker, Training, looped
from training_opennmt import eole_training, opennmt_training
from training_peers import joeynmt_training, sockeye_training
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer
from transduce.training.config import TrainingConfig
from transduce.training.optimizer import adam
from transduce.training.step import Batch, update

PAD = 0


def transduce_training(config: ModelConfig, precision: str) -> Training:
    """Ours, as `transduce train` runs it."""
    model = Transformer(config).train()
    training = TrainingConfig(label_smoothing=SMOOTHING)
    optimizer = adam(model, training)

    def step(batch: Batch) -> Tensor:
        updated = update(model, optimizer, [batch], training, rate=RATE, precision=precision)
        return torch.tensor(updated.smoothed / updated.target_tokens)

    return Training(sum(p.numel() for p in model.parameters()), step)


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


def _cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """PyTorch's own, averaged over the real tokens."""
    return nn.functional.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=PAD, label_smoothing=SMOOTHING
    )


def torch_training(config: ModelConfig, precision: str) -> Training:
    """torch.nn.Transformer in a plain loop."""
    model = _Plain(config)
    return looped(
        model,
        lambda batch: _cross_entropy(model(batch.source, batch.target_in), batch.target_out),
        precision,
    )


def huggingface_training(config: ModelConfig, precision: str) -> Training:
    """Hugging Face's MarianMTModel in a plain loop; its norms stand after the sub-layers at any setting."""
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

    def loss(batch: Batch) -> Tensor:
        logits: Tensor = model(
            input_ids=batch.source,
            attention_mask=(batch.source != PAD).long(),
            decoder_input_ids=batch.target_in,
        ).logits
        return _cross_entropy(logits, batch.target_out)

    return looped(model, loss, precision)


# What the tables call it, how it is made, the package that must be there.
# Marian is missing: pymarian's Trainer has one method, `train()`, which reads files and batches them itself.
SYSTEMS: dict[str, tuple[str, Maker, str]] = {
    "transduce": ("Transduce", transduce_training, "torch"),
    "torch": ("torch.nn.Transformer, plain loop", torch_training, "torch"),
    "marian": ("HF MarianMTModel, plain loop", huggingface_training, "transformers"),
    "joeynmt": ("JoeyNMT, plain loop", joeynmt_training, "joeynmt"),
    "sockeye": ("Sockeye, plain loop", sockeye_training, "sockeye"),
    "opennmt": ("OpenNMT-py, plain loop", opennmt_training, "onmt"),
    "eole": ("eole, plain loop", eole_training, "eole"),
}


def installed() -> list[str]:
    """The systems whose library can be imported here."""
    return [name for name, (_, _, library) in SYSTEMS.items() if importlib.util.find_spec(library)]
