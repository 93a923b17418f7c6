"""The statements of a function that some of its names hang on."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from types import CodeType

Function = ast.FunctionDef | ast.AsyncFunctionDef
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_BLOCKS = ("body", "orelse", "finalbody")


def slice_of(
    function: Function, name: str, last: ast.stmt | None = None
) -> tuple[list[ast.stmt], frozenset[str]]:
    """Return the statements that bind ``name`` and all that it reads, and the names needed.

    With ``last``, a statement of the function's body, none below it is returned. Blocks of ``with``, ``if`` and ``try`` keep only such statements. What an expression reads is
    what Python itself takes from the function, so attributes of ``self`` and locals of methods do
    not count.
    """
    local_names = frozenset(parameters(function)) | frozenset(_bound_names(function.body))
    names = {name}
    body = function.body if last is None else function.body[: function.body.index(last) + 1]
    while True:
        statements = _statements_of(body, names, local_names)
        found = {name}.union(*(_reads(one, local_names) for one in statements))
        if found <= names:
            return statements, frozenset(names)
        names |= found


def parameters(function: Function) -> list[str]:
    """The names of all parameters, ``*args`` and ``**kwargs`` too."""
    arguments = function.args
    every = [
        *arguments.posonlyargs,
        *arguments.args,
        *arguments.kwonlyargs,
        arguments.vararg,
        arguments.kwarg,
    ]
    return [one.arg for one in every if one is not None]


def loop_names(body: Sequence[ast.stmt]) -> frozenset[str]:
    """The names that loops among the statements bind."""
    loops = (one for statement in body for one in _own(statement) if isinstance(one, _LOOPS))
    return frozenset(name for loop in loops for name in _bound_names([loop]))


def bound_names(body: Sequence[ast.stmt]) -> frozenset[str]:
    """The names that statements bind in their own scope."""
    return frozenset(_bound_names(body))


_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def _statements_of(
    body: Sequence[ast.stmt], names: set[str], local_names: frozenset[str]
) -> list[ast.stmt]:
    statements: list[ast.stmt] = []
    for statement in body:
        if not names & set(_bound_names([statement])):
            continue
        if isinstance(statement, ast.With | ast.If | ast.Try):
            statement = _prune(statement, names, local_names)
        statements.append(statement)
    return statements


def _prune(statement: ast.stmt, names: set[str], local_names: frozenset[str]) -> ast.stmt:
    """A copy of a compound statement with only the needed statements in its blocks."""
    fields = dict(ast.iter_fields(statement))
    for name in _BLOCKS:
        if name in fields:
            statements = _statements_of(fields[name], names, local_names)
            fields[name] = statements or ([ast.Pass()] if name == "body" else [])
    if isinstance(statement, ast.Try) and not (fields["handlers"] or fields["finalbody"]):
        fields["finalbody"] = [ast.Pass()]
    return ast.copy_location(type(statement)(**fields), statement)


def _bound_names(body: Sequence[ast.stmt]) -> Iterator[str]:
    """The names that statements bind in their own scope."""
    for statement in body:
        for node in _own(statement):
            match node:
                case ast.Name(id=name, ctx=ast.Store()):
                    yield name
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    yield name
                case ast.ClassDef(name=name):
                    yield name
                case ast.Import(names=names) | ast.ImportFrom(names=names):
                    yield from ((one.asname or one.name).split(".")[0] for one in names)


def _own(statement: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a statement without those inside functions and classes."""
    yield statement
    if isinstance(statement, (*_DEFINITIONS, ast.Lambda)):
        return
    for child in ast.iter_child_nodes(statement):
        yield from _own(child)


def _reads(statement: ast.stmt, local_names: frozenset[str]) -> frozenset[str]:
    """Which of ``local_names`` a statement takes from the function around it."""
    bound = sorted(set(_bound_names([statement])) & local_names)
    probe = ast.FunctionDef(
        "probe", _no_arguments(), [*([ast.Nonlocal(bound)] if bound else []), statement], []
    )
    names = [ast.arg(name) for name in sorted(local_names)]
    outer = ast.FunctionDef("outer", _no_arguments(names), [probe], [])
    module = ast.fix_missing_locations(ast.Module([outer], []))
    (code,) = _codes(compile(module, "<slice>", "exec"))
    (inner,) = _codes(code)
    return frozenset(inner.co_freevars)


def _codes(code: CodeType) -> list[CodeType]:
    return [one for one in code.co_consts if isinstance(one, CodeType)]


def _no_arguments(names: Sequence[ast.arg] = ()) -> ast.arguments:
    return ast.arguments([], list(names), None, [], [], None, [])
