"""Fields of explicit classes that code out of sight may give a module: ``build(Net, head=nn.Dense(3))``."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from nnx_migrate.rewrite.attempt import Attempt
from nnx_migrate.rewrite.outside.module_values import Kind, may_take_module, unseen_takers
from nnx_migrate.rewrite.outside.places import Place
from nnx_migrate.rewrite.proof.doubt import Doubt
from nnx_migrate.source.classes import ClassInfo, positional_fields
from nnx_migrate.source.project import Module, Project

At = tuple[str, int]  # path and line


# By kind, keywords and positions of arguments that may hold what is of it; "" for any.
Arguments = dict[Kind, dict[str | int, At]]


@dataclass
class FieldModules:
    """What the code of a project, read file by file, gives to calls that it cannot see through."""

    project: Project
    attempt: Attempt
    classes: Sequence[ClassInfo]
    arguments: Arguments = field(default_factory=lambda: {kind: {} for kind in Kind})

    def __post_init__(self) -> None:
        self.values = frozenset(one.name for one in self.classes if one.name in self.attempt.values)
        self.kinds = {Kind.MODULE}
        if any(self.attempt.modules_in[name] for name in self.values):
            self.kinds.add(Kind.MAKER)
        if any(self.attempt.open_in[one.name] for one in self.classes):
            self.kinds.add(Kind.FUNCTION)

    def read(self, module: Module, places: Sequence[Place]) -> Arguments:
        """What the code of one file gives."""
        found: Arguments = {kind: {} for kind in Kind}
        calls = [(one.node, one.scope) for one in places if isinstance(one.node, ast.Call)]
        for kind, key, call in unseen_takers(self.project, calls, self.kinds):
            found[kind].setdefault(key, (module.path, call.lineno))
        return found

    def add(self, arguments: Arguments) -> None:
        """Note what a file gives; the first that gives something is named."""
        for kind, found in arguments.items():
            for key, at in found.items():
                self.arguments[kind].setdefault(key, at)

    def doubts(self) -> Iterator[tuple[str, Doubt]]:
        """Classes that may be given modules, or functions that build some, which they cannot take."""
        for cls in self.classes if any(self.arguments.values()) else ():
            positions = positional_fields(cls) if cls.name in self.values else {}
            for name in (one.name for one in cls.fields):
                for kind in self._refused_kinds(cls, name):
                    arguments = self.arguments[kind]
                    at = (
                        arguments.get(name)
                        or arguments.get("")
                        or arguments.get(positions.get(name, -1))
                    )
                    if at is not None:
                        yield from self._doubt(cls, name, kind, at)

    def _refused_kinds(self, cls: ClassInfo, name: str) -> Iterator[Kind]:
        """What a field does not take of code out of sight."""
        if name in self.attempt.modules_in[cls.name]:
            yield Kind.MAKER
        elif may_take_module(cls, name):
            yield Kind.MODULE
        if name in self.attempt.open_in[cls.name]:
            yield Kind.FUNCTION

    def _doubt(self, cls: ClassInfo, name: str, kind: Kind, at: At) -> Iterator[tuple[str, Doubt]]:
        what = "a function that builds modules" if kind is Kind.FUNCTION else "a module"
        module_fields = self.attempt.module_fields if kind is Kind.MAKER else None
        if module_fields is not None and not module_fields.why_not((cls.name, name)):
            return
        is_built = module_fields is not None and (cls.name, name) in module_fields.builder_sizes
        field = (cls.name, name) if is_built else None
        yield cls.name, Doubt(*at, f"{name} may be given {what} here", field)
