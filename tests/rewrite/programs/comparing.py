"""A Linen program and what it is rewritten to: variables, two steps and gradients, side by side."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen, nnx

from nnx_migrate import nn as nnm
from nnx_migrate.model import RewriteResult
from nnx_migrate.parity.instantiation.calls import record_calls
from nnx_migrate.parity.instantiation.sizing import sizes_for
from nnx_migrate.rewrite.classes.checks.conditional_reads import PERHAPS_READ
from tests.rewrite.projects import rewrite, texts
from tests.rewrite.running import module_of

X = jnp.asarray(np.random.default_rng(0).normal(size=(3, 4)), jnp.float32)
NAME = "program"


@dataclass(frozen=True)
class Step:
    """One call of ``apply``."""

    train: bool
    mutable: tuple[str, ...]


@dataclass(frozen=True)
class Program:
    """A file with a class ``Model`` whose call takes ``x`` and ``train``."""

    text: str
    steps: tuple[Step, ...]
    streams: tuple[str, ...] = ()
    init_train: bool = True


@dataclass(frozen=True)
class Side:
    """How one of the two frameworks makes variables and applies them."""

    init: Callable[[Mapping[str, jax.Array], bool], Any]
    apply: Callable[..., Any]


def outcome(program: Program) -> str:
    """ "rewritten" after a comparison without a difference; else why there was nothing to compare.

    Raises:
      AssertionError: the rewritten program gives something else.
    """
    files = {f"{NAME}.py": program.text}
    with module_of(NAME, program.text) as before:
        module = before.Model()
        linen_side = Side(
            lambda keys, train: module.init(keys, X, train),
            lambda values, *args, **options: module.apply(values, *args, **options),
        )
        wanted, error = run(linen_side, program)
        if wanted is None:
            return f"Linen: {error}"
        result = rewrite(files)
        left = [one for one in result.classes if one.outcome.value != "rewritten"]
        if left:
            assert all(one.reason for one in left)
            return f"{left[0].outcome.value}: {left[0].reason}"
        if any(_is_extra(one.message) for one in result.findings):
            return "review: Linen's init may make less"
        calls = record_calls(module, (X, program.init_train), {}, program.streams)
    with module_of(NAME, texts(result, files)[f"{NAME}.py"]) as after:
        model = _builder(after.Model, result, calls)
        if model is None:
            return "unsized: the initial call does not show a size that is asked for"
        sides = (linen_side, _nnx_side(model))
        found, raised = run(sides[1], program, wanted["init"])
        if found is None and isinstance(raised, AttributeError) and not program.init_train:
            return f"late: {raised}"  # a later call needs what the initial one does not: it says so
        if found is None:
            raise AssertionError(f"the rewritten program raises {raised}")
        if not _agree(wanted, found, program):
            # XLA's two programs may round apart; operation by operation nothing does.
            pair = [run(one, program, wanted["init"], compiled=False)[0] for one in sides]
            same(*(_comparable(one, program) for one in pair))
    return "rewritten"


def _agree(wanted: Any, found: Any, program: Program) -> bool:
    try:
        same(_comparable(wanted, program), _comparable(found, program))
    except AssertionError:
        return False
    return True


def _comparable(found: Any, program: Program) -> Any:
    return found | {"init": _certain(found["init"])} if program.streams else found


def _is_extra(message: str) -> bool:
    """Whether a finding says that the NNX module may have variables that Linen's ``init`` leaves out."""
    return message.partition(" is ")[2] == PERHAPS_READ.partition(" is ")[2]


def _certain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters, and of what ``init`` may move by keys of its own the shapes."""
    shapes = jax.tree.map(jnp.shape, {k: one for k, one in values.items() if k != "params"})
    return {"params": values.get("params", {}), **shapes}


def _builder(migrated: Any, result: RewriteResult, calls: Any) -> Callable[..., Any] | None:
    maps = {one.linen: one for one in result.migration_map.classes}
    name = f"{NAME}.Model"
    fields = tuple(maps[name].fields)
    sizes, missing = sizes_for(migrated, fields, maps[name], calls, (), name, maps)
    if missing:
        return None
    return lambda *, rngs: migrated(**sizes, rngs=rngs)


def _nnx_side(build: Callable[..., Any]) -> Side:
    model = nnx.eval_shape(lambda: build(rngs=nnx.Rngs(0)))

    def init(keys: Mapping[str, jax.Array], train: bool) -> Any:
        return nnm.variables_of(nnm.build(build, rngs=keys), X, train)

    return Side(init, lambda values, *args, **options: nnm.apply(model, values, *args, **options))


def run(
    side: Side, program: Program, start: Any = None, *, compiled: bool = True
) -> tuple[dict[str, Any] | None, Exception | None]:
    """All that the program gives on one side by place, or what it raises.

    Args:
      start: variables that a program with random streams takes its first step with.
    """
    try:
        call = functools.partial(_run, side, program, start)
        return (jax.jit(call) if compiled else call)(), None
    except Exception as error:  # noqa: BLE001 - whatever it is, it is compared or shown
        return None, error


def lowered(side: Side, program: Program) -> tuple[str, Any] | Exception:
    """The program of one side, and its results' places, shapes and dtypes; or what it raises."""
    try:
        made = jax.jit(functools.partial(_run, side, program, None)).lower()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is compared or shown
        return error
    return made.as_text(), made.out_info


def _run(side: Side, program: Program, start: Any) -> dict[str, Any]:
    keys = {name: jax.random.key(seed) for seed, name in enumerate(("params", *program.streams))}
    values = linen.unbox(side.init(keys, program.init_train))
    found: dict[str, Any] = {"init": {k: v for k, v in values.items() if v}}
    values = start if start and program.streams else values
    for number, step in enumerate(program.steps):
        rngs = {name: jax.random.fold_in(key, number + 1) for name, key in keys.items()}
        rngs.pop("params")

        def loss(params: Any, values: Any = values, step: Step = step, rngs: Any = rngs) -> Any:
            output, changed = side.apply(
                {**values, "params": params},
                X,
                step.train,
                rngs=rngs,
                mutable=list(step.mutable),
            )
            total = sum(jnp.sum(jnp.sin(one)) for one in jax.tree.leaves(output))
            return total, (output, changed)

        params = values.get("params", {})
        (_, (output, changed)), gradient = jax.value_and_grad(loss, has_aux=True)(params)
        found[f"step {number}"] = {"output": output, "changed": changed, "gradient": gradient}
        values = {**values, **changed}
    return found


def same(wanted: Any, found: Any) -> None:
    """Assert that two trees have the same places and, to the last few bits, the same values."""
    first, second = (_leaves(one) for one in (wanted, found))
    assert first, "nothing was compared"
    only = sorted(first.keys() ^ second.keys())
    assert not only, [f"{'Linen' if one in first else 'NNX'} alone has {one}" for one in only]
    for place, value in first.items():
        close = 1e-5 * (1 + np.max(np.abs(value), initial=0))
        np.testing.assert_allclose(second[place], value, rtol=1e-4, atol=close, err_msg=place)


def _leaves(tree: Any) -> dict[str, Any]:
    pairs = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path): value for path, value in pairs}
