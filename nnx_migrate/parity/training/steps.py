"""Training steps of one side: how its state is laid out before and after, and the losses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh, PartitionSpec

from nnx_migrate.parity.case import ParityCase
from nnx_migrate.parity.evaluation.constant_key import constant_key
from nnx_migrate.parity.evaluation.measure import KEYS
from nnx_migrate.parity.evaluation.program_features import ProgramFeature, note_program
from nnx_migrate.parity.evaluation.running import OPERATIONS, describe_error, trace_with_retry
from nnx_migrate.parity.evaluation.shardings import Layouts
from nnx_migrate.parity.values import Arrays, fetch, to_host
from nnx_migrate.sharding import constrain
from nnx_migrate.sharding.edit import remove_axes, shard_over_data
from nnx_migrate.sharding.placing import AnyMesh

SPECS, AFTER_STEP, LOSSES = "specs", "specs_after_step", "losses_over_steps"
STEP = "step"  # its program


@dataclass(frozen=True)
class Training:
    """One side, ready to train.

    ``state`` is a pytree of arrays on the mesh, ``layouts(state)`` how they lie there,
    ``variables(state)`` those of the model by path, and ``step(state, arrays) -> (loss, state)`` can
    be traced. ``named(state)`` are all arrays by path that both sides have, the optimizer's too, and
    ``with_values(state, named)`` is the state with others in their place.
    """

    state: Any
    layouts: Callable[[Any], Layouts]
    variables: Callable[[Any], dict[str, Any]]
    step: Callable[[Any, Sequence[Any]], tuple[Any, Any]]
    named: Callable[[Any], dict[str, Any]]
    with_values: Callable[[Any, dict[str, Any]], Any]

    def trace(self, arrays: Sequence[Any], streams: Iterable[str]) -> tuple[Any, Any]:
        """Trace a step as a function of what both sides have, so that their programs compare.

        Return that and the abstract state after it, in which what only this side has started as zeros.
        """
        after: list[Any] = []

        def run(named: dict[str, Any], key: Any, arrays: Sequence[Any]) -> Any:
            with constant_key(key, streams):
                loss, state = self.step(self.with_values(self.state, named), arrays)
            after.append(jax.eval_shape(lambda: state))
            return loss, self.named(state)

        # The order of a dict is its names': it is the same on both sides.
        key = jax.eval_shape(lambda: jax.random.key(0))
        jit_run = jax.jit(run, keep_unused=True)
        return jit_run.trace(self.named(self.state), key, list(arrays)), after[-1]


@dataclass
class TrainingResult:
    """What training one side gave; filled stage by stage."""

    before: Layouts = field(default_factory=dict)
    after: Layouts = field(default_factory=dict)
    losses: Arrays = field(default_factory=dict)
    state: Arrays = field(default_factory=dict)
    programs: dict[str, str] = field(default_factory=dict)
    debug_programs: dict[str, str] = field(default_factory=dict)
    features: dict[str, tuple[ProgramFeature, ...]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    skip_reasons: dict[str, str] = field(default_factory=dict)


def optimizer_of(case: ParityCase) -> Any:
    """Return the optimizer of a case: optax's AdamW unless it names one.

    Its update takes ``value=`` and ``grad=``, the loss and its gradients, as optax names them; an
    optimizer that has no use for them does not get them.
    """
    setting = optax.adamw(1e-3) if case.optimizer is None else case.optimizer
    return optax.with_extra_args_support(setting)


def storage_shardings(case: ParityCase, shardings: Any, arrays: Any) -> Any:
    """Return the shardings in which a training state is kept: with ``zero1`` over ``data`` too.

    Mesh axes of size 1, which Linen's shardings name, are no reason to leave a dimension out.
    """
    if not case.zero1 or case.mesh is None:
        return shardings
    return shard_over_data(_without_units(case, shardings), arrays)


def _without_units(case: ParityCase, shardings: Any) -> Any:
    assert case.mesh is not None
    sizes = case.mesh.shape if isinstance(case.mesh, Mesh) else case.mesh
    return remove_axes(shardings, [axis for axis, size in sizes.items() if size == 1])


def for_calls(case: ParityCase, params: Any, shardings: Any) -> Any:
    """Return parameters as the model's calls want them; the gradient goes back the same way.

    Where gradients are accumulated, float32 ones are gathered in bfloat16, as MaxText does (#2744).
    """
    if case.gradient_accumulation_steps > 1:
        params = jax.tree.map(_halve, params)
    return jax.tree.map(constrain, params, _without_units(case, shardings))


def _halve(array: Any) -> Any:
    return array.astype(jnp.bfloat16) if array.dtype == jnp.float32 else array


def microbatches(arrays: Sequence[Any], count: int) -> list[Any]:
    """Return the arrays of a batch with a new leading axis, along which they are so many parts."""
    return [_in_parts(array, count) for array in arrays]


def _in_parts(array: Any, count: int) -> Any:
    shape = (count, array.shape[0] // count, *array.shape[1:])
    # Over Explicit axes the rows of every part are on as many devices as those of the batch.
    spec = tuple(jax.typeof(array).sharding.spec)
    return jnp.reshape(array, shape, out_sharding=PartitionSpec(None, *spec) if any(spec) else None)


def abstract_arrays(arrays: Any, shardings: Any) -> Any:
    """Return a tree of abstract arrays that are sharded as a like tree says."""
    return jax.tree.map(
        lambda array, sharding: jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=sharding),
        arrays,
        shardings,
    )


def is_laid_out(case: ParityCase, mesh: AnyMesh | None) -> bool:
    """Whether the case says how arrays are laid out: it has a mesh and logical axis rules."""
    return mesh is not None and case.axis_rules is not None


def train(
    case: ParityCase, begin: Callable[[], Training], arrays: Sequence[Any], mesh: Mesh | None
) -> TrainingResult:
    """Begin training, take a step (``case.steps`` if that is more), and look at the state again.

    Without a mesh and logical axis rules there are no layouts; without steps either, nothing is
    run. A stage that raises is recorded under its name, as are those that need it.
    """
    result = TrainingResult()
    if not is_laid_out(case, mesh):
        missing = "mesh" if mesh is None else "axis_rules"
        result.skip_reasons |= dict.fromkeys((SPECS, AFTER_STEP), f"the case has no {missing}")
    if case.steps == 0:
        result.skip_reasons[LOSSES] = "the case has steps=0"
    if not case.compiled:
        result.skip_reasons = dict.fromkeys((SPECS, AFTER_STEP, LOSSES), OPERATIONS)
    stages = [stage for stage in (SPECS, AFTER_STEP, LOSSES) if stage not in result.skip_reasons]
    if not stages:
        return result
    try:
        training = begin()
        if SPECS in stages:
            result.before = training.layouts(training.state)
    except Exception as error:  # noqa: BLE001 (a finding about this side)
        result.errors |= dict.fromkeys(stages, describe_error(error))
        return result
    stages = [stage for stage in stages if stage != SPECS]
    try:
        step_trace, _ = trace_with_retry(lambda: training.trace(arrays, case.rngs))
        note_program(result, STEP, step_trace, step_trace.lower())
        trace_with_retry(lambda: _steps(case, training, arrays, result))
    except Exception as error:  # noqa: BLE001 (a finding about this side)
        result.errors |= dict.fromkeys(stages, describe_error(error))
    return result


def _steps(
    case: ParityCase, training: Training, arrays: Sequence[Any], result: TrainingResult
) -> None:
    def run(state: Any, key: Any, arrays: Sequence[Any]) -> tuple[Any, Any]:
        with constant_key(key, case.rngs):
            return training.step(state, arrays)

    # Nothing says where the results go, so that a step that lays them out otherwise shows.
    step = jax.jit(run)
    state = training.state
    for number in range(max(case.steps, 1)):
        key = jax.random.fold_in(jax.random.key(KEYS[0]), number)
        loss, state = step(state, key, list(arrays))
        if case.steps:
            result.losses[f"step {number + 1}"] = to_host(loss)
        if number == 0 and AFTER_STEP not in result.skip_reasons:
            result.after = training.layouts(state)
    if case.steps and case.keeps_state:
        result.state = fetch(training.named(state))
