"""One source text run twice, as Linen and over our modules, and what both gave compared.

A text says ``nn`` and finds flax.linen there, or nnx_migrate.linen. It defines ``model`` and
``inputs`` (a tuple), or for ``run`` and ``same_error`` a function ``run()``.
"""

from __future__ import annotations

import functools
import re
import textwrap
import types
from collections.abc import Callable, Iterable
from typing import Any

import flax
import flax.linen
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import errors
from flax.core import meta, unfreeze

import nnx_migrate.linen
import nnx_migrate.linen.transforms

LINEN = flax.linen
OURS = types.SimpleNamespace(**{**vars(nnx_migrate.linen), **vars(nnx_migrate.linen.transforms)})

# Layers of the texts' own: Linen's, and ours, have tests of theirs.
LAYERS = """
class Linear(nn.Module):
    features: int

    @nn.compact
    def __call__(self, x):
        init = jax.nn.initializers.lecun_normal()
        kernel = self.param("kernel", init, (x.shape[-1], self.features))
        bias = self.param("bias", jax.nn.initializers.normal(), (self.features,))
        y = x @ kernel
        return y + jnp.broadcast_to(bias, y.shape)


class Noise(nn.Module):
    @nn.compact
    def __call__(self, x):
        return x + jax.random.normal(self.make_rng("noise"), x.shape)


class Mean(nn.Module):
    @nn.compact
    def __call__(self, x):
        exists = self.has_variable("stats", "mean")
        mean = self.variable("stats", "mean", jnp.zeros, x.shape[-1:])
        if exists and self.is_mutable_collection("stats"):
            mean.value = 0.9 * mean.value + 0.1 * x.reshape((-1, x.shape[-1])).mean(0)
        return x - jnp.broadcast_to(mean.value, x.shape)
"""


def namespaces(source: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the text defines as Linen, and over our modules."""
    found = []
    for name, nn in (("linen_text", LINEN), ("our_text", OURS)):
        space: dict[str, Any] = {
            "__name__": name,
            "nn": nn,
            "jax": jax,
            "jnp": jnp,
            "np": np,
            "flax": flax,
            "meta": meta,
            "errors": errors,
            "functools": functools,
            "Any": Any,
        }
        code = compile(LAYERS + textwrap.dedent(source), f"<{name}>", "exec", dont_inherit=True)
        exec(code, space)  # noqa: S102
        found.append(space)
    return found[0], found[1]


def same_run(source: str) -> Any:
    """``run()`` of both gives the same tree, bit for bit; returns it."""
    linen, ours = (space["run"]() for space in namespaces(source))
    assert_same(linen, ours)
    return ours


def same_error(source: str, match: str | None = None, message: bool = True) -> Exception:
    """``run()`` of both raises the same class of error, with the same ``message``; returns ours."""
    raised = []
    for space in namespaces(source):
        with pytest.raises(Exception, match=match) as info:
            space["run"]()
        raised.append(info.value)
    assert type(raised[0]) is type(raised[1]), raised
    expected, found = (without_ids(str(error)) for error in raised)
    assert not message or found == expected, f"{found}\n\nLinen: {expected}"
    return raised[1]


def same_model(
    source: str,
    *,
    rngs: Iterable[str] = ("params", "noise"),
    mutable: Any = ("stats",),
    method: str | None = None,
    grad: bool = True,
    program: bool = True,
) -> dict[str, Any]:
    """``model`` of both has the same variables, output, state and gradients, bit for bit.

    All of it under jit on both sides; with ``program`` the programs are the same text too.
    Returns ours: ``variables``, ``out``, ``state`` and ``grads``.
    """
    compiled: dict[str, Any] = {}
    results = [
        _results(space["model"], space["inputs"], rngs, list(mutable), method, grad, compiled)
        for space in namespaces(source)
    ]
    (linen, texts), (ours, our_texts) = results
    assert_same(linen, ours)
    if program:
        for name, text in texts.items():
            assert our_texts[name] == text, f"the programs of {name} differ"
    return ours


def _results(
    model: Any,
    inputs: Any,
    rngs: Any,
    mutable: Any,
    method: str | None,
    grad: bool,
    compiled: dict[str, Any],
) -> tuple[dict[str, Any], dict[str, str]]:
    keys = {name: jax.random.key(i) for i, name in enumerate(rngs)}
    texts: dict[str, str] = {}

    def run(name: str, fn: Callable[..., Any], *args: Any) -> Any:
        lowered = jax.jit(fn).lower(*args)
        texts[name] = text = lowered.as_text()
        if text not in compiled:  # most often ours is Linen's program, and need not be compiled
            compiled[text] = lowered.compile()
        return jax.tree.unflatten(lowered.out_tree, jax.tree.leaves(compiled[text](*args)))

    variables = run("init", lambda keys: model.init(keys, *inputs, method=method), keys)

    def apply(variables: Any) -> Any:
        return model.apply(variables, *inputs, rngs=keys, mutable=mutable, method=method)

    out, state = run("apply", apply, variables)
    results = {"variables": variables, "out": out, "state": state}
    if grad and "params" in variables:
        params, rest = variables["params"], {k: variables[k] for k in variables if k != "params"}

        def loss(params: Any) -> Any:
            out, _ = apply({"params": params, **rest})
            return sum(jnp.sum(jnp.sin(x)) for x in jax.tree.leaves(out))

        results["grads"] = run("grad", jax.grad(loss), params)
    return results, texts


def assert_same(linen: Any, ours: Any) -> None:
    """Both trees have the same paths, and the same bits at each; there is something in them."""
    expected, found = flat(linen), flat(ours)
    assert list(found) == list(expected)
    assert expected, "nothing was compared"
    for path, value in expected.items():
        if not hasattr(value, "dtype"):
            assert found[path] == value, path
            continue
        assert found[path].dtype == value.dtype, path
        assert found[path].shape == value.shape, path
        if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
            value, found[path] = jax.random.key_data(value), jax.random.key_data(found[path])
        same = np.array_equal(np.asarray(found[path]), np.asarray(value), equal_nan=False)
        assert same, f"{path}: {value} of Linen, {found[path]} of ours"


def flat(tree: Any) -> dict[str, Any]:
    """Leaves by path; boxes with their names in the path."""
    tree = unfreeze(tree) if isinstance(tree, dict | flax.core.FrozenDict) else tree
    leaves = jax.tree_util.tree_leaves_with_path(tree, is_leaf=meta.is_axis_metadata)
    found = {}
    for path, leaf in leaves:
        name = jax.tree_util.keystr(path)
        if meta.is_axis_metadata(leaf):
            names = getattr(leaf, "names", type(leaf).__name__)
            name, leaf = f"{name}{names}", leaf.unbox()
        found[name] = leaf
    return found


def paths(variables: Any) -> list[str]:
    """Paths of variables: ``params/Dense_0/kernel``."""
    leaves = jax.tree_util.tree_leaves_with_path(meta.unbox(unfreeze(variables)))
    return ["/".join(str(key.key) for key in path) for path, _ in leaves]


def without_ids(text: str) -> str:
    """An error's text without what differs from run to run, or names the library."""
    text = re.sub(r"0x[0-9a-f]+", "0x", text)
    return text.replace("nnx_migrate.linen", "flax.linen").replace("our_text", "linen_text")
