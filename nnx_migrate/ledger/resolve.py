"""What a name or dotted expression refers to, through imports, aliases and re-exports.

An alias is a name bound to a plain name or dotted expression. A name with several bindings (a
conditional import, a rebinding) refers to all of them: a place that *may* be Linen is counted.
"""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass

from nnx_migrate.ledger.project import Project
from nnx_migrate.ledger.scope_data import Binding, Scope, Unit

Taints = dict[str, frozenset[str]]  # module -> its globals that may have to do with flax

LINEN = "flax.linen"
_BUILTINS = frozenset(dir(builtins))


@dataclass(frozen=True)
class Symbol:
    """A name outside the project; ``module`` when it is known to be an imported module."""

    name: str
    module: bool = False


@dataclass(frozen=True)
class ModuleValue:
    """A module or package of the project."""

    name: str


@dataclass(frozen=True)
class Definition:
    """A class or function of the project."""

    scope: Scope


@dataclass(frozen=True)
class Unknown:
    """Anything."""


Target = Symbol | ModuleValue | Definition | Unknown
Targets = frozenset[Target]
UNKNOWN = Unknown()
NOTHING: Targets = frozenset()


def under(name: str, package: str) -> bool:
    """Whether a dotted name is a package or below it."""
    return name == package or name.startswith(package + ".")


def is_linen(target: object) -> bool:
    """Whether a target is ``flax.linen`` or below."""
    return isinstance(target, Symbol) and under(target.name, LINEN)


class Resolver:
    """Looks names up in one project."""

    def __init__(self, project: Project, taints: Taints) -> None:
        self.project = project
        self.taints = taints
        self._known: dict[int, Targets] = {}
        self._open: set[object] = set()
        # In a circle of imports an answer lacks what is still open: it is for this question only.
        self._partial: dict[object, Targets] = {}
        self._cuts = 0

    def resolve(self, node: ast.expr, scope: Scope) -> Targets:
        """All that a name or dotted expression may refer to."""
        attributes: list[str] = []
        while isinstance(node, ast.Attribute):
            attributes.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return frozenset({UNKNOWN})
        targets = self.name(node, scope)
        for attribute in reversed(attributes):
            targets = frozenset(
                found for target in targets for found in self.attribute(target, attribute)
            )
        return targets

    def name(self, node: ast.Name, scope: Scope) -> Targets:
        """All that a loaded name may refer to."""
        bindings, beyond = lookup(node, scope)
        found = frozenset(target for binding in bindings for target in self.binding(binding))
        return found | self.unbound(node.id, scope.unit) if beyond else found

    def unbound(self, name: str, unit: Unit) -> Targets:
        """A name no scope binds: a star import's, a builtin, or unknown."""
        found = self.star_targets(name, unit)
        if found:
            return found
        return frozenset({Symbol(f"builtins.{name}") if name in _BUILTINS else UNKNOWN})

    def star_targets(self, name: str, unit: Unit) -> Targets:
        """What the module's star imports may have bound a name to, each module they lead to read once."""
        key = ("*", unit.module, name)
        if not self._enter(key):
            return NOTHING
        found: set[Target] = set()
        visited, todo = {unit.module}, [unit]
        while todo:
            one = todo.pop()
            for star in one.stars:
                module = self.project.locate(star.target, one.module)
                if self.project.has(module):
                    source = None if module in visited else self._listing(module, name)
                    visited.add(module)
                    if source is not None:
                        found |= self._own(source, name) - {UNKNOWN}
                        todo += [] if hides_stars(source, name) else [source]
                elif module and name not in _BUILTINS and not name.startswith("_"):
                    found.add(Symbol(f"{module}.{name}"))
        self._open.discard(key)
        return frozenset(found)

    def _listing(self, module: str, name: str) -> Unit | None:
        """A module, if its star import may bind the name to something of Flax's: others need no parsing."""
        tainted = self.taints.get(module, frozenset())
        listed = self.project.exports(module) if tainted & {name, "*"} else None
        return self.project.module(module) if listed and name in listed else None

    def binding(self, binding: Binding) -> Targets:
        """All that one binding may give its name."""
        key = id(binding)
        if key in self._known:
            return self._known[key]
        if not self._enter(key):
            return self._partial.get(key, NOTHING)
        cuts = self._cuts
        found = self.read(binding)
        self._open.discard(key)
        if self._cuts == cuts or not self._open:
            self._known[key] = found
        else:
            self._partial[key] = found
        return found

    def _enter(self, key: object) -> bool:
        """Open a question; False where a circle leads back to it or to what it cut short."""
        if not self._open:
            self._partial.clear()
        if key in self._open or key in self._partial:
            self._cuts += 1
            return False
        self._open.add(key)
        return True

    def read(self, binding: Binding) -> Targets:
        """One binding, not remembered."""
        unit = binding.scope.unit
        node = binding.node
        if binding.kind == "import":
            return frozenset({self.module_target(self.project.locate(binding.target, unit.module))})
        if binding.kind == "from":
            return self.imported_from(binding.target, binding.name, unit)
        if binding.kind in ("class", "function") and binding.inner is not None:
            return frozenset({Definition(binding.inner)})
        if binding.kind == "annotated" and isinstance(node, ast.AnnAssign):
            node = node.value
        if isinstance(node, ast.Constant) and node.value is None:
            return NOTHING  # the placeholder of an import that failed
        if binding.kind in ("alias", "annotated") and isinstance(node, ast.Name | ast.Attribute):
            return self.resolve(node, binding.scope)
        return frozenset({UNKNOWN})

    def module_target(self, name: str) -> Target:
        """An imported module."""
        return ModuleValue(name) if self.project.has(name) else Symbol(name, module=True)

    def imported_from(self, module: str, name: str, unit: Unit) -> Targets:
        """What ``from module import name`` binds."""
        located = self.project.locate(module, unit.module)
        if under(located, "flax"):
            return frozenset({Symbol(f"{located}.{name}")})
        if self.project.has(located):
            return self.attribute(ModuleValue(located), name)
        return frozenset({Symbol(f"{located}.{name}") if located else UNKNOWN})

    def attribute(self, target: Target, name: str) -> Targets:
        """An attribute of a target."""
        if isinstance(target, Symbol):
            return frozenset({Symbol(f"{target.name}.{name}")})
        if isinstance(target, ModuleValue):
            return self.module_attribute(target.name, name)
        if isinstance(target, Definition) and target.scope.kind == "class":
            found = target.scope.bindings.get(name, [])
            if found:
                return frozenset(one for binding in found for one in self.binding(binding))
        return frozenset({UNKNOWN})

    def module_attribute(self, module: str, name: str) -> Targets:
        """A name of a project module: its own, a star import's, or a submodule."""
        key = (module, name)
        if not self._enter(key):
            return NOTHING
        source = self.project.module(module)
        found = NOTHING if source is None else self.member(source, name) - {UNKNOWN}
        self._open.discard(key)
        if found:
            return found
        below = f"{module}.{name}"
        return frozenset({ModuleValue(below) if self.project.has(below) else UNKNOWN})

    def member(self, unit: Unit, name: str) -> Targets:
        """A global of a module, its own or through a star import; empty when it has none."""
        own = self._own(unit, name)
        return own if hides_stars(unit, name) else own | self.star_targets(name, unit)

    def _own(self, unit: Unit, name: str) -> Targets:
        own = unit.scope.bindings.get(name, [])
        return frozenset(one for binding in own for one in self.binding(binding))


def hides_stars(unit: Unit, name: str) -> bool:
    """Whether a module binds a name, whatever happens, below all of its star imports."""
    stars = max((star.end for star in unit.stars), default=(0, 0))
    return any(one.always and one.end > stars for one in unit.scope.bindings.get(name, ()))


def lookup(node: ast.Name, scope: Scope) -> tuple[list[Binding], bool]:
    """The bindings a loaded name may have, and whether it may come from beyond all scopes."""
    name = node.id
    found: list[Binding] = []
    current: Scope | None = scope
    while current is not None:
        here = current.bindings.get(name, [])
        declared = current.outer.get(name)
        skipped = current.kind == "class" and current is not scope
        if declared == "global":
            current = current.unit.scope
            here = current.bindings.get(name, [])
        if here and not skipped and declared != "nonlocal":
            if current.kind == "class":
                here, is_settled = _before(here, node)
                found += here
                if is_settled:
                    return found, False
            else:
                return [*found, *here], False
        current = current.parent
    return found, True


def _before(bindings: list[Binding], node: ast.Name) -> tuple[list[Binding], bool]:
    """A class body runs from top to bottom: only what ran before counts, else the outer scope."""
    start = (node.lineno, node.col_offset)
    ran = [
        one
        for one in bindings
        if one.end <= start and not (isinstance(one.node, ast.AnnAssign) and one.node.value is None)
    ]
    return ran, any(one.always for one in ran)
