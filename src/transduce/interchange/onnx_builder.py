"""Writing an ONNX graph node by node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from transduce import __version__
from transduce.interchange.onnx_weights import Weights

# The first that has layer normalisation; every runtime of the last years knows it.
OPSET = 17
INT32, FLOAT, UINT8 = TensorProto.INT32, TensorProto.FLOAT, TensorProto.UINT8
# What a value of a graph is called.
Name = str


class Builder:
    """A graph that is being written; each method adds to it and returns the names of what it gives."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._nodes: list[NodeProto] = []
        self._inputs: list[ValueInfoProto] = []
        self._outputs: list[ValueInfoProto] = []
        self._constants: dict[str, TensorProto] = {}

    def input(self, name: Name, kind: int, shape: Sequence[int | str]) -> Name:
        """An input of the graph; names in its shape are lengths that may differ from call to call."""
        self._inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def output(self, name: Name, value: Name, kind: int, shape: Sequence[int | str]) -> None:
        """Nothing; ``value`` is an output of the graph, called ``name``."""
        self._nodes.append(helper.make_node("Identity", [value], [name]))
        self._outputs.append(helper.make_tensor_value_info(name, kind, shape))

    def op(self, kind: str, *inputs: Name, **attributes: Any) -> Name:
        """What one operation gives; an empty name is an input that is left out."""
        return self.ops(kind, 1, *inputs, **attributes)[0]

    def ops(self, kind: str, outputs: int, *inputs: Name, **attributes: Any) -> list[Name]:
        """The same for an operation that gives several things."""
        label = f"{kind}_{len(self._nodes)}"
        names = [label if outputs == 1 else f"{label}_{i}" for i in range(outputs)]
        self._nodes.append(helper.make_node(kind, inputs, names, name=label, **attributes))
        return names

    def ints(self, *values: int) -> Name:
        """A row of whole numbers, as shapes and axes are given."""
        return self._constant(np.asarray(values, np.int64))

    def scalar(self, value: float | np.generic) -> Name:
        """One number: float32 unless it has a type of its own."""
        return self._constant(np.asarray(value if isinstance(value, np.generic) else np.float32(value)))

    def weight(self, name: str) -> Name:
        """The model's tensor of that name, as it is."""
        return self._stored(self._weights.plain(name))

    def whole_matrix(self, name: str) -> tuple[Name, Name]:
        """The model's matrix of that name as whole numbers [in, out], and its steps [out]."""
        whole, steps = self._weights.whole(name)
        return self._stored(whole), self._stored(steps)

    def size(self, value: Name, axis: int) -> Name:
        """The length of one axis, as a row of one number."""
        return self.op("Gather", self.op("Shape", value), self.ints(axis), axis=0)

    def shape(self, *parts: Name | int) -> Name:
        """A shape: each part a number or a row of them."""
        rows = [part if isinstance(part, str) else self.ints(part) for part in parts]
        return self.op("Concat", *rows, axis=0)

    def model(self, name: str) -> ModelProto:
        """The graph as a model file; its larger tensors are named in it and lie elsewhere."""
        graph = helper.make_graph(
            self._nodes, name, self._inputs, self._outputs, list(self._constants.values())
        )
        opsets = [helper.make_opsetid("", OPSET)]
        model: ModelProto = helper.make_model(graph, opset_imports=opsets, producer_name="transduce")
        # The format's own version, no newer than the operations need.
        model.ir_version, model.producer_version = 8, __version__
        return model

    def _constant(self, value: npt.NDArray[Any]) -> Name:
        name = f"{value.dtype}_" + "_".join(str(one) for one in value.reshape(-1).tolist())
        name += "" if value.ndim else "_scalar"
        self._constants.setdefault(name, numpy_helper.from_array(value, name))
        return name

    def _stored(self, name: str) -> Name:
        self._constants.setdefault(name, self._weights.described(name))
        return name
