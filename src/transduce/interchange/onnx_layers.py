"""What the ONNX graphs of encoder and decoder have in common: sections 3.1 to 3.5, operation by operation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from transduce.interchange.onnx_builder import FLOAT, INT32, UINT8, Builder, Name
from transduce.interchange.onnx_weights import Weights
from transduce.model.config import ModelConfig

POSITIONS = "positions"
"""The name of the table of positions where these are a formula."""
# Added to the scores of hidden positions: what is left of them is 0.
_HIDDEN = -1e30


class Layers:
    """Writes the layers of one graph. Activations lie as [rows x length, d_model] between the attentions."""

    def __init__(self, config: ModelConfig, weights: Weights) -> None:
        self.config, self.weights, self.g = config, weights, Builder(weights)
        self.learned = ""  # the name of a learned table of positions
        self.batch: Name = ""  # [1]: the number of sequences
        self.places: Name = ""  # where the tokens stand

    def embedded(self, ids: Name, table: str) -> Name:
        """Section 3.4: the embeddings times sqrt(d_model), [rows, length, d_model]."""
        if self.weights.int8:
            whole, steps = self.g.whole_matrix(table)
            columns = self.g.op("Cast", self.g.op("Gather", whole, ids, axis=1), to=FLOAT)
            rows = self.g.op("Transpose", columns, perm=[1, 2, 0])
            step = self.g.op("Unsqueeze", self.g.op("Gather", steps, ids, axis=0), self.g.ints(-1))
            x = self.g.op("Mul", self.g.op("Sub", rows, self.g.scalar(128.0)), step)
        else:
            x = self.g.op("Gather", self.g.weight(table), ids, axis=0)
        if not self.config.scale_embeddings:
            return x
        return self.g.op("Mul", x, self.g.scalar(math.sqrt(self.config.d_model)))

    def placed(self, x: Name) -> Name:
        """Section 3.5: X with its positions added, [rows x length, d_model]."""
        if self.config.positions != "rotary":
            table = self.learned if self.config.positions == "learned" else POSITIONS
            x = self.g.op("Add", x, self.g.op("Gather", self.g.weight(table), self.places, axis=0))
        return self.g.op("Reshape", x, self.g.ints(-1, self.config.d_model))

    def add_norm(self, x: Name, name: str, sublayer: Callable[..., Name], *inputs: Any) -> Name:
        """Section 3.1: the residual connection and layer normalisation around a sub-layer."""
        if self.config.norm == "post":
            return self.norm(self.g.op("Add", x, sublayer(x, *inputs)), f"{name}.norm")
        return self.g.op("Add", x, sublayer(self.norm(x, f"{name}.norm"), *inputs))

    def norm(self, x: Name, name: str) -> Name:
        """Layer normalisation."""
        gain, bias = self.g.weight(f"{name}.weight"), self.g.weight(f"{name}.bias")
        return self.g.op("LayerNormalization", x, gain, bias, axis=-1, epsilon=self.config.norm_epsilon)

    def feed_forward(self, x: Name, name: str) -> Name:
        """Section 3.3, equation 2."""
        inner = self._active(self.linear(x, f"{name}.feed_forward.w_1"))
        return self.linear(inner, f"{name}.feed_forward.w_2")

    def _active(self, x: Name) -> Name:
        g = self.g
        if self.config.activation == "relu":
            return g.op("Relu", x)
        if self.config.activation == "swish":
            return g.op("Mul", x, g.op("Sigmoid", x))
        # gelu: x times the normal distribution's share below x.
        share = g.op("Add", g.op("Erf", g.op("Div", x, g.scalar(math.sqrt(2)))), g.scalar(1.0))
        return g.op("Mul", x, g.op("Mul", share, g.scalar(0.5)))

    def linear(self, x: Name, name: str) -> Name:
        """X [n, in] times a matrix of the model, with its bias if it has one: [n, out]."""
        bias = f"{name}.bias" if f"{name}.bias" in self.weights else ""
        return self.product(x, f"{name}.weight", bias)

    def product(self, x: Name, matrix: str, bias: str = "") -> Name:
        """X [n, in] times the transpose of a matrix [out, in], plus a bias [out]."""
        if not self.weights.int8:
            inputs = [x, self.g.weight(matrix)] + ([self.g.weight(bias)] if bias else [])
            return self.g.op("Gemm", *inputs, transB=1)
        y = self._whole_product(x, matrix)
        return self.g.op("Add", y, self.g.weight(bias)) if bias else y

    def _whole_product(self, x: Name, matrix: str) -> Name:
        """The same in whole numbers: each row of X in 127 steps either side of 0, of its own size."""
        g = self.g
        whole, steps = g.whole_matrix(matrix)
        largest = g.op("ReduceMax", g.op("Abs", x), axes=[1], keepdims=1)
        step = g.op("Div", g.op("Max", largest, g.scalar(1e-12)), g.scalar(127.0))
        rounded = g.op("Add", g.op("Round", g.op("Div", x, step)), g.scalar(128.0))
        middle = g.scalar(np.uint8(128))
        y = g.op("MatMulInteger", g.op("Cast", rounded, to=UINT8), whole, middle, middle)
        return g.op("Mul", g.op("Mul", g.op("Cast", y, to=FLOAT), step), steps)

    def project(self, x: Name, name: str) -> list[Name]:
        """Queries, keys and values [rows, heads, length, width] of a sequence that attends to itself."""
        config = self.config
        wide_k, wide_v = config.heads * config.d_k, config.heads * config.d_v
        both = self.linear(x, f"{name}.self_attention.qkv")
        parts = self.g.ops("Split", 3, both, self.g.ints(wide_k, wide_k, wide_v), axis=1)
        q, k, v = (self.heads(part) for part in parts)
        return [self._turned(q), self._turned(k), v] if config.positions == "rotary" else [q, k, v]

    def _turned(self, x: Name) -> Name:
        """Rotary positions: each pair of dimensions turned by the angle of its position."""
        g, half = self.g, self.config.d_k // 2
        rows = g.op("Gather", g.weight(POSITIONS), self.places, axis=0)
        pairs = g.op("Reshape", rows, g.ints(-1, half, 2))
        sine, cosine = g.ops("Split", 2, pairs, g.ints(1, 1), axis=-1)
        pairs = g.op("Reshape", x, g.ints(0, 0, 0, half, 2))
        even, odd = g.ops("Split", 2, pairs, g.ints(1, 1), axis=-1)
        first = g.op("Sub", g.op("Mul", even, cosine), g.op("Mul", odd, sine))
        second = g.op("Add", g.op("Mul", even, sine), g.op("Mul", odd, cosine))
        return g.op("Reshape", g.op("Concat", first, second, axis=-1), g.ints(0, 0, 0, 2 * half))

    def heads(self, x: Name, batch: Name = "") -> Name:
        """[batch x length, heads x width] as [batch, heads, length, width]."""
        shape = self.g.shape(batch or self.batch, -1, self.config.heads, self._width(x))
        return self.g.op("Transpose", self.g.op("Reshape", x, shape), perm=[0, 2, 1, 3])

    def _width(self, x: Name) -> Name:
        return self.g.op("Div", self.g.size(x, 1), self.g.ints(self.config.heads))

    def attention(self, q: Name, k: Name, v: Name, hidden: Name, name: str) -> Name:
        """Section 3.2, equation 1, and W^O: [batch x queries, d_model]."""
        g = self.g
        scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
        scores = g.op("Div", scores, g.scalar(math.sqrt(self.config.d_k)))
        weights = g.op("Softmax", g.op("Add", scores, hidden), axis=-1)
        joined = g.op("Transpose", g.op("MatMul", weights, v), perm=[0, 2, 1, 3])
        flat = g.op("Reshape", joined, g.ints(-1, self.config.heads * self.config.d_v))
        return self.linear(flat, f"{name}.o")

    def hidden(self, seen: Name) -> Name:
        """What to add to the scores: 0 where ``seen``."""
        return self.g.op("Where", seen, self.g.scalar(0.0), self.g.scalar(_HIDDEN))

    def near(self, queries: Name, keys: Name) -> Name:
        """True where two positions are at most the neighbourhood apart, [queries, keys]."""
        apart = self.g.op("Abs", self.g.op("Sub", self.column(queries), keys))
        return self.g.op("LessOrEqual", apart, self.g.scalar(np.int32(self.config.neighbourhood)))

    def column(self, row: Name) -> Name:
        """A row as a column."""
        return self.g.op("Unsqueeze", row, self.g.ints(-1))

    def counted(self, start: Name, end: Name) -> Name:
        """The whole numbers from ``start`` on that are below ``end``; both are rows of one number."""
        ends = [self.g.op("Cast", self.g.op("Squeeze", one), to=INT32) for one in (start, end)]
        return self.g.op("Range", *ends, self.g.scalar(np.int32(1)))
