"""All functions of a project, and what is known of each of their training loops."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from nnx_migrate.rewrite.loops.kinds import (
    PLAIN,
    UNKNOWN,
    Kind,
    Recipe,
    functions_of,
    is_special,
)
from nnx_migrate.rewrite.loops.plan import Change
from nnx_migrate.source.project import Project, Scope

RESULT = "return"  # what a function gives, beside the names of its parameters


@dataclass
class Summary:
    """What is known of a function from its calls and its text.

    Attributes:
      params: what it is given, by parameter: what the last round found.
      next_params: what this round finds.
      result: what it returns: None as long as nothing is known.
      updates: parameters whose flow it updates.
      optimizers: parameters whose optimizer it needs.
      fields: fields of the state that it needs, by parameter.
      names: what module and optimizer of a parameter's flow are called in its new text.
      values: what those fields are called in its new text.
      overrides: fields that it gives other values, by parameter.
      origins: which flows of the function around it a parameter is given.
    """

    params: dict[str, Kind] = field(default_factory=dict)
    next_params: dict[str, Kind] = field(default_factory=dict)
    result: Kind | None = None
    updates: set[str] = field(default_factory=set)
    optimizers: set[str] = field(default_factory=set)
    fields: dict[str, set[str]] = field(default_factory=dict)
    names: dict[str, tuple[str, str]] = field(default_factory=dict)
    values: dict[str, dict[str, str]] = field(default_factory=dict)
    overrides: dict[str, set[str]] = field(default_factory=dict)
    origins: dict[str, set[str]] = field(default_factory=dict)

    @property
    def is_touched(self) -> bool:
        """Whether it takes or gives anything of a flow."""
        kinds = (*self.params.values(), self.result or PLAIN)
        return any(is_special(one) for one in kinds)


@dataclass(frozen=True)
class Problem:
    """Why a loop stays functional, and where."""

    path: str
    node: ast.AST
    reason: str


@dataclass
class Program:
    """All functions of a project, and what one round of reading has found of them."""

    project: Project
    summaries: dict[int, Summary] = field(default_factory=dict)
    nodes: dict[int, tuple[ast.FunctionDef, Scope]] = field(default_factory=dict)
    changes: dict[int, dict[int, Change]] = field(default_factory=dict)  # by function, by node
    problems: dict[int, list[Problem]] = field(default_factory=dict)  # by function
    # Those without what they lead to
    causes: dict[int, list[Problem]] = field(default_factory=dict)
    links: set[tuple[int, int]] = field(default_factory=set)
    creates: dict[int, list[tuple[str, ast.AST]]] = field(default_factory=dict)
    understood: set[int] = field(default_factory=set)  # ids of names that mean functions
    escapes: dict[int, Problem] = field(default_factory=dict)  # functions that others may call
    # Functions that are compiled somewhere
    compiled_functions: set[int] = field(default_factory=set)
    order_dependence: dict[int, tuple[str, ast.AST]] = field(default_factory=dict)
    whole: dict[int, tuple[str, ast.AST]] = field(default_factory=dict)  # `Flow.whole`
    aliases: set[tuple[str, str, int]] = field(default_factory=set)  # names that hold functions
    recipes: dict[Recipe, set[Recipe]] = field(default_factory=dict)  # what a parameter is built of
    bounds: dict[tuple[int, str], Kind] = field(default_factory=dict)  # what goes on changing
    rest: Kind = UNKNOWN  # what is not known to be anything else

    def begin(self) -> None:
        """Begin a round with what the last one found of functions; what it found of places goes."""
        self.changes, self.problems, self.links = {}, {}, set()
        self.creates, self.understood, self.order_dependence, self.whole = {}, set(), {}, {}
        self.aliases, self.escapes = set(), {}
        for one in self.summaries.values():
            one.params, one.next_params = one.next_params, {}

    def summary(self, function: int) -> Summary:
        """What is known of a function."""
        return self.summaries.setdefault(function, Summary())

    def every_escape(self) -> dict[int, Problem]:
        """Functions that others may call, and those that these return."""
        found, todo = dict(self.escapes), [*self.escapes]
        while todo:
            one = todo.pop()
            fresh = set(functions_of(self.summary(one).result or PLAIN)) - found.keys()
            found |= dict.fromkeys(fresh, found[one])
            todo += fresh
        return found
