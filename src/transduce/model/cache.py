"""What decoding remembers: values that are handed in and handed back, never attributes of a module."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

# Room is made for this many more tokens whenever a cache is full, so that most steps copy nothing.
CHUNK = 16


class _Storage:
    """One allocation for keys and values, of which the first ``used`` positions are taken."""

    def __init__(self, keys: Tensor, values: Tensor, used: int) -> None:
        self.keys, self.values, self.used = keys, values, used


@dataclass(frozen=True)
class KeysValues:
    """Keys and values of one attention layer for ``length`` positions.

    ``append`` writes into spare room where the room is unclaimed and copies otherwise, so a value that was
    handed out never changes.
    """

    storage: _Storage
    length: int

    @classmethod
    def of(
        cls, keys: Float[Tensor, "rows heads keys d_k"], values: Float[Tensor, "rows heads keys d_v"]
    ) -> KeysValues:
        """A cache that holds exactly these keys and values."""
        return cls(_Storage(keys, values, keys.shape[2]), keys.shape[2])

    @property
    def keys(self) -> Float[Tensor, "rows heads keys d_k"]:
        """The keys that were stored so far."""
        return self.storage.keys[:, :, : self.length]

    @property
    def values(self) -> Float[Tensor, "rows heads keys d_v"]:
        """The values that were stored so far."""
        return self.storage.values[:, :, : self.length]

    def append(
        self, keys: Float[Tensor, "rows heads new d_k"], values: Float[Tensor, "rows heads new d_v"]
    ) -> KeysValues:
        """A cache with these positions added at the end; this one stays as it is."""
        length = self.length + keys.shape[2]
        if torch.is_grad_enabled() and (keys.requires_grad or self.storage.keys.requires_grad):
            # Autograd must see every step, so nothing is written in place.
            return KeysValues.of(torch.cat([self.keys, keys], 2), torch.cat([self.values, values], 2))
        storage = self.storage
        if storage.used != self.length or length > storage.keys.shape[2]:
            storage = _Storage(_roomy(self.keys, length), _roomy(self.values, length), self.length)
        storage.keys[:, :, self.length : length] = keys
        storage.values[:, :, self.length : length] = values
        storage.used = length
        return KeysValues(storage, length)

    def rows(self, index: Int[Tensor, " rows"]) -> KeysValues:
        """A cache whose row i is row ``index[i]`` of this one; spare room comes along, to be appended to."""
        keys, values = (x.index_select(0, index) for x in (self.storage.keys, self.storage.values))
        return KeysValues(_Storage(keys, values, self.length), self.length)


def _roomy(tensor: Tensor, length: int) -> Tensor:
    rows, heads, used, width = tensor.shape
    room = tensor.new_empty((rows, heads, length + CHUNK, width))
    room[:, :, :used] = tensor
    return room


@dataclass(frozen=True)
class DecoderState:
    """All that the decoder needs to go on: one value, from which several continuations may be made.

    ``self_attention`` has one row per hypothesis. ``memory`` (the encoder's output, projected to keys and
    values of each layer once) has one row per sentence; the hypotheses of a sentence stand next to each
    other, ``rows // sentences`` of them.
    """

    memory: tuple[KeysValues, ...]
    memory_mask: Bool[Tensor, "sentences 1 1 source"] | None
    self_attention: tuple[KeysValues, ...]
    length: int

    @property
    def sentences(self) -> int:
        """The number of sentences whose memory is held."""
        return self.memory[0].keys.shape[0]

    def rows(
        self, hypotheses: Int[Tensor, " rows"], sentences: Int[Tensor, " kept"] | None = None
    ) -> DecoderState:
        """The state whose hypothesis i is hypothesis ``hypotheses[i]`` of this one.

        ``sentences`` selects the sentences that stay (all by default). Hypotheses must stay grouped by
        sentence, and each sentence must have the same number of them.
        """
        memory, mask = self.memory, self.memory_mask
        if sentences is not None:
            memory = tuple(layer.rows(sentences) for layer in memory)
            mask = None if mask is None else mask.index_select(0, sentences)
        kept = tuple(layer.rows(hypotheses) for layer in self.self_attention)
        return DecoderState(memory, mask, kept, self.length)
