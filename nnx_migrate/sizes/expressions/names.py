"""Names and attributes: locals, globals of the project, library symbols."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.values import Class, DataClass, Library, Static, Unknown, Value
from nnx_migrate.sizes.attributes import attribute_of
from nnx_migrate.sizes.decorators import decorate
from nnx_migrate.sizes.frames import Frame, Function
from nnx_migrate.source.changed_globals import changed_globals
from nnx_migrate.source.names import Assignment, Opaque, Parameter, first_name
from nnx_migrate.source.project import Scope

if TYPE_CHECKING:
    from nnx_migrate.sizes.interpreter import Interpreter


def read_name(interpreter: Interpreter, node: ast.Name, frame: Frame) -> Value:
    """Value of a name: local, global, builtin."""
    if node.id in frame.env:
        return frame.env[node.id]
    binding = frame.scope.lookup(node.id)
    if isinstance(binding, Parameter) and _reaches(interpreter, frame.scope.binder(node.id)):
        return Static(ex.name(node.id))
    if isinstance(binding, Opaque) and node.id not in frame.scope.module.table:
        return Unknown(f"{node.id} is not bound here")
    symbol = interpreter.project.resolve(node, frame.scope)
    if symbol is not None:
        return symbol_value(interpreter, symbol)
    if isinstance(binding, Assignment):
        where = frame.scope.binder(node.id)
        return global_value(interpreter, node.id, binding.value, where)
    return Library(f"builtins.{node.id}") if binding is None else Unknown("unresolved name")


def symbol_value(interpreter: Interpreter, symbol: str) -> Value:
    """Value of a resolved symbol: a class, a function, a constant, or a library name."""
    project = interpreter.project
    info = project.classes.get(symbol)
    if info is not None and info.linen:
        return Class(info)
    identifier = symbol.rpartition(".")[2]
    if info is not None:
        if changed_globals(project).may_be_other(info.module.name, identifier, also_inside=True):
            return Unknown(f"{identifier} is changed while the program runs")
        return DataClass(info)
    definition = project.definition(symbol)
    if definition is None:
        return Library(symbol)
    module, target = definition
    if isinstance(target, ast.FunctionDef):
        if changed_globals(project).may_be_other(module.name, identifier):
            return Unknown(f"{identifier} is bound anew while the program runs")
        scope = Scope(module)
        function = Function(target, scope)
        return decorate(interpreter, function, target.decorator_list, Frame(scope, {}))
    if isinstance(target, ast.expr):
        return global_value(interpreter, identifier, target, Scope(module))
    return Unknown(f"{symbol} is not modelled")


def global_value(interpreter: Interpreter, name: str, value: ast.expr, scope: Scope) -> Value:
    """A name of a module or of a function around a class: its value when known, else its name.

    ``scope`` is the one that binds it. Only what stands in the same module or function can write it.
    """
    named = Static(ex.name(name if _reaches(interpreter, scope) else f"{ex.FOREIGN}{name}"))
    changed = changed_globals(interpreter.project)
    if not scope.tables and changed.may_change(scope.module.name, name):
        return named
    result = interpreter.evaluate(value, Frame(scope, {}))
    if not isinstance(result, Static | Unknown):
        return result
    if isinstance(result, Static) and result.expr.is_constant:
        return result
    return named


def _reaches(interpreter: Interpreter, scope: Scope) -> bool:
    """Whether the root's own code can write the names that a scope binds."""
    root = interpreter.root.info
    if not scope.tables:
        return scope.module is root.module
    return any(table is scope.tables[0] for table in root.scope.tables)


def read_attribute(interpreter: Interpreter, node: ast.Attribute, frame: Frame) -> Value:
    """Value of ``base.attr``, or of the symbol the dotted name spells."""
    symbol = symbol_of_name(interpreter, node, frame)
    if symbol is not None:
        return symbol_value(interpreter, symbol)
    base = interpreter.evaluate(node.value, frame)
    return attribute_of(interpreter, base, node.attr, frame)


def symbol_of_name(interpreter: Interpreter, node: ast.Attribute, frame: Frame) -> str | None:
    """The symbol that a dotted name spells; None for attributes of values and classes."""
    head = first_name(node)
    if head is None or head.id in frame.env:
        return None
    symbol = interpreter.project.resolve(node, frame.scope)
    return symbol if symbol is not None and not _through_class(interpreter, symbol) else None


def _through_class(interpreter: Interpreter, symbol: str) -> bool:
    """Whether a symbol reads an attribute of a project class or constant."""
    owner = symbol.rpartition(".")[0]
    if symbol in interpreter.project.classes:
        return False
    return owner in interpreter.project.classes or (
        interpreter.project.definition(owner) is not None
    )
