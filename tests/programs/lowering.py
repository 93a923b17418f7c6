"""Linen source and what ``rewrite`` makes of it, lowered and compiled on one mesh."""

from __future__ import annotations

import collections
import re
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen, nnx
from flax.traverse_util import flatten_dict, unflatten_dict
from jax.sharding import Mesh, NamedSharding

from nnx_migrate.parity.programs.canonical import canonical
from nnx_migrate.sharding import construct_named_sharding
from tests.rewrite.projects import rewrite_in_form, texts

BLOCKS = Path(__file__).parent / "blocks"
_COLLECTIVE = re.compile(
    r" (all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(?:-start)?\("
)

Arrays = dict[str, Any]


@dataclass(frozen=True)
class Pair:
    """A block's two modules of code."""

    linen: types.ModuleType
    nnx: types.ModuleType
    new_text: str


@dataclass(frozen=True)
class Compiled:
    """What is compared of a compiled program of loss and gradients."""

    program: str
    memory: dict[str, int]
    collectives: dict[str, int]


def pair(name: str, edit: Callable[[str], str] = lambda text: text) -> Pair:
    """A block and its rewritten form; ``edit`` changes the latter."""
    source = (BLOCKS / f"{name}.py").read_text("utf-8")
    files = {f"{name}.py": source}
    written = texts(rewrite_in_form(files, "auto"), files)[f"{name}.py"]
    assert "flax.linen" not in written
    text = edit(written)
    return Pair(_module(f"{name}_linen", source), _module(f"{name}_nnx", text), text)


def _module(name: str, text: str) -> types.ModuleType:
    module = types.ModuleType(name)
    sys.modules[name] = module  # dataclasses look their module up, lazy forms when they are made
    exec(compile(text, f"{name}.py", "exec"), module.__dict__)  # noqa: S102
    return module


def linen_shardings(model: linen.Module, x: Any, mesh: Mesh, rules: Any) -> Arrays:
    """Path -> sharding of every parameter, by Linen's functions; ``x`` outside the mesh."""
    boxed = jax.eval_shape(model.init, jax.random.key(0), x)["params"]
    specs = linen.get_partition_spec(boxed)
    return _flat(linen.logical_to_mesh_sharding(specs, mesh, rules))


def nnx_shardings(params: nnx.State, mesh: Mesh, rules: Any) -> Arrays:
    """The same by ``nnx_migrate.sharding``."""
    found = construct_named_sharding(params, mesh, rules)
    return {"/".join(map(str, path)): one.get_value() for path, one in nnx.to_flat_state(found)}


def values(params: nnx.State, shardings: Arrays) -> Arrays:
    """Random parameters, placed."""
    draw = np.random.default_rng(7)
    return {
        path: jax.device_put(draw.normal(size=one.get_value().shape).astype(np.float32), sharding)
        for (_, one), (path, sharding) in zip(
            nnx.to_flat_state(params), shardings.items(), strict=True
        )
    }


def linen_outputs(model: linen.Module) -> Callable[[Arrays, Any], Any]:
    """The model as a function of flat parameters."""
    return lambda params, x: model.apply({"params": unflatten_dict(params, sep="/")}, x)


def nnx_outputs(model: nnx.Module) -> Callable[[Arrays, Any], Any]:
    """The same of an abstract NNX model."""
    graphdef, params, rest = nnx.split(model, nnx.Param, ...)
    assert not jax.tree.leaves(rest), "a variable that is no parameter"

    def outputs(values: Arrays, x: Any) -> Any:
        entries = [
            (path, one.replace(values["/".join(map(str, path))]))
            for path, one in nnx.to_flat_state(params)
        ]
        return nnx.merge(graphdef, nnx.from_flat_state(entries), rest, copy=True)(x)

    return outputs


def compiled(
    outputs: Callable[[Arrays, Any], Any], params: Arrays, x: Any, mesh: Mesh, rules: Any
) -> Compiled:
    """Loss and gradients of a model, compiled under the mesh and the rules."""

    def loss(params: Arrays, x: Any) -> Any:
        return sum(jnp.mean(part * part) for part in jax.tree.leaves(outputs(params, x)))

    with jax.set_mesh(mesh), nnx.logical_axis_rules(rules):
        lowered = jax.jit(jax.value_and_grad(loss)).lower(params, x)
        result = lowered.compile()
    stats = result.memory_analysis()
    memory = {name: getattr(stats, name) for name in dir(stats) if name.endswith("size_in_bytes")}
    found = collections.Counter(_COLLECTIVE.findall(result.as_text()))
    return Compiled(canonical(lowered.as_text()), memory, dict(found))


def placed(mesh: Mesh, spec: Any) -> Any:
    """Inputs of both blocks."""
    x = np.random.default_rng(0).normal(size=(8, 4, 8)).astype(np.float32)
    return jax.device_put(x, NamedSharding(mesh, spec))


def _flat(tree: Any) -> Arrays:
    return flatten_dict(linen.unbox(tree), sep="/")
