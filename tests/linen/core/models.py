"""Small modules for tests of the core, which has no layers yet."""

from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp

X = jnp.arange(6.0).reshape(2, 3) / 7
KEY = jax.random.key(0)


def dense(api: ModuleType) -> Any:
    """A layer that has a parameter, counts its calls and sows its path, over ``api``'s Module."""

    class Layer(api.Module):  # type: ignore[name-defined, misc]
        features: int

        @api.compact  # type: ignore[untyped-decorator]
        def __call__(self, x: jax.Array) -> jax.Array:
            shape = (x.shape[-1], self.features)
            kernel = self.param("kernel", jax.nn.initializers.lecun_normal(), shape)
            calls = self.variable("stats", "calls", lambda: jnp.zeros(()))
            if not self.is_initializing() and self.is_mutable_collection("stats"):
                calls.value += 1
            self.sow("intermediates", "path", self.path)
            return x @ kernel

    return Layer
