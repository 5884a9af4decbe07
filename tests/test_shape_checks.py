"""The shapes in signatures are checked in every process that runs tests, as jaxtyping itself would."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jaxtyping
import pytest
import torch
from beartype import beartype
from beartype.roar import BeartypeCallHintViolation
from jaxtyping import Float, Int
from torch import Tensor

import checked_calls
from transduce.model.config import ModelConfig
from transduce.model.feed_forward import FeedForward
from transduce.model.transformer import Transformer

REFUSED = (jaxtyping.TypeCheckError, BeartypeCallHintViolation)


def test_a_wrong_shape_is_refused() -> None:
    model = Transformer(
        ModelConfig(vocabulary=9, d_model=8, d_ff=8, heads=2, encoder_layers=1, decoder_layers=1)
    )
    with pytest.raises(jaxtyping.TypeCheckError, match="source"):
        model.encode(torch.zeros(3, dtype=torch.long))
    with pytest.raises(jaxtyping.TypeCheckError):
        FeedForward(8, 8)(torch.zeros(2, 8, dtype=torch.long))


def test_a_wrong_type_is_refused() -> None:
    with pytest.raises(REFUSED, match="d_model"):
        ModelConfig(vocabulary=9, d_model="8")  # type: ignore[arg-type]


def product(one: Float[Tensor, "rows n"], other: Float[Tensor, "n columns"]) -> Float[Tensor, "rows columns"]:
    return one @ other


def transposed(one: Float[Tensor, "rows columns"]) -> Float[Tensor, "rows columns"]:
    return one.T


def square(one: Float[Tensor, "n n 3"], *more: Int[Tensor, "#n _any"]) -> int:
    return len(one) + len(more)


def any_rows(one: Float[Tensor, "*rows n"], other: Float[Tensor, "... n"] | None = None) -> Tensor:
    return one


def nested(one: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
    """Sizes are named in each call apart."""
    return checked_calls.jaxtyped(transposed)(one[None].repeat(len(one), 1))[0]


def pairs(one: dict[str, list[int]], *, two: tuple[str, ...] = ()) -> list[int]:
    return [*one.get("a", ()), *map(len, two)] or "none"  # type: ignore[return-value]


def items(one: Float[Tensor, " n"]) -> Iterator[Float[Tensor, ""]]:
    yield from one


def nowhere(one: NotThere) -> NotThere:  # type: ignore[name-defined]  # noqa: F821
    return one


ones, whole = torch.ones, torch.ones(2, 3, dtype=torch.long)
CALLS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    *((product, (ones(2, 3), other)) for other in (ones(3, 4), ones(4, 3), ones(3), whole.T, None)),
    *((transposed, (one,)) for one in (ones(2, 2), ones(2, 3), ones(2, 2, 2), ones(2, 2).bool())),
    *((square, (one,)) for one in (ones(2, 2, 3), ones(2, 2, 4), ones(2, 3, 3), ones(0, 0, 3))),
    *((square, (ones(2, 2, 3), more)) for more in (whole, whole[:1], whole.T, whole[0], ones(2, 3))),
    *((any_rows, (ones(2, 3), other)) for other in (ones(3), ones(4, 3), ones(3, 4), ones(5, 2, 3), None, 1)),
    *((any_rows, (one,)) for one in (ones(3), torch.tensor(3.0), ones(1, 2, 3, 4), whole)),
    *((nested, (one,)) for one in (ones(3), ones(1), ones(2, 2))),
    *((pairs, ({"a": [number]},)) for number in (1, "1", 1.5)),
    *((pairs, call) for call in (({},), ({"b": [1]},), ({1: [1]},), ([],), ({"a": [1]}, 2))),
    *((items, (one,)) for one in (ones(3), ones(2, 2), 3)),
    (nowhere, (3,)),
]  # fmt: skip


def outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> str:
    try:
        function(*arguments)
    except REFUSED:
        return "refused"
    except TypeError:
        return "cannot be called so"
    return "accepted"


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call[0].__name__)
def test_what_is_refused_is_what_jaxtyping_refuses(call: tuple[Callable[..., Any], tuple[Any, ...]]) -> None:
    function, arguments = call
    from jaxtyping._decorator import jaxtyped

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(jaxtyping.AbstractArray), "__instancecheck__", checked_calls._judged_by_jaxtyping)
        expected = outcome(jaxtyped(function, typechecker=beartype), arguments)
    checked = checked_calls.jaxtyped(function, typechecker=beartype)
    assert [outcome(checked, arguments) for _ in range(3)] == [expected] * 3


def test_both_outcomes_are_among_the_calls() -> None:
    found = {outcome(checked_calls.jaxtyped(f, typechecker=beartype), arguments) for f, arguments in CALLS}
    assert found == {"accepted", "refused", "cannot be called so"}


def test_fields_of_dataclasses_are_checked() -> None:
    @checked_calls.jaxtyped(typechecker=beartype)
    @dataclass
    class Named:
        size: int

    assert Named(3).size == 3
    with pytest.raises(REFUSED, match="size"):
        Named("3")  # type: ignore[arg-type]


def test_a_call_that_was_refused_leaves_no_sizes_behind() -> None:
    checked = checked_calls.jaxtyped(product, typechecker=beartype)
    for _ in range(2):
        with pytest.raises(jaxtyping.TypeCheckError, match="other"):
            checked(ones(2, 3), ones(4, 3))
        assert checked(ones(5, 4), ones(4, 3)).shape == (5, 3)


class Given:
    pass


def taken(one: Given, other: Later) -> Given:  # type: ignore[name-defined]  # noqa: F821
    return one


def test_types_are_those_of_the_moment_of_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test may replace a class before the first call; a name that came later was not there to be seen."""
    checked, given = checked_calls.jaxtyped(taken, typechecker=beartype), Given()
    monkeypatch.setitem(globals(), "Given", int)
    monkeypatch.setitem(globals(), "Later", int)
    assert checked(given, "no number") is given
    with pytest.raises(REFUSED, match="one"):
        checked(3, 3)
