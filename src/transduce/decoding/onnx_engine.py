"""The steps of an exported model in onnxruntime.

onnxruntime is optional; `transduce.decoding.engines` decides. Importing this module imports it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnxruntime
import torch
from jaxtyping import Float, Int
from torch import Tensor

from transduce.counts import counted
from transduce.decoding.candidates import Scored
from transduce.decoding.choice import Choice
from transduce.decoding.onnx_folder import DECODER, ENCODER, OnnxFolder
from transduce.errors import BundleError, DataError


@dataclass(frozen=True)
class OnnxState:
    """What the decoder is given again: ``memory`` has a row per sentence, ``past`` one per hypothesis."""

    memory: Mapping[str, Tensor]
    past: Mapping[str, Tensor]
    length: int
    choice: Choice | None = None

    @property
    def sentences(self) -> int:
        """The number of sentences whose memory is held."""
        return len(self.memory["memory_hidden"])

    def rows(
        self, hypotheses: Int[Tensor, " rows"], sentences: Int[Tensor, " kept"] | None = None
    ) -> OnnxState:
        """The state whose hypothesis i is this one's ``hypotheses[i]``, for the ``sentences`` that stay."""
        past = {name: value.index_select(0, hypotheses) for name, value in self.past.items()}
        if sentences is None:
            return replace(self, past=past)
        memory = {name: value.index_select(0, sentences) for name, value in self.memory.items()}
        choice = None if self.choice is None else self.choice.kept(sentences)
        return replace(self, past=past, memory=memory, choice=choice)


class OnnxEngine:
    """Encodes and steps on the CPU, in any number of threads at once; each search uses one core."""

    name = "onnx"

    def __init__(self, folder: OnnxFolder, *, workers: int) -> None:
        self.folder, self.workers = folder, workers
        self._encoder, self._decoder = (_session(folder.path / name) for name in (ENCODER, DECODER))
        self._memory = [output.name for output in self._encoder.get_outputs()]
        self._given = [output.name for output in self._decoder.get_outputs()]

    def start(self, source: Int[Tensor, "sentences source"], choice: Choice | None = None) -> OnnxState:
        """The state before the first target token; ``source`` is padded at its end."""
        self._check_length(source.shape[1])
        found = self._encoder.run(self._memory, {"source": source.int().numpy()})
        memory = dict(zip(self._memory, map(torch.from_numpy, found), strict=True))
        config = self.folder.config
        widths = {"keys": config.d_k, "values": config.d_v}
        past = {
            f"past_{kind}_{layer}": torch.zeros(len(source), config.heads, 0, width)
            for layer in range(config.decoder_layers)
            for kind, width in widths.items()
        }
        return OnnxState(memory, past, 0, choice)

    def step(self, tokens: Int[Tensor, " rows"], state: OnnxState) -> tuple[Tensor | Scored, OnnxState]:
        """What may follow each of ``tokens``, and the state after them."""
        logits, state = self.decode(tokens[:, None], state)
        logits = logits[:, 0]
        if state.choice is None:
            return logits, state
        chosen = state.choice.own(logits.index_select(1, state.choice.union))
        log_sum = chosen.logsumexp(1, keepdim=True)
        return Scored(chosen, log_sum, self.folder.config.vocabulary, state.choice.tokens), state

    def forced(
        self, source: Int[Tensor, "pairs source"], target_in: Int[Tensor, "pairs target"]
    ) -> Float[Tensor, "pairs target vocabulary"]:
        """Logits for every target position at once, as `Transformer.forward` gives them."""
        return self.decode(target_in, self.start(source))[0]

    def decode(
        self, target: Int[Tensor, "rows new"], state: OnnxState
    ) -> tuple[Float[Tensor, "rows new vocabulary"], OnnxState]:
        """Logits for the token after each of ``target``, and the state after them."""
        length = state.length + target.shape[1]
        self._check_length(length)
        inputs = {"target": target.int().numpy()}
        inputs |= {name: value.numpy() for part in (state.memory, state.past) for name, value in part.items()}
        found = dict(
            zip(self._given, map(torch.from_numpy, self._decoder.run(self._given, inputs)), strict=True)
        )
        past = {name: found[name.replace("past", "present", 1)] for name in state.past}
        return found["logits"], replace(state, past=past, length=length)

    def _check_length(self, length: int) -> None:
        if length > self.folder.positions:
            raise DataError(
                f"a sequence of {counted(length, 'token')} is longer than the {self.folder.positions} "
                f"positions of {self.folder.path}; split or truncate the line, or allow fewer extra tokens"
            )


def _session(path: Path) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the library's own exceptions have no other base
        said = " ".join(str(error).split())
        raise BundleError(f"{path}: onnxruntime cannot load it ({said}); export the model again") from None
