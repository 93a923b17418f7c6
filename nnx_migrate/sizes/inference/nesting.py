"""Where ``setup`` puts a submodule that stands inside the value of an attribute.

Linen names a submodule without a name of its own by how it is reached: the attribute, then the
index or key in a list or dict (``layers_0``), then the field of the submodule that takes it as an
argument (``layers_0/cell``). flax/linen/module.py, ``_register_submodules``, 0.12.8.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from nnx_migrate.abstract.values import Instance
from nnx_migrate.constructs import layer_of
from nnx_migrate.sizes.inference.class_analysis import ClassAnalysis
from nnx_migrate.source.walking import has_starred, is_none_literal

Parents = Mapping[ast.AST, ast.AST]


@dataclass(frozen=True)
class SubmodulePath:
    """The expression ``outer`` holds a submodule at ``path``: "", "_0", "/cell", "_0/cell"."""

    outer: ast.expr
    path: str


def submodule_path(
    analysis: ClassAnalysis, call: ast.Call, parents: Parents
) -> SubmodulePath | None:
    """The largest expression around ``call`` in which Linen's names are known.

    It ends at a statement, a loop, or ``list.append``, and at a submodule with a name of its own.
    None when something between is not known to pass the submodule on as it is.
    """
    current: ast.expr = call
    path = ""
    while True:
        parent = parents.get(current)
        if has_name(current):
            return SubmodulePath(current, path)
        match parent:
            case ast.List(elts=items) | ast.Tuple(elts=items):
                if _is_unpacked(parent, parents):
                    return SubmodulePath(current, path)
                if has_starred(items):
                    return None
                current, path = parent, f"_{items.index(current)}{path}"
            case ast.Dict(keys=keys, values=values) if current in values:
                key = keys[values.index(current)]
                if not isinstance(key, ast.Constant) or not isinstance(key.value, str | int):
                    return None
                current, path = parent, f"_{key.value}{path}"
            case ast.IfExp(test=test) if current is not test:
                current = parent
            case ast.keyword(arg=name, value=value) if name is not None:
                outer = parents[parent]
                if not isinstance(outer, ast.Call) or value is not current:
                    return None
                if id(outer) not in analysis.interpreter.submodules:
                    return None
                current, path = outer, f"/{name}{path}"
            case ast.Call() if _is_append(parent):
                return SubmodulePath(current, path)
            case ast.Call(args=args) if current in args:
                name = _field(analysis, parent, args.index(current))
                if name is None:
                    return None
                current, path = parent, f"/{name}{path}"
            case ast.stmt():
                return SubmodulePath(current, path)
            case ast.ListComp(elt=element) if element is current:
                return SubmodulePath(current, path)
            case _:
                return None


def has_name(node: ast.expr) -> bool:
    """Whether a constructor call names what it builds: Linen counts what gets None for a name."""
    return isinstance(node, ast.Call) and given_name(node) is not None


def given_name(call: ast.Call) -> ast.expr | None:
    """What ``name=`` gives, unless that is None."""
    values = [one.value for one in call.keywords if one.arg == "name"]
    return next((v for v in values if not is_none_literal(v)), None)


def _is_unpacked(node: ast.expr, parents: Parents) -> bool:
    """Whether a statement assigns each item of a tuple to a target of its own."""
    match parents.get(node):
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values) as value):
            return value is node and len(targets) == len(values)
    return False


def _is_append(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "append"


def _field(analysis: ClassAnalysis, call: ast.Call, index: int) -> str | None:
    """The field that the positional argument of a constructor call is."""
    module = analysis.interpreter.submodules.get(id(call))
    if module is None or has_starred(call.args):
        return None
    if isinstance(module, Instance):
        names = [one.name for one in module.info.fields if not one.keyword_only]
    else:
        layer = layer_of(module.symbol)
        names = list(layer.fields) if layer is not None else []
    return names[index] if index < len(names) else None
