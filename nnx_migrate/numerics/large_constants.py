"""Large arrays stay without values where jax computes what hangs on no argument of a trace.

``jax.ensure_compile_time_eval`` has no limit: for an initialiser of which only the shape is asked for, it computes
an identity matrix, gigabytes between two widths on trial. The method of jax's traces that decides what to
compute is replaced meanwhile (jax 0.10.2 and 0.12.0: ``DynamicJaxprTrace.process_primitive`` in
interpreters/partial_eval.py). Tests hold jax to it; without it there is no limit.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import jax

try:
    from jax._src.config import eager_constant_folding
    from jax._src.interpreters.partial_eval import DynamicJaxprTrace

    _Traces: Any = DynamicJaxprTrace
except ImportError:  # a later jax
    _Traces = None

# More than tables of angles and masks take, less than a kernel between two widths on trial.
MOST_BYTES = 2**28

_METHOD = "process_primitive"
_is_limited: ContextVar[bool] = ContextVar("_is_limited", default=False)
_lock = threading.Lock()
_originals: list[Callable[..., Any]] = []  # jax's own method, once per block that is open


@contextlib.contextmanager
def large_constants_abstract() -> Iterator[None]:
    """Compute no array of more than :data:`MOST_BYTES` in the traces of a block, in this thread."""
    if not hasattr(_Traces, _METHOD):
        yield
        return
    _install()
    token = _is_limited.set(True)
    try:
        yield
    finally:
        _is_limited.reset(token)
        _restore()


def _install() -> None:
    with _lock:
        if _originals:
            _originals.append(_originals[0])
        else:
            _originals.append(getattr(_Traces, _METHOD))
            setattr(_Traces, _METHOD, _with_limit(_originals[0]))


def _restore() -> None:
    with _lock:
        original = _originals.pop()
        if not _originals:
            setattr(_Traces, _METHOD, original)


def _with_limit(process: Callable[..., Any]) -> Callable[..., Any]:
    """The method; of a large result that it would compute, only the type."""

    def process_bounded(trace: Any, primitive: Any, values: Sequence[Any], params: Any, /) -> Any:
        folds = eager_constant_folding.value and _is_limited.get()
        if not folds or _bytes(primitive, values, params) <= MOST_BYTES:
            return process(trace, primitive, values, params)
        with eager_constant_folding(False):
            return process(trace, primitive, values, params)

    return process_bounded


def _bytes(primitive: Any, values: Sequence[Any], params: Any) -> int:
    """What an operation on known values takes for its results; of others, nothing is computed."""
    if any(isinstance(one, jax.core.Tracer) for one in values):
        return 0
    try:
        results, _ = primitive.abstract_eval(*map(jax.typeof, values), **params)
    except Exception:  # noqa: BLE001 - the operation itself raises what there is to raise
        return 0
    arrays = results if primitive.multiple_results else [results]
    return sum(math.prod(one.shape) * one.dtype.itemsize for one in arrays if hasattr(one, "dtype"))
