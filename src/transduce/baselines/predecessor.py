"""What both baselines are to training, search and evaluation: a `Transformer` with another kind of state."""

from __future__ import annotations

from typing import Any

from jaxtyping import Float, Int
from torch import Tensor

from transduce.model.transformer import Transformer


class Predecessor(Transformer):
    """A model with the interface of a `Transformer`: ``start``, ``features``, ``decode``, ``embeddings``.

    Its state is its own, with ``sentences`` and ``rows`` as a `DecoderState` has them.
    """

    def decode(self, target: Int[Tensor, "rows new"], state: Any) -> tuple[Float[Tensor, "rows new v"], Any]:
        """Logits for the token after each of ``target``, and the state after them."""
        features, state = self.features(target, state)
        return self.embeddings.logits(features), state
