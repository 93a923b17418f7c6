"""Fields of explicit classes that code out of sight may give a module: ``build(Net, head=nn.Dense(3))``."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from nnx_migrate.rewrite.attempt import Attempt
from nnx_migrate.rewrite.outside.module_flow import may_take_module, unseen_takers
from nnx_migrate.rewrite.outside.places import Place
from nnx_migrate.rewrite.proof.doubt import Doubt
from nnx_migrate.rewrite.proof.handed_modules import handed_modules
from nnx_migrate.rewrite.proof.reading import said
from nnx_migrate.source.classes import ClassInfo, positional_fields
from nnx_migrate.source.project import Module, Project

At = tuple[str, int]  # path and line


@dataclass
class FieldModules:
    """What the code of a project, read file by file, gives to calls that it cannot see through.

    Attributes:
      words: keywords and strings.
      positions: of arguments that may be modules or build them; None for any position.
      modules: keywords and positions of arguments that may hold a module which is already built.
    """

    project: Project
    attempt: Attempt
    classes: Sequence[ClassInfo]
    words: dict[str, At] = field(default_factory=dict)
    positions: dict[int | None, At] = field(default_factory=dict)
    modules: dict[str | int, At] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.open = [one for one in self.classes if one.name in self.attempt.values]
        self.holding = [one for one in self.open if self.attempt.modules_in[one.name]]

    def read(self, module: Module, places: Sequence[Place]) -> None:
        """Note what the code of one file gives."""
        for node in (one.node for one in places if id(one.node) not in self.attempt.checked):
            for word in said(node) if not isinstance(node, ast.Attribute) else ():
                self.words.setdefault(word, (module.path, getattr(node, "lineno", 1)))
        for position, call in handed_modules(self.project, places) if self.holding else ():
            self.positions.setdefault(position, (module.path, call.lineno))
        calls = ((one.node, one.scope) for one in places if isinstance(one.node, ast.Call))
        for key, call in unseen_takers(self.project, calls):
            self.modules.setdefault(key, (module.path, call.lineno))

    def doubts(self) -> Iterator[tuple[str, Doubt]]:
        """Classes that may be given modules they cannot take, by keyword or position."""
        for cls in self.holding:
            for name in sorted(self.attempt.modules_in[cls.name]):
                position = positional_fields(cls).get(name)
                at = self.words.get(name)
                if at is None and position is not None:
                    at = self.positions.get(None) or self.positions.get(position)
                if at is not None:
                    yield cls.name, Doubt(*at, f"{name} may be given a module here")
        for cls in self.classes if self.modules else ():
            positions = positional_fields(cls) if cls in self.open else {}
            for name in (one.name for one in cls.fields):
                at = self.modules.get(name) or self.modules.get("")
                at = at or self.modules.get(positions.get(name, -1))
                if at is not None and may_take_module(cls, name):
                    yield cls.name, Doubt(*at, f"{name} may be given a module here")
