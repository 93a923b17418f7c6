"""Size arguments of a converted class, read off the arguments of a Linen call."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from nnx_migrate.abstract.expression import DTYPE
from nnx_migrate.model import SizeArgument
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.walking import walk

Resolve = Callable[[ast.expr], str | None]

# Functions whose result's shape is an argument: its position, and its keyword.
_SHAPED = {
    **{f"jax.numpy.{name}": 0 for name in ("ones", "zeros", "empty", "full")},
    **{f"numpy.{name}": 0 for name in ("ones", "zeros", "empty", "full")},
    **{f"jax.random.{name}": 1 for name in ("normal", "uniform", "randint", "bernoulli")},
    "jax.ShapeDtypeStruct": 0,
}
_PURE_PACKAGES = ("jax.numpy.", "jax.random.", "numpy.")
_PURE = (
    ast.Name
    | ast.Constant
    | ast.Attribute
    | ast.Subscript
    | ast.Slice
    | ast.UnaryOp
    | ast.BinOp
    | ast.Compare
    | ast.Tuple
    | ast.List
    | ast.Dict
    | ast.operator
    | ast.unaryop
    | ast.cmpop
    | ast.expr_context
    | ast.keyword
)


class Unknown(Exception):
    """A size or key that the call does not show; the message says which and why."""


@dataclass(frozen=True)
class Sizes:
    """Keyword arguments as texts, and the expressions they read."""

    texts: Mapping[str, str] = field(default_factory=dict)
    reads: tuple[ast.expr, ...] = ()


def sizes_of_call(
    cls: ClassInfo,
    wanted: tuple[SizeArgument, ...],
    method: str | None,
    args: list[ast.expr],
    keywords: list[ast.keyword],
    resolve: Resolve,
) -> Sizes:
    """The sizes ``wanted`` by ``cls``, from the arguments of a call of ``method``.

    Raises:
      Unknown: a size cannot be read off the call.
    """
    given = _bound(cls, method, args, keywords)
    texts: dict[str, str] = {}
    reads: list[ast.expr] = []
    for one in wanted:
        value = given.get(one.argument or "") if one.method == method else None
        if one.fact is not None and one.method == method:
            if value is not None or one.default is None:
                texts[one.name] = _fact(one, value, resolve)
            reads += [value] if isinstance(value, ast.Name) else []
            continue
        if value is None or one.submodule is not None:
            if one.optional:
                continue
            source = f"{one.method}'s {one.argument}" if one.argument else one.submodule
            source = source or "its submodules by name"
            raise Unknown(f"the size {one.name} (of {source}) does not show in this call")
        texts[one.name] = dimension(value, one.axis, resolve)
        reads.append(value)
    return Sizes(texts, tuple(reads))


def _fact(one: SizeArgument, value: ast.expr | None, resolve: Resolve) -> str:
    """Text of a fact of the initial call.

    Raises:
      Unknown: the call does not show it.
    """
    if one.fact == DTYPE:
        if isinstance(value, ast.Name):
            return f"{value.id}.dtype"
        raise Unknown(f"the dtype of {one.argument} does not show in this call")
    given = one.fact == "given"
    match value:
        case ast.Constant(value=known):
            return repr(known is not None if given else bool(known))
        case ast.Call() if given and (resolve(value.func) or "").startswith(_PURE_PACKAGES):
            return "True"
        case ast.Name():
            return f"{value.id} is not None" if given else f"bool({value.id})"
    what = "is given" if given else "is true"
    raise Unknown(
        f"whether {one.argument} {what} in Linen's initial call does not show in this call"
    )


def _bound(
    cls: ClassInfo, method: str | None, args: list[ast.expr], keywords: list[ast.keyword]
) -> dict[str, ast.expr]:
    found = cls.find(method) if method else None
    if found is None:
        return {}
    spec = found[1].args
    names = [one.arg for one in (*spec.posonlyargs, *spec.args)][1:]
    given: dict[str, ast.expr] = {}
    for name, value in zip(names, args, strict=False):
        if isinstance(value, ast.Starred):
            break
        given[name] = value
    return given | {one.arg: one.value for one in keywords if one.arg is not None}


def dimension(value: ast.expr, axis: int | None, resolve: Resolve) -> str:
    """Text of one dimension of an array expression (``axis`` None: of its whole shape).

    Raises:
      Unknown: the expression is neither a name or item nor of evident shape.
    """
    if isinstance(value, ast.Call):
        return _evident(value, axis, resolve)
    if _is_chain(value):
        text = f"{ast.unparse(value)}.shape"
        return text if axis is None else f"{text}[{axis}]"
    raise Unknown(f"the shape of {ast.unparse(value)} is not evident; give it a name")


def _is_chain(value: ast.expr) -> bool:
    while isinstance(value, ast.Attribute | ast.Subscript):
        if isinstance(value, ast.Subscript) and not is_pure(value.slice, lambda _: None):
            return False
        value = value.value
    return isinstance(value, ast.Name)


def _evident(call: ast.Call, axis: int | None, resolve: Resolve) -> str:
    position = _SHAPED.get(resolve(call.func) or "")
    named = [one.value for one in call.keywords if one.arg == "shape"]
    shape = named[0] if named else None
    if shape is None and position is not None and len(call.args) > position:
        shape = call.args[position]
    if position is None or shape is None or not is_pure(shape, resolve):
        raise Unknown(f"the shape of {ast.unparse(call)} is not evident; give it a name")
    if axis is None:
        return ast.unparse(shape)
    if isinstance(shape, ast.Tuple | ast.List):
        starred = any(isinstance(one, ast.Starred) for one in shape.elts)
        if starred or not -len(shape.elts) <= axis < len(shape.elts):
            raise Unknown(f"axis {axis} of {ast.unparse(shape)} is not evident")
        return ast.unparse(shape.elts[axis])
    if isinstance(shape, ast.Constant):
        return ast.unparse(shape)
    if isinstance(shape, ast.Name | ast.Attribute):
        return f"{ast.unparse(shape)}[{axis}]"
    raise Unknown(f"axis {axis} of {ast.unparse(shape)} is not evident")


def is_pure(value: ast.AST, resolve: Resolve) -> bool:
    """Whether evaluating an expression elsewhere, or not at all, changes nothing."""
    for node in walk(value):
        if isinstance(node, ast.Call):
            symbol = resolve(node.func) or ""
            if not symbol.startswith(_PURE_PACKAGES):
                return False
        elif not isinstance(node, _PURE):
            return False
    return True
