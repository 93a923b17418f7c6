"""A Linen model and its lazy form: the same program of two steps, and the same variables when built."""

from __future__ import annotations

import functools
import re
import types
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen

import nnx_migrate.linen as lazy
from benchmarks.generated.comparing import rewritten, texts
from benchmarks.generated.projects import Project
from benchmarks.generated.running import modules_of
from benchmarks.generated.training import ALL
from tests.rewrite.running import same_bits

X = jnp.asarray(np.random.default_rng(0).normal(size=(3, 4)), jnp.float32)
STREAMS = ("dropout", "noise", "gate")


def lazy_outcome(project: Project) -> str:
    """ "same" after a comparison without a difference; else what Linen itself raises.

    Raises:
      AssertionError: the lazy program gives something else.
    """
    files = dict(project.files)
    after = texts(rewritten(files, "lazy"), files)
    with modules_of(files) as before, modules_of(after) as modules:
        linen_model, model = model_of(before), model_of(modules)
        wanted, found = lowered(linen_model), lowered(model)
        if isinstance(wanted, Exception):
            assert type(found) is type(wanted), (found, wanted)
            return f"Linen: {type(wanted).__name__}"
        assert not isinstance(found, Exception), found
        if found != wanted:  # another text may still compute the same
            same_bits(*(jax.jit(functools.partial(_steps, one))() for one in (linen_model, model)))
        is_random = "make_rng" in project.text or "ropout" in project.text
        compare_built(model, is_random=is_random)
    return "same" if found == wanted else "same bits"


def model_of(modules: list[types.ModuleType]) -> Any:
    """The project's model, from the module that defines it."""
    return next(one.Model() for one in modules if hasattr(one, "Model"))


def lowered(model: Any) -> tuple[str, Any] | Exception:
    """The program of two steps, and its results' places, shapes and dtypes; or what it raises."""
    try:
        made = jax.jit(functools.partial(_steps, model)).lower()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is compared or shown
        return error
    return re.sub(r"0x[0-9a-f]+", "", made.as_text()), made.out_info


def _keys() -> dict[str, jax.Array]:
    return {name: jax.random.key(seed) for seed, name in enumerate(("params", *STREAMS))}


def _steps(model: Any) -> dict[str, Any]:
    """Initial variables, and outputs, changes and gradients of two steps."""
    keys = _keys()
    values = linen.unbox(model.init(keys, X))
    found: dict[str, Any] = {"init": {k: v for k, v in values.items() if v}}
    for number, train in enumerate((True, False)):
        rngs = {name: jax.random.fold_in(keys[name], number + 1) for name in STREAMS}

        def loss(params: Any, values: Any = values, train: bool = train, rngs: Any = rngs) -> Any:
            held = {**values, "params": params}
            output, changed = model.apply(held, X, train, rngs=rngs, mutable=ALL)
            return jnp.sum(jnp.sin(output)), (output, changed)

        params = values.get("params", {})
        (_, (output, changed)), gradient = jax.value_and_grad(loss, has_aux=True)(params)
        found[f"step {number}"] = {"output": output, "changed": changed, "gradient": gradient}
        values = {**values, **changed}
    return found


def compare_built(model: Any, *, is_random: bool) -> None:
    """A built module has the variables of `init`, and calls as `apply` does."""
    keys = _keys()

    def made() -> Any:
        return lazy.variables(lazy.build(model.clone(), X, rngs=keys))

    shapes = jax.eval_shape(made)
    expected = jax.eval_shape(lambda: model.init(keys, X))
    assert shapes.get("params", {}) == expected.get("params", {})
    if is_random:
        return
    changing = [name for name in shapes if name != "params"]

    def applied(held: Any) -> Any:
        out, changed = model.apply(held, X, mutable=changing)
        return out, {name: changed[name] for name in changing}

    def called(held: Any) -> Any:
        built = lazy.build(model.clone(), X, rngs=keys)
        lazy.update(built, held)
        out, after = built(X), lazy.variables(built)
        return out, {name: after[name] for name in changing}

    held = jax.jit(made)()
    same_bits(jax.jit(called)(held), jax.jit(applied)(held))
