"""Statements of the size interpreter: assignment, branches, loops, functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nnx_migrate.sizes import expression as ex
from nnx_migrate.sizes.expression import Expr
from nnx_migrate.sizes.expressions import evaluate, iterate, truth
from nnx_migrate.sizes.interpreter import OUT_VARIABLE, Frame, Loop
from nnx_migrate.sizes.values import (
    NONE,
    Argument,
    Array,
    Choice,
    Extended,
    Function,
    Instance,
    Record,
    Repeated,
    Sequence,
    Static,
    Unknown,
    Value,
    as_array,
    join,
    without_none,
)

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter

# What ends a block early.
RETURN, RAISE, JUMP = "return", "raise", "jump"


def set_up(interpreter: Interpreter, instance: Instance) -> None:
    """Run an instance's ``setup`` once."""
    if instance.is_set_up:
        return
    instance.is_set_up = True
    found = instance.info.find("setup")
    if found is not None:
        cls, node = found
        call_function(interpreter, Function(node, cls.scope, {}, instance, cls), (), {})


def call_function(
    interpreter: Interpreter, function: Function, args: tuple[Value, ...], kwargs: dict[str, Value]
) -> Value:
    """Run a function of the project on abstract arguments."""
    node = function.node
    if isinstance(node, ast.AsyncFunctionDef) or _is_generator(node):
        return Unknown("coroutine or generator")
    scope = function.scope.enter(node)
    owner = function.owner if isinstance(function.owner, Instance) else None
    if owner is not None and not _is_static(node):
        args = (owner, *args)
    own = owner is interpreter.root or (owner is None and bool(function.env.get("__own__")))
    frame = Frame(scope, dict(function.env), owner or _owner(function), function.defined_in, own)
    frame.env["__own__"] = Static(ex.literal(own))
    if not own:
        frame.env.pop("__own__")
    frame.depth = len(interpreter.conditions)
    _bind(interpreter, function, frame, args, kwargs)
    if isinstance(node, ast.Lambda):
        return evaluate(interpreter, node.body, frame)
    flow = run(interpreter, node.body, frame)
    if flow is None:
        frame.returns.append((None, NONE))
    return _returned(frame)


def _owner(function: Function) -> Instance | None:
    value = function.env.get("__instance__")
    return value if isinstance(value, Instance) else None


def _is_generator(node: ast.AST) -> bool:
    return any(isinstance(one, ast.Yield | ast.YieldFrom) for one in ast.walk(node))


def _is_static(node: ast.AST) -> bool:
    decorators = getattr(node, "decorator_list", [])
    return any(isinstance(one, ast.Name) and one.id == "staticmethod" for one in decorators)


def _returned(frame: Frame) -> Value:
    if not frame.returns:
        return Unknown("the function never returns")
    result = frame.returns[-1][1]
    for test, value in reversed(frame.returns[:-1]):
        result = join(test, value, result)
    return result


def _bind(
    interpreter: Interpreter,
    function: Function,
    frame: Frame,
    args: tuple[Value, ...],
    kwargs: dict[str, Value],
) -> None:
    spec = function.node.args
    positional = [one.arg for one in (*spec.posonlyargs, *spec.args)]
    given = dict(zip(positional, args, strict=False))
    rest = dict(kwargs)
    for name in [*positional, *(one.arg for one in spec.kwonlyargs)]:
        if name in rest:
            given[name] = rest.pop(name)
    outside = Frame(function.scope, dict(function.env), frame.instance, function.defined_in)
    offset = len(positional) - len(spec.defaults)
    defaults = dict(zip(positional[offset:], spec.defaults, strict=True))
    pairs = zip(spec.kwonlyargs, spec.kw_defaults, strict=True)
    defaults.update({one.arg: default for one, default in pairs if default is not None})
    for name, default in defaults.items():
        if name not in given:
            given[name] = evaluate(interpreter, default, outside)
    names = [*positional, *(one.arg for one in spec.kwonlyargs)]
    frame.env.update({name: given.get(name, Unknown("argument not given")) for name in names})
    if spec.vararg:
        frame.env[spec.vararg.arg] = Sequence(tuple(args[len(positional) :]))
    if spec.kwarg:
        frame.env[spec.kwarg.arg] = Record(rest)


def run(interpreter: Interpreter, body: list[ast.stmt], frame: Frame) -> str | None:
    """Run a block; what ended it early, or None."""
    pushed = 0
    try:
        for statement in body:
            interpreter.step()
            flow, condition = _run_one(interpreter, statement, frame)
            if flow is not None:
                return flow
            if condition is not _NOTHING:
                interpreter.conditions.append(condition)
                pushed += 1
        return None
    finally:
        del interpreter.conditions[len(interpreter.conditions) - pushed :]


_NOTHING = ex.literal("nothing")


def _run_one(
    interpreter: Interpreter, statement: ast.stmt, frame: Frame
) -> tuple[str | None, Expr | None]:
    """Run one statement; a condition is returned when the rest only runs under it."""
    match statement:
        case ast.Expr(value=value):
            evaluate(interpreter, value, frame)
        case ast.Assign(targets=targets, value=value):
            result = evaluate(interpreter, value, frame)
            for target in targets:
                assign(interpreter, target, result, frame)
            _note_test(targets, value, frame)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            assign(interpreter, target, evaluate(interpreter, value, frame), frame)
        case ast.AugAssign(target=target, op=op, value=value):
            load = interpreter.unfolded.get(id(statement))
            if load is None:  # kept, so that no later node gets its id
                load = ast.copy_location(ast.BinOp(_loaded(target), op, value), statement)
                interpreter.unfolded[id(statement)] = load
            assign(interpreter, target, evaluate(interpreter, load, frame), frame)
        case ast.Return(value=value):
            result = evaluate(interpreter, value, frame) if value else NONE
            own = interpreter.conditions[frame.depth :]
            frame.returns.append((own[0] if len(own) == 1 else None, result))
            return RETURN, _NOTHING
        case ast.Raise():
            return RAISE, _NOTHING
        case ast.Break() | ast.Continue():
            return JUMP, _NOTHING
        case ast.If():
            tests = dict(frame.tests)
            ended = _branch(interpreter, statement, frame)
            frame.tests = {k: v for k, v in frame.tests.items() if tests.get(k) is v}
            return ended
        case ast.For():
            return _loop(interpreter, statement, frame), _NOTHING
        case ast.While(test=test, body=body):
            evaluate(interpreter, test, frame)
            with interpreter.under(None):
                run(interpreter, body, frame)
        case ast.With(items=items, body=body):
            for item in items:
                entered = evaluate(interpreter, item.context_expr, frame)
                if item.optional_vars:
                    assign(interpreter, item.optional_vars, entered, frame)
            return run(interpreter, body, frame), _NOTHING
        case ast.Try(body=body, orelse=orelse, finalbody=final):
            return run(interpreter, [*body, *orelse, *final], frame), _NOTHING
        case ast.FunctionDef():
            frame.env[statement.name] = _closure(interpreter, statement, frame)
        case ast.Delete() | ast.Global() | ast.Nonlocal() | ast.ClassDef() | ast.Match():
            for name in _bound_names(statement):
                frame.env[name] = Unknown("bound by an unmodelled statement")
    return None, _NOTHING


def _loaded(target: ast.expr) -> ast.expr:
    copied = ast.parse(ast.unparse(target), mode="eval").body
    return ast.copy_location(copied, target)


def _bound_names(statement: ast.stmt) -> list[str]:
    names = [one.id for one in ast.walk(statement) if isinstance(one, ast.Name)]
    stored = [n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and _stores(n)]
    return [*stored, *([statement.name] if isinstance(statement, ast.ClassDef) else [])] or names[
        :0
    ]


def _stores(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store | ast.Del)


def _closure(interpreter: Interpreter, node: ast.FunctionDef, frame: Frame) -> Value:
    env = dict(frame.env)
    if frame.instance is not None:
        env["__instance__"] = frame.instance
    symbols = [
        interpreter.project.resolve(one.func if isinstance(one, ast.Call) else one, frame.scope)
        for one in node.decorator_list
    ]
    if any(symbol not in ("jax.jit", "jax.vmap", "functools.partial") for symbol in symbols):
        return Unknown("a decorated inner function")
    return Function(node, frame.scope, env, None, frame.defined_in)


def assign(interpreter: Interpreter, target: ast.expr, value: Value, frame: Frame) -> None:
    """Bind a value to a target."""
    match target:
        case ast.Name(id=name):
            frame.env[name] = value
        case ast.Attribute(value=ast.Name(id="self"), attr=name) if frame.instance is not None:
            frame.instance.attributes[name] = value
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            for one, item in zip(targets, _unpack(value, targets), strict=True):
                inner = one.value if isinstance(one, ast.Starred) else one
                assign(interpreter, inner, item, frame)
        case ast.Subscript(value=ast.Name(id=name), slice=index):
            held, key = frame.env.get(name), evaluate(interpreter, index, frame)
            if isinstance(held, Record) and isinstance(key, Static):
                entries = {**held.entries, str(key.expr.text).strip("'\""): value}
                frame.env[name] = Record(entries, held.default)


def _unpack(value: Value, targets: list[ast.expr]) -> list[Value]:
    count = len(targets)
    starred = [i for i, one in enumerate(targets) if isinstance(one, ast.Starred)]
    if isinstance(value, Sequence) and not starred and len(value.items) == count:
        return list(value.items)
    if isinstance(value, Sequence) and len(starred) == 1 and len(value.items) >= count - 1:
        head, tail = starred[0], count - starred[0] - 1
        cut = len(value.items) - tail
        middle = Sequence(value.items[head:cut], is_list=True)
        return [*value.items[:head], middle, *value.items[cut:]]
    if isinstance(value, Argument) and not starred:
        return [Argument(f"{value.path}[{i}]") for i in range(count)]
    if isinstance(value, Repeated):
        return [value.item] * count
    if isinstance(value, Static) and not starred:
        subscripts = [ast.Subscript(value.expr.node, ast.Constant(i)) for i in range(count)]
        return [Static(Expr(one)) for one in subscripts]
    if isinstance(value, Record) and not starred and len(value.entries) == count:
        return list(value.entries.values())
    shape = getattr(value, "shape_of", None)
    if isinstance(shape, Array):
        return [_size(shape.axis(i - count)) for i in range(count)]
    return [Unknown("unpacked from an unknown value")] * count


def _size(size: Expr | None) -> Value:
    return Static(size) if size else Unknown("size unknown")


def _branch(
    interpreter: Interpreter, statement: ast.If, frame: Frame
) -> tuple[str | None, Expr | None]:
    test = truth(interpreter, statement.test, frame)
    if isinstance(test, bool):
        return run(interpreter, statement.body if test else statement.orelse, frame), _NOTHING
    start = dict(frame.env)
    attributes = dict(frame.instance.attributes) if frame.instance else {}
    negated = Expr(ast.UnaryOp(ast.Not(), test.node)) if test else None
    with interpreter.under(test), _narrowed(frame, statement.test, holds=True):
        first = run(interpreter, statement.body, frame)
    yes, yes_attributes = frame.env, dict(frame.instance.attributes) if frame.instance else {}
    frame.env = dict(start)
    if frame.instance:
        frame.instance.attributes.clear()
        frame.instance.attributes.update(attributes)
    with interpreter.under(negated), _narrowed(frame, statement.test, holds=False):
        second = run(interpreter, statement.orelse, frame)
    no_attributes = dict(frame.instance.attributes) if frame.instance else {}
    if first is not None and second is not None:
        return first, _NOTHING
    if first is not None:  # the rest runs only when the test is false
        return None, _NOTHING if first == RAISE else negated
    if second is not None:
        frame.env = yes
        _restore(frame, yes_attributes)
        return None, _NOTHING if second == RAISE else test
    frame.env = _merged(test, yes, frame.env)
    _restore(frame, _merged(test, yes_attributes, no_attributes))
    return None, _NOTHING


@contextmanager
def _narrowed(frame: Frame, test: ast.expr, *, holds: bool) -> Iterator[None]:
    """Run a block in which the names that ``test`` compares with None are known not to be None."""
    names = _present(test, holds, frame.tests)
    before = {name: frame.env[name] for name in names if name in frame.env}
    inside = {name: without_none(value) for name, value in before.items()}
    frame.env.update(inside)
    try:
        yield
    finally:
        for name, value in inside.items():
            if frame.env.get(name) is value:
                frame.env[name] = before[name]


def _present(test: ast.expr, holds: bool, tests: dict[str, ast.expr]) -> list[str]:
    """Names that are not None when ``test`` holds, or when it does not."""
    match test:
        case ast.Name(id=name) if name in tests:
            return _present(tests[name], holds, {})
        case ast.BoolOp(op=op, values=values) if isinstance(op, ast.And) is holds:
            return [name for one in values for name in _present(one, holds, tests)]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _present(operand, not holds, tests)
        case ast.Compare(
            left=ast.Name(id=name), ops=[ast.Is() | ast.IsNot() as op], comparators=[other]
        ) if isinstance(other, ast.Constant) and other.value is None:
            return [name] if isinstance(op, ast.IsNot) is holds else []
        case _:
            return []


def _note_test(targets: list[ast.expr], value: ast.expr, frame: Frame) -> None:
    """Remember ``known = x is not None``, until one of its names changes."""
    names = {one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)}
    for local, test in list(frame.tests.items()):
        read = {one.id for one in ast.walk(test) if isinstance(one, ast.Name)}
        if names & {local, *read}:
            del frame.tests[local]
    if len(names) == 1 and isinstance(value, ast.Compare | ast.BoolOp):
        frame.tests[names.pop()] = value


def _restore(frame: Frame, attributes: dict[str, Value]) -> None:
    if frame.instance is not None:
        frame.instance.attributes.clear()
        frame.instance.attributes.update(attributes)


def _merged(test: Expr | None, yes: dict[str, Value], no: dict[str, Value]) -> dict[str, Value]:
    names = {**yes, **no}
    return {
        name: join(test, yes[name], no[name]) if name in yes and name in no else names[name]
        for name in names
    }


def _loop(interpreter: Interpreter, statement: ast.For, frame: Frame) -> str | None:
    iteration = iterate(interpreter, statement.iter, statement.target, frame, statement)
    if isinstance(iteration, list):  # few items, known one by one
        return _run_items(interpreter, statement, frame, iteration)
    value, loop = iteration
    if loop.first:
        _run_items(interpreter, statement, frame, loop.first)
    if not interpreter.loops:  # inside a loop the size may differ from round to round
        _name_unknown(frame, statement)
    start, before = dict(frame.env), _snapshot(interpreter)
    _pass(interpreter, statement, frame, value, loop)
    problems: list[str] = []
    moved = _moved(start, frame.env, problems) | _lost(start, frame)
    interpreter.problems.extend((statement, problem) for problem in problems)
    while moved:
        _restore_to(interpreter, before)
        kept = _carried_pass(interpreter, statement, frame, value, loop, start, moved)
        if kept == moved:
            break
        moved = kept
        if not moved:  # every size came back as it was: one plain pass says it all
            _restore_to(interpreter, before)
            frame.env = dict(start)
            _pass(interpreter, statement, frame, value, loop)
            for name in start:
                _keep_last(start, frame.env, name)
    _leave(frame, statement, loop)
    _settle_lists(frame, start, loop)
    return None


def _leave(frame: Frame, statement: ast.For, loop: Loop) -> None:
    """After a loop its variables mean the last round: sizes that read them say so."""
    inside = {*loop.last, *(loop.variable(one) for one in target_variables(statement.target))}
    for name, value in frame.env.items():
        if isinstance(value, Array) and any(one and one.names & inside for one in value.tail):
            sizes = [one and ex.substitute(one, loop.last) for one in value.tail]
            tail = tuple(None if one and one.names & inside else one for one in sizes)
            frame.env[name] = replace(value, tail=tail)


def target_variables(target: ast.expr) -> set[str]:
    """Names that a loop target binds."""
    return {one.id for one in ast.walk(target) if isinstance(one, ast.Name)}


def _name_unknown(frame: Frame, statement: ast.For) -> None:
    """Give unknown last sizes that enter a loop a name: one argument can hand each of them in."""
    if not frame.own:
        return
    read = {one.id for one in ast.walk(statement) if isinstance(one, ast.Name)}
    for name in sorted(read & frame.env.keys()):
        array = frame.env[name] if isinstance(frame.env[name], Array) else None
        if isinstance(array, Array) and array.rank != 0 and array.axis(-1) is None:
            frame.env[name] = array.with_last(ex.opaque_size(name, statement.lineno))


def _run_items(
    interpreter: Interpreter, statement: ast.For, frame: Frame, items: list[Value]
) -> str | None:
    for item in items:
        assign(interpreter, statement.target, item, frame)
        if run(interpreter, statement.body, frame) == RETURN:
            return RETURN
    return None


def _pass(
    interpreter: Interpreter, statement: ast.For, frame: Frame, value: Value, loop: Loop
) -> None:
    interpreter.loops.append(loop)
    try:
        assign(interpreter, statement.target, value, frame)
        run(interpreter, statement.body, frame)
    finally:
        interpreter.loops.pop()


@dataclass(frozen=True)
class _Snapshot:
    """What the interpreter had noted before a loop ran."""

    records: dict[int, int]
    statics: dict[int, str | None]
    carried: dict[int, list[tuple[str, Expr, Expr]]]


def _snapshot(interpreter: Interpreter) -> _Snapshot:
    return _Snapshot(
        {key: len(uses) for key, uses in interpreter.root.records.items()},
        dict(interpreter.statics),
        {key: list(entries) for key, entries in interpreter.carried.items()},
    )


def _restore_to(interpreter: Interpreter, before: _Snapshot) -> None:
    for key, uses in interpreter.root.records.items():
        del uses[before.records.get(key, 0) :]
    interpreter.statics = dict(before.statics)
    interpreter.carried = {key: list(entries) for key, entries in before.carried.items()}


def _keep_last(start: dict[str, Value], env: dict[str, Value], name: str) -> None:
    """An array whose last size the loop does not change keeps the one it had."""
    old, new = as_array(start[name]), as_array(env.get(name, start[name]))
    if old is not None and new is not None and name in env and new.axis(-1) != old.axis(-1):
        env[name] = new.with_last(old.axis(-1))


def _check_record(problems: list[str], name: str, before: Record, after: Record) -> None:
    """Sizes inside a structure are not carried: a loop that changes them is not understood."""
    for key, value in before.entries.items():
        old, new = as_array(value), as_array(after.entries.get(key, value))
        if old is not None and new is not None and old.axis(-1) != new.axis(-1):
            problems.append(f"the loop changes the size of {name}.{key}")


def _moved(
    before: dict[str, Value], after: dict[str, Value], problems: list[str]
) -> frozenset[str]:
    """Arrays whose last size the loop changes."""
    found = set()
    for name, value in before.items():
        latest = after.get(name, value)
        if isinstance(value, Record) and isinstance(latest, Record):
            _check_record(problems, name, value, latest)
        old, new = as_array(value), as_array(latest)
        if old is None or new is None or isinstance(latest, Argument):
            continue
        if old.axis(-1) != new.axis(-1) and old.axis(-1) is not None:
            found.add(name)
    return frozenset(found)


def _lost(start: dict[str, Value], frame: Frame) -> frozenset[str]:
    """Arrays that the loop turns into values nobody knows: later rounds meet another size."""
    if not frame.own:
        return frozenset()
    found = set()
    for name, value in start.items():
        latest = frame.env.get(name, value)
        array = as_array(value) if isinstance(value, Array | Argument) else None
        if latest is not value and isinstance(latest, Unknown | Choice):
            known = array is not None and array.axis(-1) is not None
            found |= {name} if known and as_array(latest) is None else set()
    return frozenset(found)


def _is_read(interpreter: Interpreter, symbol: str) -> bool:
    """Whether the size of a submodule, or of what it is called with, is ``symbol``."""
    sizes: list[Expr | None] = []
    for uses in interpreter.root.records.values():
        for use in uses:
            sizes += use.sizes.values()
            for value in use.arguments.values():
                array = as_array(value)
                sizes += array.tail if array else ()
    texts = [text for text in interpreter.statics.values() if text]
    return any(one and symbol in one.names for one in sizes) or any(symbol in t for t in texts)


def _carried_pass(
    interpreter: Interpreter,
    statement: ast.For,
    frame: Frame,
    value: Value,
    loop: Loop,
    start: dict[str, Value],
    moved: frozenset[str],
) -> frozenset[str]:
    """Run the body with the changing sizes as loop-carried variables; those that do change."""
    frame.env = dict(start)
    depth = len(interpreter.carrying)
    mark = f"_{depth + 1}" if depth else ""
    symbols = {name: f"{name}_features{mark}" for name in sorted(moved)}
    interpreter.symbols.update(symbols.values())
    for name, symbol in symbols.items():
        array = as_array(start[name])
        if array is not None:
            frame.env[name] = array.with_last(ex.name(symbol))
    interpreter.carrying.append(statement)
    try:
        _pass(interpreter, statement, frame, value, loop)
    finally:
        interpreter.carrying.pop()
    changed = {name for name in symbols if not _is_invariant(frame.env[name], symbols[name])}
    if changed != moved:
        return frozenset(changed)
    for name, symbol in symbols.items():
        _carry(interpreter, statement, frame, loop, start, name, symbol)
    return moved


def _is_invariant(value: Value, symbol: str) -> bool:
    array = as_array(value)
    last = array.axis(-1) if array else None
    return last is not None and last.text == symbol


def _carry(
    interpreter: Interpreter,
    statement: ast.For,
    frame: Frame,
    loop: Loop,
    start: dict[str, Value],
    name: str,
    symbol: str,
) -> None:
    """Note one carried size, and what it is once the loop is over."""
    before, after = as_array(start[name]), as_array(frame.env[name])
    first = before.axis(-1) if before else None
    last = after.axis(-1) if after else None
    if after is None and not _is_read(interpreter, symbol):
        return
    if first is None or after is None or last is None:
        interpreter.problems.append((statement, f"the size of {name} after the loop is unknown"))
        return
    owners = list(dict.fromkeys(id(one) for one in loop.origins)) or [id(statement)]
    if frame.own:
        for owner in owners:
            interpreter.carried.setdefault(owner, []).append((symbol, first, last))
    final = ex.substitute(last, loop.last)
    inside = {*interpreter.symbols, *loop.last}
    local = any(one in inside or one.startswith(OUT_VARIABLE) for one in final.names)
    known = ex.name(symbol) if frame.own else None
    frame.env[name] = after.with_last(known if local else final)


def _settle_lists(frame: Frame, start: dict[str, Value], loop: Loop) -> None:
    """A list that grew by one item in the loop's single pass holds one item per iteration."""
    for name, value in frame.env.items():
        before = start.get(name)
        if isinstance(value, Sequence) and isinstance(before, Sequence) and value.is_list:
            added = value.items[len(before.items) :]
            if len(added) == 1:
                rest = Repeated(added[0], None, loop.node, dict(loop.last))
                frame.env[name] = Extended(before.items, rest) if before.items else rest
            elif added:
                frame.env[name] = Unknown("a list that a loop extends")
