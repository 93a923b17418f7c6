"""The model of a rewritten program as an NNX module: `nn.build`, `nnx.split` and `merge`, `jax.jit`.

`watch` notes which model the program initialises, and with what; `check` builds the same afterwards
and compares its call with `apply`, both compiled.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from benchmarks.programs.session import Session

Call = tuple[Any, tuple[Any, ...], dict[str, Any]]


def watch(session: Session) -> list[Call]:
    """Return a list that will hold the first model that is initialised, its arguments and options.

    Arrays are kept as shapes and dtypes: the program may initialise under `jax.jit`.
    """
    import nnx_migrate.linen as nn

    seen: list[Call] = []
    (owner,) = (cls for cls in nn.Module.__mro__ if "init" in vars(cls))
    init = owner.init

    def noting(self: Any, rngs: Any, *args: Any, **kwargs: Any) -> Any:
        if not seen:
            seen.append((self.clone(), *jax.tree.map(_shape, ((rngs, *args), kwargs))))
        return init(self, rngs, *args, **kwargs)

    session.patch(owner, "init", noting)
    return seen


def check(call: Call, axis: str | None = None) -> str:
    """Build the model and compare; a line that says what came out, starting with "equal" if it is.

    Args:
      axis: the mapped axis that calls of the model average over, if they do.

    Raises:
      AssertionError: other outputs than `apply`'s.
    """
    import nnx_migrate.linen as nn

    definition, shapes, named = call
    (rngs, *args), kwargs = jax.tree.map(_ones, (shapes, named))
    module = nn.build(definition.clone(), *args, rngs=rngs, **kwargs)
    streams = {name: rngs[name] for name in rngs if name != "params"} if _named(rngs) else {}
    graphdef, state = nnx.split(module)

    def compiled(function: Any) -> Any:
        if axis is None:
            return jax.jit(function)
        return jax.jit(jax.vmap(function, in_axes=None, axis_size=1, axis_name=axis))

    @compiled
    def built(state: Any, args: Any) -> Any:
        return nnx.merge(graphdef, state)(*args, **kwargs)

    @compiled
    def applied(variables: Any, args: Any) -> Any:
        return definition.apply(variables, *args, rngs=streams, mutable=True, **kwargs)[0]

    outputs = jax.tree.leaves(built(state, args))
    expected = jax.tree.leaves(applied(nn.variables(module), args))
    assert [_shape(one) for one in outputs] == [_shape(one) for one in expected], "other shapes"
    if streams:  # a built module draws a new key in each call
        return f"runs ({len(outputs)} outputs of the same shapes; it draws its own keys)"
    for one, other in zip(outputs, expected, strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes(), (
            "other outputs than apply's"
        )
    return f"equal ({len(outputs)} outputs)"


def _named(rngs: Any) -> bool:
    return isinstance(rngs, dict)


def _shape(leaf: Any) -> Any:
    if isinstance(leaf, jax.Array | np.ndarray):
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)
    return leaf


def _ones(leaf: Any) -> Any:
    if not isinstance(leaf, jax.ShapeDtypeStruct):
        return leaf
    if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.key(0)
    if leaf.dtype == np.uint32 and leaf.shape == (2,):
        return jax.random.PRNGKey(0)
    return jnp.ones(leaf.shape, leaf.dtype)
