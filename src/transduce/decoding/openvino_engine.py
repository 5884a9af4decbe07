"""The same steps in OpenVINO, which is about twice as fast on a CPU: see `docs/results.md`.

OpenVINO is optional; `transduce.decoding.engines` decides. Importing this module imports it.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float, Int
from torch import Tensor

from transduce.decoding.candidates import Scored
from transduce.decoding.choice import Choice
from transduce.decoding.openvino_graph import Graphs
from transduce.decoding.quiet_openvino import openvino
from transduce.model.positional_encoding import PositionalEncoding, sinusoids
from transduce.model.transformer import Transformer

# Added to the scores of hidden positions: what is left of them is 0 in every precision.
_HIDDEN = -1e30
# The inputs that say where tokens stand.
_Places = dict[str, npt.NDArray[np.float32]]
# Within this distance of 0 the logarithm of a sum of exponentials is as exact as if they had been scaled.
_SAFE = 60.0


class _Session:
    """The runtime's memory of one search: two requests, used by nobody else meanwhile."""

    def __init__(self, encoder: Any, decoder: Any) -> None:
        self.encoder, self.decoder = encoder, decoder
        self.steps = 0
        self.held: dict[str, Any] = {}
        self._own: dict[str, npt.NDArray[Any]] = {}

    def give(self, name: str, value: Tensor | Any) -> None:
        """Nothing; the decoder reads ``value``, which is kept alive, as its input ``name``."""
        if isinstance(value, Tensor):
            value = openvino.Tensor(value.contiguous().numpy(), shared_memory=True)
        self.held[name] = value
        self.decoder.set_tensor(name, value)

    def write(self, name: str, value: npt.NDArray[Any]) -> None:
        """Nothing; the decoder's input ``name`` is ``value``, copied to where it was read last time."""
        own = self._own.get(name)
        if own is None or own.shape != value.shape:
            own = self._own[name] = value.copy()
            self.give(name, openvino.Tensor(own, shared_memory=True))
        np.copyto(own, value)


@dataclass(frozen=True)
class RuntimeState:
    """A place in one search. It can be continued once: the runtime keeps the newest step only.

    ``pending`` are the rows of the last step that the next one continues (None: all, in their order).
    """

    session: _Session
    memory: tuple[Any, ...]
    bias: Tensor
    pending: Int[Tensor, " rows"] | None
    length: int
    choice: Choice | None = None

    def rows(
        self, hypotheses: Int[Tensor, " rows"], sentences: Int[Tensor, " kept"] | None = None
    ) -> RuntimeState:
        """The state whose hypothesis i is this one's ``hypotheses[i]``, for the ``sentences`` that stay."""
        pending = hypotheses if self.pending is None else self.pending[hypotheses]
        state = replace(self, pending=pending)
        if sentences is None:
            return state
        memory = tuple(_torch(tensor).index_select(0, sentences) for tensor in self.memory)
        choice = None if self.choice is None else self.choice.kept(sentences)
        state = replace(state, memory=memory, bias=self.bias.index_select(0, sentences), choice=choice)
        state.hand_over()
        return state

    def hand_over(self) -> None:
        """Nothing; the runtime reads the memory of this state from now on."""
        for i, tensor in enumerate(self.memory):
            self.session.give(f"{'kv'[i % 2]}{i // 2}", tensor)
        self.session.give("bias", self.bias)
        if self.choice is not None:
            self.session.give("columns", self.choice.columns.int())
            self.session.give("hidden", self.choice.hidden[:, None])


class OpenVinoEngine:
    """Encodes and steps on the CPU, in any number of threads at once; each search uses one core.

    ``precision`` is fp32, bf16 or int8 (int8 weights; activations as the processor computes fastest).
    """

    name = "openvino"

    def __init__(self, model: Transformer, *, precision: str, workers: int, forbidden: Sequence[int]) -> None:
        self._graphs = Graphs(model, weights="int8" if precision == "int8" else "fp32", forbidden=forbidden)
        self._options: dict[str, str | bool | int] = {
            "INFERENCE_PRECISION_HINT": "bf16" if precision == "bf16" else "f32",
            "KV_CACHE_PRECISION": "bf16" if precision == "bf16" else "f32",
            "ENABLE_CPU_PINNING": False,
        }
        if precision != "int8":
            self._options["DYNAMIC_QUANTIZATION_GROUP_SIZE"] = 0
        self._core = openvino.Core()
        self.workers, self._model = workers, model
        self._once = Lock()
        self._compiled: dict[tuple[str, bool], Any] = {}
        self._idle: dict[bool, deque[tuple[tuple[Any, Any], bool]]] = {False: deque(), True: deque()}
        self._session(choosing=False)  # what cannot be compiled is said at once
        self._targets: dict[int, _Places] = {}

    def start(self, source: Int[Tensor, "sentences source"], choice: Choice | None = None) -> RuntimeState:
        """The state before the first target token; ``source`` is padded at its end."""
        session = self._session(choosing=choice is not None)
        encoder = session.encoder
        bias = torch.zeros(source.shape).masked_fill_(source == self._model.config.pad_id, _HIDDEN)
        bias = bias[:, None, None]
        length = source.shape[1]
        inputs = {
            "ids": source.int().numpy(),
            "bias": bias.numpy(),
            **self._places(self._model.source_positions, 0, length),
        }
        encoder.infer(inputs, share_inputs=True, share_outputs=True)
        memory = tuple(encoder.get_output_tensor(i) for i in range(2 * self._model.config.decoder_layers))
        state = RuntimeState(session, memory, bias, None, 0, choice)
        if choice is not None:
            session.give("matrix", self._output.index_select(0, choice.union))
        state.hand_over()
        return state

    @cached_property
    def _output(self) -> Tensor:
        """The output matrix, of which a choice takes rows; made when the first choice asks for it."""
        return torch.from_numpy(self._graphs.rounded_output_matrix())

    def _session(self, *, choosing: bool) -> _Session:
        """Two requests that nobody else uses until the session is forgotten."""
        idle = self._idle[choosing]
        try:
            pair, alone = idle.pop()
        except IndexError:
            pair, alone = self._requests(choosing=choosing)
        session = _Session(*pair)
        # Those that compute where they are asked come first.
        weakref.finalize(session, idle.append if alone else idle.appendleft, (pair, alone))
        session.decoder.reset_state()
        return session

    def _requests(self, *, choosing: bool) -> tuple[tuple[Any, Any], bool]:
        """Requests for the encoder and a decoder, and whether they are the first for it.

        The first compute in the thread that asks: to hand a step to another core and back takes longer than
        the step of a small model. The others share a second copy, in which as many as there are workers
        besides the first can compute at once.
        """
        decoder = "choosing" if choosing else "decoder"
        with self._once:
            alone = (decoder, True) not in self._compiled
            models = [self._model_of(graph, alone=alone) for graph in ("encoder", decoder)]
        encoder, other = (model.create_infer_request() for model in models)
        return (encoder, other), alone

    def _model_of(self, graph: str, *, alone: bool) -> Any:
        if (graph, alone) not in self._compiled:
            streams = 1 if alone else max(1, self.workers - 1)
            built = (
                self._graphs.encoder()
                if graph == "encoder"
                else self._graphs.decoder(choosing=graph == "choosing")
            )
            options = {**self._options, "INFERENCE_NUM_THREADS": streams, "NUM_STREAMS": streams}
            self._compiled[graph, alone] = self._core.compile_model(built, "CPU", options)
        return self._compiled[graph, alone]

    def step(self, tokens: Int[Tensor, " rows"], state: RuntimeState) -> tuple[Scored, RuntimeState]:
        """What may follow each of ``tokens``, and the state after them."""
        session, request = state.session, state.session.decoder
        assert session.steps == state.length, "a state of the runtime can be continued once only"
        sentences, config = len(state.bias), self._model.config
        pending = torch.arange(len(tokens)) if state.pending is None else state.pending
        session.write("tokens", tokens.int().numpy())
        session.write("rows", pending.int().numpy())
        session.write("group", np.array([sentences, len(tokens) // sentences, config.d_model]))
        for name, value in self._place(state.length).items():
            session.write(name, value)
        request.infer(share_outputs=True)
        session.steps += 1
        logits, log_sum = (_torch(request.get_output_tensor(i)) for i in range(2))
        tokens_of = None if state.choice is None else state.choice.tokens
        state = replace(state, pending=None, length=state.length + 1)
        return Scored(logits, _exact(log_sum, logits), config.vocabulary, tokens_of), state

    def _place(self, offset: int) -> _Places:
        """The inputs that say where the target token at ``offset`` stands, kept for the next search."""
        if offset not in self._targets:
            self._targets[offset] = self._places(self._model.target_positions, offset, 1)
        return self._targets[offset]

    def _places(self, table: PositionalEncoding, offset: int, length: int) -> _Places:
        """The graphs' inputs that say where ``length`` tokens from ``offset`` on stand."""
        config = self._model.config
        if config.positions == "rotary":
            turns = sinusoids(length, config.d_k, offset).float()[None, None]
            halves = {"sine": turns[..., 0::2], "cosine": turns[..., 1::2]}
            return {name: half.contiguous().numpy() for name, half in halves.items()}
        rows = table.rows(offset + length, torch.device("cpu"))[offset:].detach().float()
        return {"positions": rows[None].contiguous().numpy()}


def _torch(tensor: Any) -> Tensor:
    """The runtime's tensor as torch's, without a copy."""
    return tensor if isinstance(tensor, Tensor) else torch.from_numpy(tensor.data)


def _exact(log_sum: Float[Tensor, "rows 1"], logits: Float[Tensor, "rows wide"]) -> Float[Tensor, "rows 1"]:
    """``log_sum``, worked out again with care where exponentials may have left the range of float32."""
    safe = np.abs(log_sum.numpy()) < _SAFE
    if safe.all():
        return log_sum
    return torch.where(torch.from_numpy(safe), log_sum, logits.logsumexp(1, keepdim=True))
