"""OpenNMT-py and its successor eole in training, each with its own options, model and loss.

Both norm before the sub-layers only and have a bias before the softmax. Their statistics of every batch are
taken, as their trainers take them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from training_loop import SMOOTHING, Training, looped
from transduce.model.config import ModelConfig
from transduce.training.step import Batch


def opennmt_training(config: ModelConfig, precision: str) -> Training:
    """OpenNMT-py's Transformer with shared embeddings, built from its command line's options."""
    from onmt.model_builder import build_model
    from onmt.opts import train_opts
    from onmt.utils.loss import LossCompute
    from onmt.utils.parse import ArgumentParser

    settings = {
        "data": "{}",
        "src_vocab": "",
        "encoder_type": "transformer",
        "decoder_type": "transformer",
        "enc_layers": config.encoder_layers,
        "dec_layers": config.decoder_layers,
        "hidden_size": config.d_model,
        "word_vec_size": config.d_model,
        "heads": config.heads,
        "transformer_ff": config.d_ff,
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "label_smoothing": SMOOTHING,
        "param_init": 0,
        "optim": "adam",
    }
    switches = ["position_encoding", "share_vocab", "share_embeddings", "share_decoder_embeddings"]
    switches += ["param_init_glorot", "add_ffnbias"] + ["add_qkvbias"] * config.attention_bias
    parser = ArgumentParser()
    train_opts(parser)
    words = [f"--{name}={value}" for name, value in settings.items()] + [f"--{name}" for name in switches]
    options, _ = parser.parse_known_args(words)
    options.data = {}
    ArgumentParser.update_model_opts(options)
    vocabulary = _vocabulary(config)
    model = build_model(options, options, {"src": vocabulary, "tgt": vocabulary}, None, -1)
    compute = LossCompute.from_opts(options, model, vocabulary)

    def loss(batch: Batch) -> Tensor:
        theirs = {name: ids[..., None] for name, ids in _sides(batch, config).items()}
        theirs["srclen"] = (batch.source != config.pad_id).sum(1)
        theirs["src"] = theirs["src"][:, : int(theirs["srclen"].max())]  # its mask is as wide as the longest
        outputs, attentions = model(theirs["src"], theirs["tgt"], theirs["srclen"], with_align=False)
        total, statistics = compute({**theirs, **_names(batch)}, outputs, attentions)
        value: Tensor = total / statistics.n_words
        return value

    return looped(model, loss, precision)


def eole_training(config: ModelConfig, precision: str) -> Training:
    """eole's Transformer with shared embeddings, built from the configuration that its command reads."""
    from eole.config.run import TrainConfig
    from eole.models.model import get_model_class
    from eole.utils.loss import LossCompute

    running = TrainConfig(
        src_vocab="",
        tgt_vocab="",
        data={},
        share_vocab=True,
        model={
            "architecture": "transformer",
            "hidden_size": config.d_model,
            "heads": config.heads,
            "transformer_ff": config.d_ff,
            "add_ffnbias": True,
            "add_qkvbias": config.attention_bias,
            "share_embeddings": True,
            "share_decoder_embeddings": True,
            "encoder": {"layers": config.encoder_layers},
            "decoder": {"layers": config.decoder_layers},
            "embeddings": {
                "word_vec_size": config.d_model,
                "position_encoding": True,
                "position_encoding_type": "SinusoidalInterleaved",
            },
        },
        training={
            "dropout": [config.dropout],
            "attention_dropout": [config.attention_dropout],
            "label_smoothing": SMOOTHING,
            "param_init_method": "xavier_uniform",
        },
    )
    vocabulary = _vocabulary(config)
    vocabularies = {"src": vocabulary, "tgt": vocabulary, "specials": {}}
    model = get_model_class(running.model).for_training(running.model, vocabularies, running.training)
    compute = LossCompute.from_config(running, model, vocabularies)

    def loss(batch: Batch) -> Tensor:
        theirs = _sides(batch, config)
        theirs["srclen"] = (batch.source != config.pad_id).sum(1)
        outputs, attentions, _ = model(theirs["src"], theirs["tgt"], theirs["srclen"], with_align=False)
        total, statistics, _ = compute({**theirs, **_names(batch)}, outputs, attentions)
        value: Tensor = total / statistics.n_tokens
        return value

    return looped(model, loss, precision)


def _vocabulary(config: ModelConfig) -> dict[str, int]:
    """Their names of the special symbols, with our ids, among pieces that are named by their numbers."""
    names = {config.pad_id: "<blank>", config.bos_id: "<s>", config.eos_id: "</s>", config.unk_id: "<unk>"}
    return {names.get(number, f"{number}"): number for number in range(config.vocabulary)}


def _sides(batch: Batch, config: ModelConfig) -> dict[str, Tensor]:
    begin = torch.full_like(batch.target_out[:, :1], config.bos_id)
    return {"src": batch.source, "tgt": torch.cat((begin, batch.target_out), 1)}


def _names(batch: Batch) -> dict[str, list[object]]:
    """The corpus and the line that each pair is from, which their statistics count."""
    return {"cid": ["train"] * len(batch.source), "cid_line_number": list(range(len(batch.source)))}
