"""Fields of explicit classes that code out of sight may give a module: ``build(Net, head=nn.Dense(3))``."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from nnx_migrate.rewrite.attempt import Attempt
from nnx_migrate.rewrite.outside.module_values import may_take_module, unseen_takers
from nnx_migrate.rewrite.outside.places import Place
from nnx_migrate.rewrite.proof.doubt import Doubt
from nnx_migrate.source.classes import ClassInfo, positional_fields
from nnx_migrate.source.project import Module, Project

At = tuple[str, int]  # path and line


@dataclass(frozen=True)
class Arguments:
    """What code gives to calls that it cannot see through.

    Attributes:
      modules: keywords and positions of arguments that may hold a module which is already built; "" for any.
      makers: those of arguments that may hold a module, or build one.
    """

    modules: dict[str | int, At] = field(default_factory=dict)
    makers: dict[str | int, At] = field(default_factory=dict)


@dataclass
class FieldModules:
    """What the code of a project, read file by file, gives."""

    project: Project
    attempt: Attempt
    classes: Sequence[ClassInfo]
    arguments: Arguments = field(default_factory=Arguments)

    def __post_init__(self) -> None:
        self.open = frozenset(one.name for one in self.classes if one.name in self.attempt.values)
        self.has_holders = any(self.attempt.modules_in[name] for name in self.open)

    def read(self, module: Module, places: Sequence[Place]) -> Arguments:
        """What the code of one file gives."""
        found = Arguments()
        calls = [(one.node, one.scope) for one in places if isinstance(one.node, ast.Call)]
        for key, call in unseen_takers(self.project, calls):
            found.modules.setdefault(key, (module.path, call.lineno))
        for key, call in unseen_takers(
            self.project, calls if self.has_holders else (), or_maker=True
        ):
            found.makers.setdefault(key, (module.path, call.lineno))
        return found

    def add(self, given: Arguments) -> None:
        """Note what a file gives; the first that gives something is named."""
        for key, at in given.modules.items():
            self.arguments.modules.setdefault(key, at)
        for key, at in given.makers.items():
            self.arguments.makers.setdefault(key, at)

    def doubts(self) -> Iterator[tuple[str, Doubt]]:
        """Classes that may be given modules they cannot take, by keyword or position."""
        modules, makers = self.arguments.modules, self.arguments.makers
        for cls in self.classes if modules or makers else ():
            positions = positional_fields(cls) if cls.name in self.open else {}
            for name in (one.name for one in cls.fields):
                is_holder = name in self.attempt.modules_in[cls.name]
                given = makers if is_holder else modules
                at = given.get(name) or given.get("") or given.get(positions.get(name, -1))
                if at is None or not (is_holder or may_take_module(cls, name)):
                    continue
                handed = self.attempt.handed if is_holder else None
                if handed is None or handed.why_not((cls.name, name)):
                    yield cls.name, Doubt(*at, f"{name} may be given a module here")
