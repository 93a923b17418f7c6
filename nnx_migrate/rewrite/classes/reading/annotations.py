"""What annotations say of a value, as they are written."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from contextlib import suppress

CHOICES = ("Optional", "Union")
_FROZEN = ("Sequence", "sequence", "List", "list", "Iterable", "Mapping", "Dict", "dict")
_PLAIN = frozenset({"bool", "bytes", "int", "str"})
_ARRAYS = frozenset({"Array", "ArrayLike", "ndarray"})
_TUPLES = ("Tuple", "tuple")


def is_container(annotation: ast.expr) -> bool:
    """Whether Linen may freeze the value: lists become tuples, dicts FrozenDicts."""
    return _names_one_of(annotation, _FROZEN)


def is_tuple(annotation: ast.expr) -> bool:
    """Whether the annotation is a tuple."""
    return _names_one_of(annotation, _TUPLES)


def without_quotes(annotation: ast.expr) -> ast.expr:
    """The type that an annotation in quotes names."""
    match annotation:
        case ast.Constant(value=str() as text):
            with suppress(SyntaxError):
                return ast.parse(text, mode="eval").body
    return annotation


def alternatives(
    annotation: ast.expr, choices: Collection[str] = CHOICES
) -> Iterator[ast.Name | ast.Attribute | ast.Subscript]:
    """The types that an annotation names, or each side of an optional or a union.

    Args:
      choices: words that stand in front of several types: ``Optional[nn.Module]``.
    """
    annotation = without_quotes(annotation)
    match annotation:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            yield from alternatives(left, choices)
            yield from alternatives(right, choices)
        case ast.Subscript(value=head, slice=inside) if last_word(head) in choices:
            for part in inside.elts if isinstance(inside, ast.Tuple) else [inside]:
                yield from alternatives(part, choices)
        case ast.Subscript() | ast.Name() | ast.Attribute():
            yield annotation


def _names_one_of(annotation: ast.expr, heads: tuple[str, ...]) -> bool:
    """Whether an annotation, or one side of an optional or a union, is one of these types."""
    found = (
        one.value if isinstance(one, ast.Subscript) else one for one in alternatives(annotation)
    )
    return any(last_word(one) in heads for one in found)


def last_word(head: ast.expr) -> str:
    """The last word of a dotted name: ``Optional`` of ``typing.Optional``."""
    return ast.unparse(head).rpartition(".")[2]


def may_hold_arrays(annotation: ast.expr) -> bool:
    """Whether items of a container may be arrays: not those of ``Sequence[int]``."""
    annotation = without_quotes(annotation)
    match annotation:
        case ast.Constant(value=value):
            return isinstance(value, str)  # that is no type
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return may_hold_arrays(left) or may_hold_arrays(right)
        case ast.Subscript(slice=ast.Tuple(elts=parts)):
            return any(map(may_hold_arrays, parts))
        case ast.Subscript(slice=inside):
            return may_hold_arrays(inside)
        case ast.Name(id=name):
            return name not in _PLAIN
    return True


def is_array(annotation: ast.expr) -> bool:
    """Whether a type is one of arrays: ``jax.Array``, ``Optional[jnp.ndarray]``."""
    return not _ARRAYS.isdisjoint(words_of(annotation))


def words_of(annotation: ast.expr) -> set[str]:
    """The words of a type, also in quotes."""
    return set(re.findall(r"\w+", ast.unparse(annotation)))
