"""Both sides of a built-in model as parity cases."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
from flax.core import meta

from nnx_migrate.parity.case import ParityCase
from nnx_migrate.parity.models.load import load
from nnx_migrate.parity.models.optimizers import build_optimizer
from nnx_migrate.parity.models.options import ModelOptions
from nnx_migrate.parity.modes import Mode
from nnx_migrate.parity.values import named_leaves
from nnx_migrate.parity.words import BadWord
from nnx_migrate.sharding import resolve_spec
from nnx_migrate.sharding.resolve import mesh_axes


@dataclass(frozen=True)
class Pair:
    """The same model twice: each side has the loss of its own code."""

    linen: ParityCase
    nnx: ParityCase

    def in_modes(self, modes: tuple[Mode, ...]) -> Pair:
        """The pair with the further runs that its Linen side has."""
        return Pair(replace(self.linen, modes=modes), replace(self.nnx, modes=modes))


def build(options: ModelOptions) -> Pair:
    """Build both cases. Raises BadWord when the mesh does not divide the model."""
    pair = pair_of(options, load(options.model.family).inputs(options.config, options.seed))
    require_divisible(options, pair.linen.linen, pair.linen.inputs)
    return pair


def pair_of(options: ModelOptions, inputs: tuple[Any, ...]) -> Pair:
    """Build both cases on inputs of any kind."""
    family, config = options.model.family, options.config
    after = "nnx" if options.form == "explicit" else "lazy"
    ours, theirs = (load(f"{family}.{stack}.model").Transformer for stack in ("linen", after))

    def case(stack: str, **sides: Any) -> ParityCase:
        loss = load(f"{family}.{stack}.objective").loss
        return ParityCase(
            inputs=inputs,
            rngs=dict.fromkeys(streams_of(config), options.seed),
            loss=functools.partial(loss, config=config),
            mesh=options.mesh,
            axis_rules=options.rules.logical_axis_rules,
            steps=options.steps,
            keeps_state=options.keeps_state,
            seed=options.seed,
            shard_mode=options.shard_mode,
            zero1=options.zero1,
            gradient_accumulation_steps=options.gradient_accumulation_steps,
            optimizer=build_optimizer(options.optimizer, f"{family}.{stack}", options.shard_mode),
            **sides,
        )

    return Pair(
        linen=case("linen", linen=ours(config)),
        nnx=case(after, nnx=_constructor(options.form, theirs, config)),
    )


def streams_of(config: Any) -> tuple[str, ...]:
    """The streams that a call of the model draws from."""
    return ("dropout",) if getattr(config, "dropout_rate", 0) > 0 else ()


def _constructor(form: str, model: Any, config: Any) -> Callable[[Any], Any]:
    """``rngs -> module``; a lazy model needs none of them before it is built."""
    if form == "lazy":
        return lambda rngs: model(config)
    return lambda rngs: model(config, rngs=rngs)


def require_divisible(options: ModelOptions, module: Any, inputs: tuple[Any, ...]) -> None:
    """Refuse a mesh that splits an axis of a parameter, or what a call is given, unevenly."""
    _require_whole_parts(options, inputs[0].shape[0])
    batch = inputs[0].shape[0] // options.gradient_accumulation_steps
    variables = jax.eval_shape(module.init, jax.random.key(0), *inputs)
    shapes, _ = named_leaves(meta.unbox(variables))
    boxes = jax.tree.leaves(variables, is_leaf=lambda leaf: isinstance(leaf, meta.Partitioned))
    for (path, array), box in zip(shapes.items(), boxes, strict=True):
        names = box.names if isinstance(box, meta.Partitioned) else None
        spec = resolve_spec(names, options.rules.logical_axis_rules, options.mesh) or ()
        _require_even(options.mesh, path, array.shape, spec)
    shape = (batch, *inputs[0].shape[1:])
    _require_even(options.mesh, "the batch", shape, options.rules.data_spec or ())
    if options.mesh.get("stage", 1) > 1 and hasattr(options.config, "schedule"):
        rows = batch // options.config.schedule.microbatches
        spec = resolve_spec(("activation_batch",), options.rules.logical_axis_rules, options.mesh)
        _require_even(options.mesh, "a micro-batch", (rows,), spec or ())


def _require_whole_parts(options: ModelOptions, batch: int) -> None:
    """Refuse micro-batches that a device's rows cannot be dealt out to evenly."""
    parts = getattr(options.config, "batch_parts", 1) * options.gradient_accumulation_steps
    spec = resolve_spec(("activation_batch",), options.rules.logical_axis_rules, options.mesh)
    shards = math.prod(options.mesh.get(axis, 1) for axis in mesh_axes((spec or (None,))[0]))
    if parts > 1 and batch % (shards * parts):
        raise BadWord(
            f"batch_size={batch}: expected a multiple of {shards * parts}: {parts} micro-batches on "
            f"{shards} devices"
        )


def _require_even(mesh: Mapping[str, int], name: str, shape: tuple[int, ...], spec: Any) -> None:
    for axis, (size, entry) in enumerate(zip(shape, spec, strict=False)):
        used = [one for one in mesh_axes(entry) if mesh.get(one, 1) > 1]
        if size % math.prod(mesh[one] for one in used):
            product = " * ".join(f"{one}:{mesh[one]}" for one in used)
            raise BadWord(
                f"mesh: axis {axis} of {name} has size {size}, which {product} do not divide"
            )
