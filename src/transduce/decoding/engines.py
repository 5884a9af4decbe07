"""What computes the steps of a search: PyTorch, which is the reference, or OpenVINO where it is installed.

A model that was exported to ONNX is computed by onnxruntime.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from transduce import machine
from transduce.decoding.beam_search import State
from transduce.decoding.candidates import Scored
from transduce.decoding.choice import Choice, ChoosingState
from transduce.decoding.onnx_folder import OnnxFolder, is_onnx_folder
from transduce.errors import UsageError
from transduce.model.transformer import Transformer

ENGINES = ("auto", "torch", "openvino", "onnx")
Batch = TypeVar("Batch")
Result = TypeVar("Result")
_INSTALL = "install it with `pip install 'transduce[fast]'`"


@runtime_checkable
class Engine(Protocol):
    """Encodes sources and makes steps; ``workers`` searches may run at the same time, each in a thread."""

    name: str
    workers: int

    def start(self, source: Int[Tensor, "sentences source"], choice: Choice | None = None) -> Any:
        """The state before the first target token; ``source`` is padded at its end.

        With a ``choice`` the outputs hold no other tokens, and their probabilities are those among these.
        """
        ...

    def step(self, tokens: Int[Tensor, " rows"], state: Any) -> tuple[Tensor | Scored, Any]:
        """What may follow each of ``tokens``, and the state after them."""
        ...


@runtime_checkable
class TeacherForcing(Protocol):
    """An engine that computes all positions of known targets at once."""

    def forced(
        self, source: Int[Tensor, "pairs source"], target_in: Int[Tensor, "pairs target"]
    ) -> Float[Tensor, "pairs target vocabulary"]:
        """Logits for every target position, as `Transformer.forward` gives them."""
        ...


class TorchEngine:
    """The model itself, on any device and as it is at the moment: it may be in training."""

    name = "torch"
    workers = 1

    def __init__(self, model: Transformer, *, device: str, precision: str) -> None:
        self._model, self._device, self._precision = model, device, precision

    def start(self, source: Int[Tensor, "sentences source"], choice: Choice | None = None) -> State:
        """The state before the first target token."""
        with self._arithmetic():
            state = self._model.start(source.to(self._device))
        return state if choice is None else ChoosingState.start(self._model, state, choice)

    def step(
        self, tokens: Int[Tensor, " rows"], state: Any
    ) -> tuple[Float[Tensor, "rows vocabulary"] | Scored, State]:
        """Logits of what may follow each of ``tokens``, and the state after them."""
        with self._arithmetic():
            if isinstance(state, ChoosingState):
                return state.step(self._model, tokens)
            logits, state = self._model.decode(tokens[:, None], state)
        return logits[:, 0], state

    def _arithmetic(self) -> AbstractContextManager[Any]:
        kind = torch.device(self._device).type
        return torch.autocast(kind, torch.bfloat16, enabled=self._precision == "bf16")


def pick_engine(
    name: str,
    model: Transformer,
    *,
    device: str,
    precision: str,
    forbidden: Sequence[int],
    folder: Path | None = None,
) -> Engine:
    """The engine called ``name``; auto is OpenVINO on a CPU where it is installed and works, else PyTorch.

    A model that lies in ``folder`` as ONNX is computed by onnxruntime there if nothing else is said. Raises
    UsageError with the remedy where the named one cannot be used, or the precision needs another.
    """
    if name not in ENGINES:
        raise UsageError(f"unknown engine {name!r}: choose one of {', '.join(ENGINES)}, ctranslate2")
    exported = folder is not None and is_onnx_folder(folder)
    if name == "onnx" or (name == "auto" and exported and device == "cpu"):
        return _onnx_engine(folder if exported else None, device, precision)
    problem = _openvino_problem(model, device)
    if name == "openvino" and problem is not None:
        raise UsageError(f"the engine openvino cannot be used: {problem}; use auto or torch")
    if precision == "int8" and (name == "torch" or problem is not None):
        raise UsageError(
            f"precision int8 needs the engine openvino{'' if problem is None else f': {problem}'}"
        )
    if name != "torch" and problem is None:
        from transduce.decoding.openvino_engine import OpenVinoEngine

        try:
            workers = torch.get_num_threads()
            return OpenVinoEngine(model, precision=precision, workers=workers, forbidden=forbidden)
        except RuntimeError as error:
            said = machine.one_line(error)
            if name == "openvino" or precision == "int8":
                raise UsageError(f"the engine openvino failed: {said}; use the engine torch") from None
            warnings.warn(f"OpenVINO is not used, PyTorch is: {said}", stacklevel=4)
    return TorchEngine(model, device=device, precision=precision)


def _onnx_engine(folder: Path | None, device: str, precision: str) -> Engine:
    """onnxruntime for the model in ``folder``; UsageError where it cannot be used."""
    if folder is None:
        raise UsageError(
            "the engine onnx computes models that were exported: make one with `transduce export MODEL "
            "--to onnx --output FOLDER` and name that folder; or use auto or torch"
        )
    if device != "cpu":
        raise UsageError(f"the engine onnx computes on the CPU here, and the device is {device}")
    if importlib.util.find_spec("onnxruntime") is None:
        raise UsageError(
            "the engine onnx needs onnxruntime, which is not installed: install it with "
            "`pip install 'transduce[export]'`, or use the engine torch"
        )
    from transduce.decoding.onnx_engine import OnnxEngine

    exported = OnnxFolder.read(folder)
    if precision != exported.engine_precision:
        raise UsageError(
            f"precision is {precision}, but {folder} holds {exported.precision}: leave it out, or export the "
            "model again"
        )
    return OnnxEngine(exported, workers=torch.get_num_threads())


def in_parallel(
    work: Callable[[Batch], Result], batches: Sequence[Batch], workers: int
) -> Iterator[tuple[Batch, Result]]:
    """Each batch with what ``work`` makes of it, as they come, by so many threads of one core each."""
    if workers <= 1:
        yield from ((batch, work(batch)) for batch in batches)
        return
    workers, threads = min(workers, len(batches)), torch.get_num_threads()
    if workers <= 1:
        torch.set_num_threads(1)
        try:
            yield from ((batch, work(batch)) for batch in batches)
        finally:
            torch.set_num_threads(threads)
        return
    pool = ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,))
    try:
        futures = {pool.submit(work, batch): batch for batch in batches}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)


def _openvino_problem(model: Transformer, device: str) -> str | None:
    """Why OpenVINO cannot compute this model there, in one line; None when it can."""
    if device != "cpu":
        return f"it computes on the CPU here, and the device is {device}"
    if model.config.neighbourhood:
        return "it does not know attention to a neighbourhood"
    if importlib.util.find_spec("openvino") is None:
        return f"it is not installed: {_INSTALL}"
    return None
