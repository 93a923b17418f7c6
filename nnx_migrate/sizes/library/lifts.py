"""``nn.remat``, ``nn.scan``, ``nn.vmap`` of a class: the same class under another name.

Linen prefixes the name of the class with the transformation's (flax 0.12.8, linen/transforms.py). A
scanned function runs on a slice of each input, with the module it is called with.
"""

from __future__ import annotations

from dataclasses import replace

from nnx_migrate.sizes.library.call import LibraryCall, Summaries
from nnx_migrate.sizes.lifted import call_lifted
from nnx_migrate.sizes.values import (
    Choice,
    Class,
    Factories,
    Function,
    Lift,
    Native,
    Partial,
    Record,
    Unknown,
    Value,
    constant,
)


def _remat(call: LibraryCall, prefix: str = "Checkpoint") -> Value:
    target = _target(call)
    found = _renamed(target, prefix)
    if found is not None:
        return found
    return target if isinstance(target, Function | Factories) else Unknown("a lifted value")


def _static_remat(call: LibraryCall) -> Value:
    return _remat(call, "Core_remat_static")


def _scan(call: LibraryCall) -> Value:
    return _with_axes(call, "Scan", 5, carries=True)


def _vmap(call: LibraryCall) -> Value:
    return _with_axes(call, "Vmap", 3, carries=False)


def _with_axes(call: LibraryCall, prefix: str, position: int, *, carries: bool) -> Value:
    in_axes = call.get(position, "in_axes") or constant(0)
    out_axes = call.get(position + 1, "out_axes") or constant(0)
    lift = Lift(in_axes, out_axes, carries)
    found = _renamed(_target(call), prefix, lift)
    if found is not None:
        return found
    if carries and _is_plain(_target(call)) and _stacks_nothing(call):
        return Native(lambda args, kwargs: _run_function(call, lift, args, kwargs))
    if call.frame.own:
        what = f"nn.{prefix.lower()} of something else than a module class of the project"
        call.interpreter.problems.append((call.node, what))
    return Unknown("a lifted value")


def _is_plain(target: Value) -> bool:
    """Whether it is a function that takes the module as its first argument."""
    return isinstance(target, Function) and target.owner is None


def _stacks_nothing(call: LibraryCall) -> bool:
    """Whether a scan has no ``variable_axes``, so that the module it is called with exists before."""
    axes = call.get(1, "variable_axes")
    return axes is None or axes == Record({})


def _run_function(
    call: LibraryCall, lift: Lift, args: tuple[Value, ...], kwargs: dict[str, Value]
) -> Value:
    """One step of a scanned function; what it would build there no module has."""
    if kwargs or len(args) < 2:
        return Unknown("a scanned function whose arguments the call does not show")
    interpreter, before = call.interpreter, set(call.interpreter.built)
    module, target = args[0], _target(call)
    result = call_lifted(
        (lift,),
        tuple(map(interpreter.settled, args[1:])),
        lambda given: interpreter.call(target, (module, *given), {}, call.node, call.frame),
    )
    for key, built in interpreter.built.items():
        if key not in before and built.call is not None:
            reason = "a submodule is built inside a scanned function"
            interpreter.problems.append((built.call, reason))
    return result


def _target(call: LibraryCall) -> Value:
    return call.get(0, "target") or Unknown()


def _renamed(target: Value, prefix: str, lift: Lift | None = None) -> Value | None:
    """The class, or the partial of one, under its lifted name; None for anything else.

    Of classes between which a flag chooses, each.
    """
    if isinstance(target, Choice | Factories):
        options = [_renamed(one, prefix, lift) for one in target.options]
        known = tuple(one for one in options if one is not None)
        return replace(target, options=known) if len(known) == len(options) else None
    if isinstance(target, Partial):
        inner = _renamed(target.target, prefix, lift)
        return None if inner is None else replace(target, target=inner)
    if not isinstance(target, Class):
        return None
    lifts = target.lifts if lift is None else (lift, *target.lifts)
    lifted = None if target.lifted is None else prefix + target.lifted
    return Class(target.info, lifted, lifts)


SYMBOLS: Summaries = {
    "flax.linen.remat": _remat,
    "flax.linen.checkpoint": _remat,
    "flax.linen.partitioning.remat": _static_remat,
    "flax.linen.scan": _scan,
    "flax.linen.vmap": _vmap,
}
