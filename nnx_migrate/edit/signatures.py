"""LibCST nodes of the parameters of functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nnx_migrate.edit.expressions import Expression, code_of, element
from nnx_migrate.edit.syntax import cst


def signature(params: Sequence[cst.Param | str]) -> cst.Parameters:
    """Parameters in order; those behind ``"*"`` go by keyword alone."""
    plain: list[Any] = list(params)
    at = plain.index("*") if "*" in plain else len(plain)
    star = cst.ParamStar() if at + 1 < len(plain) else cst.MaybeSentinel.DEFAULT
    return cst.Parameters(plain[:at], star_arg=star, kwonly_params=plain[at + 1 :])


def parameter(
    name: str, annotation: Expression | None = None, default: Expression | None = None
) -> cst.Param:
    """``name: annotation = default``."""
    tight = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    loose = cst.AssignEqual(cst.SimpleWhitespace(" "), cst.SimpleWhitespace(" "))
    return cst.Param(
        cst.Name(name),
        annotation=None if annotation is None else cst.Annotation(annotation),
        default=None if default is None else element(default),
        equal=cst.MaybeSentinel.DEFAULT
        if default is None
        else (tight if annotation is None else loose),
    )


def with_first_parameters(function: Any, names: Sequence[str], behind: int = 0) -> Any:
    """A function with further parameters, behind so many of its own.

    What stands on lines of its own keeps doing so, and so do the new ones.
    """
    if not names:
        return function
    params = function.params
    own = "posonly_params" if params.posonly_params else "params"
    plain = list(getattr(params, own))
    space = function.whitespace_before_params
    if behind and len(plain) > behind and isinstance(plain[behind - 1].comma, cst.Comma):
        space = plain[behind - 1].comma.whitespace_after
    opens = isinstance(space, cst.ParenthesizedWhitespace)
    between = space if opens else cst.SimpleWhitespace(" ")
    if opens:
        between = between.with_changes(first_line=cst.TrailingWhitespace(), empty_lines=[])
    comma = cst.Comma(whitespace_after=between)
    added = [cst.Param(cst.Name(one), comma=comma) for one in names]
    if not plain[behind:] and not _has_more(params):
        added[-1] = added[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    if behind and plain:
        plain[behind - 1] = plain[behind - 1].with_changes(comma=comma)
    made = [*plain[:behind], *added, *plain[behind:]]
    return function.with_changes(params=params.with_changes(**{own: made}))


def with_last_parameters(function: Any, more: Sequence[cst.Param]) -> Any:
    """A function with further parameters that go by keyword alone."""
    params = function.params
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    star = params.star_arg
    if not isinstance(star, cst.Param | cst.ParamStar):
        star = cst.ParamStar()
    elif isinstance(star, cst.Param):
        star = star.with_changes(comma=comma)
    plain = [_comma_behind(one, comma) for one in params.params]
    keyword = [_comma_behind(one, comma) for one in params.kwonly_params]
    changed = params.with_changes(
        params=plain, star_arg=star, kwonly_params=[*keyword, *_separate(more, comma)]
    )
    return function.with_changes(params=changed)


def without_parameter(function: Any, name: str) -> Any:
    """A function without one of its parameters."""
    params = function.params
    remaining: dict[str, Any] = {
        kind: [one for one in getattr(params, kind) if one.name.value != name]
        for kind in ("params", "kwonly_params")
    }
    if not remaining["kwonly_params"] and isinstance(params.star_arg, cst.ParamStar):
        remaining["star_arg"] = cst.MaybeSentinel.DEFAULT
    return function.with_changes(params=params.with_changes(**remaining))


def _has_more(params: cst.Parameters) -> bool:
    """Whether parameters follow the positional ones."""
    return bool(params.kwonly_params or params.star_kwarg) or isinstance(params.star_arg, cst.Param)


def _comma_behind(one: cst.Param, comma: cst.Comma) -> cst.Param:
    if isinstance(one.comma, cst.Comma):
        return one if code_of(one.comma.whitespace_after) else one.with_changes(comma=comma)
    return one.with_changes(comma=comma, whitespace_after_param=cst.SimpleWhitespace(""))


def _separate(params: Sequence[cst.Param], comma: cst.Comma) -> list[cst.Param]:
    return [*(one.with_changes(comma=comma) for one in params[:-1]), *params[-1:]]
