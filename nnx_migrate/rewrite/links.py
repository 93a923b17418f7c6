"""Who inherits from whom and who may build whom, among the Linen classes of a project.

A class builds another one when its body names it, directly or through functions and constants of
the project that the body names, or when a constructor call of the class is handed it as a value.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import Assignment, dotted
from nnx_migrate.source.project import Project, Scope

Load = tuple[Scope, ast.expr]


@dataclass(frozen=True)
class Links:
    """Links between the Linen classes of a project, by qualified name."""

    bases: Mapping[str, tuple[str, ...]]
    builds: Mapping[str, tuple[str, ...]]


def links_of(project: Project) -> Links:
    """Read the links off the whole project."""
    bases = {
        name: tuple(parent.name for parent in cls.parents if parent.linen)
        for name, cls in project.linen.items()
    }
    reader = _Reader(project)
    named = {name: reader.classes(_class_loads(cls)) for name, cls in project.linen.items()}
    for name, handed in reader.handed().items():
        named[name] |= handed
    builds = {name: tuple(sorted(found - {name})) for name, found in named.items()}
    return Links(bases, builds)


@dataclass
class _Reader:
    """Follows names to Linen classes; what each function names is found once."""

    project: Project
    done: dict[int, set[str]] = field(default_factory=dict)

    def classes(self, loads: Iterable[Load]) -> set[str]:
        """Linen classes that names lead to."""
        found: set[str] = set()
        for scope, node in loads:
            found |= self._named(scope, node)
        return found

    def _named(self, scope: Scope, node: ast.expr) -> set[str]:
        symbol = self.project.resolve(node, scope)
        if symbol is None:
            return self._local(scope, node)
        if symbol in self.project.linen:
            return {symbol}
        owner = symbol.rpartition(".")[0]
        if owner in self.project.linen:  # Class.method, Class.attribute
            return {owner}
        definition = self.project.definition(symbol)
        if definition is None or isinstance(definition[1], ast.ClassDef):
            return set()
        module, target = definition
        return self._inside(Scope(module), target)

    def _local(self, scope: Scope, node: ast.expr) -> set[str]:
        """A local name that was assigned once: what the assigned expression names."""
        binding = scope.lookup(node.id) if isinstance(node, ast.Name) else None
        return self._inside(scope, binding.value) if isinstance(binding, Assignment) else set()

    def _inside(self, scope: Scope, target: ast.AST) -> set[str]:
        if id(target) not in self.done:
            self.done[id(target)] = set()  # a function that calls itself names nothing new
            self.done[id(target)] = self.classes(_loads([target], scope))
        return self.done[id(target)]

    def handed(self) -> dict[str, set[str]]:
        """Linen classes in the arguments of constructor calls, by the constructed class."""
        found: dict[str, set[str]] = {}
        for module in self.project.modules.values():
            for scope, call in _calls(module.tree.body, Scope(module)):
                target, arguments = call.func, [*call.args, *(k.value for k in call.keywords)]
                if self.project.resolve(target, scope) == "functools.partial" and call.args:
                    target, *arguments = arguments
                symbol = self.project.resolve(target, scope)
                if symbol in self.project.linen:
                    loads = _loads(arguments, scope)
                    found.setdefault(symbol, set()).update(self.classes(loads))
        return found


def _class_loads(cls: ClassInfo) -> Iterator[Load]:
    return _loads(cls.node.body, cls.scope)


def _loads(body: Sequence[ast.AST], scope: Scope) -> Iterator[Load]:
    """Names that statements or expressions read, annotations left out."""
    for statement in body:
        inner = scope.enter(statement) if isinstance(statement, ast.FunctionDef) else scope
        skipped = _annotations(statement)
        todo: list[ast.AST] = [statement]
        while todo:
            node = todo.pop()
            if id(node) in skipped:
                continue
            if isinstance(node, ast.Name | ast.Attribute) and dotted(node):
                yield inner, node
                continue
            todo.extend(ast.iter_child_nodes(node))


def _annotations(statement: ast.AST) -> set[int]:
    found: set[int] = set()
    for node in ast.walk(statement):
        for name in ("annotation", "returns"):
            annotation = getattr(node, name, None)
            if isinstance(annotation, ast.AST):
                found.add(id(annotation))
    return found


def _calls(body: list[ast.stmt], scope: Scope) -> Iterator[tuple[Scope, ast.Call]]:
    """Every call with the scope of the function around it."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _calls(statement.body, scope.enter(statement))
        elif isinstance(statement, ast.ClassDef):
            yield from _calls(statement.body, scope)
        else:
            todo: list[ast.AST] = [statement]
            while todo:
                node = todo.pop()
                if isinstance(node, ast.Call):
                    yield scope, node
                if isinstance(node, ast.FunctionDef | ast.ClassDef):
                    yield from _calls([node], scope)
                else:
                    todo.extend(ast.iter_child_nodes(node))
