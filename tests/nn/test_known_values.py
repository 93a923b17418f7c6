"""What is known in a trace has values, but for arrays so large that only their shapes can be meant."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src.interpreters.partial_eval import DynamicJaxprTrace

from nnx_migrate.numerics.known_values import known_values
from nnx_migrate.numerics.large_constants import MOST_BYTES, large_constants_abstract

WIDE = 2**14  # a square of it has four times as many bytes as may be


def _made(make: Callable[[jax.Array], Any]) -> Any:
    """What ``make`` gives for a key without values, in a trace of known values."""
    found: list[Any] = []

    def run(key: jax.Array) -> None:
        found.append(make(key))

    with known_values():
        jax.eval_shape(run, jax.eval_shape(jax.random.key, 0))
    return found[0]


@pytest.mark.parametrize(
    "make",
    [
        lambda: jnp.zeros((WIDE, WIDE)),
        lambda: jnp.eye(WIDE),
        lambda: jnp.eye(WIDE)[:2],
        lambda: jnp.outer(jnp.arange(WIDE), jnp.arange(WIDE)),
        lambda: jax.jit(lambda x: jnp.tile(x, WIDE))(jnp.ones(WIDE)),
        lambda: jax.vmap(lambda x: jnp.ones(WIDE) * x)(jnp.arange(WIDE)),
        lambda: jax.random.normal(jax.random.key(0), (WIDE, WIDE)),
    ],
)
def test_large_arrays_have_no_values(make: Callable[[], Any]) -> None:
    assert isinstance(_made(lambda _: make()), jax.core.Tracer)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: jnp.linspace(0, 0.2, 3)[1].item(), np.float32(0.1)),
        (lambda: jnp.arange(WIDE)[-1].item(), WIDE - 1),
        (lambda: int(jnp.sqrt(jnp.ones((1024, 1024)).sum())), 1024),
        (lambda: jax.jit(lambda x: x + 1)(jnp.ones(())).item(), 2),
        (lambda: jax.random.key_data(jax.random.key(3))[1].item(), 3),
    ],
)
def test_others_have_theirs(make: Callable[[], Any], expected: Any) -> None:
    assert _made(lambda _: make()) == expected


def test_an_orthogonal_kernel_of_a_width_on_trial_computes_nothing() -> None:
    """Its identity matrices were made: 13 GB."""
    width = 61 * 64 * 15
    kernel = _made(lambda key: jax.nn.initializers.orthogonal()(key, (width, width)))
    assert kernel.shape == (width, width)


def test_jax_is_left_as_it_was() -> None:
    own = DynamicJaxprTrace.process_primitive
    with large_constants_abstract(), large_constants_abstract():
        assert DynamicJaxprTrace.process_primitive is not own
    with pytest.raises(ZeroDivisionError), large_constants_abstract():
        _ = 1 // 0
    assert DynamicJaxprTrace.process_primitive is own


def test_other_threads_compute_what_they_ask_for() -> None:
    found: list[Any] = []

    def ask() -> None:
        def run() -> None:
            with jax.ensure_compile_time_eval():
                found.append(jnp.zeros(MOST_BYTES + 1, jnp.int8))

        jax.eval_shape(run)

    with known_values():
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
    assert not isinstance(found[0], jax.core.Tracer)
