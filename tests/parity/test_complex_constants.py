"""Programs with complex constants are compared like any other."""

import jax
import jax.numpy as jnp

from nnx_migrate.parity.programs import graphs


def text(factor):
    def function(x):
        return x * factor

    return jax.jit(function).lower(jnp.ones(3, jnp.complex64)).as_text()


def test_the_same_complex_constant_is_the_same():
    assert graphs.equal_by_rules(text(1j), text(1j)) is not None


def test_another_complex_constant_is_another_program():
    assert graphs.equal_by_rules(text(1j), text(2j)) is None
