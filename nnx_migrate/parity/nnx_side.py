"""Evaluation of the NNX side, alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import jax
from flax import linen, nnx

from nnx_migrate.parity import bisect
from nnx_migrate.parity.case import (
    Arguments,
    BadCase,
    ParityCase,
    arguments_of,
    mesh_of,
    place,
    replicate,
    surroundings,
)
from nnx_migrate.parity.constant_key import recorded_draws
from nnx_migrate.parity.measure import (
    Apply,
    Measured,
    Variables,
    describe_error,
    initialise,
    measure,
    repetitions,
)
from nnx_migrate.parity.sharing import shared_paths
from nnx_migrate.parity.sides import SideResult, SubmoduleOutput
from nnx_migrate.parity.values import named_leaves, random_value, shape_dtype

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
        arrays = place(arguments.arrays, mesh)
        build = _builder(case, construct, arguments, arrays)
        keys: list[bytes] = []
        try:
            with recorded_draws(keys):
                module = build()
        except BadCase:
            raise
        except Exception as error:  # noqa: BLE001 (a finding about the migration)
            return SideResult("nnx", name, errors={CONSTRUCT: describe_error(error)})
        name = f"{type(module).__module__}.{type(module).__qualname__}"
        if not isinstance(module, nnx.Module):
            return SideResult("nnx", name, problems=(f"{name} is not a flax.nnx.Module",))
        return _evaluate(
            case, build, module, name, arguments, arrays, mesh, keys, submodules, numbers
        )


def constructor_of(case: ParityCase) -> Callable[[nnx.Rngs], Any]:
    """Return the callable ``rngs -> module`` of a case; a migrated class is instantiated."""
    given = case.nnx
    if isinstance(given, type) and issubclass(given, nnx.Module):
        linen_module = case.linen
        if linen_module is None:
            raise BadCase(
                f"nnx: {given.__qualname__} is a class: expected a callable rngs -> module"
            )
        from nnx_migrate.parity.instantiate import instantiate

        return lambda rngs: instantiate(
            given, linen_module, case.inputs, rngs, kwargs=case.kwargs, method=case.method
        )
    if not callable(given) or isinstance(given, nnx.Module):
        raise BadCase(
            f"nnx: expected a callable rngs -> module or a migrated class, found "
            f"{type(given).__qualname__}: write nnx=lambda rngs: Model(..., rngs=rngs)"
        )
    return given


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
    bridged = _bridged(module)
    shared = shared_paths(module)
    names = LinenNames({**shared, **(case.path_map or {})})
    real_values, excluded = names.variables(nnx.state(module))
    errors: dict[str, str] = {}
    init_values: dict[str, Any] = {}
    values: dict[str, Any] = dict(real_values)
    try:
        init_values, values = initialise(
            lambda: names.variables(nnx.state(build()))[0], constant=True
        )
    except Exception as error:  # noqa: BLE001 (a finding about the migration)
        errors["init_values"] = describe_error(error)
    shapes = {path: shape_dtype(value) for path, value in values.items()}
    variables = replicate(
        {p: random_value(p, shapes[p], values[p], case.seed) for p in values}, mesh
    )
    written: set[str] = set()
    apply = _apply(case, module, names, written)
    stray: list[str] = []
    with _stray_linen(stray, bridged):
        measured = Measured()
        if numbers:
            measured = measure(case, apply, variables, arguments, arrays, control=False)
    outputs: tuple[SubmoduleOutput, ...] = ()
    if submodules:
        with bisect.recorded_nnx(module, names.linen_module_path) as record:
            tagged = _apply(case, module, names, written)
            outputs = bisect.run(tagged, variables, arguments, arrays, record, measured.errors)
    return SideResult(
        "nnx",
        name,
        problems=(*_whole_bridge(module), *sorted(set(stray))),
        bridged=tuple(f"{path or 'the model'} ({cls})" for path, cls in bridged.items()),
        shapes=shapes,
        excluded=excluded,
        shared=tuple(f"{built} (as {listed})" for built, listed in shared.items()),
        init_values=init_values,
        repeated=repetitions(real_values, init_values),
        draws=len(keys),
        repeated_draws=len(keys) - len(set(keys)),
        first=measured.first,
        second=measured.second,
        written=tuple(sorted(written)),
        programs=measured.programs,
        errors={**errors, **measured.errors},
        skipped=measured.skipped,
        submodules=outputs,
    )


def _builder(
    case: ParityCase,
    construct: Callable[[nnx.Rngs], Any],
    arguments: Arguments,
    arrays: list[Any],
) -> Callable[[], Any]:
    """Return a function that builds the module, Linen submodules behind bridges included."""

    def build() -> Any:
        streams = {name: case.key_of(name) for name in ("params", *case.rngs)}
        # Linen falls back to `params` for a stream that is missing, NNX to `default`.
        module = construct(nnx.Rngs(case.key_of("default"), **streams))
        if isinstance(module, nnx.Module) and _bridged(module):
            args, kwargs = arguments.rebuild(arrays)
            method = module if case.method is None else getattr(module, case.method)
            nnx.bridge.lazy_init(method, *args, **kwargs)
        return module

    return build


class LinenNames:
    """Names of an NNX module's variables as Linen spells them: collection and scope path."""

    def __init__(self, path_map: Mapping[str, str]) -> None:
        """Take a map from Linen paths to NNX paths, as in ``ParityCase``."""
        self._prefixes = sorted(
            ((nnx_path, linen_path) for linen_path, nnx_path in path_map.items()),
            key=lambda pair: -len(pair[0]),
        )

    def linen_module_path(self, path: str) -> str:
        """Return the Linen path of an NNX attribute path; the longest mapped prefix decides."""
        for old, new in self._prefixes:
            if path == old:
                return new
            if path.startswith(old + "/"):
                return f"{new}/{path[len(old) + 1 :]}" if new else path[len(old) + 1 :]
        return path

    def variables(self, state: nnx.State[Any, Any]) -> tuple[Variables, tuple[str, ...]]:
        """Return array values by Linen path, and the paths of what has no Linen counterpart."""
        values: Variables = {}
        excluded: list[str] = []
        for path, variable in nnx.to_flat_state(state):
            attribute = path_of_attribute(path)
            if not isinstance(variable, nnx.Variable):
                excluded.append(f"{attribute} (plain array)")
            elif isinstance(variable, nnx.RngState):
                excluded.append(attribute)
            else:
                values |= self._leaves(attribute, variable)
        return values, tuple(excluded)

    def _leaves(self, attribute: str, variable: Any) -> Variables:
        prefix = f"{collection_of(type(variable))}/{self.linen_module_path(attribute)}"
        leaves, _ = named_leaves(variable.get_value())
        return {f"{prefix}/{name}" if name else prefix: leaf for name, leaf in leaves.items()}

    def replaced(
        self, state: nnx.State[Any, Any], variables: Mapping[str, Any]
    ) -> nnx.State[Any, Any]:
        """Return the state with the values of ``variables``; what is excluded stays as it is."""
        entries = []
        for path, variable in nnx.to_flat_state(state):
            if isinstance(variable, nnx.Variable) and not isinstance(variable, nnx.RngState):
                old = self._leaves(path_of_attribute(path), variable)
                treedef = jax.tree.structure(variable.get_value())
                new = jax.tree.unflatten(treedef, [variables[name] for name in old])
                variable = variable.replace(new)
            entries.append((path, variable))
        return nnx.from_flat_state(entries)


def path_of_attribute(path: tuple[Any, ...]) -> str:
    """Join an NNX attribute path with slashes."""
    return "/".join(map(str, path))


def collection_of(kind: type[nnx.Variable[Any]]) -> str:
    """Return the Linen collection of a Variable type; a subclass belongs to its base's."""
    for base in kind.__mro__:
        if base is nnx.Variable:
            break
        if issubclass(base, nnx.Variable):
            try:
                return nnx.variable_name_from_type(base)
            except ValueError:
                continue
    return kind.__name__


def _apply(case: ParityCase, module: nnx.Module, names: LinenNames, written: set[str]) -> Apply:
    graphdef, state = nnx.split(module)

    def apply(
        variables: Variables, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, Variables]:
        # copy=True: the merged module must not share variables with an outer trace level.
        copy = nnx.merge(graphdef, names.replaced(state, variables), copy=True)
        call = copy if case.method is None else getattr(copy, case.method)
        outputs = jax.tree.map(_bare, call(*args, **kwargs), is_leaf=_is_variable)
        after, _ = names.variables(nnx.state(copy))
        for path, value in after.items():
            # Transforms hand read-only parameters back as new tracers: those are no writes.
            if value is not variables.get(path) and not path.startswith("params/"):
                written.add(path)
        wanted = {p: v for p, v in after.items() if p.split("/", 1)[0] in case.collections}
        return outputs, wanted

    return apply


def _is_variable(value: Any) -> bool:
    return isinstance(value, nnx.Variable)


def _bare(value: Any) -> Any:
    return value.get_value() if _is_variable(value) else value


def _bridged(module: nnx.Module) -> dict[str, str]:
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
def _stray_linen(stray: list[str], bridged: Mapping[str, str]) -> Iterator[None]:
    """Note Linen modules that run although no bridge holds them."""

    def intercept(function: Any, args: Any, kwargs: Any, context: Any) -> Any:
        root = context.module
        while isinstance(root.parent, linen.Module):
            root = root.parent
        if type(root).__qualname__ not in bridged.values():
            stray.append(f"the NNX side runs the Linen module {type(root).__qualname__}")
        return function(*args, **kwargs)

    with linen.intercept_methods(intercept):
        yield
