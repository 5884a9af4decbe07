"""The shapes in signatures are checked in every process that runs tests."""

from __future__ import annotations

import jaxtyping
import pytest
import torch

from transduce.model.config import ModelConfig
from transduce.model.feed_forward import FeedForward
from transduce.model.transformer import Transformer


def test_a_wrong_shape_is_refused() -> None:
    model = Transformer(
        ModelConfig(vocabulary=9, d_model=8, d_ff=8, heads=2, encoder_layers=1, decoder_layers=1)
    )
    with pytest.raises(jaxtyping.TypeCheckError, match="source"):
        model.encode(torch.zeros(3, dtype=torch.long))
    with pytest.raises(jaxtyping.TypeCheckError):
        FeedForward(8, 8)(torch.zeros(2, 8, dtype=torch.long))
