"""Which parameters of a function its callers know before they run.

A compact method knows its fields and what follows from them, and not what its own parameters reach.
This reads the text alone and errs on no side that matters: what is taken for known here and is not
is refused where ``__init__`` would need it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeGuard

from nnx_migrate.source.growth import grown
from nnx_migrate.source.names import defaults_of, named_parameters, positional_names
from nnx_migrate.source.walking import (
    children,
    given_values,
    has_starred,
    is_name,
    names_read,
    walk,
)


@dataclass(frozen=True)
class Call:
    """One call of a function, the function around it, and the key of that one when it is one too."""

    node: ast.Call
    caller: ast.FunctionDef
    key: int | None = None


def parameters_of(function: ast.FunctionDef) -> tuple[str, ...]:
    """Names of the parameters, ``*args`` and ``**kwargs`` left out."""
    spec = function.args
    return tuple(one.arg for one in named_parameters(spec))


def bound_arguments(function: ast.FunctionDef, call: ast.Call) -> dict[str, ast.expr] | None:
    """What a call passes, by parameter; None when unpacked arguments hide it."""
    if has_starred(call.args):
        return None
    spec = function.args
    positional = positional_names(spec)
    found = dict(zip(positional, call.args, strict=False))
    for keyword in call.keywords:
        if keyword.arg is None:
            return None
        found[keyword.arg] = keyword.value
    known = len(call.args) <= len(positional) and found.keys() <= set(parameters_of(function))
    return found if known and parameters_without_default(function) <= found.keys() else None


def parameters_without_default(function: ast.FunctionDef) -> set[str]:
    """Parameters that every call must give."""
    return set(parameters_of(function)) - defaults_of(function.args).keys()


def given_parameters(
    functions: Mapping[int, ast.FunctionDef], calls: Mapping[int, Sequence[Call]]
) -> dict[int, tuple[str, ...]]:
    """For every function, the parameters it builds from that all its callers know beforehand.

    One that the function binds anew is not among them. Functions with a call that is not plain are
    left out.
    """
    known_parameters = {key: _read_to_build(one) - _rebound(one) for key, one in functions.items()}
    changed = True
    while changed:
        changed = False
        for key, function in functions.items():
            for call in calls[key]:
                unknown = _call_dependents(call, known_parameters)
                bound = bound_arguments(function, call.node) or {}
                removals = {
                    n for n in known_parameters[key] & bound.keys() if _values(bound[n]) & unknown
                }
                changed |= bool(removals)
                known_parameters[key] -= removals
    return {
        key: tuple(one for one in parameters_of(function) if one in known_parameters[key])
        for key, function in functions.items()
        if all(_is_plain(function, one) for one in calls[key])
    }


def _is_plain(function: ast.FunctionDef, call: Call) -> bool:
    """Whether every argument is known by name, and no method hands its module itself on."""
    if bound_arguments(function, call.node) is None:
        return False
    receiver = next(iter(parameters_of(call.caller)), "") if call.key is None else ""
    arguments = given_values(call.node)
    inner = [one for argument in arguments for one in walk(argument)]
    owners = {id(one.value) for one in inner if isinstance(one, ast.Attribute)}
    return not any(is_name(one, receiver) and id(one) not in owners for one in inner)


def _rebound(function: ast.FunctionDef) -> set[str]:
    return {target for targets, _ in _bindings(function) for target in targets}


def _call_dependents(call: Call, known_names: Mapping[int, AbstractSet[str]]) -> frozenset[str]:
    """Local names of the caller that what only its own call knows reaches."""
    caller = call.caller
    every = parameters_of(caller)
    found = set(every[1:]) if call.key is None else set(every) - known_names[call.key]
    for one in (caller.args.vararg, caller.args.kwarg):
        found |= {one.arg} if one is not None else set()
    bindings = list(_bindings(caller))
    return grown(
        found,
        lambda known: (
            name for names, value in bindings if _values(value) & known for name in names
        ),
    )


def _read_to_build(function: ast.FunctionDef) -> frozenset[str]:
    """Parameters that arguments of inner calls and conditions read, directly or through locals.

    Of ``nn.Dense(width)(x)`` the inner call counts; so does every call that is not itself the
    function of a call, because it may build something too.
    """
    found: set[str] = set()
    for node in walk(function):
        match node:
            case ast.Call(func=ast.Call()):
                continue
            case ast.Call(args=args, keywords=keywords):
                found |= {name for one in (*args, *keywords) for name in names_read(one)}
            case ast.If(test=test) | ast.IfExp(test=test):
                found |= names_read(test)
            case ast.For(iter=iterable) | ast.comprehension(iter=iterable):
                found |= names_read(iterable)
    bindings = list(_bindings(function))
    read = grown(
        found,
        lambda known: (
            name
            for targets, value in bindings
            if known & set(targets)
            for name in names_read(value)
        ),
    )
    return read & set(parameters_of(function))


def _bindings(function: ast.FunctionDef) -> Iterator[tuple[list[str], ast.AST]]:
    """Local names that are bound or changed in place, each with what they get."""
    local = {one.id for one in walk(function) if _is_store(one)} | {*parameters_of(function)}
    for node in walk(function):
        match node:
            case ast.Assign(targets=targets, value=value):
                yield [name for one in targets for name in _targets(one)], value
            case (
                ast.AugAssign(target=target, value=value)
                | ast.NamedExpr(target=target, value=value)
            ):
                yield _targets(target), value
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                yield _targets(target), value
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                yield _targets(target), value
            case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
                yield _targets(target), value
            case ast.FunctionDef(name=name) if node is not function:
                yield [name], node
            case ast.Call(func=ast.Attribute(value=ast.Name(id="self"))):
                continue  # a module's own attributes are fixed once it is set up
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name)), args=args) if name in local:
                yield [name], ast.Tuple(args, ast.Load())


def _is_store(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _targets(target: ast.expr) -> list[str]:
    """Names that an assignment to ``target`` binds or changes."""
    match target:
        case ast.Name(id=name):
            return [name]
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return [name for part in parts for name in _targets(part)]
        case ast.Starred(value=inner) | ast.Subscript(value=inner) | ast.Attribute(value=inner):
            return _targets(inner)
        case _:
            return []


def _values(node: ast.AST) -> set[str]:
    """The names that an expression reads for more than the shape of what they hold.

    Whether ``x.shape[-1]`` is known beforehand, size inference says where ``__init__`` needs it.
    """
    match node:
        case ast.Attribute(value=ast.Name(), attr="shape" | "ndim"):
            return set()
        case ast.Name(id=name, ctx=ast.Load()):
            return {name}
    return {name for child in children(node) for name in _values(child)}
