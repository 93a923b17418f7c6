"""``nn.remat``, ``nn.scan``, ``nn.vmap`` of a class: the same class under another name.

Linen prefixes the name of the class with the transformation's (flax 0.12.8, linen/transforms.py).
"""

from __future__ import annotations

from dataclasses import replace

from nnx_migrate.sizes.library.call import LibraryCall, Summaries
from nnx_migrate.sizes.values import (
    Choice,
    Class,
    Factories,
    Function,
    Lift,
    Partial,
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
    found = _renamed(_target(call), prefix, Lift(in_axes, out_axes, carries))
    if found is not None:
        return found
    if call.frame.own:
        what = f"nn.{prefix.lower()} of something else than a module class of the project"
        call.interpreter.problems.append((call.node, what))
    return Unknown("a lifted value")


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
