"""One source text run as Linen and as ``nnx_migrate.linen``, and everything about it compared.

Bits are compared only between programs that are compiled alike: jitted ones of the same text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax.core import meta

PRELUDE = """
import functools
import jax
import jax.numpy as jnp
import numpy as np
import flax
import flax.linen
from flax.linen import (
    activation, attention, batch_apply, combinators, dtypes, fp8_ops, initializers, linear,
    normalization, partitioning, pooling, recurrent, spmd, stochastic, transforms,
)
from flax.linen.experimental import layers_with_named_axes
from flax.linen.module import Module, compact, nowrap
"""


def namespaces(source: str = "") -> tuple[dict[str, Any], dict[str, Any]]:
    """What the source defines with Linen, and with ``nnx_migrate.linen`` in its place."""
    sides: list[dict[str, Any]] = []
    for home in ("flax.linen", "nnx_migrate.linen"):
        side: dict[str, Any] = {"__name__": "side_by_side"}
        text = (PRELUDE + source).replace("flax.linen", home)
        exec(compile(text, home, "exec", dont_inherit=True), side)  # noqa: S102 - the text is ours
        sides.append(side)
    return sides[0], sides[1]


def evaluate(expression: str, source: str = "") -> tuple[Any, Any]:
    """The value of an expression on both sides."""
    linen, lazy = namespaces(source)
    return eval(expression, linen), eval(expression, lazy)


def assert_same_bits(linen: Any, lazy: Any) -> None:
    """The same tree, the same dtypes, the same bits; NaN is NaN."""
    paths = [
        [jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path(one)]
        for one in (linen, lazy)
    ]
    assert paths[0] == paths[1]
    for path, old, new in zip(paths[0], jax.tree.leaves(linen), jax.tree.leaves(lazy), strict=True):
        old, new = np.asarray(old), np.asarray(new)
        assert (old.dtype, old.shape) == (new.dtype, new.shape), path
        assert old.tobytes() == new.tobytes(), path


def assert_same_text(linen: Callable[..., Any], lazy: Callable[..., Any], *args: Any) -> None:
    """The jitted functions are the same program."""
    assert _text(linen, *args) == _text(lazy, *args)


def _text(fn: Callable[..., Any], *args: Any) -> str:
    return str(jax.jit(lambda *args: fn(*args)).lower(*args).as_text())


def shown(model: Any) -> str:
    """The repr without addresses and without the homes of classes."""
    text = re.sub(r" at 0x[0-9a-f]+", "", repr(model))
    text = text.replace("concatenate_features", "_concatenate")  # both forms name it so
    return re.sub(r"<class '[\w.]+\.(\w+)'>", r"\1", text)


def is_trainable(value: Any) -> bool:
    """Whether a loss can be differentiated for the value."""
    return bool(jnp.issubdtype(jnp.asarray(value).dtype, jnp.floating))


@dataclass
class Pair:
    """A model on both sides, and its inputs.

    Attributes:
      linen, lazy: the models.
      inputs, options: of the call; options that are no arrays are fixed.
      mutable: collections that ``apply`` may change.
      method: called instead of ``__call__``.
    """

    linen: Any
    lazy: Any
    inputs: tuple[Any, ...]
    options: dict[str, Any]
    mutable: Any = False
    method: str | None = None
    streams: tuple[str, ...] = ("params", "dropout")

    def _keys(self, seed: int) -> dict[str, Any]:
        return {name: jax.random.key(seed + at) for at, name in enumerate(self.streams)}

    def init(self, model: Any) -> Callable[[Any], Any]:
        return lambda keys: model.init(keys, *self.inputs, method=self.method, **self.options)

    def apply(self, model: Any) -> Callable[..., Any]:
        def run(variables: Any, keys: Any, inputs: Any) -> Any:
            return model.apply(
                variables,
                *inputs,
                rngs=keys,
                mutable=self.mutable,
                method=self.method,
                **self.options,
            )

        return run

    def gradient(self, model: Any) -> Callable[..., Any]:
        """Gradients for the parameters, and what ``apply`` returns."""
        apply = self.apply(model)

        def loss(trained: Any, rest: Any, keys: Any, inputs: Any) -> Any:
            result = apply({**rest, **trained}, keys, inputs)
            outputs = result if self.mutable is False else result[0]
            floats = [leaf for leaf in jax.tree.leaves(outputs) if is_trainable(leaf)]
            total = sum(jnp.sum(jnp.sin(jnp.asarray(leaf, jnp.float32))) for leaf in floats)
            return total, result

        return jax.grad(loss, has_aux=True)

    def check_programs(self, *, gradients: bool = True) -> Any:
        """Same repr, same tree of variables, same text of init and of apply with its gradient.

        Returns variables of ones.
        """
        assert shown(self.linen) == shown(self.lazy)
        keys = self._keys(1)
        lowered = [jax.jit(self.init(model)).lower(keys) for model in (self.linen, self.lazy)]
        assert lowered[0].as_text() == lowered[1].as_text()
        abstract = [one.out_info for one in lowered]
        assert str(abstract[0]) == str(abstract[1])
        variables = jax.tree.map(lambda leaf: jnp.ones(leaf.shape, leaf.dtype), abstract[0])
        if not gradients or "params" not in variables:
            args = (variables, keys, self.inputs)
            assert_same_text(self.apply(self.linen), self.apply(self.lazy), *args)
            return variables
        trained = {"params": meta.unbox(variables["params"])}
        rest = {name: tree for name, tree in variables.items() if name != "params"}
        args = (trained, rest, keys, self.inputs)
        assert_same_text(self.gradient(self.linen), self.gradient(self.lazy), *args)
        return variables

    def check_numbers(self) -> tuple[Any, Any]:
        """Same bits of first values, outputs and changed collections; returns both of Linen."""
        keys = self._keys(1)
        first = [jax.jit(self.init(model))(keys) for model in (self.linen, self.lazy)]
        assert_same_bits(*first)
        results = [
            jax.jit(self.apply(model))(first[0], self._keys(11), self.inputs)
            for model in (self.linen, self.lazy)
        ]
        assert_same_bits(*results)
        return first[0], results[0]


def pair(
    expression: str,
    *inputs: Any,
    source: str = "",
    mutable: Any = False,
    method: str | None = None,
    **options: Any,
) -> Pair:
    """The model that the expression builds, on both sides."""
    linen, lazy = evaluate(expression, source)
    return Pair(linen, lazy, inputs, options, mutable, method)


def error_of(action: Callable[[], Any]) -> BaseException | None:
    """What an action raises."""
    try:
        action()
    except Exception as error:  # noqa: BLE001 - of whatever class
        return error
    return None


def assert_same_error(expression: str, source: str = "") -> None:
    """Both sides raise, and the same class."""
    linen, lazy = namespaces(source)
    errors = [error_of(lambda side=side: eval(expression, side)) for side in (linen, lazy)]  # type: ignore[misc]
    assert errors[0] is not None, "Linen does not raise"
    assert type(errors[0]) is type(errors[1]), errors


def floats(*shape: int, dtype: Any = jnp.float32) -> jax.Array:
    """Distinct values of both signs."""
    size = int(np.prod(shape))
    return jnp.asarray(np.linspace(-1.5, 2.0, size).reshape(shape), dtype)
