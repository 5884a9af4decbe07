"""Marian's own files, laid out like a package of OPUS-MT: model.npz, vocab.yml, decoder.yml and two .spm.

Text is cut by source.spm before Marian sees it and put together by target.spm afterwards. A written model is
opened again by CTranslate2's reader of Marian's format.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from transduce.bundle import Bundle
from transduce.data.tokenizer import EOS_ID, UNK_ID
from transduce.files import write_bytes
from transduce.interchange.huggingface import POWER
from transduce.interchange.layout import given
from transduce.interchange.marian_layout import NORM_EPSILON, SETTINGS, marian_places, settings_of, turned
from transduce.interchange.marian_vocabulary import listing_text
from transduce.interchange.vocabulary import NEVER, listing, models_of

MODEL, DECODER, VOCABULARY = "model.npz", "decoder.yml", "vocab.yml"


class Marian:
    """Folders of Marian's files."""

    precisions = ("float32",)

    def holds(self, path: Path) -> bool:
        """Whether there is a decoder.yml beside a model.npz."""
        return (path / DECODER).is_file() and any(path.glob("*.npz"))

    def write(self, bundle: Bundle, path: Path, precision: str) -> list[str]:
        """What could not be expressed; the folder ``path`` is made."""
        import yaml

        config, tokenizer = bundle.model.config, bundle.tokenizer
        own = [EOS_ID, UNK_ID, *range(UNK_ID + 1, config.vocabulary)]  # Marian's ids: 0 ends, 1 is unknown
        settings = settings_of(config, len(own))
        tensors = _tensors(bundle, own)
        stored = {name: tensor.numpy() for name, tensor in tensors.items()}
        text = yaml.safe_dump(settings, sort_keys=True).encode() + b"\0"
        stored[SETTINGS] = np.frombuffer(text, np.int8)
        content = io.BytesIO()
        np.savez(content, **stored)  # type: ignore[arg-type]
        pieces = {index: piece for piece, index in listing(tokenizer).items()}
        source, target = models_of(tokenizer)
        decoder = {
            "relative-paths": True,
            "models": [MODEL],
            "vocabs": [VOCABULARY, VOCABULARY],
            "beam-size": 4,
            "normalize": round(POWER, 3),
            "mini-batch": 16,
            "maxi-batch": 1,
        }
        path.mkdir(parents=True)
        write_bytes(path / MODEL, content.getvalue())
        write_bytes(path / VOCABULARY, listing_text([pieces[index] for index in own]).encode())
        write_bytes(path / "source.spm", source)
        write_bytes(path / "target.spm", target)
        write_bytes(path / DECODER, yaml.safe_dump(decoder, sort_keys=False).encode())
        return _remarks(bundle)

    def open(self, path: Path) -> Any:
        """The model there, read by CTranslate2."""
        from transduce.interchange.marian_opened import OpenedMarian

        return OpenedMarian(path)


def _tensors(bundle: Bundle, own: list[int]) -> dict[str, Tensor]:
    config = bundle.model.config
    state = {name: tensor.detach().cpu().float() for name, tensor in bundle.model.state_dict().items()}
    found = {name: turned(tensor) for name, tensor in given(state, marian_places(config)).items()}
    if config.tying == "three-way":
        found["Wemb"] = state["embeddings.target"][own]
    else:
        found["encoder_Wemb"] = state["embeddings.own_source"][own]
        found["decoder_Wemb"] = state["embeddings.target"][own]
    if config.tying == "none":
        found["decoder_ff_logit_out_W"] = state["embeddings.own_output"][own].t().contiguous()
    bias = state.get("embeddings.output_bias", torch.zeros(config.vocabulary)).clone()
    bias[[UNK_ID, *bundle.tokenizer.tags.values()]] = NEVER
    found["decoder_ff_logit_out_b"] = bias[own][None]
    return found


def _remarks(bundle: Bundle) -> list[str]:
    epsilon = bundle.model.config.norm_epsilon
    remarks = [
        f"Marian divides log P by a power of the length, not by ((5 + length) / 6)^0.6: normalize {POWER:g} "
        "is the nearest",
        "text must be cut by source.spm (spm_encode) before Marian sees it, and its output be joined again",
    ]
    if epsilon != NORM_EPSILON:
        remarks.append(f"LayerNorm adds {NORM_EPSILON:g} to the variance in Marian, {epsilon:g} here")
    return remarks
