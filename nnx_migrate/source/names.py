"""What a dotted name in a file refers to: import tables, scopes, re-exports.

A *symbol* is a canonical dotted name: ``flax.linen.Dense``, ``package.module.Class``,
``jax.numpy.concatenate``. Names are resolved by what they are bound to, never by spelling.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, count

from nnx_migrate.source.bindings import names_bound_at
from nnx_migrate.source.walking import each, walk

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

# Private modules of flax.linen whose public names flax.linen re-exports (flax 0.12.8).
_LINEN_PARTS = frozenset(
    "activation attention batch_apply combinators dtypes fp8_ops kw_only_dataclasses linear module "  # noqa: SIM905
    "normalization pooling recurrent spmd stochastic summary transforms".split()
)


@dataclass(frozen=True)
class Import:
    """A name bound by an import statement to a dotted target."""

    target: str


@dataclass(frozen=True)
class Definition:
    """A name bound by a class or function definition."""

    node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Assignment:
    """A name bound by ``name = value``."""

    value: ast.expr


@dataclass(frozen=True)
class Opaque:
    """A name bound in a way nobody follows: parameter, loop target, several bindings, ..."""


@dataclass(frozen=True)
class Parameter(Opaque):
    """A parameter that its function, and what stands in it, never binds again."""


@dataclass(frozen=True)
class Mutation(Opaque):
    """A name of which an item or attribute is set: ``config.width = 3``. That binds no name."""


@dataclass(frozen=True)
class Several(Opaque):
    """A name with several bindings: ``nn`` is ``flax.linen``, or ``None`` where flax is missing."""

    bindings: tuple[Binding, ...]

    @classmethod
    def of(cls, *bindings: Binding) -> Several:
        """One of the bindings, or of those that they stand for."""
        each = (one.bindings if isinstance(one, Several) else (one,) for one in bindings)
        return cls(tuple(chain.from_iterable(each)))


Binding = Import | Definition | Assignment | Opaque
Table = dict[str, Binding]


def canonical(name: str) -> str:
    """``flax.linen.linear.Dense`` -> ``flax.linen.Dense``; other names unchanged."""
    parts = name.split(".")
    if parts[:2] == ["nnx_migrate", "linen"]:  # lazy code: the same names on NNX modules
        parts = ["flax", *parts[1:]]
        name = ".".join(parts)
    if parts[:2] == ["flax", "linen"] and len(parts) > 3 and parts[2] in _LINEN_PARTS:
        return ".".join(["flax", "linen", *parts[3:]])
    if parts[:4] == ["jax", "_src", "nn", "initializers"]:
        return ".".join(["jax", "nn", "initializers", *parts[4:]])
    return name


def relative_target(package: str, level: int, module: str | None) -> str:
    """Absolute module that ``from ..module import`` names inside ``package``."""
    if level == 0:
        return module or ""
    parts = package.split(".") if package else []
    base = parts[: len(parts) - (level - 1)]
    return ".".join([*base, *([module] if module else [])])


def table_of(body: list[ast.stmt], package: str) -> tuple[Table, tuple[str, ...]]:
    """Bindings that ``body`` makes in its own scope, and the modules it star-imports.

    Statements inside if/try/with/for of the same scope count. A name bound twice to different
    things is Opaque, but a later import inside try/except of the same last component is kept.
    """
    table: Table = {}
    stars: list[str] = []
    bindings = list(_bindings(body, package, stars))
    defined = Counter(name for name, binding in bindings if isinstance(binding, Definition))
    changing = [name for name, count in defined.items() if count > 1]
    for name, binding in bindings:
        known = table.get(name)
        if isinstance(known, Import) and isinstance(binding, Mutation):
            continue  # the name still stands for what was imported
        if known is None or (_agree(known, binding) and not _mentions(binding, changing)):
            table.setdefault(name, binding)
        else:
            table[name] = Several.of(known, binding)
    return table, tuple(stars)


def rebound(tree: ast.Module, package: str) -> Table:
    """Names of a module that functions declare ``global``, and what these bind them to."""
    nodes = walk(tree)
    found: Table = {}
    if not any(isinstance(node, ast.Global) for node in nodes):
        return found
    for function in nodes:
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            declared = [node for node in _own_nodes(function) if isinstance(node, ast.Global)]
            table = table_of(function.body, package)[0] if declared else {}
            for name in (name for node in declared for name in node.names):
                binding = table.get(name, Opaque())
                found[name] = Several.of(found.get(name, Opaque()), binding)
    return found


def _agree(first: Binding, second: Binding) -> bool:
    if isinstance(first, Assignment) and isinstance(second, Assignment):
        return ast.dump(first.value) == ast.dump(second.value)
    return first == second


def _mentions(binding: Binding, names: list[str]) -> bool:
    """Whether an assigned value reads one of ``names``, and so may be another at every place."""
    value = binding.value if isinstance(binding, Assignment) else None
    read = walk(value) if value is not None and names else ()
    return any(isinstance(node, ast.Name) and node.id in names for node in read)


def _bindings(
    body: list[ast.stmt], package: str, stars: list[str]
) -> Iterator[tuple[str, Binding]]:
    for statement in body:
        yield from _statement_bindings(statement, package, stars)
        for block in _blocks(statement):
            yield from _bindings(block, package, stars)


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return
    for name in ("body", "orelse", "finalbody"):
        yield getattr(statement, name, [])
    for handler in getattr(statement, "handlers", []):
        yield handler.body
    for case in getattr(statement, "cases", []):
        yield case.body


def _statement_bindings(
    statement: ast.stmt, package: str, stars: list[str]
) -> Iterator[tuple[str, Binding]]:
    match statement:
        case ast.Import() | ast.ImportFrom():
            for bound, target in imported_names(statement, package):
                if bound == "*":
                    stars.append(target)
                else:
                    yield bound, Import(target)
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name, Definition(statement)
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            yield name, Assignment(value)
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield name, Assignment(value)
        case _:
            for one in _other_targets(statement):
                yield one.id, Mutation() if isinstance(one.ctx, ast.Load) else Opaque()
            if isinstance(statement, ast.Try | ast.TryStar):
                yield from ((one.name, Opaque()) for one in statement.handlers if one.name)
            for case in statement.cases if isinstance(statement, ast.Match) else ():
                names = (name for one in walk(case.pattern) for name in names_bound_at(one))
                yield from ((name, Opaque()) for name in names)


def imported_names(
    statement: ast.Import | ast.ImportFrom, package: str
) -> Iterator[tuple[str, str]]:
    """Each name that an import binds, and what it stands for: ``("nn", "flax.linen")``.

    The name of ``from .layers import *`` is ``*``, and stands for the module.
    """
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            bound = alias.asname or alias.name.partition(".")[0]
            yield bound, alias.name if alias.asname else bound
        return
    owner = relative_target(package, statement.level, statement.module)
    for alias in statement.names:
        target = owner if alias.name == "*" else f"{owner}.{alias.name}".lstrip(".")
        yield alias.asname or alias.name, target


def _other_targets(statement: ast.stmt) -> Iterator[ast.Name]:
    targets: list[ast.expr] = []
    match statement:
        case ast.Assign(targets=many):
            targets = list(many)
        case ast.AugAssign(target=one) | ast.For(target=one) | ast.AsyncFor(target=one):
            targets = [one]
        case ast.With(items=items) | ast.AsyncWith(items=items):
            targets = [item.optional_vars for item in items if item.optional_vars]
        case ast.Delete(targets=many):
            targets = list(many)
    for target in targets:
        yield from each(target, ast.Name)


def positional_names(spec: ast.arguments) -> list[str]:
    """The parameters that a call may give by position, in order."""
    return [one.arg for one in (*spec.posonlyargs, *spec.args)]


def named_parameters(spec: ast.arguments) -> list[ast.arg]:
    """The parameters but ``*args`` and ``**kwargs``, in order."""
    return [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]


def defaults_of(spec: ast.arguments) -> Mapping[str, ast.expr]:
    """Defaults by parameter."""
    positional = positional_names(spec)
    required = len(positional) - len(spec.defaults)
    found = dict(zip(positional[required:], spec.defaults, strict=True))
    pairs = zip(spec.kwonlyargs, spec.kw_defaults, strict=True)
    return found | {one.arg: default for one, default in pairs if default is not None}


def parameter_names(function: FunctionNode) -> tuple[str, ...]:
    """Every parameter of a function, in order."""
    arguments = function.args
    every = named_parameters(arguments)
    every += [one for one in (arguments.vararg, arguments.kwarg) if one]
    return tuple(one.arg for one in every)


@lru_cache(maxsize=1 << 16)  # size inference enters the same functions thousands of times
def function_table(function: FunctionNode, package: str) -> Table:
    """Bindings of a function's own scope; what nested functions bind too is Opaque."""
    body = [] if isinstance(function, ast.Lambda) else function.body
    table, _ = table_of(body, package)
    for name in parameter_names(function):
        table[name] = Opaque() if name in table else Parameter()
    table = {name: one for name, one in table.items() if not isinstance(one, Mutation)}
    special = each(function, _REBINDING)
    for node in special:
        if isinstance(node, ast.Nonlocal):
            table.update({name: Opaque() for name in node.names if name in table})
    for inner in _own_nodes(function) if special else ():
        if isinstance(inner, ast.NamedExpr):
            table[inner.target.id] = Opaque()
        if isinstance(inner, ast.Global):
            for name in inner.names:
                table.pop(name, None)
    return table


_REBINDING = (ast.Nonlocal, ast.NamedExpr, ast.Global)


def _own_nodes(function: FunctionNode) -> Iterator[ast.AST]:
    """Nodes of a function without those of functions and classes inside it."""
    body = [function.body] if isinstance(function, ast.Lambda) else function.body
    todo: list[ast.AST] = list(body)
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            todo.extend(ast.iter_child_nodes(node))


def name_parts(expression: ast.expr) -> tuple[str, ...] | None:
    """``a.b.c`` as ("a", "b", "c"); None for anything else."""
    parts: list[str] = []
    while isinstance(expression, ast.Attribute):
        parts.append(expression.attr)
        expression = expression.value
    if not isinstance(expression, ast.Name):
        return None
    return (expression.id, *reversed(parts))


def unused_name(stem: str, used_names: Container[str]) -> str:
    """The first of ``stem``, ``stem_2``, ``stem_3`` that is not taken."""
    numbered = (f"{stem}_{number}" for number in count(2))
    return next(one for one in chain([stem], numbered) if one not in used_names)


def names_in_text(text: str) -> set[str]:
    """The names in an expression that is text: ``x`` and ``len`` of ``"len(x)"``."""
    return {one.id for one in each(ast.parse(text, mode="eval"), ast.Name)}


def root_name(node: ast.expr) -> str:
    """The ``a`` of ``a[0].b``; empty for anything else."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def last_name(expression: ast.expr) -> str:
    """The ``c`` of ``a.b.c``; empty for anything but a name."""
    match expression:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def first_name(expression: ast.expr) -> ast.Name | None:
    """The ``a`` of ``a.b.c``; None for anything else."""
    while isinstance(expression, ast.Attribute):
        expression = expression.value
    return expression if isinstance(expression, ast.Name) else None
