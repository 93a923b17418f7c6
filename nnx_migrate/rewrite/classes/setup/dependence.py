"""What in ``setup`` depends on the parameters and variables that the class makes.

Linen runs ``setup`` at every call, so an attribute computed from a parameter follows it. ``__init__``
runs once: the same attribute would keep the value of the first parameters, and get no gradient.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from functools import lru_cache

from nnx_migrate.rewrite.classes.items import receiver_of, self_call
from nnx_migrate.rewrite.classes.reading.evaluation import free_names
from nnx_migrate.source.bindings import bindings_below
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.walking import each, is_name, names_in

STATIC = frozenset({"shape", "ndim", "size", "dtype"})  # the same for every value of a variable
MAKERS = frozenset({"param", "variable"})
_FUNCTIONS = (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Dependence:
    """Local names and attributes (methods too) whose value depends on a variable.

    Attributes:
      makers: the methods that make the variables in question.
      exempt: calls of these that do not count, by id.
    """

    receiver: str
    local: frozenset[str] = frozenset()
    attributes: frozenset[str] = frozenset()
    makers: frozenset[str] = MAKERS
    exempt: frozenset[int] = frozenset()

    def makes(self, node: ast.AST) -> bool:
        """Whether it is a call of one of the makers."""
        return self_call(node, self.receiver) in self.makers and id(node) not in self.exempt

    def of(self, node: ast.AST) -> bool:
        """Whether evaluating ``node`` reads a variable; what a function reads when called aside."""
        if self.makes(node):
            return True
        match node:
            case ast.Attribute(attr=attr) if attr in STATIC:
                return False
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == self.receiver:
                return attr in self.attributes
            case ast.Name(id=name, ctx=ast.Load()):
                return name in self.local
        if isinstance(node, _FUNCTIONS):
            return bool(free_names(node) & self.local)
        return any(self.of(child) for child in ast.iter_child_nodes(node))


@lru_cache(maxsize=1 << 12)  # the conversion and several checks ask of the same setup
def dependence_in(
    cls: ClassInfo, method: ast.FunctionDef, base_dependence: Dependence | None = None
) -> Dependence:
    """What depends on variables at the end of ``method`` (``setup``), wherever it was bound.

    Args:
      base_dependence: what depends on them where ``method`` begins.
    """
    receiver = receiver_of(method)
    found = base_dependence or Dependence(receiver)
    found = replace(found, attributes=found.attributes | _base_attributes(cls, method, found))
    while True:
        local, attributes = set(found.local), set(found.attributes)
        for target, value in bindings_below(method):
            if found.of(value):
                names, attrs = bound(target, receiver)
                local |= names
                attributes |= attrs
        for name, other in ((n, m) for one in cls.mro for n, m in one.methods.items()):
            own = replace(
                found,
                receiver=receiver_of(other),
                local=frozenset(),
                attributes=frozenset(attributes),
            )
            if other is not method and any(own.of(statement) for statement in other.body):
                attributes.add(name)
        grown = replace(found, local=frozenset(local), attributes=frozenset(attributes))
        if grown == found:
            return found
        found = grown


def _base_attributes(
    cls: ClassInfo, method: ast.FunctionDef, base_dependence: Dependence
) -> frozenset[str]:
    """Attributes that the ``setup`` of base classes computes from variables."""
    names: set[str] = set()
    for base in cls.mro:
        other = base.methods.get("setup")
        if other is not None and other is not method and base is not cls:
            begun = replace(
                base_dependence,
                receiver=receiver_of(other),
                local=frozenset(),
                attributes=frozenset(),
            )
            names |= dependence_in(base, other, begun).attributes
    return frozenset(names)


def bound(target: ast.AST, receiver: str) -> tuple[set[str], set[str]]:
    """Local names and attributes that a target changes, ``d[k]`` and ``self.d[k]`` included."""
    names = names_in(target) - {receiver}
    attributes = {one.attr for one in each(target, ast.Attribute) if is_name(one.value, receiver)}
    return names, attributes
