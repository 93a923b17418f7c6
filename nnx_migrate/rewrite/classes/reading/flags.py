"""Which names of a method hold a flag of the call: ``train``, ``deterministic``."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from nnx_migrate.source.names import defaults_of, named_parameters, parameter_names
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import each, walk

_HANDED_ON = frozenset({"deterministic", "use_running_average", "train", "training"})


def asked_for_truth(method: ast.FunctionDef) -> frozenset[str]:
    """Names whose truth the method asks for, or hands on as one of Linen's flags."""
    found: list[ast.expr] = []
    for node in walk(method):
        match node:
            case ast.If(test=test) | ast.IfExp(test=test) | ast.UnaryOp(op=ast.Not(), operand=test):
                found.append(test)
            case ast.BoolOp(values=values):
                found += values
            case ast.keyword(arg=name, value=value) if name in _HANDED_ON:
                found.append(value)
    return frozenset(one.id for one in found if isinstance(one, ast.Name))


def flags_of(project: Project, scope: Scope, method: ast.FunctionDef) -> frozenset[str]:
    """Names that are True or False wherever the method reads them.

    Parameters that are booleans by annotation or default and never bound anew, those of which
    the method reads nothing but the truth, and what only ``nn.merge_param`` binds, which gives no None.
    """
    stored: Counter[str] = Counter()
    merged: Counter[str] = Counter()
    for node in walk(method):
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                stored[name] += 1
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                merged[name] += _is_merged(project, scope, value)
    stable = {name for name, count in merged.items() if count and count == stored[name]}
    booleans = {*_booleans(method.args), *_flag_parameters(method)}
    return frozenset(stable | (booleans - stored.keys()))


def _flag_parameters(method: ast.FunctionDef) -> set[str]:
    """Parameters that are read, and only where their truth alone counts."""
    tested = set()
    for node in walk(method):
        match node:
            case ast.If(test=test) | ast.IfExp(test=test) | ast.UnaryOp(op=ast.Not(), operand=test):
                tested.add(id(test))
    names = each(method, ast.Name)
    other = {one.id for one in names if id(one) not in tested}
    return (set(parameter_names(method)) & {one.id for one in names}) - other


def _is_merged(project: Project, scope: Scope, value: ast.expr) -> bool:
    return (
        isinstance(value, ast.Call)
        and project.resolve(value.func, scope) == "flax.linen.merge_param"
    )


def _booleans(arguments: ast.arguments) -> Iterator[str]:
    defaults = defaults_of(arguments)
    for one in named_parameters(arguments):
        default = defaults.get(one.arg)
        is_boolean = isinstance(default, ast.Constant) and isinstance(default.value, bool)
        annotated = one.annotation is not None and ast.unparse(one.annotation) == "bool"
        if is_boolean or annotated:
            yield one.arg
