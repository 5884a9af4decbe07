"""JoeyNMT and Sockeye in training, each with its own model, its own batch and its own loss.

JoeyNMT knows one dropout for all places, attention included, and counts the right guesses of every batch.
Sockeye has a bias before the softmax and runs its model traced, as its trainer does.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from training_loop import SMOOTHING, Training, looped, opened
from transduce.model.config import ModelConfig
from transduce.training.step import Batch


def joeynmt_training(config: ModelConfig, precision: str) -> Training:
    """JoeyNMT's Transformer, tied throughout, on batches of its own class."""
    from joeynmt.batch import Batch as JoeyBatch
    from joeynmt.model import build_model
    from joeynmt.vocabulary import Vocabulary

    special = {f"{name}_token": f"<{name}>" for name in ("unk", "pad", "bos", "eos")}
    numbers = {"unk_id": 0, "pad_id": 1, "bos_id": 2, "eos_id": 3, "sep_token": None, "lang_tags": []}
    pieces = [f"{number}" for number in range(4, config.vocabulary)]
    vocabulary = Vocabulary(pieces, SimpleNamespace(**special, **numbers))
    for name in ("unk", "pad", "bos", "eos"):  # the batches have our ids
        setattr(vocabulary, f"{name}_index", getattr(config, f"{name}_id"))
    sides = {
        side: {
            "type": "transformer",
            "num_layers": layers,
            "num_heads": config.heads,
            "hidden_size": config.d_model,
            "ff_size": config.d_ff,
            "dropout": config.dropout,
            "layer_norm": config.norm,
            "embeddings": {"embedding_dim": config.d_model, "scale": True},
        }
        for side, layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers))
    }
    tied = {"tied_embeddings": True, "tied_softmax": True}
    model = build_model({**sides, **tied, "initializer": "xavier_uniform"}, vocabulary, vocabulary)
    model.loss_function = ("crossentropy", SMOOTHING)

    def loss(batch: Batch) -> Tensor:
        begin = torch.full_like(batch.target_out[:, :1], config.bos_id)
        theirs = JoeyBatch(
            src=batch.source,
            src_length=(batch.source != config.pad_id).sum(1),
            src_prompt_mask=None,
            trg=torch.cat((begin, batch.target_out), 1),
            trg_prompt_mask=None,
            indices=torch.arange(len(batch.source)),
            device=batch.source.device,
            pad_index=config.pad_id,
            eos_index=config.eos_id,
        )
        theirs.sort_by_src_length()
        total, *_ = model(return_type="loss", **vars(theirs))
        value: Tensor = theirs.normalize(total, "tokens")
        return value

    return looped(model, loss, precision)


def sockeye_training(config: ModelConfig, precision: str) -> Training:
    """Sockeye's Transformer, tied throughout; its default cross-entropy."""
    from sockeye import constants
    from sockeye.loss import CrossEntropyLoss
    from sockeye.model import SockeyeModel, initialize_parameters
    from sockeye.training import ModelWithLoss

    model = SockeyeModel(_sockeye_config(config))
    model.apply(initialize_parameters)
    losses = [CrossEntropyLoss(label_smoothing=SMOOTHING, ignore_label=config.pad_id)]
    whole: list[ModelWithLoss] = []

    def context() -> AbstractContextManager[Any]:
        # A cache of cast weights cannot be traced, says its trainer.
        if precision == "bf16":
            return torch.autocast("cpu", torch.bfloat16, cache_enabled=False)
        return nullcontext()

    def loss(batch: Batch) -> Tensor:
        lengths = [(side != config.pad_id).sum(1) for side in (batch.source, batch.target_out)]
        source_length = torch.stack((lengths[0], torch.zeros_like(lengths[0])), 1)
        sides = batch.source[..., None], source_length, opened(batch, config)[..., None], lengths[1]
        if not whole:
            whole.append(ModelWithLoss(torch.jit.trace(model, sides, strict=False), losses))
        value: Tensor = whole[0](*sides, {constants.TARGET_LABEL_NAME: batch.target_out})[0]
        return value

    return looped(model, loss, precision, context)


def _sockeye_config(config: ModelConfig) -> Any:
    from sockeye.data_io import DataConfig
    from sockeye.encoder import EmbeddingConfig
    from sockeye.model import ModelConfig as SockeyeConfig
    from sockeye.transformer import TransformerConfig

    embedding = EmbeddingConfig(vocab_size=config.vocabulary, num_embed=config.d_model, dropout=0.0)
    encoder, decoder = (
        TransformerConfig(
            model_size=config.d_model,
            attention_heads=config.heads,
            feed_forward_num_hidden=config.d_ff,
            act_type="relu",
            num_layers=layers,
            dropout_attention=config.attention_dropout,
            dropout_act=config.relu_dropout,
            dropout_prepost=config.dropout,
            positional_embedding_type="fixed",
            preprocess_sequence="n" if config.norm == "pre" else "",
            postprocess_sequence="dr" if config.norm == "pre" else "drn",
            max_seq_len_source=config.max_length,
            max_seq_len_target=config.max_length,
            depth_key_value=config.d_model,
        )
        for layers in (config.encoder_layers, config.decoder_layers)
    )
    return SockeyeConfig(
        config_data=DataConfig(
            data_statistics=None,
            max_seq_len_source=config.max_length,
            max_seq_len_target=config.max_length,
            num_source_factors=1,
            num_target_factors=1,
        ),
        vocab_source_size=config.vocabulary,
        vocab_target_size=config.vocabulary,
        config_embed_source=embedding,
        config_embed_target=embedding,
        config_encoder=encoder,
        config_decoder=decoder,
        weight_tying_type="src_trg_softmax",
    )
