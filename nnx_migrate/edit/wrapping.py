"""Long lines: the arguments of a call, or the parameters of a function, on lines of their own."""

from __future__ import annotations

from typing import Any

from nnx_migrate.edit.calls import NONE, on_lines
from nnx_migrate.edit.expressions import code_of
from nnx_migrate.edit.syntax import cst

WIDTH = 100


def wrapped(statement: Any, indent: int, unit: str) -> Any:
    """A statement with its last call's arguments on lines of their own, when it is too long.

    Statements that already have line ends, and those that are no call, stay as they are.

    Args:
        indent: width of the statement's indentation.
    """
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return statement
    small = statement.body[0]
    text = code_of(small)
    value = getattr(small, "value", None)
    if indent + len(text) <= WIDTH or "\n" in text or not isinstance(value, cst.Call):
        return statement
    return statement.with_changes(body=[small.with_changes(value=_opened(value, indent, unit))])


def _opened(call: cst.Call, indent: int, unit: str) -> cst.Call:
    """The call, or the one that ``setattr`` is given, with its arguments on lines of their own."""
    last = call.args[-1] if call.args else None
    is_setter = isinstance(call.func, cst.Name) and call.func.value == "setattr"
    if is_setter and last is not None and isinstance(last.value, cst.Call) and not last.keyword:
        inner = last.with_changes(value=_opened(last.value, indent, unit))
        return call.with_changes(args=[*call.args[:-1], inner])
    if last is None:
        return call
    width = len(", ".join(code_of(one.with_changes(comma=_NO_COMMA())) for one in call.args))
    if indent + len(unit) + width > WIDTH:
        return on_lines(call, [NONE] * len(call.args), unit)
    return call.with_changes(
        whitespace_before_args=_line_end(unit),
        args=[*call.args[:-1], last.with_changes(whitespace_after_arg=_line_end(""))],
    )


def _NO_COMMA() -> Any:
    return cst.MaybeSentinel.DEFAULT


def _line_end(indent: str) -> cst.ParenthesizedWhitespace:
    space = cst.SimpleWhitespace(indent)
    return cst.ParenthesizedWhitespace(cst.TrailingWhitespace(), [], True, space)


def wrapped_function(function: cst.FunctionDef, indent: int, unit: str) -> cst.FunctionDef:
    """A function with one parameter on a line, when its head is too long."""
    head = f"def {function.name.value}({code_of(function.params)}):"
    if indent + len(head) <= WIDTH and "\n" not in head:
        return function
    deeper = unit if len(unit.expandtabs()) >= 4 else unit * 2
    end = cst.Comma(whitespace_after=_line_end(deeper))
    last = cst.Comma(whitespace_after=_line_end(""))
    params = function.params
    plain = [one.with_changes(comma=end) for one in params.params]
    keyword = [one.with_changes(comma=end) for one in params.kwonly_params]
    star = params.star_arg
    if isinstance(star, cst.ParamStar):
        star = star.with_changes(comma=end)
    if keyword:
        keyword[-1] = keyword[-1].with_changes(comma=last)
    elif plain:
        plain[-1] = plain[-1].with_changes(comma=last)
    changed = params.with_changes(params=plain, kwonly_params=keyword, star_arg=star)
    return function.with_changes(params=changed, whitespace_before_params=_line_end(deeper))
