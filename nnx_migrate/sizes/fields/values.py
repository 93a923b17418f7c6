"""The values that an expression may have, as far as a project shows: constants, lambdas, functions.

``Inner(act=ACTS[self.kind])`` may give any value of ``ACTS``, ``Inner(act=get_act(name))`` what ``get_act``
returns, and ``Inner(act=config.act)`` what anything gives an attribute of that name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from nnx_migrate.sizes.annotations import annotated_symbol
from nnx_migrate.sizes.fields.attributes import given_attributes
from nnx_migrate.sizes.fields.constructor_arguments import field_arguments
from nnx_migrate.sizes.fields.literals import bindings_at, numbers_of_range, parts_of
from nnx_migrate.source.bindings import target_names
from nnx_migrate.source.names import (
    Assignment,
    Definition,
    Several,
    defaults_of,
    last_name,
    parameter_names,
    positional_names,
)
from nnx_migrate.source.project import Module, Project, Scope
from nnx_migrate.source.walking import callee_of, each, walk

Found = tuple[ast.expr | ast.FunctionDef, Scope]
_TAKING = frozenset({"get", "pop", "setdefault"})
# What these give is, or has, what they are given.
_THROUGH = frozenset(
    {"array", "asarray", "enumerate", "list", "reversed", "sorted", "tuple", "zip"}
)
_ARRAYS = frozenset({"arange", "full", "linspace", "ones", "zeros"})
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def possible_values(
    project: Project, node: ast.expr, scope: Scope, around: ast.ClassDef | None
) -> Iterator[Found]:
    """The constants, lambdas, and functions of the project and of libraries that an expression may be.

    Lists, tuples, dicts and arithmetic are values themselves; what is taken out of a list may be any of its elements. ``around`` is
    the class whose fields ``self.act`` means: they hold their defaults, or what constructor calls give them.
    """
    return _Search(project).values(node, scope, around)


def given_to_parameter(
    project: Project, module: Module, function: _Function, name: str
) -> Iterator[tuple[ast.expr, Scope, ast.ClassDef | None]]:
    """The default of a parameter, and what the calls of a function of that name give it."""
    around = module.parents.class_of(function)
    default = defaults_of(function.args).get(name)
    if default is not None:
        yield default, Scope(module).around(function), None
    names = positional_names(function.args)
    word = function.name
    if around is not None:
        names = names[1:]
        word = around.name if word == "__init__" else word
    for home in project.modules.values():
        for use in home.by_word.get(word, ()):
            call = home.parents.of(use)
            if not isinstance(call, ast.Call) or call.func is not use:
                continue
            values = [v for n, v in zip(names, call.args, strict=False) if n == name]
            values += [one.value for one in call.keywords if one.arg == name]
            for one in values:
                yield one, Scope(home).around(call), home.parents.class_of(call)


@dataclass
class _Search:
    project: Project
    _nodes: dict[int, ast.expr] = field(default_factory=dict)  # by id; they are kept for theirs

    def values(
        self, node: ast.expr, scope: Scope, around: ast.ClassDef | None = None
    ) -> Iterator[Found]:
        """The values that an expression may have."""
        if id(node) in self._nodes:
            return
        self._nodes[id(node)] = node
        match node:
            case ast.Lambda() | ast.Constant() | ast.UnaryOp() | ast.BinOp():
                yield node, scope
            case ast.Attribute(value=ast.Name(id="self"), attr=name) if around is not None:
                yield from self._of_field(name, around)
            case ast.Name() | ast.Attribute():
                yield from self._named(node, scope, around)
            case ast.IfExp(body=body, orelse=orelse):
                yield from self._any((body, orelse), scope, around)
            case ast.BoolOp(values=parts):
                yield from self._any(parts, scope, around)
            case ast.Tuple() | ast.List() | ast.Dict() | ast.Call(func=ast.Name(id="dict")):
                yield node, scope
            case ast.Starred(value=part):
                yield from self.values(part, scope, around)
            case ast.Subscript(value=table):
                yield from self._entries(table, scope, around)
            case ast.Call():
                yield from self._of_call(node, scope, around)

    def _any(
        self, parts: Iterable[ast.expr], scope: Scope, around: ast.ClassDef | None
    ) -> Iterator[Found]:
        for one in parts:
            yield from self.values(one, scope, around)

    def _of_call(
        self, node: ast.Call, scope: Scope, around: ast.ClassDef | None
    ) -> Iterator[Found]:
        """What a call may give."""
        match node:
            case ast.Call(func=ast.Attribute(value=table, attr=method), args=args) if (
                method in _TAKING
            ):
                yield from self._entries(table, scope, around)
                yield from self._any(args[1:], scope, around)
            case ast.Call(func=ast.Name(id="getattr"), args=[owner, name, *others]):
                for one, _ in [*self.values(name, scope, around)]:
                    if isinstance(one, ast.Constant) and isinstance(one.value, str):
                        member = ast.Attribute(owner, one.value, ast.Load())
                        yield from self.values(ast.copy_location(member, node), scope, around)
                yield from self._any(others, scope, around)
            case ast.Call(func=function, args=args) if last_name(function) in _THROUGH:
                yield from self._any(args, scope, around)
            case ast.Call(func=ast.Name(id="range"), args=bounds):
                yield numbers_of_range(bounds), scope
            case ast.Call(func=function) if last_name(function) in _ARRAYS:
                yield node, scope
            case ast.Call(func=function) if last_name(function) == "partial":
                yield node, scope
            case ast.Call(func=function, keywords=keywords) if last_name(function) == "field":
                for keyword in keywords:
                    value = keyword.value
                    if keyword.arg == "default_factory" and isinstance(value, ast.Lambda):
                        value = value.body
                    yield from self.values(value, scope, around)
            case ast.Call(func=function):
                yield from self._of_callee(node, function, scope)

    def _of_field(self, name: str, around: ast.ClassDef) -> Iterator[Found]:
        """What a field of the class around a call may hold."""
        cls = self.project.by_node.get(id(around))
        if cls is None:
            return
        for value, scope, other in field_arguments(self.project).get((cls.name, name), ()):
            yield from self.values(value, scope, other)
        for heir in self.project.linen.values():
            for one in heir.fields if cls in heir.mro else ():
                if one.name == name and one.default is not None:
                    yield from self.values(one.default, one.owner.scope)

    def _of_attribute(self, node: ast.Attribute, around: ast.ClassDef | None) -> Iterator[Found]:
        """What anything gives an attribute of that name, or objects of the class that a field's annotation names."""
        classes = self._classes(node.value, around)
        for value, module in given_attributes(self.project, node.attr, classes):
            scope, cls = Scope(module).around(value), module.parents.class_of(value)
            yield from self.values(value, scope, cls)

    def _classes(self, owner: ast.expr, around: ast.ClassDef | None) -> frozenset[str]:
        """The names of the project's class that ``self.config`` is of, and of its bases; none where unknown."""
        cls = self.project.by_node.get(id(around))
        if cls is None or not isinstance(owner, ast.Attribute):
            return frozenset()
        found = cls.field(owner.attr)
        symbol = annotated_symbol(self.project, found) if found is not None else ""
        config = self.project.classes.get(symbol)
        if config is not None:
            return frozenset(one.node.name for one in config.mro)
        # A file of the same package that has nothing to do with Linen is not read.
        package, _, _ = cls.module.name.partition(".")
        is_own = symbol.startswith(f"{package}.")
        return frozenset({symbol.rpartition(".")[2]}) if is_own else frozenset()

    def _named(
        self, node: ast.Name | ast.Attribute, scope: Scope, around: ast.ClassDef | None
    ) -> Iterator[Found]:
        symbol = self.project.resolve(node, scope)
        binding = scope.lookup(node.id) if isinstance(node, ast.Name) else None
        if isinstance(binding, Definition) and self.project.definition(symbol or "") is None:
            if isinstance(binding.node, ast.FunctionDef):
                yield binding.node, scope
            return
        if symbol is None:
            values = binding.bindings if isinstance(binding, Several) else (binding,)
            known = [one.value for one in values if isinstance(one, Assignment)]
            yield from self._any(known, scope, around)
            if isinstance(node, ast.Attribute):
                yield from self._of_attribute(node, around)
            elif len(known) < len(values):
                yield from self._bound(node, scope, around)
            return
        home, _ = self.project.split(symbol)
        definition = self.project.definition(symbol)
        if home is None or (definition is not None and isinstance(definition[1], ast.FunctionDef)):
            yield node, scope
        elif definition is not None and isinstance(definition[1], ast.expr):
            yield from self.values(definition[1], Scope(definition[0]))
        elif definition is None and isinstance(node, ast.Attribute):
            yield from self._of_attribute(node, around)

    def _bound(self, node: ast.Name, scope: Scope, around: ast.ClassDef | None) -> Iterator[Found]:
        """What a variable that is bound several times, by a loop or as a parameter, may hold."""
        module, name = scope.module, node.id
        for function in (*module.parents.functions(node), module.tree):
            if not isinstance(function, ast.Module) and name in parameter_names(function):
                yield from self._of_parameter(module, function, name)
            cls, is_bound = module.parents.class_of(node) or around, False
            for one in walk(function):
                for target, value in bindings_at(one):
                    if name not in target_names(target):
                        continue
                    is_bound = True
                    if isinstance(one, ast.For | ast.comprehension):
                        yield from self._item(name, target, value, scope, cls)
                    else:
                        yield from self._part(name, target, self.values(value, scope, cls))
            if is_bound:
                return

    def _item(
        self, name: str, target: ast.expr, through: ast.expr, scope: Scope, cls: ast.ClassDef | None
    ) -> Iterator[Found]:
        """What a name of a loop's target is bound to, of the items that the loop goes through."""
        match target, through:
            case ast.Tuple(elts=[_, inner]), ast.Call(
                func=ast.Name(id="enumerate"), args=[one, *_]
            ):
                if name in target_names(inner):
                    yield from self._item(name, inner, one, scope, cls)
            case ast.Tuple(elts=parts), ast.Call(func=ast.Name(id="zip"), args=args):
                for part, one in zip(parts, args, strict=False):
                    if name in target_names(part):
                        yield from self._item(name, part, one, scope, cls)
            case _:
                yield from self._part(name, target, self._elements(through, scope, cls))

    def _part(self, name: str, target: ast.expr, values: Iterator[Found]) -> Iterator[Found]:
        """What a name gets where a value is taken apart: of a tuple the part at its place."""
        if not isinstance(target, ast.Tuple | ast.List):
            yield from values
            return
        for value, scope in [*values]:
            if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
                for part, one in zip(target.elts, value.elts, strict=True):
                    if name in target_names(part):
                        yield from self._part(name, part, self.values(one, scope))

    def _elements(
        self, node: ast.expr, scope: Scope, around: ast.ClassDef | None
    ) -> Iterator[Found]:
        """What lists and tuples hold that an expression may be."""
        for value, where in [*self.values(node, scope, around)]:
            if isinstance(value, ast.Tuple | ast.List):
                yield from self._any(value.elts, where, around)

    def _of_parameter(self, module: Module, function: ast.AST, name: str) -> Iterator[Found]:
        """What calls give a parameter of a function of that name, and its default."""
        if isinstance(function, _Function):
            for value, scope, around in given_to_parameter(self.project, module, function, name):
                yield from self.values(value, scope, around)

    def _entries(
        self, table: ast.expr, scope: Scope, around: ast.ClassDef | None
    ) -> Iterator[Found]:
        """The values of a table that an expression names or is, with those that are put into it later."""
        symbol = self.project.resolve(table, scope)
        definition = self.project.definition(symbol) if symbol is not None else None
        where, value = scope, table
        if definition is not None and isinstance(definition[1], ast.expr):
            where, value = Scope(definition[0]), definition[1]
        elif isinstance(table, ast.Name):
            match scope.lookup(table.id):
                case Assignment(value=content):
                    value = content
                case Several(bindings=bindings):
                    every = [one.value for one in bindings if isinstance(one, Assignment)]
                    value = every[0] if every else table
        yield from self._any(parts_of(value), where, None)
        if value is table and isinstance(table, ast.Attribute):
            yield from self._elements(table, scope, around)
        if word := last_name(table):
            yield from self._put(word)

    def _put(self, table: str) -> Iterator[Found]:
        """What code puts into a table of that name: by an entry, or by a decorator that does."""
        for module in self.project.modules.values():
            for node in module.by_word.get(table, ()):
                entry = module.parents.of(node)
                put = module.parents.of(entry) if isinstance(entry, ast.Subscript) else None
                if not isinstance(put, ast.Assign) or entry not in put.targets:
                    continue
                scope = Scope(module).around(put)
                yield from self.values(put.value, scope)
                for function in module.parents.functions(put):
                    if isinstance(function, _Function):
                        yield from self._of_decorators(function.name)

    def _of_decorators(self, decorator: str) -> Iterator[Found]:
        for module in self.project.modules.values():
            for node in each(module.tree, ast.FunctionDef) if decorator in module.text else ():
                for one in node.decorator_list:
                    called = callee_of(one)
                    if last_name(called) == decorator:
                        yield node, Scope(module).around(node)

    def _of_callee(self, call: ast.Call, function: ast.expr, scope: Scope) -> Iterator[Found]:
        """What a function of the project returns, or an object of a class of it as the call that makes it."""
        found = self.project.definition(self.project.resolve(function, scope) or "")
        if found is not None and isinstance(found[1], ast.ClassDef):
            yield call, scope
        if found is None or not isinstance(found[1], ast.FunctionDef):
            return
        module: Module = found[0]
        for one in module.parents.returns(found[1]):
            if one.value is not None:
                yield from self.values(one.value, Scope(module).around(one))
