"""Evaluation of the NNX side, alone."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from flax import linen, nnx
from jax.sharding import Mesh

from nnx_migrate.linen import sown
from nnx_migrate.nn import is_moved_by_init, lazy_init, makes_state
from nnx_migrate.nn.variables.sharing import renamed_paths, shared_paths
from nnx_migrate.nn.variables.sowing import caught
from nnx_migrate.parity.case import (
    Arguments,
    BadCase,
    ParityCase,
    arguments_of,
    call_target,
    in_mode,
    initial_call,
    mesh_of,
    place,
    surroundings,
)
from nnx_migrate.parity.evaluation.constant_key import record_draws
from nnx_migrate.parity.evaluation.initial_values import initialise, repetitions
from nnx_migrate.parity.evaluation.linen_names import (
    LinenNames,
    attributes_of,
    bare,
    path_of_attribute,
    unused_entries,
)
from nnx_migrate.parity.evaluation.measure import (
    Apply,
    Measurement,
    SideCall,
    Variables,
    keys_of,
)
from nnx_migrate.parity.evaluation.mode_runs import nnx_modes
from nnx_migrate.parity.evaluation.results import ModeRun, Numbers, SideResult, SubmoduleOutput
from nnx_migrate.parity.evaluation.running import describe_error
from nnx_migrate.parity.sides import bisect, lazy
from nnx_migrate.parity.sides.subject import Start, subject_of
from nnx_migrate.parity.training.nnx import begin_nnx, names_of
from nnx_migrate.parity.training.steps import SPECS, TrainingResult, train
from nnx_migrate.parity.values import Arrays, named_leaves

CONSTRUCT = "construct"


def evaluate_nnx(case: ParityCase, *, submodules: bool = False, numbers: bool = True) -> SideResult:
    """Run everything that can be said about the NNX module of a case.

    With ``submodules``, also record the output of every submodule call (slower); without
    ``numbers`` only what precedes the forward pass, and those outputs. A constructor
    that raises is a finding about the migration: it is in ``errors["construct"]``.
    """
    construct = constructor_of(case)
    arguments, mesh = arguments_of(case), mesh_of(case)
    name = getattr(case.nnx, "__qualname__", type(case.nnx).__qualname__)
    with surroundings(case, mesh):
        first = arguments_of(initial_call(case))
        build = _builder(case, construct, first, mesh)
        keys: list[bytes] = []
        try:
            with record_draws(keys):
                module = build()
        except BadCase:
            raise
        except Exception as error:  # noqa: BLE001 (a finding about the migration)
            return SideResult("nnx", name, errors={CONSTRUCT: describe_error(error)})
        name = f"{type(module).__module__}.{type(module).__qualname__}"
        if not isinstance(module, nnx.Module):
            return SideResult("nnx", name, problems=(f"{name} is not a flax.nnx.Module",))
        # What was imported to construct it may have enabled double precision.
        arrays = place(arguments.arrays, mesh)
        return _evaluate(
            case, build, module, name, arguments, arrays, mesh, keys, submodules, numbers
        )


def constructor_of(case: ParityCase) -> Callable[[nnx.Rngs], Any]:
    """Return the callable ``rngs -> module`` of a case; a migrated class is instantiated."""
    constructor = case.nnx
    if isinstance(constructor, type) and issubclass(constructor, nnx.Module):
        linen_module = case.linen
        if linen_module is None:
            raise BadCase(
                f"nnx: {constructor.__qualname__} is a class: expected a callable rngs -> module"
            )
        from nnx_migrate.parity.instantiation.instantiate import instantiate

        first = initial_call(case)
        return lambda rngs: instantiate(
            constructor, linen_module, first.inputs, rngs, kwargs=first.kwargs, method=case.method
        )
    if not callable(constructor) or isinstance(constructor, nnx.Module):
        raise BadCase(
            f"nnx: expected a callable rngs -> module or a migrated class, found "
            f"{type(constructor).__qualname__}: write nnx=lambda rngs: Model(..., rngs=rngs)"
        )
    return constructor


def _evaluate(
    case: ParityCase,
    build: Callable[[], nnx.Module],
    module: nnx.Module,
    name: str,
    arguments: Arguments,
    arrays: list[Any],
    mesh: Any,
    keys: list[bytes],
    submodules: bool,
    numbers: bool,
) -> SideResult:
    bridges = _bridges(module)
    shared_submodules = shared_paths(module)
    other = {**renamed_paths(module), **lazy.nnx_paths(module)}
    names = LinenNames({**shared_submodules, **other, **(case.path_map or {})})
    start, nnx_only, errors = _start_of(case, build, module, names)

    def apply_in(case: ParityCase, writes: set[str] | None = None) -> Apply:
        return apply_of(case, module, names, set() if writes is None else writes)

    subject = subject_of(case, apply_in, start, arguments, arrays, mesh)
    variables = subject.variables
    writes: set[str] = set()
    stray: list[str] = []
    measurement, training = Measurement(), TrainingResult()
    sown: tuple[str, ...] = ()
    modes = tuple(ModeRun(mode) for mode in case.modes or ())
    if numbers:
        with _stray_linen(stray, bridges):
            measurement, sown = subject.measure(apply_in(case, writes), control=False)
        with _stray_linen(stray, bridges):
            modes = nnx_modes(case, module, subject.in_mode(control=False))
        begin = functools.partial(begin_nnx, case, module, names, variables, arguments, mesh)
        with _stray_linen(stray, bridges):
            training = train(case, begin, arrays, mesh)
    outputs: tuple[SubmoduleOutput, ...] = ()
    if submodules:
        recorder = bisect.recorded_lazy if lazy.is_lazy(module) else bisect.recorded_nnx
        record = recorder(module, names.linen_module_path)
        outputs, modes = subject.submodules(record, modes, measurement.errors)
    side = subject.result("nnx", name, measurement, training)
    attributes = attributes_of(module)
    with_redrawn = functools.partial(_with_redrawn, module, names, variables, arrays)
    return dataclasses.replace(
        side,
        problems=(*_whole_bridge(module), *sorted(set(stray))),
        bridges=tuple(f"{path or 'the model'} ({cls})" for path, cls in bridges.items()),
        unused_map_entries=unused_entries(case.path_map or {}, attributes),
        attributes=attributes,
        nnx_only=nnx_only,
        shared_submodules=tuple(
            f"{built} (as {state_path})" for built, state_path in shared_submodules.items()
        ),
        draws=len(keys),
        repeated_draws=len(keys) - len(set(keys)),
        first=with_redrawn(case, side.first),
        writes=tuple(sorted(writes)),
        errors={**errors, **side.errors},
        submodules=outputs,
        sown=sown,
        modes=tuple(
            dataclasses.replace(one, first=with_redrawn(in_mode(case, one.mode), one.first))
            for one in modes
        ),
    )


def _start_of(
    case: ParityCase, build: Callable[[], nnx.Module], module: nnx.Module, names: LinenNames
) -> tuple[Start, tuple[str, ...], dict[str, str]]:
    """What a constructed module holds; returns also its variables without a counterpart in Linen, and what raised."""
    real_values, nnx_only = names.variables(nnx.state(module))
    errors: dict[str, str] = {}
    init_values: Arrays = {}
    values: Variables = dict(real_values)
    try:
        init_values, values = initialise(
            case, lambda: names.variables(nnx.state(build()))[0], constant=True
        )
    except Exception as error:  # noqa: BLE001 (a finding about the migration)
        errors["init_values"] = describe_error(error)
    axis_names: dict[str, tuple[str | None, ...]] = {}
    try:
        axis_names = names_of(names, nnx.state(module))
    except ValueError as error:
        errors[SPECS] = describe_error(error)
    duplicates = repetitions(real_values, init_values)
    return Start(values, init_values, axis_names, duplicates), nnx_only, errors


def _with_redrawn(
    module: nnx.Module,
    names: LinenNames,
    variables: Variables,
    arrays: list[Any],
    case: ParityCase,
    run: Numbers,
) -> Numbers:
    """What a run gave, and how many of its keys one more call of the same model draws again."""
    if not run.keys:
        return run
    graphdef, state = nnx.split(module)

    def twice(variables: Variables, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        copy = nnx.merge(graphdef, names.with_values(state, variables), copy=True)
        call = call_target(case, copy)
        return [bare(call(*args, **kwargs)) for _ in range(2)], {}

    call = SideCall(case, twice, arguments_of(case), (variables, arrays))
    keys = keys_of(call, run.stream_names)
    assert keys is not None  # the first call's were counted
    return dataclasses.replace(run, repeated_keys=2 * run.keys - keys)


def _builder(
    case: ParityCase,
    construct: Callable[[nnx.Rngs], Any],
    arguments: Arguments,
    mesh: Mesh | None,
) -> Callable[[], Any]:
    """Return a function that builds the module, Linen submodules behind bridges included."""

    def build() -> Any:
        streams = {name: case.key_of(name) for name in case.streams}
        # Linen falls back to `params` for a stream that is missing, NNX to `default`.
        module = construct(nnx.Rngs(case.key_of("default"), **streams))
        if not isinstance(module, nnx.Module):
            return module
        args, kwargs = arguments.rebuild(place(arguments.arrays, mesh))
        if lazy.is_unbuilt(module):
            return lazy.build(case, module, args, kwargs)
        method = call_target(case, module)
        if _bridges(module) or _moved_by_init(module) or makes_state(module):
            lazy_init(method, *args, **kwargs)
        return module

    return build


def apply_of(case: ParityCase, module: nnx.Module, names: LinenNames, writes: set[str]) -> Apply:
    """Return ``apply(variables, args, kwargs) -> (outputs, new variables)``; note paths it writes."""
    graphdef, state = nnx.split(module)

    def apply(
        variables: Variables, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, Variables]:
        # copy=True: the merged module must not share variables with an outer trace level.
        copy = nnx.merge(graphdef, names.with_values(state, variables), copy=True)
        run = functools.partial(call_target(case, copy), *args, **kwargs)
        # Explicit modules keep what they sow themselves, lazy ones for who asks.
        own = () if lazy.is_lazy(copy) else case.collections
        with sown(*case.collections) as sown_values:
            result, found = caught(copy, run, own, {})
        outputs = bare(result)
        after, _ = names.variables(nnx.state(copy))
        after |= lazy.leaves_of(sown_values) | _sown_leaves(found, names)
        for path, value in after.items():
            # Transforms hand read-only parameters back as new tracers: those are no writes.
            if value is not variables.get(path) and not path.startswith("params/"):
                writes.add(path)
        collections = {p: v for p, v in after.items() if p.split("/", 1)[0] in case.collections}
        return outputs, collections

    return apply


def _sown_leaves(captures: Mapping[tuple[str, ...], Any], names: LinenNames) -> Variables:
    """What explicit modules sowed, by Linen's path."""
    leaves: Variables = {}
    for (collection, *modules, name), values in captures.items():
        place = names.linen_module_path("/".join(modules))
        prefix = "/".join(part for part in (collection, place, name) if part)
        leaves |= {f"{prefix}/{path}": value for path, value in named_leaves(values)[0].items()}
    return leaves


def _moved_by_init(module: nnx.Module) -> bool:
    """Whether Linen's init moves a variable that the constructor leaves where it starts."""
    nodes = (node for _, node in nnx.iter_graph(module))
    return any(isinstance(node, nnx.Variable) and is_moved_by_init(node) for node in nodes)


def _bridges(module: nnx.Module) -> dict[str, str]:
    """Return attribute path -> Linen class of every module behind ``ToNNX``."""
    found = {}
    for path, node in nnx.iter_graph(module):
        if isinstance(node, nnx.bridge.ToNNX):
            found[path_of_attribute(path)] = type(node.to_nnx__module).__qualname__
    return found


def _whole_bridge(module: nnx.Module) -> tuple[str, ...]:
    if isinstance(module, nnx.bridge.ToNNX):
        return ("the whole NNX side is a Linen module behind ToNNX",)
    return ()


@contextmanager
def _stray_linen(stray: list[str], bridges: Mapping[str, str]) -> Iterator[None]:
    """Note Linen modules that run although no bridge holds them."""

    inside = 0  # calls of bridged modules that are running: what these apply is theirs

    def intercept(function: Any, args: Any, kwargs: Any, context: Any) -> Any:
        nonlocal inside
        root = context.module
        if lazy.is_lazy(root):
            return function(*args, **kwargs)  # its interceptors are Linen's, its class is not
        while isinstance(root.parent, linen.Module):
            root = root.parent
        is_bridged = type(root).__qualname__ in bridges.values()
        if not is_bridged and not inside:
            stray.append(f"the NNX side runs the Linen module {type(root).__qualname__}")
        inside += is_bridged
        try:
            return function(*args, **kwargs)
        finally:
            inside -= is_bridged

    with linen.intercept_methods(intercept):
        yield
