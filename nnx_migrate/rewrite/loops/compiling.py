"""``jax.jit`` of functions, as a call and as a decorator, and ``functools.partial`` of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from nnx_migrate.rewrite.loops.frame import Frame
from nnx_migrate.rewrite.loops.kinds import (
    PLAIN,
    ApplyFn,
    Function,
    Kind,
    State,
    Stats,
    Updates,
    is_special,
)
from nnx_migrate.rewrite.loops.plan import DottedName, Places
from nnx_migrate.rewrite.loops.program import Summary
from nnx_migrate.source.names import positional_names

JIT, PARTIAL = "jax.jit", "functools.partial"
_NUMBERS = ("static_argnums", "donate_argnums")
_OPTIONS = {*_NUMBERS, "static_argnames"}


def read_jit(frame: Frame, node: ast.Call) -> Kind:
    """``jax.jit(function, ...)``."""
    kind = frame.value(frame, node.args[0]) if len(node.args) == 1 else PLAIN
    if not isinstance(kind, Function):
        for one in node.args:
            if is_special(frame.value(frame, one)):
                frame.problem(one, "part of the state is compiled in")
        return PLAIN
    frame.program.compiled_functions.add(kind.node)
    if frame.program.summary(kind.node).is_touched:
        frame.link(kind.node)
    compile_with(frame, node, node.func, node.keywords, kind.node)
    return Function(kind.node, kind.bound, is_compiled=True)


def initialises(frame: Frame, node: ast.expr) -> ast.Attribute | None:
    """``definition.init`` if an expression is ``jax.jit(definition.init)``."""
    match node:
        case ast.Call(func=jit, args=[ast.Attribute(attr="init") as method], keywords=[]):
            return method if frame.resolve(jit) == JIT else None
    return None


def compile_with(
    frame: Frame,
    place: ast.AST,
    jit: ast.expr,
    options: Sequence[ast.keyword],
    function: int,
) -> None:
    """Let a function be compiled by ``nnx.jit`` if it is touched by a flow: that goes with the function."""
    summary = frame.program.summary(function)
    if not summary.is_touched:
        return
    frame.change(jit, DottedName("nnx.jit"), function)
    for one in options:
        if one.arg not in _OPTIONS:
            frame.problem(place, f"it is compiled with {one.arg}=", function)
        elif one.arg in _NUMBERS:
            _renumber(frame, one, function, summary)


def _renumber(frame: Frame, option: ast.keyword, function: int, summary: Summary) -> None:
    numbers = _literal(option.value)
    spec = frame.program.nodes[function][0].args
    names = positional_names(spec)
    if numbers is None or any(not 0 <= one < len(names) for one in numbers):
        frame.problem(option.value, f"what {option.arg} says is not known", function)
        return
    kinds = [summary.params.get(names[one], PLAIN) for one in numbers]
    special = [one for one in kinds if is_special(one) and not isinstance(one, ApplyFn)]
    if option.arg == "static_argnums" and special:
        frame.problem(option.value, "a static argument is part of the state", function)
    starts = [0, *_ends(names, summary)]
    made = tuple(
        place
        for one in numbers
        for place in range(starts[one], starts[one + 1])
        if option.arg == "static_argnums"
        or not _stays(names[one], place - starts[one + 1], summary)
    )
    if made != tuple(numbers):
        frame.change(
            option.value,
            Places(made, len(made) != 1 or isinstance(option.value, ast.Tuple | ast.List)),
            function,
        )


def _ends(names: Sequence[str], summary: Summary) -> Iterator[int]:
    end = 0
    for name in names:
        end += parameters(summary, name)
        yield end


def _stays(name: str, place: int, summary: Summary) -> bool:
    """Whether a value is a field that nothing replaces, counted from the last: its caller reads it on."""
    needed = summary.fields.get(name, set())
    fields = [one for one in summary.values.get(name, {}) if one in needed]
    return -place <= len(fields) and fields[place] not in summary.overrides.get(name, set())


def parameters(summary: Summary, name: str) -> int:
    """How many parameters stand for one in the new text."""
    match summary.params.get(name, PLAIN):
        case State():
            return 1 + (name in summary.optimizers) + len(summary.fields.get(name, ()))
        case Stats() | Updates() | ApplyFn():
            return 0
    return 1


def _literal(node: ast.expr) -> list[int] | None:
    elements = node.elts if isinstance(node, ast.Tuple | ast.List) else [node]
    found = [one.value if isinstance(one, ast.Constant) else None for one in elements]
    return [int(one) for one in found] if all(type(one) is int for one in found) else None  # type: ignore[arg-type]


def read_partial(frame: Frame, node: ast.Call) -> Kind:
    """``functools.partial(function, name=value)``."""
    kind = frame.value(frame, node.args[0]) if node.args else PLAIN
    others = [*node.args[1:], *(one.value for one in node.keywords)]
    for one in others:
        value = one.value if isinstance(one, ast.Starred) else one
        value_kind = frame.value(frame, value)
        if is_special(value_kind) or isinstance(value_kind, Function):
            frame.problem(one, "part of the state is bound by functools.partial")
    names = [one.arg for one in node.keywords]
    if not isinstance(kind, Function) or kind.is_compiled or len(node.args) != 1 or None in names:
        frame.escape(node, kind)
        return PLAIN
    return Function(kind.node, kind.bound | frozenset(map(str, names)))


def read_decorators(frame: Frame, node: ast.FunctionDef) -> bool:
    """Whether a function is compiled where it is defined; other decorators keep it as it is."""
    touched = frame.program.summary(id(node)).is_touched
    compiled = False
    for one in node.decorator_list:
        match one:
            case ast.Name() | ast.Attribute() if frame.resolve(one) == JIT:
                compiled = True
                compile_with(frame, one, one, (), id(node))
            case ast.Call(func=function, args=[jit], keywords=options) if (
                frame.resolve(function) == PARTIAL and frame.resolve(jit) == JIT
            ):
                compiled = True
                compile_with(frame, one, jit, options, id(node))
            case ast.Call(func=function, args=[], keywords=options) if (
                frame.resolve(function) == JIT
            ):
                compiled = True
                compile_with(frame, one, function, options, id(node))
            case _ if touched:
                reason = f"{node.name} is decorated by {ast.unparse(one)[:40]}"
                frame.problem(one, reason, id(node))
    return compiled
