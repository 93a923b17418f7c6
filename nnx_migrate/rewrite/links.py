"""Who inherits from whom and who may build whom, among the Linen classes of a project.

A class builds another one when its body names it, directly or through functions and constants of
the project that the body names, or when a constructor call of the class is handed it as a value.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from nnx_migrate.rewrite.class_values import class_value
from nnx_migrate.sizes.factories import factory_functions
from nnx_migrate.source.facts import Fact
from nnx_migrate.source.linen_modules import linen_modules
from nnx_migrate.source.names import Assignment, name_parts
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import given_values, walk


@dataclass(frozen=True)
class Links:
    """Links between the Linen classes of a project, by qualified name.

    ``builds`` are all classes that one may build; ``holds`` those of them that it has as a value
    (``nn.remat(Block)``, ``block_cls=Block``), so that it does not build them by their own name;
    ``through`` those that a class builds by other ways than calling them, factory functions or what its
    method makes of them (``block = nn.remat(Block)``).
    """

    bases: Mapping[str, tuple[str, ...]]
    builds: Mapping[str, tuple[str, ...]]
    holds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    through: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @cached_property
    def heirs(self) -> Mapping[str, Sequence[str]]:
        """The classes that inherit from each, by name."""
        return _reverse(self.bases)

    @cached_property
    def builders(self) -> Mapping[str, Sequence[str]]:
        """The classes that may build each, by name."""
        return _reverse(self.builds)


def _reverse(links: Mapping[str, Iterable[str]]) -> Mapping[str, Sequence[str]]:
    found: dict[str, list[str]] = {}
    for name, others in sorted(links.items()):
        for other in dict.fromkeys(others):
            found.setdefault(other, []).append(name)
    return found


@Fact
def links_of(project: Project) -> Links:
    """Read the links off the whole project."""
    bases = {
        name: tuple(parent.name for parent in cls.parents if parent.linen)
        for name, cls in project.linen.items()
    }
    reader = _Reader(project, {one.symbol for one in factory_functions(project).values()})
    builds: dict[str, tuple[str, ...]] = {}
    holds: dict[str, tuple[str, ...]] = {}
    through: dict[str, frozenset[str]] = {}
    arguments = reader.class_arguments()
    for name, cls in project.linen.items():
        loads = [*_loads(cls.node.body, cls.scope)]
        mentions = reader.classes(loads) | arguments.get(name, set())
        own = frozenset(map(id, walk(cls.node)))
        others = reader.classes(one for one in loads if not reader.calls_builder(one, own))
        through[name] = frozenset(one for one, _ in others | arguments.get(name, set()))
        builds[name] = tuple(sorted({one for one, _ in mentions} - {name}))
        holds[name] = tuple(sorted({one for one, as_value in mentions if as_value} - {name}))
    return Links(bases, builds, holds, through)


@dataclass(frozen=True)
class _Load:
    """A name that code reads: where, and what for."""

    scope: Scope
    node: ast.expr
    is_called: bool = False  # the function of a call
    argument_of: tuple[ast.expr, ...] = ()  # functions of the calls it is an argument of


Mention = tuple[str, bool]  # a Linen class, and whether it is used as a value


@dataclass
class _Reader:
    """Follows names to Linen classes; what each function names is found once."""

    project: Project
    functions: Collection[str]  # factory functions
    mentions: dict[int, set[Mention]] = field(default_factory=dict)

    def classes(self, loads: Iterable[_Load]) -> set[Mention]:
        """Linen classes that names lead to."""
        found: set[Mention] = set()
        for load in loads:
            found |= self._named(load)
        return found

    def calls_builder(self, load: _Load, own: Collection[int]) -> bool:
        """Whether a Linen class, what is made of it or a factory function is called there, and no more.

        So it is where what is assigned in the ``own`` nodes is read.
        """
        node = load.node
        binding = load.scope.lookup(node.id) if isinstance(node, ast.Name) else None
        if isinstance(binding, Assignment) and id(binding.value) in own:
            return True
        symbol = self.project.resolve(node, load.scope)
        if load.is_called:
            return symbol in self.project.linen or symbol in self.functions
        module = load.scope.module
        return (
            symbol in self.project.linen
            and class_value(self.project, module, load.scope, node) is not None
        )

    def _named(self, load: _Load) -> set[Mention]:
        symbol = self.project.resolve(load.node, load.scope)
        if symbol is None:
            return self._local(load)
        if symbol in self.project.linen:
            return {(symbol, not load.is_called and not self._is_handed_on(load))}
        owner = symbol.rpartition(".")[0]
        if owner in self.project.linen:  # Class.method, Class.attribute
            return {(owner, False)}
        definition = self.project.definition(symbol)
        if definition is None or isinstance(definition[1], ast.ClassDef):
            return set()
        module, target = definition
        return self._inside(Scope(module), target)

    def _is_handed_on(self, load: _Load) -> bool:
        """Whether it is an argument of a constructor: then the constructed class holds it."""
        return any(
            self.project.resolve(one, load.scope) in self.project.linen for one in load.argument_of
        )

    def _local(self, load: _Load) -> set[Mention]:
        """A local name that was assigned once: what the assigned expression names."""
        node = load.node
        binding = load.scope.lookup(node.id) if isinstance(node, ast.Name) else None
        if not isinstance(binding, Assignment):
            return set()
        return self._inside(load.scope, binding.value)

    def _inside(self, scope: Scope, target: ast.AST) -> set[Mention]:
        if id(target) not in self.mentions:
            self.mentions[id(target)] = set()  # a function that calls itself names nothing new
            self.mentions[id(target)] = self.classes(_loads([target], scope))
        return self.mentions[id(target)]

    def class_arguments(self) -> dict[str, set[Mention]]:
        """Linen classes in the arguments of constructor calls, by the constructed class."""
        found: dict[str, set[Mention]] = {}
        for name in sorted(linen_modules(self.project)):
            module = self.project.modules[name]
            for scope, call in _calls(module.tree.body, Scope(module)):
                target, arguments = call.func, given_values(call)
                if self.project.resolve(target, scope) == "functools.partial" and call.args:
                    target, *arguments = arguments
                symbol = self.project.resolve(target, scope)
                if symbol in self.project.linen:
                    found.setdefault(symbol, set()).update(self.classes(_loads(arguments, scope)))
        return found


def _loads(body: Sequence[ast.AST], scope: Scope) -> Iterator[_Load]:
    """Names that statements or expressions read, annotations left out."""
    for statement in body:
        skipped = _annotations(statement)
        todo: list[tuple[ast.AST, Scope, bool, tuple[ast.expr, ...]]] = [
            (statement, scope, False, ())
        ]
        while todo:
            node, around, called, outer = todo.pop()
            stores = isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
            if id(node) in skipped or stores:
                continue
            if isinstance(node, ast.Name | ast.Attribute) and name_parts(node):
                yield _Load(around, node, called, outer)
                continue
            of_call = isinstance(node, ast.Call)
            for child, within in around.parts(node):
                if isinstance(node, ast.Call) and child is not node.func:
                    todo.append((child, within, False, (*outer, node.func)))
                else:
                    todo.append((child, within, of_call, outer))


def _annotations(statement: ast.AST) -> set[int]:
    found: set[int] = set()
    for node in walk(statement):
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
