"""Sides that are never run: shapes, layouts, the programs of init, of loss and gradients, and of a step.

Nothing is allocated, so a model may have any size and the mesh any number of devices; with a mesh of
devices (simulated ones will do) the program can be compiled too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from nnx_migrate.nn.calls.objects import tracer_holders
from nnx_migrate.nn.variables.sharing import renamed_paths
from nnx_migrate.parity.case import Arguments, BadCase, ParityCase, arguments_of, surroundings
from nnx_migrate.parity.evaluation.constant_key import constant_key
from nnx_migrate.parity.evaluation.linen_names import LinenNames, path_of_attribute
from nnx_migrate.parity.evaluation.measure import (
    COLLECTIONS,
    FORWARD,
    GRADIENTS,
    LOSS,
    LOSS_AND_GRADIENTS,
    Apply,
    Variables,
    gradient_run,
)
from nnx_migrate.parity.evaluation.program_features import note_program
from nnx_migrate.parity.evaluation.results import SideResult, Stack
from nnx_migrate.parity.evaluation.running import describe_error, trace_with_retry
from nnx_migrate.parity.programs import canonical, executables
from nnx_migrate.parity.sides import lazy
from nnx_migrate.parity.sides.linen import apply_of as linen_apply
from nnx_migrate.parity.sides.linen import initialiser_of
from nnx_migrate.parity.sides.nnx import CONSTRUCT, constructor_of
from nnx_migrate.parity.sides.nnx import apply_of as nnx_apply
from nnx_migrate.parity.training.linen import begin_linen, unbox_tree
from nnx_migrate.parity.training.nnx import begin_nnx
from nnx_migrate.parity.training.steps import AFTER_STEP, LOSSES, SPECS, STEP, Training
from nnx_migrate.parity.values import named_leaves, shape_dtype
from nnx_migrate.sharding.placing import AnyMesh

INIT_VALUES = "init_values"
NO_VALUES = "nothing has values at this size"
_WITHOUT_VALUES = (INIT_VALUES, FORWARD, LOSS, GRADIENTS, LOSSES, COLLECTIONS)
INIT = "init"
# The platform that programs are lowered for: the one that simulates devices.
PLATFORM = "cpu"


def trace_linen(case: ParityCase, mesh: AnyMesh, *, compile_too: bool = False) -> SideResult:
    """Say of the Linen module of a case what can be said without values.

    ``case.inputs`` are abstract arrays with shardings on ``mesh``.
    """
    module = case.linen
    assert module is not None
    arguments = arguments_of(case)
    with surroundings(case, mesh):

        def boxes(arrays: list[Any]) -> Any:
            return initialiser_of(case, module, arguments, arrays)()

        def init(arrays: list[Any]) -> Variables:
            return named_leaves(unbox_tree(boxes(arrays)))[0]

        boxes_tree = jax.eval_shape(boxes, list(arguments.arrays))
        shapes, treedef = named_leaves(unbox_tree(boxes_tree))
        apply = linen_apply(case, module, treedef, list(shapes))

        def begin(case: ParityCase) -> Training:
            return begin_linen(case, lambda: boxes_tree, apply, None, arguments, mesh)

        side = _trace_side(
            "linen", type(module), shapes, case, apply, arguments, begin, compile_too
        )
        side = _with_control(side, case, apply, arguments, begin)
        return _with_init(case, side, init, arguments)


def trace_nnx(case: ParityCase, mesh: AnyMesh, *, compile_too: bool = False) -> SideResult:
    """Say the same of its NNX module."""
    arguments = arguments_of(case)
    construct = constructor_of(case)
    with surroundings(case, mesh):

        def build(arrays: list[Any]) -> Any:
            return _build(case, construct, arguments, arrays)

        def init(arrays: list[Any]) -> Variables:
            return names.variables(nnx.state(build(arrays)))[0]

        name = getattr(case.nnx, "__qualname__", type(case.nnx).__qualname__)
        try:
            module = nnx.eval_shape(build, list(arguments.arrays))
        except BadCase:
            raise
        except Exception as error:  # noqa: BLE001 (a finding about the migration)
            return _failure(name, {}, (CONSTRUCT,), error)
        names = LinenNames({**renamed_paths(module), **(case.path_map or {})})
        shapes, _ = names.variables(nnx.state(module))

        def apply(
            variables: Variables, args: tuple[Any, ...], kwargs: dict[str, Any]
        ) -> tuple[Any, Variables]:
            return nnx_apply(case, _with_streams(module), names, set())(variables, args, kwargs)

        def begin(case: ParityCase) -> Training:
            return begin_nnx(case, module, names, None, arguments, mesh)

        try:
            side = _trace_side(
                "nnx", type(module), shapes, case, apply, arguments, begin, compile_too
            )
            side = dataclasses.replace(side, plain_arrays=plain_arrays(module))
            return _with_init(case, side, init, arguments)
        except Exception as error:  # noqa: BLE001 (a finding about the migration)
            return _failure(name, shapes, (SPECS, AFTER_STEP), error)


def plain_arrays(module: nnx.Module) -> tuple[str, ...]:
    """Attributes, ``decoder/mlp/drop``, that keep arrays which the constructor made and which are no variables.

    Those are tracers of a trace that is over. The program of a call takes them as further arguments, so
    it differs from Linen's from its first line on, wherever they are used.
    """
    return tuple(sorted(map(path_of_attribute, tracer_holders(module))))


def _failure(name: str, shapes: Variables, stages: Sequence[str], error: Exception) -> SideResult:
    """The NNX side of which no more can be said than how it failed."""
    return SideResult(
        "nnx",
        name,
        shapes={path: shape_dtype(value) for path, value in shapes.items()},
        errors=dict.fromkeys(stages, describe_error(error)),
        skip_reasons=dict.fromkeys(_WITHOUT_VALUES, NO_VALUES),
    )


def _build(
    case: ParityCase, construct: Callable[[nnx.Rngs], Any], arguments: Arguments, arrays: list[Any]
) -> Any:
    module = construct(nnx.Rngs(0))
    if not lazy.is_unbuilt(module):
        return module
    args, kwargs = arguments.rebuild(arrays)
    return lazy.build(case, module, args, kwargs)


def _with_streams(module: nnx.Module) -> nnx.Module:
    """The abstract module with random streams that can be drawn from; which keys does not matter."""

    def with_key(leaf: Any) -> Any:
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jnp.broadcast_to(jax.random.key(0), leaf.shape)
        return jnp.zeros(leaf.shape, leaf.dtype)

    parts: Any = nnx.split(module, nnx.RngState, ...)
    graphdef, streams, rest = parts
    found: nnx.Module = nnx.merge(graphdef, jax.tree.map(with_key, streams), rest)
    return found


def _trace_side(
    stack: Stack,
    model: type,
    shapes: dict[str, Any],
    case: ParityCase,
    apply: Apply,
    arguments: Arguments,
    begin: Callable[[ParityCase], Training],
    compile_too: bool,
) -> SideResult:
    training = begin(case)
    state, arrays = training.state, list(arguments.arrays)
    gradient_trace = _trace_gradients(case, apply, arguments, begin)
    lowering = _lower(gradient_trace)
    step_trace, after = trace_with_retry(lambda: training.trace(arrays, case.rngs))
    executable = lowering.compile() if compile_too else None
    side = SideResult(
        stack,
        f"{model.__module__}.{model.__qualname__}",
        shapes={path: shape_dtype(value) for path, value in shapes.items()},
        layouts=training.layouts(state),
        layouts_after=training.layouts(after),
        collectives=executables.collectives(executable) if executable else {},
        memory=executables.memory(executable) if executable else {},
        skip_reasons=dict.fromkeys(_WITHOUT_VALUES, NO_VALUES),
    )
    note_program(side, LOSS_AND_GRADIENTS, gradient_trace, lowering)
    note_program(side, STEP, step_trace, _lower(step_trace))
    return side


def _with_init(
    case: ParityCase,
    side: SideResult,
    init: Callable[[list[Any]], Variables],
    arguments: Arguments,
) -> SideResult:
    """The side with the program of its initial values by path: without values, their only trace."""

    def run(key: Any, arrays: list[Any]) -> Variables:
        with constant_key(key, case.rngs):
            return init(arrays)

    jit_run = jax.jit(run, keep_unused=True)
    init_trace = trace_with_retry(lambda: jit_run.trace(_key(), list(arguments.arrays)))
    note_program(side, INIT, init_trace, _lower(init_trace))
    return side


def _with_control(
    side: SideResult,
    case: ParityCase,
    apply: Apply,
    arguments: Arguments,
    begin: Callable[[ParityCase], Training],
) -> SideResult:
    """The side with a second, independent trace: what is not even like itself proves nothing."""
    text = side.programs[LOSS_AND_GRADIENTS]
    gradient_trace = _trace_gradients(case, apply, arguments, begin)
    again = canonical.canonical(_lower(gradient_trace).as_text())
    apart = () if again == text else (canonical.first_line_apart(text, again),)
    return dataclasses.replace(side, control=apart, control_leaves=1)


def _trace_gradients(
    case: ParityCase,
    apply: Apply,
    arguments: Arguments,
    begin: Callable[[ParityCase], Training],
) -> Any:
    """The loss and its gradients, of parameters sharded as the model's calls want them."""
    training = begin(dataclasses.replace(case, zero1=False))
    run, parts = gradient_run(case, apply, arguments, training.variables(training.state))
    arrays = list(arguments.arrays)
    return trace_with_retry(lambda: jax.jit(run, keep_unused=True).trace(parts, _key(), arrays))


def _lower(trace: Any) -> Any:
    return trace.lower(lowering_platforms=(PLATFORM,))


def _key() -> Any:
    return jax.eval_shape(lambda: jax.random.key(0))
