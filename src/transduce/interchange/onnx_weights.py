"""The tensors that the ONNX graphs of a model read: one file holds each once, for both graphs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto, helper

from transduce.decoding.onnx_folder import STEPS, WHOLE

# Where a tensor may begin in the file: what a runtime that maps the file into memory can compute on.
ALIGNMENT = 64
Array = npt.NDArray[Any]


class Weights:
    """Tensors by name, laid out one after the other in a file called ``file``.

    With ``int8`` the matrices of products are whole numbers up to 127 either side of 0, each output with a
    step of its own; they lie transposed, as the product of whole numbers wants them, with 128 added, since
    some processors multiply unsigned numbers exactly and let signed ones overflow.
    """

    def __init__(self, state: Mapping[str, Array], *, file: str, int8: bool) -> None:
        self.int8, self.file = int8, file
        self._state = dict(state)
        self._laid: dict[str, tuple[int, Array]] = {}
        self.size = 0

    def __contains__(self, name: str) -> bool:
        return name in self._state

    def add(self, name: str, value: Array) -> None:
        """Nothing; ``value`` can be asked for by ``name`` from now on."""
        self._state[name] = value

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape that the model has under ``name``."""
        return self._state[name].shape

    def plain(self, name: str) -> str:
        """The name, in the file, of the model's tensor as it is."""
        return self._placed(name, self._state[name])

    def whole(self, name: str) -> tuple[str, str]:
        """The names, in the file, of a matrix as whole numbers [in, out] and of its steps [out]."""
        matrix = self._state[name]
        step = np.maximum(np.abs(matrix).max(1, keepdims=True), np.float32(1e-12)) / np.float32(127)
        whole = (np.round(matrix / step) + 128).astype(np.uint8)
        return self._placed(name + WHOLE, whole.T), self._placed(name + STEPS, step[:, 0])

    def described(self, name: str) -> TensorProto:
        """What a graph says of a tensor in the file: its type, its shape and where it lies."""
        offset, value = self._laid[name]
        tensor = TensorProto(name=name, dims=value.shape, data_location=TensorProto.EXTERNAL)
        tensor.data_type = helper.np_dtype_to_tensor_dtype(value.dtype)
        for key, what in (("location", self.file), ("offset", offset), ("length", value.nbytes)):
            tensor.external_data.add(key=key, value=str(what))
        return tensor

    def table(self) -> dict[str, dict[str, Any]]:
        """What lies where in the file: type, shape and offset of each tensor by its name."""
        return {
            name: {"type": str(value.dtype), "shape": list(value.shape), "offset": offset}
            for name, (offset, value) in self._laid.items()
        }

    def write(self, file: IO[bytes]) -> None:
        """Nothing; ``file`` holds what the graphs have asked for, in the order in which they did."""
        at = 0
        for offset, value in self._laid.values():
            file.write(bytes(offset - at))
            file.write(value.tobytes())
            at = offset + value.nbytes

    def _placed(self, name: str, value: Array) -> str:
        if name not in self._laid:
            offset = -(-self.size // ALIGNMENT) * ALIGNMENT
            self._laid[name] = offset, np.ascontiguousarray(value)
            self.size = offset + value.nbytes
        return name
