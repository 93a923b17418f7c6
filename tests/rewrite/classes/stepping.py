"""Run a Linen class and what it is rewritten to for two steps, and compare all that they give."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from flax import nnx

from nnx_migrate import nn as nnm
from tests.rewrite.classes.support import converted, loaded

X = jnp.asarray(np.random.default_rng(0).normal(size=(3, 6)), jnp.float32)


def same_steps(
    source: str,
    *inputs: Any,
    make: str = "M()",
    sizes: Mapping[str, int] | None = None,
    mutable: tuple[str, ...] = (),
    rngs: Mapping[str, int] | None = None,
    init: Mapping[str, Any] | None = None,
    sown: tuple[str, ...] = (),
    **options: Any,
) -> dict[str, Any]:
    """Assert that ``make`` of ``source`` computes what its rewritten class does, bit for bit.

    Compared: the variables of ``init`` from the same seed, and for two steps the outputs, the mutated collections
    and the gradients of the sum of the outputs by all parameters. Both sides take Linen's
    parameters and its keys.

    Args:
      inputs: of the call; ``X`` when there are none.
      sizes: what the rewritten constructor takes besides.
      init: keyword arguments of the initial call alone.
      sown: collections that Linen's ``init`` fills by sowing and a module does not hold.
      options: keyword arguments of every call.

    Returns:
      Linen's variables after the second step.
    """
    source = textwrap.dedent(source)
    inputs = inputs or (X,)
    with (
        loaded(source, "before_model") as before,
        loaded(converted(source), "after_model") as after,
    ):
        linen = eval(make, vars(before))
        names = vars(after) | {"sizes": dict(sizes or {})}
        text = make[:-1] + ", " * (make[-2] != "(") + "**sizes, rngs=rngs)"

        def build(rngs: Any) -> Any:
            return eval(text, names | {"rngs": rngs})

        return _compare(
            linen, build, inputs, mutable, rngs or {}, {**options, **(init or {})}, options, sown
        )


def _compare(
    linen: nn.Module,
    build: Any,
    inputs: tuple[Any, ...],
    mutable: tuple[str, ...],
    rngs: Mapping[str, int],
    initial: Mapping[str, Any],
    options: Mapping[str, Any],
    sown: tuple[str, ...],
) -> dict[str, Any]:
    names = sorted({"params", *rngs})
    keys = {name: jax.random.key(seed) for seed, name in enumerate(names)}
    values = jax.jit(lambda: linen.init(keys, *inputs, **initial))()

    def built() -> Any:
        model = nnm.build(lambda *, rngs: build(rngs), rngs=keys)
        return nnm.variables_of(model, *inputs, **initial)

    wanted = {k: v for k, v in nn.unbox(values).items() if v and k not in sown}
    _same(wanted, jax.jit(built)(), "init")
    model = nnx.eval_shape(lambda: build(nnx.Rngs(0)))
    for step in range(2):
        keys = {name: jax.random.key(seed + step) for name, seed in rngs.items()}

        def run(apply: Any, params: Any, values: Any = values, keys: Any = keys) -> Any:
            found = apply(
                {**values, "params": params},
                *inputs,
                rngs=keys,
                mutable=list(mutable) or False,
                **options,
            )
            outputs, changed = found if mutable else (found, {})
            leaves = [jnp.sum(one) for one in jax.tree.leaves(outputs)]
            return sum(leaves), (outputs, changed)

        params = values.get("params", {})
        sides = [
            jax.jit(jax.value_and_grad(lambda p, one=one: run(one, p), has_aux=True))(params)
            for one in (linen.apply, lambda *a, **k: nnm.apply(model, *a, **k))
        ]
        _same(*sides, f"step {step}")
        values = {**values, **sides[0][0][1][1]}
    return values


def _same(first: Any, second: Any, where: str) -> None:
    paths = [[p for p, _ in jax.tree_util.tree_leaves_with_path(one)] for one in (first, second)]
    assert paths[0] == paths[1], (where, paths)
    assert paths[0], f"{where}: nothing was compared"
    for (path, one), other in zip(
        jax.tree_util.tree_leaves_with_path(first), jax.tree.leaves(second), strict=True
    ):
        np.testing.assert_array_equal(one, other, err_msg=f"{where} {jax.tree_util.keystr(path)}")
