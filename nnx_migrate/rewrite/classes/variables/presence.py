"""``self.has_variable(collection, name)``: what Linen's ``init`` answers where ``__init__`` asks, too.

At ``init`` a module has the variables that it has made so far: those of ``setup``, and what the method
itself has made, put or sown before it asks. ``__init__`` makes the first and not all of the second.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import Item, ItemKind, receiver_of, self_call
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.walking import each, has_starred, walk

RULE = "module-api"
_MAKERS = frozenset({"param", "perturb", "variable", "put_variable", "sow"})
_BUILT = frozenset({"param", "variable"})  # by the constructor
_LOOPS = (ast.For, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

Method = ast.FunctionDef


def asked_in_init(
    cls: ClassInfo, items: Mapping[int, Item], method: Method, node: ast.Call
) -> str | None:
    """The text of the question in ``__init__``; None where it stays as calls ask it.

    Raises:
      Refused: the variable may have been made by something that ``__init__`` does not run.
    """
    inside = [items[id(one)] for one in walk(method) if id(one) in items]
    if any(_makes(item, node) for item in inside):
        raise _refusal(node, "it asks for a variable that was made before, which is always there")
    owners = [one for one, call in _makers(cls, node) if _is_before(one, call, method, node)]
    if not owners:
        if any(_asks_again(one, node) for one in walk(method)):
            raise _refusal(node, "it asks twice for a variable that is made after it")
        return "False"
    if method.name == "setup" or all(one.kind is ItemKind.STREAM for one in inside):
        return None
    if all(one.name == "setup" for one in owners):
        arguments = ", ".join(ast.unparse(one) for one in (*node.args, *node.keywords))
        return f"nnm.has_variable(self, {arguments})"
    raise _refusal(node, "it asks for a variable that the call may have made before")


def is_made_later(cls: ClassInfo, method: Method, node: ast.Call) -> bool:
    """Whether a method asks for a variable that it makes afterwards, and nothing may have made before."""
    owners = [*_makers(cls, node)]
    built = any(self_call(call, receiver_of(one)) in _BUILT for one, call in owners)
    return built and not any(_is_before(one, call, method, node) for one, call in owners)


def _asks_again(one: ast.AST, node: ast.Call) -> bool:
    """Whether ``one`` is another question for the same variable, before the method makes it."""
    if (
        one is node
        or not isinstance(one, ast.Call)
        or ast.unparse(one.func) != ast.unparse(node.func)
    ):
        return False
    words, other = (_constants(call, ("col", "name")) for call in (node, one))
    return all(map(_may_equal, words, other))


def _refusal(node: ast.Call, reason: str) -> ClassRefused:
    return ClassRefused(node, reason, "leave the question out", RULE)


def _makers(cls: ClassInfo, node: ast.Call) -> Iterator[tuple[Method, ast.Call]]:
    """What may make the variable that ``node`` asks for, with the method that does."""
    words = _constants(node, ("col", "name"))
    for method in cls.every_method:
        for call in walk(method):
            name = self_call(call, receiver_of(method))
            if name is None or name not in _MAKERS:
                continue
            assert isinstance(call, ast.Call)
            made = made_by(name, call)
            if made[0] != "intermediates" and all(map(_may_equal, words, made)):
                yield method, call


def made_by(name: str, call: ast.Call) -> tuple[str | None, str | None]:
    """Collection and name of what a call makes, as far as they are written out."""
    if name == "param":
        return "params", _constants(call, ("name",))[0]
    if name == "perturb":
        given = next((one.value for one in call.keywords if one.arg == "collection"), None)
        given = call.args[2] if len(call.args) > 2 else given
        collection = "perturbations" if given is None else _constant(given)
        return collection, _constants(call, ("name",))[0]
    collection, made = _constants(call, ("col", "name"))
    return collection, made


def _constants(call: ast.Call, names: tuple[str, ...]) -> tuple[str | None, ...]:
    """The first arguments, where they are strings."""
    arguments = dict(zip(names, call.args, strict=False))
    arguments |= {one.arg: one.value for one in call.keywords if one.arg in names}
    if has_starred(call.args[: len(names)]):
        return (None,) * len(names)
    return tuple(_constant(arguments.get(name)) for name in names)


def _constant(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _may_equal(one: str | None, other: str | None) -> bool:
    return one is None or other is None or one == other


def _is_before(owner: Method, creation: ast.Call, method: Method, question: ast.Call) -> bool:
    """Whether ``creation`` may run before ``question``: elsewhere, above it, or in a loop around both."""
    if owner is not method:
        return True
    loops = (one for one in each(method, _LOOPS))
    around = any({id(creation), id(question)} <= set(map(id, walk(loop))) for loop in loops)
    return around or _place(creation) < _place(question)


def _place(node: ast.Call) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _makes(item: Item, node: ast.Call) -> bool:
    """Whether an item, made before the call asks, is the variable it asks for."""
    words = [one.value for one in node.args if isinstance(one, ast.Constant)]
    if len(words) != 2 or not isinstance(item.name, ast.Constant):
        return False
    collection = item.collection.value if isinstance(item.collection, ast.Constant) else None
    if item.kind is ItemKind.PARAM:
        collection = "params"
    return [collection, item.name.value] == words and _place(item.call) < _place(node)
