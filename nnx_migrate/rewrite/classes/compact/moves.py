"""What moves from constructors to the calls of what they build."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from nnx_migrate.rewrite.classes.data import ClassRefused

RULE = "call-time-argument"


def refusal(node: ast.AST, reason: str) -> ClassRefused:
    """Why an argument cannot move."""
    return ClassRefused(node, reason, "pass the argument where the layer is called", RULE)


@dataclass
class Moves:
    """What moves.

    Attributes:
      values: ids of the keyword values that leave a constructor.
      partials: calls of ``partial`` that lose keywords, by id.
      calls: keywords that a call gains, by id of the call.
      views: keywords under which a built submodule is called, by id of its constructor call.
      per_call_fields: fields that a built submodule gets at the call, by id of its constructor call.
    """

    values: set[int] = field(default_factory=set)
    partials: dict[int, ast.Call] = field(default_factory=dict)
    calls: dict[int, list[ast.keyword]] = field(default_factory=dict)
    views: dict[int, list[ast.keyword]] = field(default_factory=dict)
    per_call_fields: dict[int, Mapping[str, ast.expr]] = field(default_factory=dict)

    def view(self, constructor: ast.Call, keywords: Iterable[ast.keyword]) -> None:
        """Call what a constructor call builds under keywords; several partials may give it one and the same.

        Raises:
          Refused: two of them give it different values.
        """
        views = self.views.setdefault(id(constructor), [])
        texts = {one.arg: ast.unparse(one.value) for one in views}
        for one in keywords:
            if texts.setdefault(one.arg, ast.unparse(one.value)) != ast.unparse(one.value):
                raise refusal(constructor, f"it is handed partials with two values for {one.arg}")
            if all(one.arg != other.arg for other in views):
                views.append(one)

    @property
    def late_values(self) -> set[int]:
        """Ids of the values of late fields, in whose place the constructor gets None."""
        return {id(value) for fields in self.per_call_fields.values() for value in fields.values()}
