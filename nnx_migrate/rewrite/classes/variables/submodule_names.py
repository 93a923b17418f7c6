"""Submodules asked for as variables: ``self.get_variable("params", "enc")["kernel"]``.

Linen keeps the variables of a submodule as a dict under its name, beside those of the module itself.
``nnm.get_variable``, ``nnm.has_variable`` and ``nnm.put_variable`` know the module's own variables only, and which
submodules have theirs already depends on what Linen's ``init`` has run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from nnx_migrate.constructs import layer_of
from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import (
    Item,
    ItemKind,
    names_in_dict,
    receiver_of,
    self_call,
)
from nnx_migrate.source.bindings import bindings_below
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each, has_starred, walk

RULE = "module-api"
# What flax's layers call their variables; another name may be that of a submodule.
LEAVES = frozenset(("bias", "embedding", "kernel", "mean", "scale", "var"))
ASKING = frozenset({"get_variable", "has_variable", "put_variable"})
_MAKERS = {"param": 0, "perturb": 0, "sow": 1, "variable": 1}  # where the name stands
_NUMBERED = re.compile(r"\w+_\d+")  # Dense_0, layers_0


def check_questions(cls: ClassInfo, items: Mapping[int, Item]) -> None:
    """Refuse questions for what is, or may be, a submodule; those of bases, too.

    Raises:
      Refused: at the question, or at the class where a base asks.
    """
    builds = len(cls.mro) > 1 or any(one.kind is ItemKind.SITE for one in items.values())
    for owner, name, call in _own_calls(cls):
        if name not in ASKING or name in cls.method_names:
            continue
        question = _name_of(call, 1)
        is_written = isinstance(question, ast.Constant)
        if (is_written or builds or cls.fields) and may_be_submodule(cls, call):
            raise refusal(call if owner is cls else cls.node, call)


def refusal(node: ast.AST, call: ast.Call) -> ClassRefused:
    """The refusal of a question, at ``node``."""
    name = _name_of(call, 1)
    text = "what it asks for" if name is None else ast.unparse(name)
    return ClassRefused(
        node,
        f"{text} is, or may be, the name of a submodule, whose variables Linen has there as a dict",
        "read the variable of the submodule: self.child.variables['params']['kernel']",
        RULE,
    )


def asks_child(project: Project, symbol: str | None, call: ast.Call) -> bool:
    """Whether a question to a submodule of this class may be for a submodule of that one.

    Of a class that is not known it is not, where a layer of flax has a variable of the name.
    """
    cls = project.linen.get(symbol or "")
    if cls is not None:
        return may_be_submodule(cls, call)
    layer, name = layer_of(symbol), _name_of(call, 1)
    known = LEAVES if layer is None else {*LEAVES, *layer.variables}
    return not (isinstance(name, ast.Constant) and name.value in known)


def may_be_submodule(cls: ClassInfo, call: ast.Call) -> bool:
    """Whether the name in ``self.get_variable(collection, name)`` may be that of a submodule of ``cls``.

    It is not where the class makes a variable of that name: Linen has one thing of a name.
    """
    question = _name_of(call, 1)
    if question is None:
        return True
    made = [one for one in _variable_names(cls) if one is not None]
    if any(ast.unparse(one) == ast.unparse(question) for one in made):
        return False
    if not (isinstance(question, ast.Constant) and isinstance(question.value, str)):
        return True
    name = question.value
    if any(_has_start(one) and _may_read(one, name) for one in made):
        return False
    if _NUMBERED.fullmatch(name) or any(_may_name(one, name) for one in _attributes(cls)):
        return True
    return any(one is None or _may_read(one, name) for one in _submodule_names(cls))


def _own_calls(cls: ClassInfo) -> Iterator[tuple[ClassInfo, str, ast.Call]]:
    """``self.<name>(...)`` in the methods of the class and its bases, with the class."""
    for owner in cls.mro:
        for method in owner.methods.values():
            for call in each(method, ast.Call):
                name = self_call(call, receiver_of(method))
                if name is not None:
                    yield owner, name, call


def _name_of(call: ast.Call, index: int) -> ast.expr | None:
    """The name that a call gives; None where it is not written out."""
    name = next((one.value for one in call.keywords if one.arg == "name"), None)
    if has_starred(call.args[: index + 1]):
        return None
    return call.args[index] if len(call.args) > index else name


def _variable_names(cls: ClassInfo) -> Iterator[ast.expr | None]:
    """Names of the variables that the class makes."""
    for _, name, call in _own_calls(cls):
        if name in _MAKERS:
            yield _name_of(call, _MAKERS[name])


def _attributes(cls: ClassInfo) -> Iterator[tuple[str, ast.AST | None]]:
    """Fields, and attributes that methods assign, with what they hold; Linen names submodules after both."""
    yield from ((one.name, None) for one in cls.fields)
    for method in cls.every_method:
        for target, value in bindings_below(method):
            for one in each(target, ast.Attribute):
                if isinstance(one.ctx, ast.Store):
                    yield one.attr, value


def _may_name(attribute: tuple[str, ast.AST | None], name: str) -> bool:
    """Whether a submodule that an attribute holds may have a name: ``layers`` those of a list or dict."""
    target, value = attribute
    if name == target:
        return True
    return isinstance(value, _HOLDERS) and name.startswith(f"{target}_")


_HOLDERS = (ast.Dict, ast.DictComp, ast.Call, ast.Name)


def _submodule_names(cls: ClassInfo) -> Iterator[ast.expr | None]:
    """What submodules are called by ``name=`` and ``setattr``: all in the class, and texts in its module."""
    questions = {id(call) for _, name, call in _own_calls(cls) if name in {*ASKING, *_MAKERS}}
    inside = {id(one) for owner in cls.mro for one in walk(owner.node)}
    for tree in {id(one.module): one.module.tree for one in cls.mro}.values():
        for call in each(tree, (ast.Call, ast.Dict)):
            if id(call) in questions:
                continue
            names = _names_in(call)
            yield from (one for one in names if id(call) in inside or isinstance(one, _TEXTS))


def _names_in(node: ast.AST) -> list[ast.expr]:
    """What a call or dict gives as the name of a submodule: ``Dense(3, **{"name": "enc"})``, too."""
    match node:
        case ast.Call(func=ast.Name(id="setattr"), args=[_, name, *_]):
            return [name]
        case ast.Call(keywords=keywords):
            return [one.value for one in keywords if one.arg == "name"]
        case ast.Dict():
            return names_in_dict(node)
    return []


_TEXTS = (ast.Constant, ast.JoinedStr)


def _may_read(node: ast.expr, name: str) -> bool:
    """Whether an expression may be the text ``name``."""
    match node:
        case ast.Constant(value=value):
            return bool(value == name)
        case ast.JoinedStr(values=values):
            parts = (
                re.escape(str(one.value)) if isinstance(one, ast.Constant) else ".*"
                for one in values
            )
            return re.fullmatch("".join(parts), name) is not None
        case ast.IfExp(body=body, orelse=orelse):
            return _may_read(body, name) or _may_read(orelse, name)
    return True


def _has_start(node: ast.expr) -> bool:
    """Whether the text starts as it is written: ``f"w_{i}"``."""
    return isinstance(node, ast.JoinedStr) and any(
        isinstance(one, ast.Constant) for one in node.values[:1]
    )
