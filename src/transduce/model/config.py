"""The shape of a Transformer, and the paper's table of shapes (Table 3).

Every setting that the paper does not have is off by default; `docs/departures.md` says why each exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from transduce.config import build, unknown_name
from transduce.errors import ConfigError

CHOICES: dict[str, tuple[str, ...]] = {
    "norm": ("post", "pre"),
    "positions": ("sinusoid", "t2t", "learned", "rotary"),
    "activation": ("relu", "swish", "gelu"),
    "tying": ("three-way", "decoder", "none"),
    "decoder_start": ("zero", "bos", "eos", "pad"),
    "initialisation": ("fused-2017", "separate"),
}
# A learned table must also hold the longest output: the source's length + 50 (section 6.1), its end and
# a reserve.
OUTPUT_RESERVE = 64
_COUNTS = (
    "vocabulary", "d_model", "d_ff", "heads", "d_k", "d_v", "encoder_layers", "decoder_layers", "max_length",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The settings of one Transformer, with the paper's base model as default (sections 3.1 to 3.5)."""

    vocabulary: int
    """Subwords, the reserved ones included."""
    d_model: int = 512
    """The width of every sub-layer's output."""
    d_ff: int = 2048
    """The width inside the feed-forward networks (section 3.3)."""
    heads: int = 8
    """h of section 3.2.2."""
    d_k: int = 0
    """The width of a head's queries and keys; 0: d_model / heads."""
    d_v: int = 0
    """The width of a head's values; 0: d_model / heads."""
    encoder_layers: int = 6
    """N of the encoder."""
    decoder_layers: int = 6
    """N of the decoder."""
    dropout: float = 0.1
    """On every sub-layer's output before it is added, and on the sums of embeddings and positions (section
    5.4)."""
    attention_dropout: float = 0.0
    """On the attention weights."""
    relu_dropout: float = 0.0
    """Inside the feed-forward networks."""
    norm: str = "post"
    """``post``: LayerNorm(x + Sublayer(x)), as in the paper; ``pre``: x + Sublayer(LayerNorm(x))."""
    norm_epsilon: float = 1e-6
    """What is added to the variance in LayerNorm."""
    attention_bias: bool = False
    """Biases in the projections of attention."""
    output_bias: bool = False
    """A bias before the softmax."""
    activation: str = "relu"
    """What the feed-forward networks have in their middle: ``relu`` (equation 2), ``swish`` or ``gelu``."""
    scale_embeddings: bool = True
    """Embeddings are multiplied by sqrt(d_model), as in section 3.4."""
    positions: str = "sinusoid"
    """``sinusoid`` as printed, ``t2t`` (sines, then cosines), ``learned`` (row E), ``rotary``."""
    neighbourhood: int = 0
    """Self-attention sees so many positions to each side alone (Table 1's last row); 0: all."""
    tying: str = "three-way"
    """Which of source embedding, target embedding and output layer are one matrix: ``three-way`` (section
    3.4), ``decoder`` (the last two), ``none``."""
    decoder_start: str = "zero"
    """What opens the decoder's input: a ``zero`` vector, or the embedding of ``bos``, ``eos`` or ``pad``."""
    initialisation: str = "fused-2017"
    """The first weights: as the code of 2017 drew them, or each matrix by its own widths (``separate``)."""
    max_length: int = 256
    """Tokens of the longest source that the model is meant for, its end counted."""
    pad_id: int = 0
    """The reserved id of padding."""
    eos_id: int = 1
    """The reserved id of the end."""
    bos_id: int = 2
    """The reserved id of the start."""
    unk_id: int = 3
    """The reserved id of what is unknown; byte fallback leaves nothing to it."""

    def __post_init__(self) -> None:
        self._derive_widths()
        self._check_numbers()
        for name, choices in CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                raise ConfigError(f"model.{name} is {value!r}; choose one of {', '.join(choices)}")
        if self.positions in ("sinusoid", "t2t") and self.d_model % 2:
            raise ConfigError(
                f"model.d_model is {self.d_model}; it must be even for {self.positions} positions"
            )
        if self.positions == "rotary" and self.d_k % 2:
            raise ConfigError(f"model.d_k is {self.d_k}; it must be even for rotary positions")
        reserved = (self.pad_id, self.eos_id, self.bos_id, self.unk_id)
        if len(set(reserved)) != 4 or not all(0 <= i < self.vocabulary for i in reserved):
            raise ConfigError(
                f"the reserved ids pad, eos, bos, unk are {reserved}; "
                f"they must be four different numbers below model.vocabulary = {self.vocabulary}"
            )

    def _derive_widths(self) -> None:
        for name in ("d_k", "d_v"):
            if getattr(self, name) == 0 and self.heads > 0:
                if self.d_model % self.heads:
                    raise ConfigError(
                        f"model.d_model = {self.d_model} cannot be shared out evenly among model.heads = "
                        f"{self.heads}; choose a multiple of {self.heads}, or set model.d_k and model.d_v"
                    )
                object.__setattr__(self, name, self.d_model // self.heads)

    def _check_numbers(self) -> None:
        for name in _COUNTS:
            if getattr(self, name) < 1:
                raise ConfigError(f"model.{name} is {getattr(self, name)}; it must be at least 1")
        for name in ("dropout", "attention_dropout", "relu_dropout"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ConfigError(f"model.{name} is {getattr(self, name)}; it must lie between 0 and 1")
        if not 0.0 < self.norm_epsilon < 1.0:
            raise ConfigError(
                f"model.norm_epsilon is {self.norm_epsilon}; it must lie between 0 and 1, e.g. 1e-6"
            )
        if self.neighbourhood < 0:
            raise ConfigError(
                f"model.neighbourhood is {self.neighbourhood}; it must be 0 (none) or a distance r >= 1"
            )

    @property
    def start_id(self) -> int:
        """The id that opens the decoder's input; with ``decoder_start = "zero"`` its embedding is zero."""
        if self.decoder_start == "bos":
            return self.bos_id
        return self.eos_id if self.decoder_start == "eos" else self.pad_id

    @classmethod
    def named(cls, name: str, *, vocabulary: int, **overrides: Any) -> ModelConfig:
        """The configuration called ``name`` (see `NAMED`) for a vocabulary of that size.

        Raises ConfigError for an unknown name or override.
        """
        if name not in NAMED:
            raise unknown_name(name, NAMED, "model configuration")
        return cls.from_mapping({**NAMED[name], **overrides, "vocabulary": vocabulary})

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> ModelConfig:
        """The configuration with these fields, which may come from a file.

        Raises ConfigError for a field that does not exist or has the wrong type, and where the vocabulary's
        size is missing.
        """
        if "vocabulary" not in values:
            raise ConfigError("model.vocabulary is missing; it must be the number of the tokenizer's pieces")
        return build(cls, values, "model")


_BIG: dict[str, Any] = {"d_model": 1024, "d_ff": 4096, "heads": 16, "dropout": 0.3}

# What each named model changes against the paper's base model: one line each. Label smoothing and the
# number of steps of rows D and big belong to training: see `transduce.training.presets`.
NAMED: dict[str, dict[str, Any]] = {
    "paper-base": {},
    "paper-big": _BIG,
    "paper-big-enfr": {**_BIG, "dropout": 0.1},
    "A1": {"heads": 1, "d_k": 512, "d_v": 512},
    "A2": {"heads": 4, "d_k": 128, "d_v": 128},
    "A3": {"heads": 16, "d_k": 32, "d_v": 32},
    "A4": {"heads": 32, "d_k": 16, "d_v": 16},
    "B1": {"d_k": 16, "d_v": 64},
    "B2": {"d_k": 32, "d_v": 64},
    "C1": {"encoder_layers": 2, "decoder_layers": 2},
    "C2": {"encoder_layers": 4, "decoder_layers": 4},
    "C3": {"encoder_layers": 8, "decoder_layers": 8},
    "C4": {"d_model": 256, "d_k": 32, "d_v": 32},
    "C5": {"d_model": 1024, "d_k": 128, "d_v": 128},
    "C6": {"d_ff": 1024},
    "C7": {"d_ff": 4096},
    "D1": {"dropout": 0.0},
    "D2": {"dropout": 0.2},
    "D3": {},
    "D4": {},
    "E": {"positions": "learned"},
    "big": _BIG,
    "t2t-v3": {"norm": "pre", "attention_dropout": 0.1, "relu_dropout": 0.1, "positions": "t2t",
               "initialisation": "separate"},
    "tiny": {"d_model": 256, "d_ff": 1024, "heads": 4, "encoder_layers": 3, "decoder_layers": 3,
             "norm": "pre"},
    "small": {"d_ff": 1024, "encoder_layers": 5, "decoder_layers": 5, "dropout": 0.3, "norm": "pre"},
}  # fmt: skip
