"""Functions with decorators: followed when every decorator is understood."""

from __future__ import annotations

import pytest

from tests.sizes.inference import compact, sites, sizes_of

FUNCTION = """
import jaxtyping as jt
import typeguard
from somewhere import mystery

def typed(function):
    return jt.jaxtyped(function, typechecker=typeguard.typechecked)

def doubled(function):
    def wrapper(x):
        return jnp.concatenate([function(x), function(x)], axis=-1)
    return wrapper

{}
def half(x):
    return x[..., :4]
"""


@pytest.mark.parametrize(
    ("decorators", "size"),
    [
        ("@jax.jit", "4"),
        ("@functools.partial(jax.jit, static_argnums=0)", "4"),
        ("@typed", "4"),
        ("@jt.jaxtyped(typechecker=typeguard.typechecked)", "4"),
        ("@doubled", "8"),
        ("@jax.jit\n@typed\n@jax.checkpoint", "4"),
    ],
)
def test_the_decorators_are_called(decorators: str, size: str) -> None:
    body = "return nn.Dense(3)(half(nn.Dense(9)(x)))"
    found = sizes_of(compact(body, before=FUNCTION.format(decorators)))
    assert sites(found)["nn.Dense(3)"] == {"in_features": size}


@pytest.mark.parametrize("decorators", ["@mystery", "@mystery(3)", "@jax.jit\n@mystery"])
def test_a_decorator_that_nobody_knows_leaves_the_size_open(decorators: str) -> None:
    body = "return nn.Dense(3)(half(nn.Dense(9)(x)))"
    found = sizes_of(compact(body, before=FUNCTION.format(decorators)))
    assert sites(found)["nn.Dense(3)"] == {"in_features": "Dense_0_in_features"}


@pytest.mark.parametrize(("decorator", "size"), [("@jax.jit", "4"), ("@mystery", None)])
def test_inner_functions_too(decorator: str, size: str | None) -> None:
    body = f"""
        {decorator}
        def half(y):
            return y[..., :4]
        return nn.Dense(3)(half(nn.Dense(9)(x)))
    """
    found = sizes_of(compact(body, before="from somewhere import mystery"))
    assert sites(found)["nn.Dense(3)"] == {"in_features": size or "Dense_0_in_features"}
