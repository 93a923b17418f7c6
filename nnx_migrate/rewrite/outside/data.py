"""What converting the code around the classes needs to know and what it gives back."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from nnx_migrate.edit.rendering import Replacement
from nnx_migrate.model import Outcome, SizeArgument
from nnx_migrate.rewrite.classes.checks.lazy_module_fields import LazyModuleFields
from nnx_migrate.rewrite.classes.data import ConvertedFunction
from nnx_migrate.sizes.factory_calls import FactoryFunction

Kind = Literal["reference", "constructor"]


class Unknown(Exception):
    """The lazy form of an explicit class does not carry a place, or a size of it; the message says why.

    Args:
      field: the class and field that build submodules of what they are given there.
    """

    def __init__(self, message: str, field: tuple[str, str] | None = None) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True)
class OutsideContext:
    """What is decided about the classes of the project.

    Code outside of converted classes goes on to build and call them as Linen does, each place through
    ``lazy(Class)``.

    Attributes:
      module_fields: which fields of converted classes take lazy modules, and from which they build some.
      explicit_classes: qualified names of the Linen classes that become NNX classes.
      new_arguments: the size arguments that each converted class gains.
      factories: functions that build submodules for converted classes only.
      scope_functions: functions that build and call submodules of converted classes only.
      explicit_statements: ids of top-level statements that belong to converted classes (`owned_statements`).
      modules_in: fields of converted classes that hold modules, classes or what builds them.
      open_in: those that hold classes in either form.
      skip: ids of class statements that are not looked into: converted ones, and those that stay.
      keep_classes: ids of class statements that the user keeps as they are.
    """

    module_fields: LazyModuleFields
    explicit_classes: frozenset[str] = frozenset()
    new_arguments: Mapping[str, tuple[SizeArgument, ...]] = field(default_factory=dict)
    factories: tuple[FactoryFunction, ...] = ()
    scope_functions: tuple[ConvertedFunction, ...] = ()
    explicit_statements: frozenset[int] = frozenset()
    modules_in: Mapping[str, frozenset[str]] = field(default_factory=dict)
    open_in: Mapping[str, frozenset[str]] = field(default_factory=dict)
    skip: frozenset[int] = frozenset()
    keep_classes: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Remark:
    """One remark about one place outside the classes."""

    node: ast.AST
    rule: str
    outcome: Outcome
    message: str
    kind: Kind


@dataclass(frozen=True)
class DoubtfulPlace:
    """A place that cannot take the lazy form of an explicit class, and why."""

    cls: str
    node: ast.AST
    reason: str
    field: tuple[str, str] | None = None


@dataclass(frozen=True)
class OutsideResult:
    """Edits (node ``id`` -> replacement), keys of ``IMPORTS`` they need, and remarks.

    ``lazy`` are the ids of edited nodes that take the lazy form of a class, ``plain`` those of names
    that mean the same function or type in both libraries.
    """

    edits: Mapping[int, Replacement] = field(default_factory=dict)
    imports: frozenset[str] = frozenset()
    findings: tuple[Remark, ...] = ()
    lazy: frozenset[int] = frozenset()
    plain: frozenset[int] = frozenset()
    doubts: tuple[DoubtfulPlace, ...] = ()
    values: frozenset[str] = frozenset()  # lazy classes that are used as values
    mentions: frozenset[str] = frozenset()  # lazy classes that are named at all
    taking: frozenset[str] = frozenset()  # lazy classes that are given modules
    inherits: bool = False  # whether a class inherits from the lazy module beside explicit bases
    explicit: frozenset[int] = frozenset()  # ids of names of classes that explicit code reads


@dataclass
class Draft:
    """An ``OutsideResult`` in the making."""

    edits: dict[int, Replacement] = field(default_factory=dict)
    imports: set[str] = field(default_factory=set)
    findings: list[Remark] = field(default_factory=list)
    lazy: set[int] = field(default_factory=set)
    plain: set[int] = field(default_factory=set)
    doubts: list[DoubtfulPlace] = field(default_factory=list)
    values: set[str] = field(default_factory=set)
    mentions: set[str] = field(default_factory=set)
    taking: set[str] = field(default_factory=set)
    inherits: bool = False
    explicit: set[int] = field(default_factory=set)

    def refuse(self, node: ast.AST, rule: str, message: str) -> None:
        """Leave a reference as it is and say why."""
        self.findings.append(Remark(node, rule, Outcome.REFUSED, message, "reference"))

    def note(self, node: ast.AST, rule: str, message: str, kind: Kind) -> None:
        """Say what to know about something rewritten."""
        self.findings.append(Remark(node, rule, Outcome.REWRITTEN, message, kind))

    def result(self) -> OutsideResult:
        """The finished result, remarks in the order of their places."""
        ordered = sorted(self.findings, key=lambda one: _place(one.node))
        return OutsideResult(
            dict(self.edits),
            frozenset(self.imports),
            tuple(ordered),
            frozenset(self.lazy),
            frozenset(self.plain),
            tuple(self.doubts),
            frozenset(self.values),
            frozenset(self.mentions),
            frozenset(self.taking),
            self.inherits,
            frozenset(self.explicit),
        )


def _place(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
