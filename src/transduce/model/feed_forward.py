"""Section 3.3, equation 2: FFN(x) = max(0, x W1 + b1) W2 + b2."""

from __future__ import annotations

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor, nn

from transduce.model.dropout import Dropout

# What stands for max(0, x); of the paper is the first. The others are those of imported models.
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": nn.functional.relu_,
    "swish": nn.functional.silu,
    "gelu": nn.functional.gelu,
}


class FeedForward(nn.Module):
    """Equation 2, applied to each position separately; width d_model -> d_ff -> d_model."""

    def __init__(self, d_model: int, d_ff: int, relu_dropout: float = 0.0, activation: str = "relu") -> None:
        super().__init__()
        self.w_1 = nn.Linear(d_model, d_ff)
        self.w_2 = nn.Linear(d_ff, d_model)
        self.dropout = Dropout(relu_dropout)
        self.activation = ACTIVATIONS[activation]

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """max(0, x W1 + b1) W2 + b2."""
        y: Tensor = self.w_2(self.dropout(self.activation(self.w_1(x))))
        return y
