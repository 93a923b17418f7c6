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


@dataclass
class FieldModules:
    """What the code of a project, read file by file, gives to calls that it cannot see through.

    Attributes:
      modules: keywords and positions of arguments that may hold a module which is already built; "" for any.
      makers: those of arguments that may hold a module, or build one.
    """

    project: Project
    attempt: Attempt
    classes: Sequence[ClassInfo]
    modules: dict[str | int, At] = field(default_factory=dict)
    makers: dict[str | int, At] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.open = frozenset(one.name for one in self.classes if one.name in self.attempt.values)
        self.has_holders = any(self.attempt.modules_in[name] for name in self.open)

    def read(self, module: Module, places: Sequence[Place]) -> None:
        """Note what the code of one file gives."""
        calls = [(one.node, one.scope) for one in places if isinstance(one.node, ast.Call)]
        for key, call in unseen_takers(self.project, calls):
            self.modules.setdefault(key, (module.path, call.lineno))
        for key, call in unseen_takers(
            self.project, calls if self.has_holders else (), or_maker=True
        ):
            self.makers.setdefault(key, (module.path, call.lineno))

    def doubts(self) -> Iterator[tuple[str, Doubt]]:
        """Classes that may be given modules they cannot take, by keyword or position."""
        for cls in self.classes if self.modules or self.makers else ():
            positions = positional_fields(cls) if cls.name in self.open else {}
            for name in (one.name for one in cls.fields):
                is_holder = name in self.attempt.modules_in[cls.name]
                given = self.makers if is_holder else self.modules
                at = given.get(name) or given.get("") or given.get(positions.get(name, -1))
                if at is not None and (is_holder or may_take_module(cls, name)):
                    yield cls.name, Doubt(*at, f"{name} may be given a module here")
