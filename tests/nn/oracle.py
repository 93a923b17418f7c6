"""Compare an NNX module with the Linen module it stands for: names, initial values, bits, program."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen, nnx, traverse_util
from flax.core import scope as linen_scope

Flat = dict[tuple[str, ...], Any]


@contextlib.contextmanager
def constant_key(seed: int = 7) -> Iterator[None]:
    """Every stream of both libraries gives one and the same key; counters advance as always."""
    linen_make_rng = linen_scope.Scope.make_rng
    nnx_call = nnx.RngStream.__call__

    def make_rng(self: Any, name: str = "params") -> Any:
        linen_make_rng(self, name)
        return jax.random.key(seed)

    def call(self: Any) -> Any:
        nnx_call(self)
        return jax.random.key(seed)

    linen_scope.Scope.make_rng = make_rng
    nnx.RngStream.__call__ = call
    try:
        yield
    finally:
        linen_scope.Scope.make_rng = linen_make_rng
        nnx.RngStream.__call__ = nnx_call


def nnx_leaves(state: Any) -> Flat:
    """Variables of a state as ``(collection, *path) -> value``.

    Random streams and plain arrays (the ``mask`` of a convolution) are no variables of Linen's.
    """
    leaves = {}
    for path, leaf in nnx.to_flat_state(state):
        if isinstance(leaf, nnx.Variable) and not issubclass(leaf.type, nnx.RngState):
            collection = nnx.variable_name_from_type(leaf.type)
            leaves[(collection, *map(str, path))] = leaf.get_value()
    return leaves


def random_values(leaves: Flat, seed: int = 3) -> Flat:
    """Values of the same shapes and dtypes without the zeros and ones that hide swaps."""
    generator = np.random.default_rng(seed)

    def value(leaf: Any) -> Any:
        if not jnp.issubdtype(leaf.dtype, jnp.floating):
            return leaf
        return jnp.asarray(generator.normal(0.3, 0.5, leaf.shape) ** 2 + 0.1, leaf.dtype)

    return {path: value(leaves[path]) for path in sorted(leaves)}


def array(*shape: int, seed: int = 1, dtype: Any = jnp.float32) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), dtype)


def assert_same_bits(expected: Any, found: Any, what: str = "value") -> None:
    """Equal tree structure, dtypes and bits; NaN anywhere fails."""
    expected_leaves, found_leaves = jax.tree.leaves(expected), jax.tree.leaves(found)
    assert len(expected_leaves) == len(found_leaves) > 0, what
    for a, b in zip(expected_leaves, found_leaves, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), what
        difference = np.asarray(a, np.float64) - np.asarray(b, np.float64)
        assert np.array_equal(difference, np.zeros(a.shape)), (what, np.abs(difference).max())


def assert_same_leaves(expected: Flat, found: Flat, what: str) -> None:
    """The same paths, and the same bits at each of them."""
    assert sorted(expected) == sorted(found), what
    for path in expected:
        assert_same_bits(expected[path], found[path], f"{what} {'/'.join(path)}")


def program_text(lowered: Any) -> str:
    """StableHLO without names of modules, arguments and results; private functions renumbered."""
    text = re.sub(r"module @\S+", "module", lowered.as_text())
    text = re.sub(r"\s*\{jax\.(result|arg)_info = [^{}]*\}", "", text)
    names: dict[str, str] = {}
    for name in re.findall(r"@[\w.]+", text):
        names.setdefault(name, f"@f{len(names)}")
    return re.sub(r"@[\w.]+", lambda match: names[match.group()], text)


def check(
    linen_module: linen.Module,
    build: Callable[[nnx.Rngs], Any],
    *inputs: Any,
    init_kwargs: dict[str, Any] | None = None,
    kwargs: dict[str, Any] | None = None,
    mutable: Sequence[str] = (),
    differentiate: bool = True,
    same_program: bool = True,
    method: str = "__call__",
) -> None:
    """Names and initial values, then outputs, gradients and updated collections.

    ``same_program`` compares the lowered programs of these, else the values they compute.

    ``inputs`` may be trees of arrays; ``kwargs`` are passed to both sides' calls.
    """
    kwargs = kwargs or {}
    with constant_key():
        graphdef, state = check_initial_values(
            linen_module, build, *inputs, kwargs={**kwargs, **(init_kwargs or {})}
        )
        values = random_values(nnx_leaves(state))
        weights = [array(*x.shape, seed=5) for x in _outputs(linen_module, values, inputs, kwargs)]

        def linen_call(values: Flat, inputs: Any) -> Any:
            variables = traverse_util.unflatten_dict(values)
            rngs = {"dropout": jax.random.key(1)}
            call = {**kwargs, "mutable": list(mutable), "rngs": rngs, "method": method}
            outputs, changed = linen_module.apply(variables, *inputs, **call)
            return outputs, traverse_util.flatten_dict(changed)

        def nnx_call(values: Flat, inputs: Any) -> Any:
            leaves = [
                (path, _replaced(leaf, path, values)) for path, leaf in nnx.to_flat_state(state)
            ]
            module = nnx.merge(graphdef, nnx.from_flat_state(leaves), copy=True)
            outputs = getattr(module, method)(*inputs, **kwargs)
            changed = nnx_leaves(nnx.state(module))
            return outputs, {path: changed[path] for path in changed if path[0] in mutable}

        def loss_of(call: Callable[..., Any]) -> Callable[..., Any]:
            def loss(values: Flat, inputs: Any) -> Any:
                outputs, changed = call(values, inputs)
                pairs = zip(weights, jax.tree.leaves(outputs), strict=True)
                return sum(jnp.sum(w * y) for w, y in pairs), (outputs, changed)

            return loss

        with_gradient = jax.value_and_grad(loss_of(linen_call), argnums=0, has_aux=True)
        expected_fn = jax.jit(with_gradient if differentiate else loss_of(linen_call))
        with_gradient = jax.value_and_grad(loss_of(nnx_call), argnums=0, has_aux=True)
        found_fn = jax.jit(with_gradient if differentiate else loss_of(nnx_call))
        lowered = [call.lower(values, inputs) for call in (expected_fn, found_fn)]
        if same_program:
            # The same program with the same named results needs no run.
            assert lowered[0].out_info == lowered[1].out_info, "results"
            texts = [program_text(one) for one in lowered]
            assert texts[0] == texts[1]
            return
        expected, found = (one.compile()(values, inputs) for one in lowered)
        parts = (expected[0], found[0]) if differentiate else (expected, found)
        assert_same_bits(parts[0][1][0], parts[1][1][0], "outputs")
        assert_same_leaves(parts[0][1][1], parts[1][1][1], "updated collections")
        assert_same_bits(parts[0][0], parts[1][0], "loss")
        if differentiate:
            assert_same_leaves(expected[1], found[1], "gradients")


def check_initial_values(
    linen_module: linen.Module,
    build: Callable[[nnx.Rngs], Any],
    *inputs: Any,
    kwargs: dict[str, Any] | None = None,
) -> tuple[Any, Any]:
    """Same paths and bits from the same key, both compiled; returns the split NNX module."""
    init = jax.jit(lambda inputs: linen_module.init(jax.random.key(0), *inputs, **(kwargs or {})))
    graphdef, state = jax.jit(lambda: nnx.split(build(nnx.Rngs(0))))()
    expected = {
        path: value
        for path, value in traverse_util.flatten_dict(init(inputs)).items()
        if path[0] != "intermediates"
    }
    assert_same_leaves(expected, nnx_leaves(state), "initial values")
    return graphdef, state


def _replaced(leaf: Any, path: Any, values: Flat) -> Any:
    if not isinstance(leaf, nnx.Variable) or issubclass(leaf.type, nnx.RngState):
        return leaf
    return leaf.replace(values[(nnx.variable_name_from_type(leaf.type), *map(str, path))])


def _outputs(module: linen.Module, values: Flat, inputs: Any, kwargs: Any) -> list[Any]:
    def call() -> Any:
        variables = traverse_util.unflatten_dict(values)
        rngs = {"dropout": jax.random.key(1)}
        return module.apply(variables, *inputs, **kwargs, rngs=rngs, mutable=True)[0]

    return jax.tree.leaves(jax.eval_shape(call))
