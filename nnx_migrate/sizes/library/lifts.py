"""``nn.remat``, ``nn.scan``, ``nn.vmap`` of a class: the same class under another name.

Linen prefixes the name of the class with the transformation's (flax 0.12.8, linen/transforms.py).
"""

from __future__ import annotations

from dataclasses import replace

from nnx_migrate.abstract.questions import constant, is_none
from nnx_migrate.abstract.values import Choice, Class, Factories, Lift, Partial, Unknown, Value
from nnx_migrate.sizes.library_call import LibraryCall, Summaries
from nnx_migrate.sizes.method_lifts import shares_all


def _remat(call: LibraryCall, prefix: str = "Checkpoint") -> Value:
    target = _target(call)
    if _is_open(call):
        return Unknown("a class lifted with options that are not written out")
    found = _rename(target, prefix)
    return _of_no_class(call, "nn.remat") if found is None else found


def _is_open(call: LibraryCall) -> bool:
    """Whether ``**options`` may hold more; such a call is not rewritten."""
    return any(one.arg is None for one in call.node.keywords)


def _static_remat(call: LibraryCall) -> Value:
    return _remat(call, "Core_remat_static")


def _scan(call: LibraryCall) -> Value:
    return _over_axes(call, "Scan", 5, carries=True)


def _vmap(call: LibraryCall) -> Value:
    return _over_axes(call, "Vmap", 3, carries=False)


def _over_axes(call: LibraryCall, prefix: str, position: int, *, carries: bool) -> Value:
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
    lift = Lift(in_axes, out_axes, carries, call.node if stacks else None)
    found = _rename(_target(call), prefix, (lift,))
    if found is not None:
        return found
    return _of_no_class(call, f"nn.{prefix.lower()}")


def _of_no_class(call: LibraryCall, name: str) -> Unknown:
    """A lift of a layer of Linen's, or of a function that gets the module: their classes are lazy."""
    if call.frame.own:
        what = f"{name} of something else than a module class of the project"
        call.interpreter.problems.append((call.node, what))
    return Unknown("a lifted value")


def _target(call: LibraryCall) -> Value:
    return call.get(0, "target") or Unknown()


def _rename(target: Value, prefix: str, outer: tuple[Lift, ...] = ()) -> Value | None:
    """The class, or the partial of one, under its lifted name; None for anything else.

    Of classes between which a flag chooses, each.
    """
    if isinstance(target, Choice | Factories):
        options = [_rename(one, prefix, outer) for one in target.options]
        known = tuple(one for one in options if one is not None)
        return replace(target, options=known) if known and len(known) == len(options) else None
    if isinstance(target, Partial):
        inner = _rename(target.target, prefix, outer)
        return None if inner is None else replace(target, target=inner)
    if not isinstance(target, Class):
        return None
    lifts = (*outer, *target.lifts)
    lifted = None if target.lift is None else prefix + target.lift
    return Class(target.info, lifted, lifts)


SYMBOLS: Summaries = {
    "flax.linen.remat": _remat,
    "flax.linen.checkpoint": _remat,
    "flax.linen.partitioning.remat": _static_remat,
    "flax.linen.scan": _scan,
    "flax.linen.vmap": _vmap,
}
