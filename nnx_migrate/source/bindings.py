"""Which names a piece of code binds, and which values its assignments pair with which targets."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from nnx_migrate.source.walking import Comprehension, children, each, has_starred, walk

# Methods of a list or dict after which it holds other things.
CHANGES = frozenset(
    {"append", "extend", "insert", "setdefault", "update"}
)  # what fills a container


def target_names(target: ast.AST) -> Iterator[str]:
    """Names that assigning to ``target`` binds."""
    for node in walk(target):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            yield node.id


def variables_of(node: Comprehension) -> set[str]:
    """Names that the rounds of a comprehension bind."""
    return {name for one in node.generators for name in target_names(one.target)}


def changed_names(target: ast.AST) -> Iterator[str]:
    """Names that a target of `bindings_below` binds, or whose value it changes: ``layers.append(w)``."""
    if isinstance(target, ast.Name):
        yield target.id
    else:
        yield from target_names(target)


def bound_names(statement: ast.AST) -> Iterator[str]:
    """Names that ``statement`` binds in its own scope (nested blocks included)."""
    todo = [statement]
    while todo:
        node = todo.pop()
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                # ``n`` of ``[(n := f(x)) for x in xs]``: its own variables stay inside.
                yield from (one.target.id for one in each(node, ast.NamedExpr))
            case ast.Lambda():
                pass
            case _:
                yield from names_bound_at(node)
                todo += reversed(children(node))


def names_bound_below(tree: ast.AST) -> frozenset[str]:
    """Every name bound anywhere below ``tree``, in the scopes inside it and as parameters too."""
    return frozenset(name for node in walk(tree) for name in names_bound_at(node))


def binds_always(body: Sequence[ast.stmt], name: str) -> bool:
    """Whether running ``body`` to its end, or as far as it goes, always binds ``name``."""
    jumps = (ast.Break, ast.Continue)
    if any(isinstance(one, jumps) for part in body for one in walk(part)):
        return False
    return any(_binds(one, name) for one in body)


def _binds(statement: ast.stmt, name: str) -> bool:
    match statement:
        case ast.If(body=body, orelse=orelse):
            return binds_always(body, name) and binds_always(orelse, name)
        case ast.With(body=body):
            return binds_always(body, name) or name in bound_names(statement)
        case ast.For() | ast.While() | ast.Try() | ast.Match() | ast.Delete():
            return False
    return name in bound_names(statement)


def pairs_of(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """``a, b = c, d`` as ``(a, c)`` and ``(b, d)``; what cannot be taken apart is one pair."""
    match target, value:
        case (
            (ast.Tuple(elts=targets) | ast.List(elts=targets)),
            (ast.Tuple(elts=values) | ast.List(elts=values)),
        ) if len(targets) == len(values) and not has_starred((*targets, *values)):
            for one, other in zip(targets, values, strict=True):
                yield from pairs_of(one, other)
        case _:
            yield target, value


def loop_pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Targets of a loop with what they are items of: ``layer`` and ``layers`` of ``i, layer in enumerate(layers)``."""
    match target, value:
        case ast.Tuple(elts=[_, one]), ast.Call(func=ast.Name(id="enumerate"), args=[items, *_]):
            yield from loop_pairs(one, items)
        case ast.Tuple(elts=targets), ast.Call(func=ast.Name(id="zip"), args=parts) if len(
            targets
        ) == len(parts):
            for one, items in zip(targets, parts, strict=True):
                yield from loop_pairs(one, items)
        case ast.Tuple(elts=[_, one]), ast.Call(func=ast.Attribute(value=items, attr="items")):
            yield from loop_pairs(one, items)
        case _, ast.Call(func=ast.Attribute(value=items, attr="values")):
            yield from loop_pairs(target, items)
        case _:
            yield target, value


def bindings_below(tree: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Pairs of what is bound or changed, and the value it gets."""
    for node in walk(tree):
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    yield from pairs_of(target, value)
            case (
                ast.AnnAssign(target=target, value=ast.expr() as value)
                | ast.AugAssign(target=target, value=value)
                | ast.NamedExpr(target=target, value=value)
                | ast.For(target=target, iter=value)
                | ast.comprehension(target=target, iter=value)
            ):
                yield target, value
            case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
                yield target, value
            case ast.FunctionDef(name=name) if node is not tree:
                yield ast.Name(name, ast.Store()), node
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=target), args=arguments)):
                yield from ((target, one) for one in arguments)  # layers.append(w)


def names_bound_at(node: ast.AST) -> Iterator[str]:
    """Names that this node itself binds; a class, function or parameter binds its own."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from (one.asname or one.name.split(".")[0] for one in names)
        case (
            ast.ExceptHandler(name=str() as name)
            | ast.MatchAs(name=str() as name)
            | ast.MatchStar(name=str() as name)
            | ast.MatchMapping(rest=str() as name)
            | ast.arg(arg=name)
        ):
            yield name


def bound_values(around: ast.AST, name: str) -> Iterator[ast.expr | None]:
    """What a name is bound to in a function or file; None for a binding of another kind."""
    plain: set[int] = set()
    for target, value in plain_bindings(around):
        for one in _targets(target):
            if one.id == name:
                plain.add(id(one))
                yield value
    for node in walk(around):
        if not isinstance(node, ast.Name | ast.arg) and name in names_bound_at(node):
            yield None
        match node:
            case ast.Name(id=other) if other == name and id(node) not in plain:
                if not isinstance(node.ctx, ast.Load):
                    yield None
            case ast.Subscript(value=ast.Name(id=other), ctx=ast.Store()) if other == name:
                yield None
            case ast.Attribute(value=ast.Name(id=other), attr=word) if other == name:
                if word in CHANGES:
                    yield None


def plain_bindings(around: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What assignments and loops bind, each with the value that it, or a part of it, comes from."""
    for node in walk(around):
        yield from plain_bindings_at(node)


def plain_bindings_at(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What a node binds so by itself, whatever stands inside it."""
    match node:
        case ast.Assign(targets=targets, value=value):
            yield from ((one, value) for one in targets)
        case (
            ast.AnnAssign(target=target, value=ast.expr() as value)
            | ast.NamedExpr(target=target, value=value)
            | ast.For(target=target, iter=value)
            | ast.comprehension(target=target, iter=value)
        ):
            yield target, value


def _targets(target: ast.expr) -> Iterator[ast.Name]:
    if isinstance(target, ast.Name):
        yield target
    elif isinstance(target, ast.Tuple | ast.List):
        for one in target.elts:
            yield from _targets(one)


# ---- whether a loop may end early, so that its ``else`` does not run


def breaks(body: Iterable[ast.AST]) -> bool:
    """Whether statements of a loop's body may end it (a loop inside keeps its own ``break``)."""
    return _leaves(body, ast.Break)


def jumps(body: Iterable[ast.AST]) -> bool:
    """Whether statements of a loop's body may end its round early."""
    return _leaves(body, (ast.Break, ast.Continue))


def _leaves(body: Iterable[ast.AST], kinds: type[ast.stmt] | tuple[type[ast.stmt], ...]) -> bool:
    return any(isinstance(one, kinds) or _leaves(_parts(one), kinds) for one in body)


_WITH_STATEMENTS = (ast.stmt, ast.ExceptHandler, ast.match_case)


def _parts(node: ast.AST) -> Iterable[ast.AST]:
    if isinstance(node, ast.For | ast.AsyncFor | ast.While):
        return node.orelse
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return ()
    return [one for one in children(node) if isinstance(one, _WITH_STATEMENTS)]
