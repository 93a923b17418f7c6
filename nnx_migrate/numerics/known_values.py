"""Traces in which all but what hangs on their arguments has values, where it has some in a plain call.

::

    with known_values():
        jax.eval_shape(make, key)  # jnp.linspace(0, 0.2, 3)[1].item() in ``make`` is a number

Large arrays (:data:`~nnx_migrate.numerics.large_constants.MOST_BYTES`) have none.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import jax
from jax.extend.core import take_current_trace

from nnx_migrate.numerics.large_constants import large_constants_abstract


@contextlib.contextmanager
def known_values() -> Iterator[None]:
    """Compute what is known in the traces of a block; in a trace around it nothing is, and nothing is computed."""
    if is_traced():
        yield
    else:
        with large_constants_abstract(), jax.ensure_compile_time_eval():
            yield


def is_traced() -> bool:
    """Whether operations on known arrays are traced here: below ``jax.jit``, not below ``jax.vmap`` alone."""
    with take_current_trace() as trace:
        while trace is not None:
            if type(trace).__name__ == "DynamicJaxprTrace":
                return True
            trace = getattr(trace, "parent_trace", None)
    return False
