"""One finished run of the interpreter over a class."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from nnx_migrate.abstract.values import Instance, Value
from nnx_migrate.model import SizeArgument
from nnx_migrate.sizes.evidence import ClassEvidence
from nnx_migrate.sizes.interpreter import Interpreter
from nnx_migrate.sizes.result import ClassSizes, Elsewhere, Origin, Untold
from nnx_migrate.source.walking import walk

INPUT = re.compile(r"\bsize__\w+")


@dataclass
class ClassAnalysis:
    """One finished run of the interpreter over a class."""

    interpreter: Interpreter
    root: Instance
    output: Value
    sizes_of: Callable[[str], ClassSizes]
    exports_out_features: bool
    evidence: ClassEvidence | None = None
    shapes: frozenset[str] = frozenset()  # call parameters whose whole shape becomes an argument
    opaque: dict[str, SizeArgument] = field(default_factory=dict)
    problems: list[tuple[ast.AST, str]] = field(default_factory=list)
    unpassable_facts: list[tuple[str, str]] = field(default_factory=list)
    untold: list[Untold] = field(default_factory=list)
    elsewhere: list[Elsewhere] = field(default_factory=list)
    absent: set[int] = field(default_factory=set)  # constructor calls; see `Site.is_absent`
    lazy: set[int] = field(default_factory=set)  # constructor calls; see `Site.is_lazy`
    optional: set[str] = field(default_factory=set)
    required_sizes: set[str] = field(default_factory=set)
    # Sizes at a loop's start that no place shows
    unplaced_sizes: set[str] = field(default_factory=set)
    origins: dict[tuple[int, str], Origin] = field(default_factory=dict)
    # Carried sizes that start as recorded.

    @property
    def nodes(self) -> list[ast.ClassDef]:
        """Class statements whose code the class runs."""
        return [cls.node for cls in self.root.info.mro]

    @cached_property
    def nodes_by_id(self) -> Mapping[int, ast.AST]:
        """All nodes of these statements."""
        return {id(node): node for cls in self.nodes for node in walk(cls)}
