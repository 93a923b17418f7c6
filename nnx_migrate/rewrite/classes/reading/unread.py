"""Statements that do nothing but bind local names which nothing reads any more."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence

from nnx_migrate.constructs import is_layer, is_linen
from nnx_migrate.rewrite.classes.reading.attributes import statements
from nnx_migrate.source.names import last_name
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import each, walk

_OF_TEXTS = frozenset({"endswith", "lower", "startswith", "strip", "upper"})
_PURE = ("jax.", "numpy.", "math.", "functools.partial")
_BUILTINS = frozenset(
    (
        *(
            "abs",
            "all",
            "any",
            "bool",
            "callable",
            "dict",
            "float",
            "getattr",
            "hasattr",
            "int",
            "isinstance",
            "len",
            "list",
        ),
        *("max", "min", "range", "round", "sorted", "str", "sum", "tuple"),
    )
)


def dead_assignments(
    project: Project,
    scope: Scope,
    body: list[ast.stmt],
    removals: Collection[int],
    staying: Collection[int] = (),
    moving: Collection[int] = (),
) -> set[int]:
    """The assignments to local names that only nodes of the ``removals`` read: ``half = self.dim // 2``.

    Args:
      staying: statements that are none of them.
      moving: nodes that are read elsewhere when the statement they stand in has gone.
    """
    nodes = [node for one in body for node in walk(one)]
    read = {name for node in nodes if id(node) in removals for name in _binding_names(node)}
    known, numbers = {*removals, *staying}, _numbers(nodes)
    found = {
        id(one): one
        for one in statements(body)
        if id(one) not in known and _binds_only(project, scope, one, numbers)
    }
    while True:
        found = _read_by(found, read)
        removed_nodes = {id(node) for one in found.values() for node in walk(one)}
        left = {
            name
            for node in nodes
            if id(node) in moving or (id(node) not in removed_nodes and id(node) not in removals)
            for name in _binding_names(node)
        }
        needed = {key for key, one in found.items() if not left.isdisjoint(_bound(one))}
        if not needed:
            return {*found}
        found = {key: one for key, one in found.items() if key not in needed}


def _read_by(assignments: Mapping[int, ast.stmt], read: Collection[str]) -> dict[int, ast.stmt]:
    """Those of the assignments that bind these names, or what such assignments read."""
    result: dict[int, ast.stmt] = {}
    read = {*read}
    while True:
        more = {
            key: one
            for key, one in assignments.items()
            if key not in result and not read.isdisjoint(_bound(one))
        }
        if not more:
            return result
        result |= more
        read |= {
            name for one in more.values() for node in walk(one) for name in _binding_names(node)
        }


def with_empty_ifs(
    project: Project, scope: Scope, body: list[ast.stmt], removals: set[int]
) -> set[int]:
    """The ``removals`` and the ``if`` statements that are left with nothing to do."""
    result = set(removals)
    for statement in reversed(list(statements(body))):
        if isinstance(statement, ast.If) and is_pure(project, scope, statement.test):
            parts = (*statement.body, *statement.orelse)
            if all(id(one) in result for one in parts):
                result.add(id(statement))
    return result


def _binding_names(node: ast.AST) -> Iterator[str]:
    """A name that must be bound for a node."""
    match node:
        case ast.Name(id=name, ctx=ast.Load() | ast.Del()):
            yield name
        case ast.AugAssign(target=ast.Name(id=name)):
            yield name


def _numbers(nodes: Sequence[ast.AST]) -> set[str]:
    """Names that hold what is computed: ``width *= 2`` changes no list that others have, too."""
    stored = [
        one.id for one in nodes if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)
    ]
    computed: list[str] = []
    for one in nodes:
        match one:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant() | ast.BinOp()):
                computed.append(name)
            case ast.AugAssign(target=ast.Name(id=name)):
                computed.append(name)
    return {name for name in computed if stored.count(name) == computed.count(name)}


def _binds_only(
    project: Project, scope: Scope, statement: ast.stmt, numbers: Collection[str]
) -> bool:
    """Whether a statement does nothing but bind names to computed values, or to a function."""
    match statement:
        case (
            ast.Assign(value=ast.Lambda(args=parameters))
            | ast.FunctionDef(decorator_list=[], args=parameters)
        ):
            defaults = (
                *parameters.defaults,
                *(one for one in parameters.kw_defaults if one is not None),
            )
            pure = all(is_pure(project, scope, one) for one in defaults)
            return pure and bool(_bound(statement))
        case ast.AugAssign(target=ast.Name(id=name), value=value):
            return name in numbers and is_pure(project, scope, value)
        case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
            is_plain = bool(_bound(statement)) and not _asks_for_rank(statement)
            return is_plain and is_pure(project, scope, value)
    return False


def _asks_for_rank(statement: ast.stmt) -> bool:
    """Whether a statement raises for inputs of another rank: ``batch, length, width = x.shape``."""
    match statement:
        case (
            ast.Assign(targets=[ast.Tuple()], value=ast.Attribute(attr="shape"))
            | ast.Assign(
                targets=[ast.Tuple()], value=ast.Subscript(value=ast.Attribute(attr="shape"))
            )
        ):
            return True
        case ast.Assign(targets=[ast.Tuple()], value=ast.Call(func=function)):
            return last_name(function) == "shape"
    return False


def _bound(statement: ast.stmt) -> list[str]:
    """The names that an assignment binds; none where it does more."""
    match statement:
        case ast.FunctionDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            pass
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
            targets = [target]
        case _:
            return []
    parts = [
        part for one in targets for part in (one.elts if isinstance(one, ast.Tuple) else [one])
    ]
    names = [one.id for one in parts if isinstance(one, ast.Name)]
    return names if len(names) == len(parts) else []


def is_pure(project: Project, scope: Scope, value: ast.expr) -> bool:
    """Whether to compute a value changes nothing else."""
    return all(_is_known(project, scope, one.func) for one in each(value, ast.Call))


def _is_known(project: Project, scope: Scope, function: ast.expr) -> bool:
    symbol = project.resolve(function, scope)
    if symbol is None:
        if isinstance(function, ast.Attribute):
            return function.attr in _OF_TEXTS
        name = function.id if isinstance(function, ast.Name) else ""
        return name in _BUILTINS and scope.lookup(name) is None
    if symbol.startswith("numpy.random."):  # one state for all
        return False
    return symbol.startswith(_PURE) or (is_linen(symbol) and not is_layer(symbol))
