"""Linen's own methods on ``self`` or a submodule: what each becomes in calls and in ``__init__``."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from nnx_migrate.edit.calls import Argument, call, named
from nnx_migrate.edit.expressions import Expression
from nnx_migrate.edit.rendering import Renderer, Replacement
from nnx_migrate.rewrite.classes.data import Refused
from nnx_migrate.rewrite.classes.items import is_attribute_name, receiver_of
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import walk

RULE = "module-api"


def carried_call(name: str, node: ast.Call, *more: Argument) -> Replacement:
    """``self.sow("losses", "l2", x)`` as ``nnm.sow(self, "losses", "l2", x)``; ``more`` comes last."""
    assert isinstance(node.func, ast.Attribute)
    owner = node.func.value

    def make(renderer: Renderer) -> Expression:
        given = [*map(renderer.argument, node.args), *map(renderer.keyword, node.keywords)]
        return call(f"nnm.{name}", renderer.render(owner), *given, *more, unit=renderer.unit)

    return make


def handed_method(name: str, node: ast.Attribute) -> Replacement:
    """``self.sow`` as a value."""
    return lambda renderer: call("functools.partial", f"nnm.{name}", renderer.render(node.value))


def mutable_in_init(node: ast.Call) -> str:
    """What ``self.is_mutable_collection(...)`` is in Linen's ``init``, as ``__init__`` may ask it.

    Raises:
      Refused: what it is depends on more than the class' fields.
    """
    match node.args:
        case [ast.Constant(value=collection)]:
            return str(collection != "intermediates")
        case [ast.Attribute(value=ast.Name(id="self")) as field]:
            return f"({ast.unparse(field)} != 'intermediates')"
    raise Refused(
        node,
        "the collection is neither a string nor a field",
        "write it as a string",
        RULE,
    )


@dataclass(frozen=True)
class Draws:
    """Finds the streams that a function draws from when it is handed ``self.make_rng``."""

    project: Project
    scope: Scope

    def of(self, method: ast.FunctionDef, node: ast.Attribute) -> tuple[str, ...]:
        """Names of the streams.

        Raises:
          Refused: they are not written out in a function of the project.
        """
        for one in walk(method):
            if isinstance(one, ast.Call):
                for name, value in self._given(one):
                    if value is node:
                        return self._drawn(one, name, node)
        raise self._unknown(node)

    def _given(self, made: ast.Call) -> Iterator[tuple[str, ast.expr]]:
        """Parameters of the called function of the project, and what each is given."""
        function = self._function(made)
        if function is None:
            return
        arguments = function.args
        names = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
        yield from zip(names, made.args, strict=False)
        yield from ((one.arg, one.value) for one in made.keywords if one.arg is not None)

    def _function(self, made: ast.Call) -> ast.FunctionDef | None:
        return self.project.function(self.project.resolve(made.func, self.scope))

    def _drawn(self, made: ast.Call, parameter: str, node: ast.Attribute) -> tuple[str, ...]:
        function = self._function(made)
        assert function is not None
        calls = {id(one.func): one for one in walk(function) if isinstance(one, ast.Call)}
        found: list[str] = []
        for one in walk(function):
            if not (isinstance(one, ast.Name) and one.id == parameter):
                continue
            drawn = calls.get(id(one))
            match drawn.args if drawn is not None else None:
                case []:
                    found.append("params")
                case [ast.Constant(value=str(name))] if is_attribute_name(name):
                    found.append(name)
                case _:
                    raise self._unknown(node)
        if not found:
            raise self._unknown(node)
        return tuple(dict.fromkeys(found))

    def _unknown(self, node: ast.Attribute) -> Refused:
        return Refused(
            node,
            "self.make_rng is handed on, and which streams are drawn from is not written out",
            'hand on the key: self.make_rng("noise")',
            RULE,
        )


def drawing(
    names: tuple[str, ...], attribute: Callable[[str], str], method: ast.FunctionDef
) -> Expression:
    """``self.make_rng`` as a value that draws from the module's own streams."""
    receiver = receiver_of(method)
    given = [named(name, f"{receiver}.{attribute(name)}") for name in names]
    return call("nnm.drawing", *given)
