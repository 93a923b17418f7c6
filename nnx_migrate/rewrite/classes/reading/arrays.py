"""Attributes of ``setup`` that may hold arrays.

Linen runs ``setup`` at every call, so an array it makes is part of the program. An array attribute
of an NNX module is state instead, and one made while tracing is taken for a static value, which
leaks the tracer (flax 0.12.8). Such an attribute becomes a read-only property that computes it
where it is read, as Linen does.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from nnx_migrate.edit.expressions import Expression
from nnx_migrate.edit.rendering import Renderer
from nnx_migrate.edit.statements import on_one_line
from nnx_migrate.edit.walking import names_in
from nnx_migrate.rewrite.classes.reading.attributes import Attribute, Kind
from nnx_migrate.rewrite.classes.reading.evaluation import free_names
from nnx_migrate.source.bindings import bound_names, names_bound_below, target_names
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import is_name, walk

_ARRAYS = ("jax.numpy.", "numpy.", "jax.lax.", "jax.random.", "jax.nn.", "jax.scipy.", "jax.")
_NOT_ARRAYS = ("jax.nn.initializers.", "jax.numpy.dtype", "jax.numpy.finfo", "numpy.dtype")
_DEPTH = 10


Locals = Mapping[str, Sequence[ast.expr]]


def local_values(method: ast.FunctionDef) -> Locals:
    """Expressions whose values the local names of a method may hold, or parts of these."""
    found: dict[str, list[ast.expr]] = {}
    for node in walk(method):
        match node:
            case ast.Assign(targets=targets, value=value):
                pass
            case (
                ast.AnnAssign(target=target, value=ast.expr() as value)
                | ast.AugAssign(target=target, value=value)
                | ast.For(target=target, iter=value)
                | ast.comprehension(target=target, iter=value)
                | ast.withitem(optional_vars=ast.expr() as target, context_expr=value)
            ):
                targets = [target]
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name)), args=args):
                found.setdefault(name, []).extend(args)  # ``tables.append(value)``
                continue
            case _:
                continue
        for name in (name for target in targets for name in _targets(target)):
            found.setdefault(name, []).append(value)
    return found


def _targets(target: ast.expr) -> Iterator[str]:
    """Names that an assignment binds, or puts an item into."""
    yield from target_names(target)
    if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
        yield target.value.id


def may_be_array(
    project: Project, scope: Scope, value: ast.expr, local: Locals = MappingProxyType({})
) -> bool:
    """Whether evaluating ``value`` calls something that may return an array.

    ``2 * freq`` does, where the ``local`` name ``freq`` holds ``jnp.arange(4)``.
    """
    todo, visited = [value], set[str]()
    while todo:
        one = todo.pop()
        if isinstance(one, ast.Lambda):
            continue
        for node in walk(one):
            if isinstance(node, ast.Call) and _returns_array(project, scope, node):
                return True
            if isinstance(node, ast.Name) and node.id not in visited:
                visited.add(node.id)
                todo += local.get(node.id, ())
    return False


def _returns_array(project: Project, scope: Scope, call: ast.Call) -> bool:
    symbol = project.resolve(call.func, scope)
    if symbol is None:
        return False
    if symbol.startswith(_NOT_ARRAYS):
        return False
    if symbol.startswith(_ARRAYS):
        return True
    if symbol.startswith("flax.linen.make_") or symbol == "flax.linen.combine_masks":
        return True
    return project.function(symbol) is not None


@dataclass(frozen=True)
class Inliner:
    """Writes values of ``setup`` as expressions over ``self`` and globals.

    Args:
      unknown: names that only ``__init__`` knows (size arguments, rngs).
      mutated_names: gives the locals whose values change in place.
      variable_reads: what reads a variable, by the id of the call that makes it.
    """

    method: ast.FunctionDef
    unknown: frozenset[str]
    mutated_names: Callable[[], Collection[str]]
    variable_reads: Mapping[int, Expression] = field(default_factory=dict)

    def edits(
        self, value: ast.expr, renderer: Renderer, depth: int = _DEPTH
    ) -> Mapping[int, Expression] | None:
        """Edits that replace the local names in ``value``; None when that is not possible."""
        local = names_bound_below(self.method) - {"self"}
        read = free_names(value, {call: frozenset() for call in self.variable_reads})
        if read & self.unknown or depth == 0:
            return None
        edits: dict[int, Expression] = {
            id(one): self.variable_reads[id(one)] for one in self._variables(value)
        }
        for name in read & local:
            bound = self._bound(name, value)
            if bound is None:
                return None
            inner = self.edits(bound, renderer, depth - 1)
            if inner is None:
                return None
            made = on_one_line(renderer.with_edits(inner).render(bound))
            for node in walk(value):
                if is_name(node, name):
                    edits[id(node)] = made
        return edits

    def _variables(self, value: ast.expr) -> list[ast.AST]:
        return [node for node in walk(value) if id(node) in self.variable_reads]

    def _bound(self, name: str, reader: ast.expr) -> ast.expr | None:
        """What a local name holds where ``reader`` reads it: its last value at the top level."""
        if name in self.mutated_names():
            return None
        body = self.method.body
        place = next(i for i, one in enumerate(body) if _contains(one, reader))
        if not isinstance(body[place], _SIMPLE) and name in set(bound_names(body[place])):
            return None
        for statement in reversed(body[:place]):
            if name in set(bound_names(statement)):
                return _value_for(name, statement)
        return None


_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)


def _contains(statement: ast.stmt, node: ast.AST) -> bool:
    return any(one is node for one in walk(statement))


def _value_for(name: str, statement: ast.stmt) -> ast.expr | None:
    """The value that ``name = value`` or ``name, other = value, more`` gives a name."""
    match statement:
        case ast.Assign(targets=[ast.Name()], value=value):
            return value
        case ast.AnnAssign(target=ast.Name(), value=ast.expr() as value):
            return value
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(
            targets
        ) == len(values):
            names = [one.id if isinstance(one, ast.Name) else None for one in targets]
            return values[names.index(name)] if names.count(name) == 1 else None
        case _:
            return None


def property_value(inliner: Inliner, value: ast.expr, renderer: Renderer) -> Expression | None:
    """The expression of the property, or None when it needs what only ``__init__`` has."""
    edits = inliner.edits(value, renderer)
    if edits is None:
        return None
    found: Expression = renderer.with_edits(edits).render(value)
    return None if names_in(found) & inliner.unknown else found


def assigned_once(attributes: list[Attribute], one: Attribute) -> bool:
    """Whether nothing else is ever assigned to the attribute, and it is a statement of its own."""
    same = [other for other in attributes if other.name == one.name]
    return len(same) == 1 and is_alone(one)


def is_alone(one: Attribute) -> bool:
    """Whether a statement of its own computes what the attribute holds."""
    return (
        one.kind in (Kind.PLAIN, Kind.COMPUTED)
        and isinstance(one.statement, ast.Assign)
        and one.statement.targets == [one.target]
    )
