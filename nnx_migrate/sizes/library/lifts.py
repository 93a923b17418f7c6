"""``nn.remat``, ``nn.scan``, ``nn.vmap`` of a class: the same class under another name.

Linen prefixes the name of the class with the transformation's (flax 0.12.8, linen/transforms.py). A
scanned function runs on a slice of each input, with the module it is called with.
"""

from __future__ import annotations

from dataclasses import replace

from nnx_migrate.abstract.values import (
    Choice,
    Class,
    Factories,
    Library,
    Lift,
    LiftedLayer,
    Native,
    Partial,
    Unknown,
    Value,
    constant,
    is_none,
)
from nnx_migrate.constructs import layer_of
from nnx_migrate.sizes.frames import Function
from nnx_migrate.sizes.library_call import LibraryCall, Summaries
from nnx_migrate.sizes.lifts import call_lifted
from nnx_migrate.sizes.method_lifts import shares_all
from nnx_migrate.source.axis_names import named_collections


def _remat(call: LibraryCall, prefix: str = "Checkpoint") -> Value:
    target = _target(call)
    if _is_open(call):
        return Unknown("a class lifted with options that are not written out")
    found = _renamed(target, prefix)
    if found is not None:
        return found
    return target if isinstance(target, Function | Factories) else Unknown("a lifted value")


def _is_open(call: LibraryCall) -> bool:
    """Whether ``**options`` may hold more; such a call is not rewritten."""
    return any(one.arg is None for one in call.node.keywords)


def _static_remat(call: LibraryCall) -> Value:
    return _remat(call, "Core_remat_static")


def _scan(call: LibraryCall) -> Value:
    return _with_axes(call, "Scan", 5, carries=True)


def _vmap(call: LibraryCall) -> Value:
    return _with_axes(call, "Vmap", 3, carries=False)


def _named_axis(call: LibraryCall, prefix: str, position: int, *, carries: bool) -> Value:
    """Lifts of ``flax.linen.partitioning``, which lift a class again for the axis's names."""
    if not _is_plain(_target(call)):
        given = {one.arg: one.value for one in call.node.keywords if one.arg is not None}
        if len(call.node.args) > 1:
            given["variable_axes"] = call.node.args[1]
        named = len(named_collections(given) or ("params",))  # others are refused
        prefix = "Map_variables" * named + prefix
        return _with_axes(call, prefix, position, carries=carries, named=named)
    name = call.symbol.rpartition(".")[2]
    call.interpreter.problems.append((call.node, f"{name} of something else than a module class"))
    return Unknown("a lifted value")


def _with_axes(
    call: LibraryCall, prefix: str, position: int, *, carries: bool, named: int = 0
) -> Value:
    if _is_open(call):
        return Unknown("a class lifted with options that are not written out")
    in_axes = call.get(position, "in_axes") or constant(0)
    out_axes = call.get(position + 1, "out_axes") or constant(0)
    methods = call.get(position + (7 if carries else 6), "methods")
    if methods is not None and is_none(methods) is not True:
        node = call.node if call.frame.own else call.interpreter.root.info.node
        call.interpreter.refuse(node, f"nn.{prefix.lower()} with methods=")
        return Unknown("a lifted value")
    stacks = not shares_all(call.get(1, "variable_axes"))
    lift = Lift(in_axes, out_axes, carries, call.node if stacks else None, named=named)
    found = _renamed(_target(call), prefix, (lift,))
    if found is not None:
        return found
    if _is_plain(_target(call)):
        return Native(lambda args, kwargs: _run_function(call, lift, args, kwargs))
    if call.frame.own:
        what = f"nn.{prefix.lower()} of something else than a module class of the project"
        call.interpreter.problems.append((call.node, what))
    return Unknown("a lifted value")


def _is_plain(target: Value) -> bool:
    """Whether it is a function that takes the module as its first argument."""
    return isinstance(target, Function) and target.owner is None


def _run_function(
    call: LibraryCall, lift: Lift, args: tuple[Value, ...], kwargs: dict[str, Value]
) -> Value:
    """One step of a scanned function; what it would build there no module has."""
    if kwargs or len(args) < 2:
        return Unknown("a scanned function whose arguments the call does not show")
    interpreter, module, target = call.interpreter, args[0], _target(call)
    given = tuple(map(interpreter.settled, args[1:]))

    def run(sliced: tuple[Value, ...]) -> Value:
        return _run(call, target, (module, *sliced))

    if lift.call is None:  # the module it is called with exists before
        return call_lifted((lift,), given, run)
    if call.frame.own:
        name = call.symbol.rpartition(".")[2]
        interpreter.refuse(call.node, f"{name} of a function stacks variables")
    return Unknown("a lifted value")


def _target(call: LibraryCall) -> Value:
    return call.get(0, "target") or Unknown()


def _renamed(target: Value, prefix: str, outer: tuple[Lift, ...] = ()) -> Value | None:
    """The class, or the partial of one, under its lifted name; None for anything else.

    Of classes between which a flag chooses, each.
    """
    if isinstance(target, Choice | Factories):
        options = [_renamed(one, prefix, outer) for one in target.options]
        known = tuple(one for one in options if one is not None)
        return replace(target, options=known) if len(known) == len(options) else None
    if isinstance(target, Partial):
        inner = _renamed(target.target, prefix, outer)
        return None if inner is None else replace(target, target=inner)
    layer = layer_of(target.symbol) if isinstance(target, Library) else None
    if layer is not None:
        return None if layer.holds_modules else LiftedLayer(layer.symbol, prefix, outer)
    if isinstance(target, LiftedLayer):
        lifts = (*outer, *target.lifts)
        return replace(target, lifted=prefix + target.lifted, lifts=lifts)
    if not isinstance(target, Class):
        return None
    lifts = (*outer, *target.lifts)
    lifted = None if target.lifted is None else prefix + target.lifted
    return Class(target.info, lifted, lifts)


def _run(call: LibraryCall, target: Value, args: tuple[Value, ...]) -> Value:
    """A function of the module, called by a transformation; what it would build there nobody has."""
    interpreter, before = call.interpreter, set(call.interpreter.built)
    if isinstance(target, Function) and target.owner is not None:
        args = args[1:]  # a bound method stands for its function
    if isinstance(target, Unknown):
        return target
    result = interpreter.call(target, args, {}, call.node, call.frame)
    for key, built in interpreter.built.items():
        if key not in before and built.call is not None:
            name = call.symbol.rpartition(".")[2]
            interpreter.refuse(built.call, f"a submodule is built in a function that {name} runs")
    return result


SYMBOLS: Summaries = {
    "flax.linen.remat": _remat,
    "flax.linen.checkpoint": _remat,
    "flax.linen.partitioning.remat": _static_remat,
    "flax.linen.scan": _scan,
    "flax.linen.vmap": _vmap,
    "flax.linen.partitioning.scan_with_axes": lambda call: _named_axis(
        call, "Scan", 5, carries=True
    ),
    "flax.linen.partitioning.vmap_with_axes": lambda call: _named_axis(
        call, "Vmap", 3, carries=False
    ),
}
