"""Expressions of the size interpreter: names, attributes, subscripts, operators, calls."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nnx_migrate.sizes import expression as ex
from nnx_migrate.sizes import shapes
from nnx_migrate.sizes.attributes import OpenShape, ShapeOf, attribute_of, call_method
from nnx_migrate.sizes.expression import Expr
from nnx_migrate.sizes.values import (
    NONE,
    Argument,
    Array,
    Choice,
    Class,
    DataClass,
    Extended,
    Function,
    Instance,
    Library,
    Record,
    Repeated,
    Sequence,
    Static,
    Submodule,
    Unknown,
    Value,
    as_array,
    is_none,
    join,
    join_all,
)
from nnx_migrate.source.names import Assignment, Opaque
from nnx_migrate.source.project import Scope

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Frame, Interpreter, Loop


def evaluate(interpreter: Interpreter, node: ast.expr, frame: Frame) -> Value:
    """Abstract value of an expression."""
    interpreter.step()
    value = _evaluate(interpreter, node, frame)
    interpreter.note(node, value, frame)
    return value


def _evaluate(interpreter: Interpreter, node: ast.expr, frame: Frame) -> Value:
    match node:
        case ast.Constant(value=value):
            return Static(Expr(node)) if not isinstance(value, bytes) else Unknown("bytes")
        case ast.Name():
            return _name(interpreter, node, frame)
        case ast.Attribute():
            return _attribute(interpreter, node, frame)
        case ast.Call():
            return _call(interpreter, node, frame)
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return _sequence(interpreter, items, frame, is_list=isinstance(node, ast.List))
        case ast.Dict(keys=keys, values=values):
            return _dict(interpreter, keys, values, frame)
        case ast.Subscript():
            return _subscript(interpreter, node, frame)
        case ast.BinOp():
            return _binary(interpreter, node, frame)
        case ast.UnaryOp():
            return _unary(interpreter, node, frame)
        case ast.BoolOp() | ast.Compare():
            return _test(interpreter, node, frame)
        case ast.IfExp():
            return _conditional(interpreter, node, frame)
        case ast.Lambda():
            return _lambda(node, frame)
        case ast.ListComp() | ast.GeneratorExp() | ast.SetComp():
            return _comprehension(interpreter, node, frame)
        case ast.NamedExpr(target=target, value=inner):
            frame.env[target.id] = evaluate(interpreter, inner, frame)
            return frame.env[target.id]
        case ast.JoinedStr():
            return _fstring(interpreter, node, frame)
        case ast.Starred(value=inner):
            return evaluate(interpreter, inner, frame)
        case _:
            return Unknown(f"{type(node).__name__} is not modelled")


def _lambda(node: ast.Lambda, frame: Frame) -> Value:
    env = dict(frame.env)
    if frame.instance is not None:
        env["__instance__"] = frame.instance
    return Function(node, frame.scope, env, None, frame.defined_in)


def _name(interpreter: Interpreter, node: ast.Name, frame: Frame) -> Value:
    if node.id in frame.env:
        return frame.env[node.id]
    binding = frame.scope.lookup(node.id)
    if isinstance(binding, Opaque) and node.id not in frame.scope.module.table:
        return Unknown(f"{node.id} is not bound here")
    symbol = interpreter.project.resolve(node, frame.scope)
    if symbol is not None:
        return symbol_value(interpreter, symbol, node, frame)
    if isinstance(binding, Assignment):
        return global_value(interpreter, node.id, binding.value, frame.scope, frame)
    return Library(f"builtins.{node.id}") if binding is None else Unknown("unresolved name")


def symbol_value(
    interpreter: Interpreter, symbol: str, node: ast.expr, frame: Frame | None = None
) -> Value:
    """Value of a resolved symbol: a class, a function, a constant, or a library name."""
    project = interpreter.project
    info = project.classes.get(symbol)
    if info is not None:
        return Class(info) if info.linen else DataClass(info)
    definition = project.definition(symbol)
    if definition is None:
        return Library(symbol)
    module, target = definition
    if isinstance(target, ast.FunctionDef):
        symbols = [project.resolve(_decorator(d), Scope(module)) for d in target.decorator_list]
        if any(one not in ("jax.jit", "jax.vmap", "functools.partial") for one in symbols):
            return Unknown("a decorated function")
        return Function(target, Scope(module))
    if isinstance(target, ast.expr):
        identifier = symbol.rpartition(".")[2]
        return global_value(interpreter, identifier, target, Scope(module), frame)
    return Unknown(f"{symbol} is not modelled")


def _decorator(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node


def global_value(
    interpreter: Interpreter, name: str, value: ast.expr, scope: Scope, frame: Frame | None
) -> Value:
    """A module-level name: its value when known, else its name if the root's module has it."""
    from nnx_migrate.sizes.interpreter import Frame as NewFrame

    result = evaluate(interpreter, value, NewFrame(Scope(scope.module), {}))
    if not isinstance(result, Static | Unknown):
        return result
    if isinstance(result, Static) and result.expr.is_constant:
        return result
    here = interpreter.root.info.module
    spelled = name if scope.module is here else f"{ex.FOREIGN}{name}"
    return Static(ex.name(spelled))


def _attribute(interpreter: Interpreter, node: ast.Attribute, frame: Frame) -> Value:
    symbol = interpreter.project.resolve(node, frame.scope)
    root = node
    while isinstance(root.value, ast.Attribute):
        root = root.value
    is_local = isinstance(root.value, ast.Name) and root.value.id in frame.env
    if symbol is not None and not is_local and not _through_class(interpreter, symbol):
        return symbol_value(interpreter, symbol, node, frame)
    base = evaluate(interpreter, node.value, frame)
    return attribute_of(interpreter, base, node.attr, frame)


def _through_class(interpreter: Interpreter, symbol: str) -> bool:
    """Whether a symbol reads an attribute of a project class or constant."""
    owner = symbol.rpartition(".")[0]
    if symbol in interpreter.project.classes:
        return False
    return owner in interpreter.project.classes or (
        interpreter.project.definition(owner) is not None
    )


def _call(interpreter: Interpreter, node: ast.Call, frame: Frame) -> Value:
    method = _method_call(interpreter, node, frame)
    if isinstance(method, tuple):
        base, name = method
    args, kwargs = arguments(interpreter, node, frame)
    if isinstance(method, tuple):
        return call_method(interpreter, base, name, args, kwargs, node, frame)
    return interpreter.call(method, args, kwargs, node, frame)


def _method_call(
    interpreter: Interpreter, node: ast.Call, frame: Frame
) -> Value | tuple[Value, str]:
    """What a call calls: a value, or a method of a value by name."""
    function = node.func
    if not isinstance(function, ast.Attribute):
        return evaluate(interpreter, function, frame)
    symbol = interpreter.project.resolve(function, frame.scope)
    head = function.value
    while isinstance(head, ast.Attribute):
        head = head.value
    is_local = isinstance(head, ast.Name) and head.id in frame.env
    if symbol is not None and not is_local and not _through_class(interpreter, symbol):
        return symbol_value(interpreter, symbol, function, frame)
    return evaluate(interpreter, function.value, frame), function.attr


def arguments(
    interpreter: Interpreter, node: ast.Call, frame: Frame
) -> tuple[tuple[Value, ...], dict[str, Value]]:
    """Arguments of a call; starred ones are spread when known."""
    args: list[Value] = []
    for one in node.args:
        value = evaluate(interpreter, one, frame)
        if isinstance(one, ast.Starred):
            args.extend(value.items if isinstance(value, Sequence) else [Unknown("starred")])
        else:
            args.append(value)
    kwargs: dict[str, Value] = {}
    for keyword in node.keywords:
        value = evaluate(interpreter, keyword.value, frame)
        if keyword.arg is not None:
            kwargs[keyword.arg] = value
        elif isinstance(value, Record):
            kwargs.update(value.entries)
    return tuple(args), kwargs


def _sequence(
    interpreter: Interpreter, nodes: list[ast.expr], frame: Frame, *, is_list: bool
) -> Value:
    items: list[Value] = []
    for one in nodes:
        value = evaluate(interpreter, one, frame)
        if isinstance(one, ast.Starred):
            if not isinstance(value, Sequence):
                return Unknown("a starred item of unknown length")
            items.extend(value.items)
        else:
            items.append(value)
    return Sequence(tuple(items), is_list)


def _dict(
    interpreter: Interpreter, keys: list[ast.expr | None], values: list[ast.expr], frame: Frame
) -> Value:
    entries: dict[str, Value] = {}
    for key, value in zip(keys, values, strict=True):
        result = evaluate(interpreter, value, frame)
        if isinstance(key, ast.Constant):
            entries[str(key.value)] = result
        elif key is None and isinstance(result, Record):
            entries.update(result.entries)
        else:
            return Unknown("a dict with computed keys")
    return Record(entries)


def static_of(value: Value) -> Expr | None:
    """Expression of a static value; a tuple of static values is one too."""
    if isinstance(value, Static):
        return value.expr
    if isinstance(value, Sequence):
        parts = [static_of(item) for item in value.items]
        if all(part is not None for part in parts):
            nodes = [part.node for part in parts if part]
            make = ast.List if value.is_list else ast.Tuple
            return Expr(make(nodes, ast.Load()))
    return None


def _subscript(interpreter: Interpreter, node: ast.Subscript, frame: Frame) -> Value:
    base = evaluate(interpreter, node.value, frame)
    index = node.slice
    if isinstance(base, Record | Choice) or not isinstance(index, ast.Slice | ast.Tuple):
        key: Value = evaluate(interpreter, index, frame) if not _slices(index) else Unknown()
    else:
        key = Unknown()
    return item_of(interpreter, base, key, index, frame)


def _slices(index: ast.expr) -> bool:
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return any(isinstance(part, ast.Slice) for part in parts)


def item_of(
    interpreter: Interpreter, base: Value, key: Value, index: ast.expr, frame: Frame
) -> Value:
    """``base[index]``."""
    number = None
    if isinstance(key, Static) and key.expr.is_constant:
        number = key.expr.constant
    match base:
        case Choice(options=options):
            items = [item_of(interpreter, one, key, index, frame) for one in options]
            result = items[0]
            for other in items[1:]:
                result = join(None, result, other)
            return result
        case Sequence(items=items) if isinstance(number, int):
            return items[number] if -len(items) <= number < len(items) else Unknown("out of range")
        case Sequence() if isinstance(index, ast.Slice):
            return _slice(interpreter, base, index, frame)
        case Sequence(items=items) if items:
            result = items[0]
            for other in items[1:]:
                result = join(None, result, other)
            return result
        case Extended(first=first, rest=rest):
            if isinstance(number, int) and 0 <= number < len(first):
                return first[number]
            return item_of(interpreter, rest, key, index, frame)
        case Repeated(item=item):
            if interpreter.loops and base.origin is not None:
                interpreter.loops[-1].origins.append(base.origin)
            return base if isinstance(index, ast.Slice) else item
        case Record(entries=entries, default=default):
            if isinstance(number, int):
                present = [one for one in entries.values() if is_none(one) is not True]
                return present[number] if -len(present) <= number < len(present) else Unknown()
            text = str(number) if number is not None else None
            if text in entries:
                return entries[text]
            if default is not None or not entries:
                return default or Unknown("unknown key")
            values = list(entries.values())
            return values[0] if all(one == values[0] for one in values) else _any_of(values)
        case Argument(path=path):
            if isinstance(number, int):
                return Argument(f"{path}[{number}]")
            if isinstance(number, str):  # its entries are arrays of their own
                return Unknown(f"the entry {number!r} of {path}, whose size no argument shows")
            return index_array(interpreter, base.array(), index, frame)
        case Array():
            return index_array(interpreter, base, index, frame)
        case ShapeOf(shape_of=array):
            return _shape_item(interpreter, array, number, index, frame)
        case OpenShape(tail=tail) if isinstance(number, int) and number < 0:
            size = tail[number] if -number <= len(tail) else None
            return Static(size) if size else Unknown("size unknown")
        case Static(expr=expr):
            part = static_of(key) if not isinstance(index, ast.Slice) else None
            if isinstance(index, ast.Slice) or part is None:
                return _static_slice(interpreter, expr, index, frame)
            return Static(Expr(ast.Subscript(expr.node, part.node, ast.Load())))
        case _:
            return Unknown("item of an unknown value")


def _shape_item(
    interpreter: Interpreter, array: Array, number: object, index: ast.expr, frame: Frame
) -> Value:
    """``x.shape[i]`` and ``x.shape[a:b]`` of an array of unknown rank."""
    if isinstance(number, int):
        size = array.axis(number)
        return Static(size) if size else Unknown("size unknown")
    if not isinstance(index, ast.Slice) or index.step is not None:
        return Unknown("an axis nobody knows")
    low, high = _bound(interpreter, index.lower, frame), _bound(interpreter, index.upper, frame)
    if low == "?" or high == "?":
        return Unknown("an axis nobody knows")
    if isinstance(high, int) and high >= 0 and (low is None or isinstance(low, int)):
        sizes = [array.axis(axis) for axis in range(int(low or 0), high)]
        return Sequence(tuple(Static(s) if s else Unknown("size unknown") for s in sizes))
    if isinstance(low, int) and low < 0:
        sizes = [array.axis(axis) for axis in range(low, high if isinstance(high, int) else 0)]
        return Sequence(tuple(Static(s) if s else Unknown("size unknown") for s in sizes))
    if low in (None, 0) and isinstance(high, int):
        known = array.known(max(len(array.tail), 1))
        return OpenShape(known[:high] if -high < len(known) else (), array, high)
    return OpenShape(array.known(1) if high is None else (), array, 0)


def _bound(interpreter: Interpreter, node: ast.expr | None, frame: Frame) -> int | str | None:
    if node is None:
        return None
    value = evaluate(interpreter, node, frame)
    known = isinstance(value, Static) and value.expr.is_constant
    constant = value.expr.constant if known and isinstance(value, Static) else "?"
    return constant if isinstance(constant, int) else "?"


def _any_of(values: list[Value]) -> Value:
    functions = all(isinstance(one, Library | Function) or _is_partial(one) for one in values)
    return Choice(tuple(values)) if functions or len(values) <= 8 else Unknown("one of many")


def _is_partial(value: Value) -> bool:
    from nnx_migrate.sizes.values import Partial

    return isinstance(value, Partial)


def _static_slice(interpreter: Interpreter, expr: Expr, index: ast.expr, frame: Frame) -> Value:
    if not isinstance(index, ast.Slice):
        return Unknown("index unknown")
    parts = []
    for bound in (index.lower, index.upper, index.step):
        value = evaluate(interpreter, bound, frame) if bound else None
        if value is not None and not isinstance(value, Static):
            return Unknown("slice unknown")
        parts.append(value.expr.node if isinstance(value, Static) else None)
    return Static(Expr(ast.Subscript(expr.node, ast.Slice(*parts), ast.Load())))


def _slice(interpreter: Interpreter, base: Sequence, index: ast.Slice, frame: Frame) -> Value:
    bounds: list[int | None] = []
    for bound in (index.lower, index.upper, index.step):
        value = evaluate(interpreter, bound, frame) if bound else NONE
        known = isinstance(value, Static) and value.expr.is_constant
        number = value.expr.constant if known and isinstance(value, Static) else "?"
        if not (number is None or isinstance(number, int)):
            return Unknown("slice of unknown bounds")
        bounds.append(number)
    return Sequence(base.items[slice(*bounds)], base.is_list)


def index_array(interpreter: Interpreter, array: Array, index: ast.expr, frame: Frame) -> Value:
    """Basic indexing of an array; what it does to the last axes."""
    parts = list(index.elts) if isinstance(index, ast.Tuple) else [index]
    has_dots = any(isinstance(p, ast.Constant) and p.value is Ellipsis for p in parts)
    consumed = sum(1 for p in parts if not _adds_axis(p) and not _is_dots(p))
    if has_dots:
        after = parts[next(i for i, p in enumerate(parts) if _is_dots(p)) + 1 :]
        before = parts[: len(parts) - len(after) - 1]
        return _index_tail(interpreter, array, before, after, frame)
    if array.rank is None:
        width = max(len(array.tail), 1)
        if consumed > width and array.path is None:
            return Unknown("indexing an array of unknown rank")
        if any(_adds_axis(p) for p in parts):
            return Array((array.axis(-1),), None) if not _adds_axis(parts[-1]) else Array((None,))
        if consumed == 1 or (array.path is not None and consumed <= 2):
            if all(_keeps_axis(interpreter, p, frame) for p in parts):
                return array if _is_full(parts) else Array((array.axis(-1),), None)
            fancy = _fancy(interpreter, parts, frame)
            width = 2 if fancy else 0
            return Array((*(None,) * width, array.axis(-1)), None)
        return Array((None,), None)
    missing = array.rank - consumed
    if missing < 0:
        return Unknown("too many indices")
    fill = [ast.Slice() for _ in range(missing)]
    return _index_known(interpreter, array, [*parts, *fill], frame)


def _is_dots(part: ast.expr) -> bool:
    return isinstance(part, ast.Constant) and part.value is Ellipsis


def _adds_axis(part: ast.expr) -> bool:
    if isinstance(part, ast.Constant):
        return part.value is None
    return isinstance(part, ast.Attribute) and part.attr == "newaxis"


def _is_full(parts: list[ast.expr]) -> bool:
    return all(isinstance(p, ast.Slice) and not (p.lower or p.upper or p.step) for p in parts)


def _keeps_axis(interpreter: Interpreter, part: ast.expr, frame: Frame) -> bool:
    return isinstance(part, ast.Slice)


def _fancy(interpreter: Interpreter, parts: list[ast.expr], frame: Frame) -> bool:
    values = [evaluate(interpreter, p, frame) for p in parts if not isinstance(p, ast.Slice)]
    return any(as_array(value) is not None for value in values)


def _index_tail(
    interpreter: Interpreter,
    array: Array,
    before: list[ast.expr],
    after: list[ast.expr],
    frame: Frame,
) -> Value:
    consumed = sum(1 for p in after if not _adds_axis(p))
    kept = list(array.known(consumed)) if consumed else []
    tail: list[Expr | None] = []
    for part in after:
        if _adds_axis(part):
            tail.append(ex.literal(1))
            continue
        size = kept.pop(0)
        if isinstance(part, ast.Slice):
            tail.append(_sliced(interpreter, size, part, frame))
    front = [array.axis(-consumed - 1)] if array.tail or array.path else []
    removed = sum(1 for p in before if not isinstance(p, ast.Slice) and not _adds_axis(p))
    rank = array.rank
    if rank is not None:
        rank = rank - removed - consumed + len(tail) + sum(1 for p in before if _adds_axis(p))
        lead = array.known(array.rank - consumed) if array.rank else ()
        front = list(lead[removed:])[-max(rank - len(tail), 0) :] if rank > len(tail) else []
    return Array((*front, *tail), rank)


def _index_known(
    interpreter: Interpreter, array: Array, parts: list[ast.expr], frame: Frame
) -> Value:
    sizes = list(array.known(array.rank or 0))
    out: list[Expr | None] = []
    advanced: list[Array] = []
    for part in parts:
        if _adds_axis(part):
            out.append(ex.literal(1))
            continue
        size = sizes.pop(0)
        if isinstance(part, ast.Slice):
            out.append(_sliced(interpreter, size, part, frame))
            continue
        picked = as_array(evaluate(interpreter, part, frame))
        if picked is not None:
            if not advanced:
                if picked.rank is None:
                    rest = _index_known_tail(
                        interpreter, sizes, parts[parts.index(part) + 1 :], frame
                    )
                    return Array(rest, None) if rest else Array((None,), None)
                out.extend(picked.known(picked.rank))
            advanced.append(picked)
    return Array(tuple(out), len(out))


def _index_known_tail(
    interpreter: Interpreter, sizes: list[Expr | None], parts: list[ast.expr], frame: Frame
) -> tuple[Expr | None, ...]:
    if not all(isinstance(part, ast.Slice) for part in parts):
        return ()
    pairs = zip(sizes, parts, strict=False)
    return tuple(
        _sliced(interpreter, size, p, frame) for size, p in pairs if isinstance(p, ast.Slice)
    )


def _sliced(
    interpreter: Interpreter, size: Expr | None, part: ast.Slice, frame: Frame
) -> Expr | None:
    bounds = [part.lower, part.upper, part.step]
    if not any(bounds):
        return size
    values = [evaluate(interpreter, one, frame) if one else None for one in bounds]
    low, high, step = (value.expr if isinstance(value, Static) else None for value in values)
    if part.step is not None or (part.lower and low is None) or (part.upper and high is None):
        return None if step is None or part.step else size
    return _between(size, low, high)


def _between(size: Expr | None, low: Expr | None, high: Expr | None) -> Expr | None:
    """Length of ``axis[low:high]``; None when it may depend on what is not known."""
    if size is None:
        return None
    end, start = _position(size, high, size), _position(size, low, ex.literal(0))
    if low is not None and high is None and _is_negative(low):
        return _at_most(size, Expr(low.node.operand))  # type: ignore[attr-defined]
    return ex.binary(end, ast.Sub(), start)


def _position(size: Expr, bound: Expr | None, default: Expr) -> Expr:
    """A bound of a slice as a position from the start; one that is no literal counts from there."""
    if bound is None:
        return default
    if _is_negative(bound):
        return ex.binary(size, ast.Sub(), Expr(bound.node.operand))  # type: ignore[attr-defined]
    return _at_most(size, bound)


def _at_most(size: Expr, bound: Expr) -> Expr:
    """``min(size, bound)``: slices end where the axis ends."""
    if size == bound:
        return size
    if size.is_constant and bound.is_constant:
        known = [one.constant for one in (size, bound)]
        numbers = [one for one in known if isinstance(one, int)]
        return ex.literal(min(numbers)) if len(numbers) == 2 else bound
    return Expr(ast.Call(ast.Name("min", ast.Load()), [size.node, bound.node], []))


def _is_negative(one: Expr) -> bool:
    return isinstance(one.node, ast.UnaryOp) and isinstance(one.node.op, ast.USub)


def _binary(interpreter: Interpreter, node: ast.BinOp, frame: Frame) -> Value:
    left, right = evaluate(interpreter, node.left, frame), evaluate(interpreter, node.right, frame)
    return combine(left, node.op, right)


def combine(left: Value, op: ast.operator, right: Value) -> Value:
    """``left op right`` on abstract values."""
    for one in (left, right):
        if isinstance(one, Choice) and any(isinstance(o, Sequence) for o in one.options):
            results = [
                combine(o, op, right) if one is left else combine(left, op, o) for o in one.options
            ]
            return join_all(one.test, results)
    if isinstance(left, Static) and isinstance(right, Static):
        return Static(ex.binary(left.expr, op, right.expr))
    if isinstance(left, Sequence) and isinstance(right, Sequence) and isinstance(op, ast.Add):
        return Sequence((*left.items, *right.items), left.is_list)
    if isinstance(left, ShapeOf) and isinstance(right, Sequence):
        left = OpenShape(left.shape_of.known(1), left.shape_of, 0)
    if isinstance(left, OpenShape) and isinstance(right, Sequence):
        added = tuple(item.expr if isinstance(item, Static) else None for item in right.items)
        return OpenShape((*left.tail, *added), left.source, left.cut, added)
    if isinstance(left, Sequence) and isinstance(right, Static) and isinstance(op, ast.Mult):
        return _repeat(left, right.expr)
    first, second = as_array(left), as_array(right)
    if isinstance(op, ast.MatMult):
        both = first is not None and second is not None
        return shapes.contract_last(first, second) if both and first and second else Unknown("@")
    if first is not None:
        if second is not None:
            return shapes.broadcast([first, second])
        return first if isinstance(right, Static) else _fuzzy(first)
    if second is not None:
        return second if isinstance(left, Static) else _fuzzy(second)
    return Unknown("an operator on unknown values")


def _fuzzy(array: Array) -> Array:
    """An array combined with an unknown value: the last size stays unless it is 1."""
    last = array.axis(-1)
    return Array((None if shapes.is_one(last) else last,), None)


def _repeat(value: Sequence, count: Expr) -> Value:
    if count.is_constant and isinstance(count.constant, int) and count.constant <= 64:
        return Sequence(value.items * count.constant, value.is_list)
    if len(value.items) == 1:
        return Repeated(value.items[0], count)
    return Unknown("a repeated sequence")


def _unary(interpreter: Interpreter, node: ast.UnaryOp, frame: Frame) -> Value:
    value = evaluate(interpreter, node.operand, frame)
    if isinstance(node.op, ast.Not):
        test = truth(interpreter, node.operand, frame)
        if isinstance(test, bool):
            return Static(ex.literal(not test))
        return Static(Expr(ast.UnaryOp(ast.Not(), test.node))) if test else Unknown("not unknown")
    if isinstance(value, Static):
        return Static(Expr(ast.UnaryOp(node.op, value.expr.node)))
    return as_array(value) or Unknown("unary operator")


def _test(interpreter: Interpreter, node: ast.expr, frame: Frame) -> Value:
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        chosen = _either(interpreter, node, frame)
        if chosen is not None:
            return chosen
    if isinstance(node, ast.Compare):
        arrays = [as_array(evaluate(interpreter, n, frame)) for n in (node.left, *node.comparators)]
        known = [array for array in arrays if array]
        if known and not _is_none_test(node) and not _is_shape_test(node):
            return shapes.broadcast(known) if len(known) == len(arrays) else known[0]
    test = truth(interpreter, node, frame)
    if isinstance(test, bool):
        return Static(ex.literal(test))
    return Static(test) if test is not None else Unknown("a condition on call arguments")


def _is_none_test(node: ast.Compare) -> bool:
    return isinstance(node.ops[0], ast.Is | ast.IsNot)


def _is_shape_test(node: ast.Compare) -> bool:
    return any(
        isinstance(n, ast.Attribute) and n.attr in ("shape", "ndim", "dtype")
        for n in ast.walk(node)
    )


def _either(interpreter: Interpreter, node: ast.BoolOp, frame: Frame) -> Value | None:
    """``self.width or x.shape[-1]`` as a value."""
    values = [evaluate(interpreter, one, frame) for one in node.values]
    statics = [value.expr for value in values if isinstance(value, Static)]
    if len(statics) != len(values):
        return None
    first = statics[0]
    if first.is_constant:
        return values[0] if first.constant else values[1] if len(values) == 2 else None
    return Static(Expr(ast.BoolOp(ast.Or(), [one.node for one in statics])))


def truth(interpreter: Interpreter, node: ast.expr, frame: Frame) -> bool | Expr | None:
    """Truth of a condition: known, an expression over fields and sizes, or None."""
    test = _truth(interpreter, node, frame)
    if isinstance(test, Expr) and isinstance(node, ast.Compare | ast.BoolOp | ast.UnaryOp):
        interpreter.note(node, Static(test), frame)
    return test


def _truth(interpreter: Interpreter, node: ast.expr, frame: Frame) -> bool | Expr | None:
    match node:
        case ast.BoolOp(op=op, values=values):
            return _junction(interpreter, isinstance(op, ast.And), values, frame)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = truth(interpreter, operand, frame)
            if isinstance(inner, bool):
                return not inner
            return Expr(ast.UnaryOp(ast.Not(), inner.node)) if inner else None
        case ast.Compare():
            return _compare(interpreter, node, frame)
    value = evaluate(interpreter, node, frame)
    if isinstance(value, Static):
        return bool(value.expr.constant) if value.expr.is_constant else value.expr
    if isinstance(value, Sequence):
        return bool(value.items)
    return True if isinstance(value, Function | Instance | Submodule | Class) else None


def _junction(
    interpreter: Interpreter, is_and: bool, nodes: list[ast.expr], frame: Frame
) -> bool | Expr | None:
    parts = [truth(interpreter, one, frame) for one in nodes]
    if any(part is (not is_and) for part in parts):
        return not is_and
    open_parts = [part for part in parts if not isinstance(part, bool)]
    if not open_parts:
        return is_and
    known = [part.node for part in open_parts if part is not None]
    if len(known) != len(open_parts):
        return None
    make = ast.And() if is_and else ast.Or()
    return Expr(known[0]) if len(known) == 1 else Expr(ast.BoolOp(make, known))


def _compare(interpreter: Interpreter, node: ast.Compare, frame: Frame) -> bool | Expr | None:
    values = [evaluate(interpreter, one, frame) for one in (node.left, *node.comparators)]
    if len(values) == 2 and isinstance(node.ops[0], ast.Is | ast.IsNot | ast.Eq | ast.NotEq):
        negated = isinstance(node.ops[0], ast.IsNot | ast.NotEq)
        for one, other in (values, values[::-1]):
            if isinstance(other, Static) and other.expr.text == "None":
                known = is_none(one)
                if known is not None:
                    return known is not negated
        shapes_differ = _compare_shapes(values)
        if shapes_differ is not None:
            if isinstance(shapes_differ, bool):
                return shapes_differ is negated
            return shapes_differ if negated else Expr(ast.UnaryOp(ast.Not(), shapes_differ.node))
    parts = [static_of(value) for value in values]
    if any(part is None for part in parts):
        return None
    known_parts = [part for part in parts if part]
    if all(part.is_constant for part in known_parts):
        return _known_comparison(node, known_parts)
    if len(parts) == 2 and known_parts[0] == known_parts[1]:
        if isinstance(node.ops[0], ast.Eq | ast.LtE | ast.GtE):
            return True
        if isinstance(node.ops[0], ast.NotEq | ast.Lt | ast.Gt):
            return False
    nodes = [part.node for part in known_parts]
    return Expr(ast.Compare(nodes[0], node.ops, nodes[1:]))


def _known_comparison(node: ast.Compare, parts: list[Expr]) -> bool | None:
    table: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
        ast.Eq: operator.eq,
        ast.NotEq: operator.ne,
        ast.Lt: operator.lt,
        ast.LtE: operator.le,
        ast.Gt: operator.gt,
        ast.GtE: operator.ge,
        ast.Is: lambda a, b: a is b or a == b,
        ast.IsNot: lambda a, b: a != b,
        ast.In: lambda a, b: operator.contains(b, a),
        ast.NotIn: lambda a, b: not operator.contains(b, a),
    }
    try:
        pairs = zip(parts, node.ops, parts[1:], strict=False)
        return all(table[type(op)](one.constant, two.constant) for one, op, two in pairs)
    except TypeError:
        return None


def _compare_shapes(values: list[Value]) -> bool | Expr | None:
    """Whether two ``.shape`` values differ, axis by axis from the last."""
    one, two = values
    if not (isinstance(one, ShapeOf) and isinstance(two, ShapeOf)):
        return None
    first, second = one.shape_of, two.shape_of
    tests: list[ast.expr] = []
    for index in range(-max(len(first.tail), len(second.tail), 1), 0):
        left, right = first.axis(index), second.axis(index)
        if left is None or right is None:
            if left is not right and (index == -1 or not _is_lead(first, second, index)):
                return None
            continue
        if left.key == right.key:
            continue
        strided = _stride_between(left, right) or _stride_between(right, left)
        if strided is not None:
            tests.append(ast.Compare(strided.node, [ast.NotEq()], [ast.Constant(1)]))
        else:
            tests.append(ast.Compare(left.node, [ast.NotEq()], [right.node]))
    if not tests:
        return False
    return Expr(tests[0]) if len(tests) == 1 else Expr(ast.BoolOp(ast.Or(), tests))


def _is_lead(first: Array, second: Array, index: int) -> bool:
    rank = first.rank or second.rank
    return rank is not None and index == -rank


def _stride_between(before: Expr, after: Expr) -> Expr | None:
    """``s`` when ``after`` is ``-(-before // s)``: they differ exactly when s != 1 (and before > 1)."""
    match after.node:
        case ast.UnaryOp(
            op=ast.USub(),
            operand=ast.BinOp(
                left=ast.UnaryOp(op=ast.USub(), operand=inner), op=ast.FloorDiv(), right=stride
            ),
        ) if Expr(inner).key == before.key:
            return Expr(stride)
    return None


def _conditional(interpreter: Interpreter, node: ast.IfExp, frame: Frame) -> Value:
    test = truth(interpreter, node.test, frame)
    if isinstance(test, bool):
        return evaluate(interpreter, node.body if test else node.orelse, frame)
    with interpreter.under(test):
        yes = evaluate(interpreter, node.body, frame)
    negated = Expr(ast.UnaryOp(ast.Not(), test.node)) if test else None
    with interpreter.under(negated):
        no = evaluate(interpreter, node.orelse, frame)
    return join(test, yes, no)


def _fstring(interpreter: Interpreter, node: ast.JoinedStr, frame: Frame) -> Value:
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            value = evaluate(interpreter, part.value, frame)
            if not isinstance(value, Static):
                return Unknown("a computed string")
            if value.expr.text != ast.unparse(part.value):
                return Unknown("a string of locals")
    return Static(Expr(node))


def iterate(
    interpreter: Interpreter, node: ast.expr, target: ast.expr, frame: Frame, loop_node: ast.AST
) -> list[Value] | tuple[Value, Loop]:
    """What a loop runs over: items one by one, or one abstract item for all iterations."""
    from nnx_migrate.sizes.iteration import iteration_of

    value = evaluate(interpreter, node, frame)
    return iteration_of(interpreter, value, target, loop_node, foreign=not frame.own)


def _comprehension(
    interpreter: Interpreter,
    node: ast.ListComp | ast.GeneratorExp | ast.SetComp,
    frame: Frame,
) -> Value:
    from nnx_migrate.sizes.statements import assign

    generator = node.generators[0]
    if len(node.generators) != 1:
        return Unknown("a nested comprehension")
    iteration = iterate(interpreter, generator.iter, generator.target, frame, node)
    saved = dict(frame.env)
    try:
        if isinstance(iteration, list):
            items = []
            for item in iteration:
                assign(interpreter, generator.target, item, frame)
                items.append(evaluate(interpreter, node.elt, frame))
            if not generator.ifs:
                return Sequence(tuple(items), is_list=True)
            return Repeated(items[0], None, node) if items else Sequence((), is_list=True)
        value, loop = iteration
        interpreter.loops.append(loop)
        try:
            assign(interpreter, generator.target, value, frame)
            item = evaluate(interpreter, node.elt, frame)
        finally:
            interpreter.loops.pop()
        return Repeated(item, None, node, dict(loop.last))
    finally:
        frame.env = saved


__all__ = ["evaluate", "iterate", "static_of", "truth"]
