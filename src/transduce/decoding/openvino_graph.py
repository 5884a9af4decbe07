"""The encoder and one decoder step as OpenVINO graphs, from the weights of a `Transformer`.

The graphs say what `transduce.model` says, in the same order; the tests hold one against the other. The
decoder keeps its keys and values inside the runtime and reorders them by index.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from transduce.decoding.candidates import BLOCK
from transduce.decoding.quiet_openvino import PartialShape, Type, openvino, opset13
from transduce.model.transformer import Transformer

_ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "relu": opset13.relu,
    "swish": opset13.swish,
    "gelu": lambda x: opset13.gelu(x, "ERF"),
}


class Graphs:
    """Builds both graphs; ``weights`` is fp32 or int8: rounded row by row, computed as the device likes."""

    def __init__(self, model: Transformer, *, weights: str, forbidden: Sequence[int]) -> None:
        self.config, self.int8, self.forbidden = model.config, weights == "int8", tuple(forbidden)
        self.values = {
            name: tensor.detach().float().cpu().numpy() for name, tensor in model.state_dict().items()
        }
        self.rotary = self.config.positions == "rotary"
        self.scale = math.sqrt(self.config.d_model) if self.config.scale_embeddings else 1.0

    def encoder(self) -> Any:
        """Inputs ids [sentences, source], positions, bias; outputs each decoder layer's keys and values.

        The keys are laid out and scaled once for the products of all steps: [sentences, heads, d_k, source].
        """
        config = self.config
        ids = opset13.parameter([-1, -1], np.int32, name="ids")
        bias = opset13.parameter([-1, 1, 1, -1], np.float32, name="bias")
        positions = self._positions([-1, -1])
        table = "own_source" if "embeddings.own_source" in self.values else "target"
        embedded = opset13.gather(self._constant(f"embeddings.{table}"), ids, _ints(0))
        x = self._placed(opset13.multiply(embedded, _number(self.scale)), positions)
        for layer in range(config.encoder_layers):
            name = f"encoder.layers.{layer}"
            x = self._add_norm(x, f"{name}.add_norm_1", self._encode_self, name, positions, bias)
            x = self._add_norm(x, f"{name}.add_norm_2", self._feed_forward, name)
        if config.norm == "pre":
            x = self._norm(x, "encoder.norm")
        results = []
        wide = [config.heads * config.d_k, config.heads * config.d_v]
        for layer in range(config.decoder_layers):
            k, v = _split(self._linear(x, f"decoder.layers.{layer}.cross_attention.kv"), wide)
            k = opset13.multiply(self._heads(k, [0, 2, 3, 1]), _number(config.d_k**-0.5))
            results += [opset13.result(k), opset13.result(self._heads(v))]
        return openvino.Model(results, [ids, bias, *positions], "encoder")

    def decoder(self, *, choosing: bool = False) -> Any:
        """Inputs tokens [rows], rows [rows] of the last step, group [3], positions, bias, memory k0, v0, ...

        Outputs the logits, wider than the vocabulary, and what `_log_sum_exp` makes of them.
        With ``choosing`` the logits are those of a `Choice`, of which the graph has three more inputs.
        """
        config = self.config
        tokens = opset13.parameter([-1], np.int32, name="tokens")
        rows = opset13.parameter([-1], np.int32, name="rows")
        group = opset13.parameter([3], np.int64, name="group")
        bias = opset13.parameter([-1, 1, 1, -1], np.float32, name="bias")
        positions = self._positions([1, 1])
        self._sinks: list[Any] = []
        memories: list[Any] = []
        table = self.values["embeddings.target"] * np.float32(self.scale)
        if config.decoder_start == "zero":
            table[config.pad_id] = 0.0
        x = opset13.gather(opset13.constant(table), tokens, _ints(0))
        x = self._placed(opset13.unsqueeze(x, _ints(1)), positions)
        for layer in range(config.decoder_layers):
            name = f"decoder.layers.{layer}"
            memory = [
                opset13.parameter([-1, config.heads, *shape], np.float32, name=f"{kind}{layer}")
                for kind, shape in (("k", (config.d_k, -1)), ("v", (-1, config.d_v)))
            ]
            memories += memory
            x = self._add_norm(x, f"{name}.add_norm_1", self._decode_self, name, positions, rows)
            x = self._add_norm(x, f"{name}.add_norm_2", self._cross, name, memory, bias, group)
            x = self._add_norm(x, f"{name}.add_norm_3", self._feed_forward, name)
        if config.norm == "pre":
            x = self._norm(x, "decoder.norm")
        x = opset13.squeeze(x, _ints(1))
        choice = self._choice() if choosing else []
        logits = self._chosen(x, group, *choice) if choosing else self._logits(x)
        results = [opset13.result(part) for part in (logits, _log_sum_exp(logits))]
        inputs = [tokens, rows, group, bias, *positions, *memories, *choice]
        return openvino.Model(results, self._sinks, inputs, "decoder")

    @property
    def output_matrix(self) -> npt.NDArray[np.float32]:
        """The matrix before the softmax."""
        name = "own_output" if "embeddings.own_output" in self.values else "target"
        matrix: npt.NDArray[np.float32] = self.values[f"embeddings.{name}"]
        return matrix

    def rounded_output_matrix(self) -> npt.NDArray[np.float32]:
        """The same as products with a choice of it see it: rounded for int8, a bias as its last column."""
        matrix = self.output_matrix
        if self.int8:
            whole, step = _whole_steps(matrix)
            matrix = whole.astype(np.float32) * step
        bias = self._output_bias
        return matrix if bias is None else np.concatenate([matrix, bias[:, None]], 1)

    @property
    def _output_bias(self) -> npt.NDArray[np.float32] | None:
        return self.values.get("embeddings.output_bias")

    def _choice(self) -> list[Any]:
        """The inputs matrix [union, width], columns [sentences, wide] and hidden [sentences, 1, wide]."""
        width = self.config.d_model + int(self._output_bias is not None)
        return [
            opset13.parameter([-1, width], np.float32, name="matrix"),
            opset13.parameter([-1, -1], np.int32, name="columns"),
            opset13.parameter([-1, 1, -1], np.float32, name="hidden"),
        ]

    def _chosen(self, x: Any, group: Any, matrix: Any, columns: Any, hidden: Any) -> Any:
        """The logits of each sentence's own tokens, as `Choice.own` gives them."""
        if self._output_bias is not None:
            one = opset13.power(opset13.gather(x, _ints([0]), _ints(1)), _number(0.0))
            x = opset13.concat([x, one], 1)
        logits = opset13.matmul(x, matrix, False, True)
        sentences = opset13.concat([opset13.gather(group, _ints([0, 1]), _ints(0)), _ints([-1])], 0)
        logits = opset13.reshape(logits, sentences, False)
        own = opset13.add(opset13.gather(logits, columns, _ints(2), 1), hidden)
        wide = opset13.gather(opset13.shape_of(columns, "i64"), _ints([1]), _ints(0))
        return opset13.reshape(own, opset13.concat([_ints([-1]), wide], 0), False)

    def _logits(self, x: Any) -> Any:
        """Section 3.4: the logits; the forbidden ids and the filling are at minus infinity."""
        matrix = self.output_matrix
        missing = -len(matrix) % BLOCK
        shift = np.zeros(len(matrix) + missing, np.float32)
        if self._output_bias is not None:
            shift[: len(matrix)] = self._output_bias
        shift[len(matrix) :] = -np.inf
        shift[list(self.forbidden)] = -np.inf
        matrix = np.concatenate([matrix, np.zeros((missing, matrix.shape[1]), np.float32)])
        return opset13.add(opset13.matmul(x, self._matrix(matrix), False, True), opset13.constant(shift))

    def _add_norm(self, x: Any, name: str, sublayer: Callable[..., Any], *inputs: Any) -> Any:
        if self.config.norm == "post":
            return self._norm(opset13.add(x, sublayer(x, *inputs)), f"{name}.norm")
        return opset13.add(x, sublayer(self._norm(x, f"{name}.norm"), *inputs))

    def _norm(self, x: Any, name: str) -> Any:
        y = opset13.mvn(x, _ints([-1]), True, self.config.norm_epsilon, "inside_sqrt")
        return opset13.add(
            opset13.multiply(y, self._constant(f"{name}.weight")), self._constant(f"{name}.bias")
        )

    def _feed_forward(self, x: Any, name: str) -> Any:
        inner = _ACTIVATIONS[self.config.activation](self._linear(x, f"{name}.feed_forward.w_1"))
        return self._linear(inner, f"{name}.feed_forward.w_2")

    def _encode_self(self, x: Any, name: str, positions: list[Any], bias: Any) -> Any:
        q, k, v = self._project(x, name, positions)
        heads = opset13.scaled_dot_product_attention(q, k, v, bias, causal=False)
        return self._joined(heads, f"{name}.self_attention.o")

    def _decode_self(self, x: Any, name: str, positions: list[Any], rows: Any) -> Any:
        q, k, v = self._project(x, name, positions)
        k = self._remembered(k, f"{name}.k", self.config.d_k, rows)
        v = self._remembered(v, f"{name}.v", self.config.d_v, rows)
        heads = opset13.scaled_dot_product_attention(q, k, v, causal=False)
        return self._joined(heads, f"{name}.self_attention.o")

    def _remembered(self, new: Any, name: str, width: int, rows: Any) -> Any:
        """The past of the chosen rows and the new position; the runtime keeps it under ``name``."""
        heads = self.config.heads
        info = openvino.op.util.VariableInfo()
        info.data_shape, info.data_type = PartialShape([-1, heads, -1, width]), Type.f32
        info.variable_id = name
        variable = openvino.op.util.Variable(info)
        count = opset13.shape_of(rows, "i64")
        nothing = opset13.broadcast(_number(0.0), opset13.concat([count, _ints([heads, 0, width])], 0))
        past = opset13.gather(opset13.read_value(nothing, variable), rows, _ints(0))
        whole = opset13.concat([past, new], 2)
        self._sinks.append(opset13.assign(whole, variable))
        return whole

    def _cross(self, x: Any, name: str, memory: list[Any], bias: Any, group: Any) -> Any:
        """The hypotheses of a sentence as one longer sequence of queries, as in `DecoderLayer`."""
        q = self._heads(self._linear(opset13.reshape(x, group, False), f"{name}.cross_attention.q"))
        k, v = memory
        weights = opset13.softmax(opset13.add(opset13.matmul(q, k, False, False), bias), -1)
        y = self._joined(opset13.matmul(weights, v, False, False), f"{name}.cross_attention.o")
        return opset13.reshape(y, opset13.shape_of(x, "i64"), False)

    def _project(self, x: Any, name: str, positions: list[Any]) -> list[Any]:
        config = self.config
        wide_k, wide_v = config.heads * config.d_k, config.heads * config.d_v
        parts = _split(self._linear(x, f"{name}.self_attention.qkv"), [wide_k, wide_k, wide_v])
        q, k, v = (self._heads(part) for part in parts)
        return [self._turned(q, positions), self._turned(k, positions), v] if self.rotary else [q, k, v]

    def _turned(self, x: Any, positions: list[Any]) -> Any:
        """Rotary positions; the rows of W^Q and W^K are sorted (see `_matrix_of`), so pairs are halves."""
        cosine, sine = positions
        half = self.config.d_k // 2
        even, odd = _split(x, [half, half])
        return opset13.concat(
            [
                opset13.subtract(opset13.multiply(even, cosine), opset13.multiply(odd, sine)),
                opset13.add(opset13.multiply(even, sine), opset13.multiply(odd, cosine)),
            ],
            -1,
        )

    def _positions(self, lead: list[int]) -> list[Any]:
        """What says where tokens stand: rows to add, or cosines and sines to turn by."""
        if self.rotary:
            shape = [*lead[:1], 1, lead[1], self.config.d_k // 2]
            return [opset13.parameter(shape, np.float32, name=name) for name in ("cosine", "sine")]
        return [opset13.parameter([*lead, self.config.d_model], np.float32, name="positions")]

    def _placed(self, x: Any, positions: list[Any]) -> Any:
        return x if self.rotary else opset13.add(x, positions[0])

    def _heads(self, x: Any, order: Sequence[int] = (0, 2, 1, 3)) -> Any:
        split = opset13.reshape(x, _ints([0, 0, self.config.heads, -1]), True)
        return opset13.transpose(split, _ints(list(order)))

    def _joined(self, heads: Any, name: str) -> Any:
        flat = opset13.reshape(opset13.transpose(heads, _ints([0, 2, 1, 3])), _ints([0, 0, -1]), True)
        return self._linear(flat, name)

    def _linear(self, x: Any, name: str) -> Any:
        matrix, bias = self.values[f"{name}.weight"], self.values.get(f"{name}.bias")
        if self.rotary and name.endswith(".qkv"):
            order = self._pairs_as_halves(len(matrix))
            matrix, bias = matrix[order], None if bias is None else bias[order]
        y = opset13.matmul(x, self._matrix(matrix), False, True)
        return y if bias is None else opset13.add(y, opset13.constant(bias))

    def _pairs_as_halves(self, rows: int) -> npt.NDArray[np.int64]:
        """The rows of W^Q, W^K, W^V with the even dimensions of each query and key before the odd ones."""
        config = self.config
        one = np.concatenate([np.arange(0, config.d_k, 2), np.arange(1, config.d_k, 2)])
        turned = np.concatenate([one + head * config.d_k for head in range(2 * config.heads)])
        return np.concatenate([turned, np.arange(len(turned), rows)])

    def _matrix(self, matrix: npt.NDArray[np.float32]) -> Any:
        """A matrix of a product; rounded to 127 steps either side of 0 per row where int8 is wanted."""
        if not self.int8:
            return opset13.constant(np.ascontiguousarray(matrix))
        whole, step = _whole_steps(matrix)
        return opset13.multiply(opset13.convert(opset13.constant(whole), "f32"), opset13.constant(step))

    def _constant(self, name: str) -> Any:
        return opset13.constant(self.values[name])


def _whole_steps(
    matrix: npt.NDArray[np.float32],
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """Each row as whole numbers up to 127 either side of 0, and the size of a row's steps."""
    step = np.maximum(np.abs(matrix).max(1, keepdims=True), 1e-12) / 127
    return np.round(matrix / step).astype(np.int8), step.astype(np.float32)


def _log_sum_exp(logits: Any) -> Any:
    """The logarithm of the sum of each row's exponentials, as far as float32 holds them.

    To take out the highest logit first, as is safe, would cost another look at all of them.
    """
    return opset13.log(opset13.reduce_sum(opset13.exp(logits), _ints([1]), True))


def _split(x: Any, widths: list[int]) -> list[Any]:
    return list(opset13.variadic_split(x, _ints(-1), _ints(widths)).outputs())


def _ints(value: int | list[int]) -> Any:
    return opset13.constant(np.asarray(value, np.int64))


def _number(value: float) -> Any:
    return opset13.constant(np.float32(value))
