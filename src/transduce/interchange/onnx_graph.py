"""The encoder and the decoder as ONNX graphs, from the weights of a `Transformer`.

The graphs say what `transduce.model` says, in the same order; the tests hold one against the other. Both read
their tensors from one file, in which tied ones lie once, under the names that the model has for them.

Encoder: source [sentences, source] gives memory_hidden [sentences, 1, 1, source] and, for each decoder layer,
memory_keys and memory_values [sentences, heads, source, width].

Decoder: target [rows, new] and all of the encoder's outputs; past_keys and past_values [rows, heads, past,
width] of each layer, empty before the first token. It gives logits [rows, new, vocabulary], and present_keys
and present_values with the new positions added. The rows of a sentence stand next to each other.
"""

from __future__ import annotations

import numpy as np
from onnx import ModelProto

from transduce.interchange.onnx_builder import FLOAT, INT32, Name
from transduce.interchange.onnx_layers import POSITIONS, Layers
from transduce.interchange.onnx_weights import Weights
from transduce.model.config import OUTPUT_RESERVE, ModelConfig
from transduce.model.positional_encoding import sinusoids, t2t_sinusoids
from transduce.model.transformer import Transformer


def position_rows(config: ModelConfig) -> int:
    """The longest sequence that the graphs take: their tables of positions end there."""
    longest = config.max_length + OUTPUT_RESERVE
    return longest if config.positions == "learned" else 2 * longest


def weights_of(model: Transformer, *, file: str, int8: bool) -> Weights:
    """The model's tensors, and the table of the positions where these are a formula."""
    state = {name: tensor.detach().float().cpu().numpy() for name, tensor in model.state_dict().items()}
    weights, config = Weights(state, file=file, int8=int8), model.config
    rows = position_rows(config)
    if config.positions in ("sinusoid", "rotary"):
        width = config.d_k if config.positions == "rotary" else config.d_model
        weights.add(POSITIONS, sinusoids(rows, width).float().numpy())
    elif config.positions == "t2t":
        weights.add(POSITIONS, t2t_sinusoids(rows, config.d_model).float().numpy())
    return weights


def encoder_graph(config: ModelConfig, weights: Weights) -> ModelProto:
    """Source ids in; what the decoder's layers attend to out, projected once."""
    return _Encoder(config, weights).model()


def decoder_graph(config: ModelConfig, weights: Weights) -> ModelProto:
    """New target ids and what is remembered of earlier ones in; logits, and what to remember, out."""
    return _Decoder(config, weights).model()


class _Encoder(Layers):
    """The encoder's graph."""

    def model(self) -> ModelProto:
        """The graph, written once."""
        config, g = self.config, self.g
        source = g.input("source", INT32, ["sentences", "source"])
        self.batch, self.learned = g.size(source, 0), "source_positions.learned"
        real = g.op("Not", g.op("Equal", source, g.scalar(np.int32(config.pad_id))))
        hidden = self.hidden(g.op("Unsqueeze", real, g.ints(1, 2)))
        everywhere = self.counted(g.ints(0), g.size(source, 1))
        self.places = everywhere if config.positions == "rotary" else self._places(real)
        table = "own_source" if "embeddings.own_source" in self.weights else "target"
        x = self.placed(self.embedded(source, f"embeddings.{table}"))
        seen = hidden
        if config.neighbourhood:
            seen = g.op("Add", hidden, self.hidden(self.near(everywhere, everywhere)))
        for layer in range(config.encoder_layers):
            name = f"encoder.layers.{layer}"
            x = self.add_norm(x, f"{name}.add_norm_1", self._self_attention, name, seen)
            x = self.add_norm(x, f"{name}.add_norm_2", self.feed_forward, name)
        if config.norm == "pre":
            x = self.norm(x, "encoder.norm")
        g.output("memory_hidden", hidden, FLOAT, ["sentences", 1, 1, "source"])
        for layer in range(config.decoder_layers):
            self._remember(x, layer)
        return g.model("encoder")

    def _places(self, real: Name) -> Name:
        """Only real tokens count, so the first of them stands at 0 on whichever side the padding is."""
        count = self.g.op("CumSum", self.g.op("Cast", real, to=INT32), self.g.scalar(np.int64(1)))
        place = self.g.op("Sub", count, self.g.scalar(np.int32(1)))
        return self.g.op("Max", place, self.g.scalar(np.int32(0)))

    def _self_attention(self, x: Name, name: str, seen: Name) -> Name:
        q, k, v = self.project(x, name)
        return self.attention(q, k, v, seen, f"{name}.self_attention")

    def _remember(self, x: Name, layer: int) -> None:
        config, g = self.config, self.g
        widths = {"keys": config.d_k, "values": config.d_v}
        both = self.linear(x, f"decoder.layers.{layer}.cross_attention.kv")
        parts = g.ops("Split", 2, both, g.ints(*(config.heads * width for width in widths.values())), axis=1)
        for (kind, width), part in zip(widths.items(), parts, strict=True):
            shape: list[int | str] = ["sentences", config.heads, "source", width]
            g.output(f"memory_{kind}_{layer}", self.heads(part), FLOAT, shape)


class _Decoder(Layers):
    """The decoder's graph."""

    def model(self) -> ModelProto:
        """The graph, written once."""
        config, g = self.config, self.g
        target = g.input("target", INT32, ["rows", "new"])
        self.memory_hidden = g.input("memory_hidden", FLOAT, ["sentences", 1, 1, "source"])
        memory = self._remembered("memory", "sentences", "source")
        past = self._remembered("past", "rows", "past")
        self.batch, self.learned = g.size(target, 0), "target_positions.learned"
        self.sentences = g.size(self.memory_hidden, 0)
        before = g.size(past[0][0], 2)
        total = g.op("Add", before, g.size(target, 1))
        self.places = self.counted(before, total)
        seen = self._seen(self.counted(g.ints(0), total))
        x = self.placed(self._embedded_target(target))
        for layer in range(config.decoder_layers):
            name = f"decoder.layers.{layer}"
            x = self.add_norm(x, f"{name}.add_norm_1", self._self_attention, layer, past[layer], seen)
            x = self.add_norm(x, f"{name}.add_norm_2", self._cross_attention, name, memory[layer])
            x = self.add_norm(x, f"{name}.add_norm_3", self.feed_forward, name)
        if config.norm == "pre":
            x = self.norm(x, "decoder.norm")
        table = "own_output" if "embeddings.own_output" in self.weights else "target"
        bias = "embeddings.output_bias" if config.output_bias else ""
        logits = self.product(x, f"embeddings.{table}", bias)
        shape = g.shape(self.batch, -1, config.vocabulary)
        logits = g.op("Reshape", logits, shape)
        g.output("logits", logits, FLOAT, ["rows", "new", config.vocabulary])
        return g.model("decoder")

    def _remembered(self, what: str, rows: str, length: str) -> list[tuple[Name, Name]]:
        """The inputs that hold keys and values, layer by layer."""
        config = self.config
        return [
            (
                self.g.input(f"{what}_keys_{i}", FLOAT, [rows, config.heads, length, config.d_k]),
                self.g.input(f"{what}_values_{i}", FLOAT, [rows, config.heads, length, config.d_v]),
            )
            for i in range(config.decoder_layers)
        ]

    def _seen(self, keys: Name) -> Name:
        """What the new positions may see, to be added to their scores, [new, past and new]."""
        seen = self.g.op("LessOrEqual", keys, self.column(self.places))
        if self.config.neighbourhood:
            seen = self.g.op("And", seen, self.near(self.places, keys))
        return self.hidden(seen)

    def _embedded_target(self, target: Name) -> Name:
        x = self.embedded(target, "embeddings.target")
        if self.config.decoder_start != "zero":
            return x
        real = self.g.op("Not", self.g.op("Equal", target, self.g.scalar(np.int32(self.config.pad_id))))
        return self.g.op("Mul", x, self.column(self.g.op("Cast", real, to=FLOAT)))

    def _self_attention(self, x: Name, layer: int, past: tuple[Name, Name], seen: Name) -> Name:
        config, name = self.config, f"decoder.layers.{layer}"
        q, *new = self.project(x, name)
        k, v = (self.g.op("Concat", *parts, axis=2) for parts in zip(past, new, strict=True))
        for kind, value, width in (("keys", k, config.d_k), ("values", v, config.d_v)):
            shape: list[int | str] = ["rows", config.heads, "present", width]
            self.g.output(f"present_{kind}_{layer}", value, FLOAT, shape)
        return self.attention(q, k, v, seen, f"{name}.self_attention")

    def _cross_attention(self, x: Name, name: str, memory: tuple[Name, Name]) -> Name:
        """The rows of a sentence as one longer sequence of queries, as in `DecoderLayer`."""
        q = self.heads(self.linear(x, f"{name}.cross_attention.q"), self.sentences)
        return self.attention(q, *memory, self.memory_hidden, f"{name}.cross_attention")
