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
    linen_init_context,
    mesh_of,
    place,
    surroundings,
)
from nnx_migrate.parity.evaluation.initial_values import initialise, repetitions
from nnx_migrate.parity.evaluation.measure import (
    FORWARD,
    LOSS,
    Apply,
    Measurement,
    Variables,
)
from nnx_migrate.parity.evaluation.mode_runs import linen_modes
from nnx_migrate.parity.evaluation.results import ModeRun, SideResult, SubmoduleOutput
from nnx_migrate.parity.evaluation.running import NEEDS_VALUES, describe_error
from nnx_migrate.parity.sides import bisect
from nnx_migrate.parity.sides.subject import Start, subject_of
from nnx_migrate.parity.training.linen import begin_linen, names_of, unbox_tree
from nnx_migrate.parity.training.steps import TrainingResult, train
from nnx_migrate.parity.values import named_leaves


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
        return dataclasses.replace(side, eager_reason=reason)


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
    initial, placed_arrays = arguments, arrays
    if case.initial is not None:
        initial = arguments_of(initial_call(case))
        placed_arrays = place(initial.arrays, mesh)
    init = initialiser_of(case, module, initial, placed_arrays)
    start, treedef, problems = _start_of(case, name, init)

    def apply_in(case: ParityCase) -> Apply:
        return apply_of(case, module, treedef, list(start.values))

    subject = subject_of(case, apply_in, start, arguments, arrays, mesh)
    measurement, training = Measurement(), TrainingResult()
    sown: tuple[str, ...] = ()
    modes = tuple(ModeRun(mode) for mode in case.modes or ())
    fixed_arguments: dict[str, str] = {}
    if numbers:
        measurement, sown = subject.measure(apply_in(case), control=True)
        _check(case, name, measurement)
        rest = (apply_in(case), subject.variables, arguments, mesh)
        shapes_of = functools.partial(jax.eval_shape, init)
        training = train(case, functools.partial(begin_linen, case, shapes_of, *rest), arrays, mesh)
    if numbers and case.modes is None:
        collections = dict.fromkeys(path.split("/", 1)[0] for path in subject.shapes)
        modes, fixed_arguments = linen_modes(
            case, module, collections, subject.in_mode(control=True)
        )
    outputs: tuple[SubmoduleOutput, ...] = ()
    if submodules:
        recorder = bisect.recorded_linen()
        outputs, modes = subject.submodules(recorder, modes, measurement.errors)
    return dataclasses.replace(
        subject.result("linen", name, measurement, training),
        problems=problems,
        submodules=outputs,
        control=tuple(measurement.control),
        control_leaves=measurement.control_leaves,
        sown=sown,
        modes=modes,
        fixed_arguments=fixed_arguments,
    )


def _start_of(
    case: ParityCase, name: str, init: Callable[[], Any]
) -> tuple[Start, Any, tuple[str, ...]]:
    """Initialise the module; returns also the tree of its variables without boxes, and NNX modules that ran inside.

    Raises:
      BadCase: that raises.
    """
    classes: set[type] = set()
    treedefs: list[Any] = []
    axis_names: dict[str, tuple[str | None, ...]] = {}

    def build() -> Variables:
        variables = init()
        axis_names.update(names_of(variables))
        leaves, treedef = named_leaves(unbox_tree(variables))
        treedefs.append(treedef)
        return leaves

    try:
        with _observe(classes):
            init_values, values = initialise(case, build, constant=True)
    except Exception as error:
        raise BadCase(
            f"{name}: the Linen module cannot be initialised: {describe_error(error)}"
        ) from error
    duplicates: tuple[str, ...] = ()
    if repetitions(init_values, {}):  # What is apart under one key is under real ones, too.
        duplicates = repetitions(initialise(case, build, constant=False)[0], init_values)
    start = Start(values, init_values, axis_names, duplicates)
    return start, treedefs[-1], _problems(classes)


def _check(case: ParityCase, name: str, measurement: Measurement) -> None:
    """Where Linen's side itself cannot run, there is nothing to compare with.

    Raises:
      BadCase: the module cannot be applied, or the case's loss cannot be computed.
    """
    if FORWARD in measurement.errors:
        raise BadCase(
            f"{name}: the Linen module cannot be applied: {measurement.errors[FORWARD]}"
        ) from measurement.exceptions[FORWARD]
    if case.loss is not None and LOSS in measurement.errors:
        raise BadCase(
            f"{name}: the case's loss cannot be computed on the Linen side: {measurement.errors[LOSS]}"
        ) from measurement.exceptions[LOSS]


def initialiser_of(
    case: ParityCase, module: linen.Module, arguments: Arguments, arrays: list[Any]
) -> Callable[[], Any]:
    """Return a function that makes the variables, in their boxes."""

    def init() -> Any:
        args, kwargs = arguments.rebuild(arrays)
        if case.method is not None:
            kwargs = {**kwargs, "method": case.method}
        streams = {name: case.key_of(name) for name in ("params", *case.rngs)}
        with linen_init_context(case):
            return module.init(streams, *args, **kwargs)

    return init


def apply_of(case: ParityCase, module: linen.Module, treedef: Any, paths: list[str]) -> Apply:
    """Return ``apply(variables, args, kwargs) -> (outputs, new variables)`` over variables by path."""
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
        outputs, new_variables = result
        return outputs, named_leaves(meta.unbox(new_variables))[0]

    return apply


@contextmanager
def _observe(classes: set[type]) -> Iterator[None]:
    def intercept(function: Any, args: Any, kwargs: Any, context: Any) -> Any:
        classes.add(type(context.module))
        return function(*args, **kwargs)

    with linen.intercept_methods(intercept):
        yield


def _problems(classes: set[type]) -> tuple[str, ...]:
    """NNX modules inside the Linen model: it would be compared with itself there."""
    inside = sorted(cls.__qualname__ for cls in classes if issubclass(cls, nnx.bridge.ToLinen))
    return tuple(f"the Linen side runs NNX through {name}" for name in inside)
