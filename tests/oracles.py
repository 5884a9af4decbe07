"""Slow and plain versions, written from the paper's text, that the fast ways are held against.

Numbers are Python floats or float64 arrays; nothing here calls the package. A model's parameters come in as
arrays under their names, one sentence at a time, so there is no batch, no padding and no mask tensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Sees = Callable[[int, int], bool]


def layer_norm(values: Sequence[float], epsilon: float) -> list[float]:
    """(x - mean) / sqrt(biased variance + epsilon)."""
    mean = sum(values) / len(values)
    variance = sum((x - mean) ** 2 for x in values) / len(values)
    return [(x - mean) / math.sqrt(variance + epsilon) for x in values]


def attention_row(q: Array, keys: Array, seen: Sequence[int]) -> dict[int, float]:
    """The weights that one query gives to the keys that it sees; equation 1 for one row."""
    scores = {j: sum(a * b for a, b in zip(q, keys[j], strict=True)) / math.sqrt(len(q)) for j in seen}
    top = max(scores.values(), default=0.0)
    powers = {j: math.exp(score - top) for j, score in scores.items()}
    total = sum(powers.values())
    return {j: power / total for j, power in powers.items()}


def attention(q: Array, k: Array, v: Array, sees: Sees) -> Array:
    """Equation 1 for one head; a query that sees nothing gets zeros."""
    out = np.zeros((len(q), v.shape[1]))
    for i in range(len(q)):
        seen = [j for j in range(len(k)) if sees(i, j)]
        for j, weight in attention_row(q[i], k, seen).items():
            out[i] += weight * v[j]
    return out


def position(pos: int, d_model: int) -> list[float]:
    """Section 3.5, one row, dimension by dimension."""
    row = []
    for dimension in range(d_model):
        angle = pos / 10000 ** (2 * (dimension // 2) / d_model)
        row.append(math.cos(angle) if dimension % 2 else math.sin(angle))
    return row


def t2t_position(pos: int, d_model: int) -> list[float]:
    """tensor2tensor's row: sines then cosines, wavelengths in a geometric progression that ends at 10000."""
    half = d_model // 2
    angles = [pos / 10000 ** (i / (half - 1)) for i in range(half)]
    return [math.sin(a) for a in angles] + [math.cos(a) for a in angles]


def activated(x: Array, kind: str) -> Array:
    """max(0, x), x times the logistic function of x (swish), or x times the normal distribution's (gelu)."""
    if kind == "relu":
        return np.maximum(0.0, x)
    if kind == "swish":
        share = np.vectorize(lambda v: 1 / (1 + math.exp(-v)))(x)
    else:
        share = np.vectorize(lambda v: (1 + math.erf(v / math.sqrt(2))) / 2)(x)
    return np.asarray(x * share)


def rotate(x: Array, first: int) -> Array:
    """Each pair (2i, 2i + 1) of row p turned by the angle of position ``first`` + p, as complex numbers."""
    d_k = x.shape[1]
    frequencies = np.array([10000 ** (-2 * i / d_k) for i in range(d_k // 2)])
    turned = (x[:, 0::2] + 1j * x[:, 1::2]) * np.exp(1j * np.outer(first + np.arange(len(x)), frequencies))
    out = np.empty_like(x)
    out[:, 0::2], out[:, 1::2] = turned.real, turned.imag
    return out


class ReferenceTransformer:
    """The logits of section 3 in evaluation mode, for one unpadded sentence pair at a time.

    ``parameters`` maps the names of a model's state to arrays; ``config`` needs the fields of a
    ModelConfig and nothing else of it.
    """

    def __init__(self, parameters: Mapping[str, Array], config: Any) -> None:
        self.p, self.config = parameters, config

    def logits(self, source: Sequence[int], target_in: Sequence[int]) -> Array:
        """One row of scores for each position of ``target_in``."""
        memory = self.encode(source)
        x = self._embed(target_in, "target")
        for n in range(self.config.decoder_layers):
            x = self._decoder_layer(f"decoder.layers.{n}.", x, memory)
        if self.config.norm == "pre":
            x = self._norm("decoder.norm", x)
        return x @ self._table("output").T + self.p.get("embeddings.output_bias", 0.0)

    def encode(self, source: Sequence[int]) -> Array:
        """The encoder's output, one row for each token."""
        x = self._embed(source, "source")
        for n in range(self.config.encoder_layers):
            x = self._encoder_layer(f"encoder.layers.{n}.", x)
        return self._norm("encoder.norm", x) if self.config.norm == "pre" else x

    def _encoder_layer(self, at: str, x: Array) -> Array:
        x = self._sublayer(at + "add_norm_1", x, lambda y: self._self(at, y, lambda i, j: True))
        return self._sublayer(at + "add_norm_2", x, lambda y: self._feed_forward(at, y))

    def _decoder_layer(self, at: str, x: Array, memory: Array) -> Array:
        x = self._sublayer(at + "add_norm_1", x, lambda y: self._self(at, y, lambda i, j: j <= i))
        x = self._sublayer(at + "add_norm_2", x, lambda y: self._cross(at, y, memory))
        return self._sublayer(at + "add_norm_3", x, lambda y: self._feed_forward(at, y))

    def _sublayer(self, name: str, x: Array, function: Callable[[Array], Array]) -> Array:
        if self.config.norm == "post":
            return self._norm(name + ".norm", x + function(x))
        return x + function(self._norm(name + ".norm", x))

    def _norm(self, name: str, x: Array) -> Array:
        rows = np.array([layer_norm(list(row), self.config.norm_epsilon) for row in x])
        return rows * self.p[name + ".weight"] + self.p[name + ".bias"]

    def _linear(self, name: str, x: Array) -> Array:
        out: Array = x @ self.p[name + ".weight"].T
        return out + self.p[name + ".bias"] if name + ".bias" in self.p else out

    def _feed_forward(self, at: str, x: Array) -> Array:
        hidden = activated(self._linear(at + "feed_forward.w_1", x), self.config.activation)
        return self._linear(at + "feed_forward.w_2", hidden)

    def _self(self, at: str, x: Array, sees: Sees) -> Array:
        c, r = self.config, self.config.neighbourhood
        qkv = self._linear(at + "self_attention.qkv", x)
        wide = c.heads * c.d_k
        q, k, v = qkv[:, :wide], qkv[:, wide : 2 * wide], qkv[:, 2 * wide :]

        def near(i: int, j: int) -> bool:
            return sees(i, j) and (r == 0 or abs(i - j) <= r)

        return self._heads(at + "self_attention.o", (q, k, v), near, rotary=c.positions == "rotary")

    def _cross(self, at: str, x: Array, memory: Array) -> Array:
        q, kv = self._linear(at + "cross_attention.q", x), self._linear(at + "cross_attention.kv", memory)
        wide = self.config.heads * self.config.d_k
        qkv = q, kv[:, :wide], kv[:, wide:]
        return self._heads(at + "cross_attention.o", qkv, lambda i, j: True, rotary=False)

    def _heads(self, name: str, qkv: tuple[Array, Array, Array], sees: Sees, *, rotary: bool) -> Array:
        c, (q, k, v) = self.config, qkv
        outputs = []
        for h in range(c.heads):
            columns = slice(h * c.d_k, (h + 1) * c.d_k)
            q_h, k_h, v_h = q[:, columns], k[:, columns], v[:, h * c.d_v : (h + 1) * c.d_v]
            if rotary:
                q_h, k_h = rotate(q_h, 0), rotate(k_h, 0)
            outputs.append(attention(q_h, k_h, v_h, sees))
        return self._linear(name, np.concatenate(outputs, axis=1))

    def _table(self, use: str) -> Array:
        own = {"source": "own_source", "output": "own_output"}.get(use, "target")
        return self.p.get("embeddings." + own, self.p["embeddings.target"])

    def _embed(self, ids: Sequence[int], side: str) -> Array:
        c, table = self.config, self._table(side)
        rows = []
        for pos, token in enumerate(ids):
            row = table[token] * (math.sqrt(c.d_model) if c.scale_embeddings else 1.0)
            if side == "target" and c.decoder_start == "zero" and token == c.pad_id:
                row = np.zeros(c.d_model)
            rows.append(row + self._position(pos, side))
        return np.array(rows)

    def _position(self, pos: int, side: str) -> Array:
        kind, d_model = self.config.positions, self.config.d_model
        if kind == "rotary":
            return np.zeros(d_model)
        if kind == "learned":
            return np.asarray(self.p[f"{side}_positions.learned"][pos])
        return np.array(position(pos, d_model) if kind == "sinusoid" else t2t_position(pos, d_model))
