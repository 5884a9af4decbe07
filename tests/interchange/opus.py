"""Folders like those of OPUS-MT, with all quirks of the family, but drawn at random."""

from __future__ import annotations

import functools
import io
import json
from pathlib import Path
from typing import Any

import sentencepiece
import torch

from tiny_translator import sentences

CODES = (">>fra<<", ">>deu_Latn<<")


@functools.cache
def spm(seed: int) -> bytes:
    """A subword model with sentencepiece's usual settings: unigram, NFKC, unknown characters."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*sentences(300, seed=seed), "fine Café, 2 x ½?"] * 2),
        model_writer=model,
        vocab_size=110,
        hard_vocab_limit=False,
        minloglevel=4,
    )
    return model.getvalue()


def pieces_of(model: bytes) -> list[str]:
    """The subwords of a model, without its symbols."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(i) for i in range(3, processor.vocab_size())]


def opus_folder(
    folder: Path,
    *,
    codes: bool = False,
    separate: bool = False,
    pickled: bool = False,
    bad_words: list[list[int]] | None = None,
    **settings: Any,
) -> Path:
    """A folder that `MarianMTModel` and `MarianTokenizer` load; ``settings`` are those of `MarianConfig`."""
    import transformers

    folder.mkdir()
    sides = [pieces_of(spm(1)), pieces_of(spm(2))]
    listed = _listing([*(CODES if codes else ()), *(sides[0] if separate else sides[0] + sides[1])])
    target = _listing(sides[1]) if separate else listed
    pad = len(target) - 1
    if separate:  # padding has one id in both lists
        listed.pop("<pad>")
        listed["<pad>"] = pad = max(len(listed), pad)
        target["<pad>"] = pad
    values = {
        "d_model": 32, "encoder_layers": 2, "decoder_layers": 1, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48,
        "activation_function": "swish", "scale_embedding": True, "max_position_embeddings": 128,
        "share_encoder_decoder_embeddings": not separate, "pad_token_id": pad, "eos_token_id": 0,
        "decoder_start_token_id": pad, "forced_eos_token_id": None, "static_position_embeddings": True,
    }  # fmt: skip
    sizes = {"vocab_size": pad + 1, "decoder_vocab_size": pad + 1}
    config = transformers.MarianConfig(**{**values, **sizes, **settings})
    model = _drawn(transformers.MarianMTModel(config), pad)
    generation = {"num_beams": 6, "max_length": 128, "bad_words_ids": [[pad], *(bad_words or [])]}
    model.generation_config.update(**generation)
    model.save_pretrained(folder, safe_serialization=not pickled)
    if pickled:
        assert (folder / "pytorch_model.bin").exists()
    (folder / "source.spm").write_bytes(spm(1))
    (folder / "target.spm").write_bytes(spm(2))
    (folder / "vocab.json").write_text(json.dumps(listed))
    if separate:
        (folder / "target_vocab.json").write_text(json.dumps(target))
    described = {"tokenizer_class": "MarianTokenizer", "separate_vocabs": separate, "model_max_length": 128}
    (folder / "tokenizer_config.json").write_text(json.dumps(described))
    return folder


def _listing(pieces: list[str]) -> dict[str, int]:
    """As in OPUS-MT: the end first, padding last."""
    return {piece: i for i, piece in enumerate(dict.fromkeys(["</s>", "<unk>", *pieces, "<pad>"]))}


def _drawn(model: Any, pad: int) -> Any:
    """The model with weights that make it certain of something; none of its biases and gains is usual."""
    generator = torch.Generator().manual_seed(4)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" in name:
                continue
            scale = 0.5 if "embed" in name or "shared" in name or "lm_head" in name else 0.2
            scale *= (32 / model.config.d_model) ** 0.5
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * scale)
            if "layer_norm.weight" in name:
                parameter.add_(1.0)
        embeddings = [model.get_input_embeddings(), model.model.decoder.embed_tokens]
        for matrix in embeddings:
            matrix.weight[pad] = 0.0
        model.final_logits_bias.copy_(torch.randn(model.final_logits_bias.shape, generator=generator) * 0.5)
        model.final_logits_bias[0, pad] = 0.0
        model.final_logits_bias[0, 0] = 7.0  # so that outputs end
    return model.eval()
