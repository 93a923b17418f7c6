"""Evaluation of the Linen side, alone."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
from flax import linen, nnx
from flax.core import meta

from nnx_migrate.parity.case import (
    Arguments,
    BadCase,
    ParityCase,
    arguments_of,
    initial_call,
    mesh_of,
    place,
    replicate,
    surroundings,
    unconstrained,
)
from nnx_migrate.parity.evaluation.initial_values import initialise, repetitions
from nnx_migrate.parity.evaluation.measure import (
    FORWARD,
    LOSS,
    Apply,
    Measured,
    Variables,
    measure,
)
from nnx_migrate.parity.evaluation.mode_runs import linen_modes, measure_mode
from nnx_migrate.parity.evaluation.results import ModeRun, SideResult, SubmoduleOutput
from nnx_migrate.parity.evaluation.running import NEEDS_VALUES, OPERATIONS, describe_error
from nnx_migrate.parity.evaluation.sowing import noted_sowing
from nnx_migrate.parity.sides import bisect
from nnx_migrate.parity.training.linen import begin_linen, names_of, unboxed
from nnx_migrate.parity.training.steps import Trained, train
from nnx_migrate.parity.values import named_leaves, random_value, shape_dtype


def evaluate_linen(
    case: ParityCase, *, submodules: bool = False, numbers: bool = True
) -> SideResult:
    """Run everything that can be said about the Linen module of a case.

    With ``submodules``, also record the output of every submodule call (slower); without
    ``numbers`` only what precedes the forward pass, and those outputs. Raises BadCase when the
    case has no Linen module or when that cannot be initialised and applied: then there is
    nothing to compare with.
    """
    module = case.linen
    if module is None:
        raise BadCase("linen: expected a flax.linen.Module, found None")
    name = f"{type(module).__module__}.{type(module).__qualname__}"
    if not isinstance(module, linen.Module):
        return SideResult("linen", name, problems=(f"{name} is not a flax.linen.Module",))
    arguments, mesh = arguments_of(case), mesh_of(case)
    with surroundings(case, mesh):
        arrays = place(arguments.arrays, mesh)
        rest = (module, name, arguments, arrays, mesh, submodules, numbers)
        try:
            return _evaluate(case, *rest)
        except BadCase as error:
            if not (case.compiled and isinstance(error.__cause__, NEEDS_VALUES)):
                raise
            reason = f"Linen itself cannot be traced: {describe_error(error.__cause__)}"
        side = _evaluate(dataclasses.replace(case, compiled=False), *rest)
        return dataclasses.replace(side, untraced=reason)


def _evaluate(
    case: ParityCase,
    module: linen.Module,
    name: str,
    arguments: Arguments,
    arrays: list[Any],
    mesh: Any,
    submodules: bool,
    numbers: bool,
) -> SideResult:
    classes: set[type] = set()
    initial, given = arguments, arrays
    if case.initial is not None:
        initial = arguments_of(initial_call(case))
        given = place(initial.arrays, mesh)
    init = initialiser_of(case, module, initial, given)
    treedefs: list[Any] = []
    axis_names: dict[str, tuple[str | None, ...]] = {}

    def build() -> Variables:
        boxed = init()
        axis_names.update(names_of(boxed))
        leaves, treedef = named_leaves(unboxed(boxed))
        treedefs.append(treedef)
        return leaves

    try:
        with _observed(classes):
            init_values, values = initialise(case, build, constant=True)
    except Exception as error:
        raise BadCase(
            f"{name}: the Linen module cannot be initialised: {describe_error(error)}"
        ) from error
    # Stacks share keys where a lift does not split them: told from the values under real keys.
    stacked = repetitions(init_values)
    repeated = (
        repetitions(initialise(case, build, constant=False)[0], init_values) if stacked else ()
    )
    shapes = {path: shape_dtype(value) for path, value in values.items()}
    variables = replicate(
        {p: random_value(p, shapes[p], values[p], case.seed) for p in values}, mesh
    )

    def applied(case: ParityCase) -> Apply:
        return apply_of(case, module, treedefs[-1], list(values))

    apply = applied(case)
    measured = Measured()
    thrown: set[str] = set()
    if numbers:
        with noted_sowing(thrown):
            measured = measure(case, apply, variables, arguments, arrays, control=True)
    if FORWARD in measured.errors:
        raise BadCase(
            f"{name}: the Linen module cannot be applied: {measured.errors[FORWARD]}"
        ) from measured.raised[FORWARD]
    if case.loss is not None and LOSS in measured.errors:
        raise BadCase(
            f"{name}: the case's loss cannot be computed on the Linen side: {measured.errors[LOSS]}"
        ) from measured.raised[LOSS]
    trained = Trained()
    shapes_of = functools.partial(jax.eval_shape, init)
    if numbers:
        begin = functools.partial(begin_linen, case, shapes_of, apply, variables, arguments, mesh)
        trained = train(case, begin, arrays, mesh)
    modes = tuple(ModeRun(mode) for mode in case.modes or ())
    fixed: dict[str, str] = {}
    if numbers and case.modes is None:
        run = functools.partial(measure_mode, applied, variables, arrays, True)
        collections = dict.fromkeys(path.split("/", 1)[0] for path in shapes)
        modes, fixed = linen_modes(case, module, collections, run)
    outputs: tuple[SubmoduleOutput, ...] = ()
    if submodules:
        with bisect.recorded_linen() as record:
            outputs = bisect.run(case, apply, variables, arguments, arrays, record, measured.errors)
            modes = bisect.in_modes(case, applied, variables, arrays, record, modes)
    return SideResult(
        "linen",
        name,
        problems=_problems(classes),
        shapes=shapes,
        names=axis_names,
        init_values=init_values,
        repeated=repeated,
        submodules=outputs,
        first=measured.first,
        second=measured.second,
        others=measured.others,
        programs={**measured.programs, **trained.programs},
        located={**measured.located, **trained.located},
        unseen={**measured.unseen, **trained.unseen},
        layouts=trained.before,
        layouts_after=trained.after,
        losses=trained.losses,
        state=trained.state,
        errors={**measured.errors, **trained.errors},
        skipped={**measured.skipped, **trained.skipped},
        control=tuple(measured.control),
        control_leaves=measured.control_leaves,
        untraced="" if case.compiled else OPERATIONS,
        sown=tuple(sorted(thrown)),
        modes=modes,
        fixed=fixed,
    )


def initialiser_of(
    case: ParityCase, module: linen.Module, arguments: Arguments, arrays: list[Any]
) -> Callable[[], Any]:
    """Return a function that makes the variables, in their boxes."""

    def init() -> Any:
        args, kwargs = arguments.rebuild(arrays)
        if case.method is not None:
            kwargs = {**kwargs, "method": case.method}
        streams = {name: case.key_of(name) for name in ("params", *case.rngs)}
        with unconstrained(case):
            return module.init(streams, *args, **kwargs)

    return init


def apply_of(case: ParityCase, module: linen.Module, treedef: Any, paths: list[str]) -> Apply:
    """Return ``apply(variables, args, kwargs) -> (outputs, mutated)`` over variables by path."""
    mutable = list(case.collections) or False

    def apply(
        variables: Variables, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, Variables]:
        tree = jax.tree.unflatten(treedef, [variables[path] for path in paths])
        if case.method is not None:
            kwargs = {**kwargs, "method": case.method}
        streams = {name: case.key_of(name) for name in case.rngs}
        result = module.apply(tree, *args, rngs=streams, mutable=mutable, **kwargs)
        if mutable is False:
            return result, {}
        outputs, mutated = result
        return outputs, named_leaves(meta.unbox(mutated))[0]

    return apply


@contextmanager
def _observed(classes: set[type]) -> Iterator[None]:
    def intercept(function: Any, args: Any, kwargs: Any, context: Any) -> Any:
        classes.add(type(context.module))
        return function(*args, **kwargs)

    with linen.intercept_methods(intercept):
        yield


def _problems(classes: set[type]) -> tuple[str, ...]:
    """NNX modules inside the Linen model: it would be compared with itself there."""
    inside = sorted(cls.__qualname__ for cls in classes if issubclass(cls, nnx.bridge.ToLinen))
    return tuple(f"the Linen side runs NNX through {name}" for name in inside)
