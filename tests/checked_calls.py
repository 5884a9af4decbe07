"""Types and shapes of every call in transduce are checked while tests run, at a part of the usual price.

`--jaxtyping-packages` (pyproject.toml) puts jaxtyping's decorator on every function when a module is loaded.
That decorator makes three functions of each at once, and at each call binds the arguments, checks them,
calls, and checks them once more with the result. `install` puts another in its place, which checks the same
annotations of the same calls: it makes a function's checks when that is first called, checks arguments and
result once each, and remembers sizes (the names in a shape) only for functions that have shapes. Whether a
tensor has a shape is decided in a few lines for those that fit; what seems not to fit, jaxtyping judges.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any, get_args, get_type_hints

import jaxtyping
from beartype import beartype
from beartype.roar import BeartypeCallHintViolation
from jaxtyping import _array_types as arrays
from jaxtyping import _storage as storage
from jaxtyping._decorator import jaxtyped as plain_jaxtyped

_NOT_PLAIN = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_Shape = type(jaxtyping.AbstractArray)
_judged_by_jaxtyping = _Shape.__instancecheck__
# By shape: its sizes (a number, a name, or None for any), or None where there is more to it; its types.
_sizes: dict[type, tuple[int | str | None, ...] | None] = {}
_types: dict[tuple[type, Any], bool] = {}


def install() -> None:
    """Nothing; modules of transduce that are loaded from now on are checked in this way."""
    jaxtyping.jaxtyped = jaxtyped
    _Shape.__instancecheck__ = _has_this_shape


def jaxtyped(fn: Any = None, *, typechecker: Any = None) -> Any:
    """``fn`` with its calls checked, as `jaxtyping.jaxtyped` does it; without ``fn``, a function of it."""
    if fn is None:
        return functools.partial(jaxtyped, typechecker=typechecker)
    if isinstance(fn, type):
        if "__dataclass_fields__" in vars(fn) and "__init__" in vars(fn):
            fn.__init__ = jaxtyped(fn.__init__, typechecker=typechecker)
        return fn
    if not isinstance(fn, types.FunctionType) or fn.__code__.co_flags & _NOT_PLAIN:
        return plain_jaxtyped(fn, typechecker=typechecker)
    return _checked(fn)


def _checked(fn: types.FunctionType) -> Callable[..., Any]:
    # Now, as jaxtyping does it: later a test may have put something else in the place of a name.
    hints = {name: _resolved(hint, fn) for name, hint in fn.__annotations__.items()}
    call: Callable[..., Any] | None = None

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        nonlocal call
        __tracebackhide__ = True
        if jaxtyping.config.jaxtyping_disable:
            return fn(*args, **kwargs)
        if call is None:
            call = _with_types(fn, hints)
        return call(*args, **kwargs)

    return wrapper


def _with_types(fn: types.FunctionType, hints: dict[str, Any]) -> Callable[..., Any]:
    """A copy of ``fn`` that refuses arguments and results of other types than ``hints`` says."""
    copy = types.FunctionType(fn.__code__, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)
    copy.__kwdefaults__, copy.__qualname__, copy.__module__ = (
        fn.__kwdefaults__,
        fn.__qualname__,
        fn.__module__,
    )
    copy.__annotations__ = hints
    typed = beartype(copy)
    if not any(map(_has_shape, hints.values())):
        return typed

    def with_sizes(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        storage.push_shape_memo({})
        try:
            return typed(*args, **kwargs)
        except BeartypeCallHintViolation as error:
            raise jaxtyping.TypeCheckError(str(error)) from error
        finally:
            storage.pop_shape_memo()

    return with_sizes


def _resolved(hint: Any, fn: types.FunctionType) -> Any:
    """The type that an annotation names; Any where that is not there at run time."""

    def one(value: Any) -> None: ...

    one.__annotations__ = {"value": hint}
    try:
        return get_type_hints(one, fn.__globals__, include_extras=True)["value"]
    except Exception:
        return Any


def _has_shape(hint: Any) -> bool:
    return isinstance(hint, _Shape) or any(map(_has_shape, get_args(hint)))


def _has_this_shape(shape: Any, value: Any) -> bool:
    """Whether ``value`` has this type and shape, given the sizes that the call has named so far."""
    sizes = _sizes[shape] if shape in _sizes else _sizes.setdefault(shape, _plain_sizes(shape))
    stack = getattr(storage._shape_storage, "memo_stack", None)
    if sizes is None or not stack or not isinstance(value, shape.array_type):
        return _judged_by_jaxtyping(shape, value)
    kind, found = (shape, value.dtype), value.shape
    if not _types.get(kind) or len(found) != len(sizes):
        _types[kind] = _types.get(kind, False) or _judged_by_jaxtyping(shape, value)
        return _judged_by_jaxtyping(shape, value)
    known, added = stack[-1][0], []
    for size, wanted in zip(found, sizes, strict=True):
        expected = known.get(wanted) if isinstance(wanted, str) else wanted
        if expected is None and wanted is not None:
            known[wanted] = size
            added.append(wanted)
        elif expected is not None and expected != size:
            for name in added:
                del known[name]
            return _judged_by_jaxtyping(shape, value)
    return True


def _plain_sizes(shape: Any) -> tuple[int | str | None, ...] | None:
    if shape.array_type is Any or not isinstance(shape.array_type, type) or shape._skip_instancecheck:
        return None
    sizes: list[int | str | None] = []
    for size in shape.dims:
        if size is arrays._anonymous_dim:
            sizes.append(None)
        elif getattr(size, "broadcastable", True) or getattr(size, "treepath", False):
            return None
        elif isinstance(size, arrays._FixedDim):
            sizes.append(size.size)
        elif isinstance(size, arrays._NamedDim):
            sizes.append(size.name)
        else:
            return None
    return tuple(sizes)
