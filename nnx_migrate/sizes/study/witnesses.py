"""Sizes of a child's arguments, read off its calls or off the sites inside it."""

from __future__ import annotations

import ast
import re

from nnx_migrate.model import SizeArgument
from nnx_migrate.sizes import expression as ex
from nnx_migrate.sizes.expression import Expr
from nnx_migrate.sizes.interpreter import spellable
from nnx_migrate.sizes.result import ClassSizes, Site, SiteKind
from nnx_migrate.sizes.study.study import Study
from nnx_migrate.sizes.values import Argument, Instance, Record, Sequence, Use, Value, as_array


def agreed_size(uses: list[Use], key: str) -> tuple[Expr | None, bool]:
    """Size that the uses agree on, and whether every use hangs on a call argument.

    Every call of one submodule meets the same parameter, so any size seen in a call that
    certainly happens is the size. Calls in exclusive branches that disagree say nothing, nor do
    submodules that one constructor call builds round by round.
    """
    modules: dict[int, list[Use]] = {}
    for use in uses:
        modules.setdefault(id(use.module), []).append(use)
    found = [_size_of_one(one, key) for one in modules.values()]
    if not found or any(size != found[0][0] for size, _ in found):
        return None, False
    return found[0][0], all(conditional for _, conditional in found)


def _size_of_one(uses: list[Use], key: str) -> tuple[Expr | None, bool]:
    """The size of one submodule."""
    certain = [use for use in uses if use.certain]
    for use in certain:
        size = use.sizes.get(key)
        if size is not None and spellable(size):
            return size, False
    sizes = [use.sizes.get(key) for use in uses]
    known = [size for size in sizes if size is not None and spellable(size)]
    agreed = known[0] if known and all(size == known[0] for size in known) else None
    return agreed, not certain and agreed is not None


def witness_of(
    study: Study, child: ClassSizes, argument: SizeArgument, uses: list[Use]
) -> tuple[Expr | None, bool]:
    """Size of a child's argument: read off the call, else off a site inside that has this size."""
    full = argument.name in child.full_shapes.values()
    axes = _axes_read(child, argument.name)
    seen = [
        Use(use.module, {"": size}, use.conditions, use.primary)
        for use in uses
        if (size := _passed(argument, use, axes, full)) is not None
    ]
    if seen and {id(use.module) for use in seen} == {id(use.module) for use in uses}:
        return agreed_size(seen, "")
    for key, site in child.sites.items():
        for name, text in site.sizes.items():
            if text != argument.name:
                continue
            inner = [
                one
                for use in uses
                if isinstance(use.module, Instance)
                for one in use.module.records.get(key, [])
            ]
            size, conditional = _inner(study, site, name, inner)
            if size is not None:
                return size, conditional
    return None, False


def _inner(study: Study, site: Site, name: str, uses: list[Use]) -> tuple[Expr | None, bool]:
    if site.kind is SiteKind.FUNCTION or site.symbol in study.interpreter.project.linen:
        assert site.symbol is not None
        grandchild = study.sizes_of(site.symbol)
        argument = next((a for a in grandchild.new_arguments if a.name == name), None)
        return witness_of(study, grandchild, argument, uses) if argument else (None, False)
    return agreed_size(uses, name)


def _axes_read(child: ClassSizes, name: str) -> frozenset[int] | None:
    """The axes that a class reads of a shape it is handed; None when it may be any."""
    texts = [text for site in child.sites.values() for text in site.sizes.values()]
    texts += [*child.dims.values(), child.out_features or ""]
    texts += [t for many in child.carried.values() for one in many for t in (one.before, one.after)]
    read = [one for text in texts for one in re.findall(rf"\b{name}\b(?:\[(-?\d+)\])?", text)]
    return frozenset(int(one) for one in read) if all(read) else None


def _passed(
    argument: SizeArgument, use: Use, axes: frozenset[int] | None, full: bool
) -> Expr | None:
    """Size of a call argument as the caller passes it; of a shape, ``axes`` must be known.

    Of a ``full`` shape the rank and every axis must be.
    """
    if argument.submodule is not None or argument.argument is None:
        return None
    if use.method != argument.method:
        return None
    head, *steps = re.findall(r"-?\w+", argument.argument)
    value: Value | None = use.arguments.get(head)
    for step in steps:
        value = _step(value, step)
    array = as_array(value) if value is not None else None
    if array is None:
        return None
    if argument.axis is not None:
        return array.axis(argument.axis)
    if array.path and array.rank is None and not array.tail and array.grown is None:
        return ex.input_shape(array.path)
    if full and (array.rank is None or None in array.known(array.rank)):
        return None
    rank = array.rank if array.rank is not None else len(array.tail)
    needed = range(-rank, 0) if axes is None else axes
    if any(array.axis(one) is None for one in needed):
        return None
    nodes = [size.node if size else ast.Constant(None) for size in array.known(rank)]
    return Expr(ast.Tuple(nodes, ast.Load())) if nodes else None


def _step(value: Value | None, step: str) -> Value | None:
    match value:
        case Sequence(items=items) if _is_index(step) and -len(items) <= int(step) < len(items):
            return items[int(step)]
        case Record(entries=entries):
            return entries.get(step)
        case Argument(path=path):
            return Argument(f"{path}[{step}]" if _is_index(step) else f"{path}.{step}")
    return None


def _is_index(step: str) -> bool:
    return step.removeprefix("-").isdigit()
