"""The types of dataclass fields: which code may read them, and of which classes.

``fields(cls)`` gives objects that hold the annotations. Code that takes no more than their names reads none.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nnx_migrate.rewrite.outside.annotations.reader import Reader, reader
from nnx_migrate.rewrite.outside.annotations.referents import Referents
from nnx_migrate.source.names import last_name
from nnx_migrate.source.project import Module, Project
from nnx_migrate.source.walking import each

_FUNCTIONS = frozenset({"fields", "fields_dict"})
_MEMBERS = frozenset({"__attrs_attrs__", "__dataclass_fields__"})
_WHAT = "the types of fields"
_COPIES = frozenset({"iter", "list", "reversed", "sorted", "tuple"})
_LOOKS = frozenset({"bool", "isinstance", "len"})
_ASKS = frozenset({"delattr", "hasattr", "setattr"})


def field_readers(project: Project, referents: Referents) -> Iterator[Reader]:
    """What may read the types of fields; nothing where no code has a ``type`` to read."""
    modules = project.modules.values()
    if project.is_whole and not any("type" in one.by_word and _reads_type(one) for one in modules):
        return
    for module in modules:
        for source, owner, by_name in _sources(project, referents, module):
            if source is None or _escapes(module, source, by_name=by_name, visited=set()):
                yield reader(referents, module, _WHAT, owner)


def _reads_type(module: Module) -> bool:
    attributes = (one for one in module.by_word["type"] if isinstance(one, ast.Attribute))
    return any(isinstance(one.ctx, ast.Load) for one in attributes)


_Source = tuple[ast.expr | None, ast.expr | None, bool]


def _sources(project: Project, referents: Referents, module: Module) -> Iterator[_Source]:
    """Expressions for the fields of a class, the class, and whether they are by their names."""
    renamed = {
        one.asname
        for node in each(module.tree, ast.ImportFrom)
        for one in node.names
        if one.asname and one.name in _FUNCTIONS
    }
    for word in (*_FUNCTIONS, *renamed):
        for node in module.by_word.get(word, ()):
            symbol = referents.uses.symbol(module, node)
            is_ours = symbol is None or project.split(symbol)[0] is not None
            if is_ours or symbol is None or symbol.rpartition(".")[2] not in _FUNCTIONS:
                continue
            match module.parents.of(node):
                case ast.Call(func=called, args=[first]) as call if called is node:
                    yield call, first, word == "fields_dict"
                case _:
                    yield None, None, False  # handed on
    for word in _MEMBERS:
        for node in module.by_word.get(word, ()):
            owner = node.value if isinstance(node, ast.Attribute) else None
            yield node, owner, word == "__dataclass_fields__"
        if word in module.text:
            for constant in each(module.tree, ast.Constant):
                if constant.value == word:
                    yield from _named(module, constant, word)


def _named(module: Module, node: ast.expr, word: str) -> Iterator[_Source]:
    """Uses of the name of the member that holds the fields."""
    parent = module.parents.of(node)
    match parent:
        case ast.Call(func=ast.Name(id="getattr"), args=[owner, *_]):
            yield parent, owner, word == "__dataclass_fields__"
        case ast.Call(func=ast.Name(id=name)) if name in _ASKS:
            return
        case ast.Compare() | ast.Expr():
            return
        case ast.Assign(targets=[ast.Name(id=name)]) if isinstance(node, ast.Constant):
            for one in module.by_word.get(name, ()):
                if isinstance(one.ctx, ast.Load):
                    yield from _named(module, one, word)
        case _:
            yield None, None, False


def _escapes(module: Module, node: ast.expr, *, by_name: bool, visited: set[int]) -> bool:
    """Whether more than names and defaults is taken of the fields that a collection has."""
    if id(node) in visited:
        return False
    visited.add(id(node))
    parent = module.parents.of(node)
    match parent:
        case ast.For(target=target, iter=over) | ast.comprehension(target=target, iter=over):
            return over is not node or (not by_name and not _only_describes(module, target))
        case ast.Attribute(attr="keys"):
            return False
        case ast.Attribute(attr="values") if by_name:
            call = module.parents.of(parent)
            return not isinstance(call, ast.Call) or _escapes(
                module, call, by_name=False, visited=visited
            )
        case ast.Attribute(attr="items") if by_name:
            loop = module.parents.of(module.parents.of(parent) or parent)
            match loop:
                case (
                    ast.For(target=ast.Tuple(elts=[_, target]))
                    | ast.comprehension(target=ast.Tuple(elts=[_, target]))
                ):
                    return not _only_describes(module, target)
            return True
        case ast.Subscript(value=value, slice=key) if value is node:
            if isinstance(key, ast.Slice):
                return _escapes(module, parent, by_name=by_name, visited=visited)
            return not _is_described(module, parent)
        case ast.Call(func=ast.Name(id=name)) if name in _COPIES:
            return not by_name and _escapes(module, parent, by_name=False, visited=visited)
        case ast.Call(func=ast.Name(id=name)) if name in _LOOKS:
            return False
        case ast.Compare() | ast.If() | ast.Expr():
            return False
        case ast.Attribute(attr="get" | "pop") if by_name:
            call = module.parents.of(parent)
            return not isinstance(call, ast.Call) or not _is_described(module, call)
        case ast.Assign(targets=[ast.Name(id=name)]):
            around = module.parents.function(parent)
            if around is None:
                return True
            return any(
                _escapes(module, one, by_name=by_name, visited=visited)
                for one in each(around, ast.Name)
                if one.id == name and isinstance(one.ctx, ast.Load)
            )
    return True


def _only_describes(module: Module, target: ast.expr) -> bool:
    """Whether code takes no more than a name or default of the fields in a loop's variable."""
    around: ast.AST = module.parents.function(target) or module.tree
    loop = module.parents.of(target)
    if isinstance(loop, ast.comprehension):  # its variables stay inside
        around = module.parents.of(loop) or around
    return isinstance(target, ast.Name) and all(
        _is_described(module, one)
        for one in each(around, ast.Name)
        if one.id == target.id and isinstance(one.ctx, ast.Load)
    )


def _is_described(module: Module, node: ast.expr) -> bool:
    match module.parents.of(node):
        case ast.Attribute(attr=name):
            return name != "type" and not name.startswith("__")
        case ast.Call(func=called) if last_name(called) == "isinstance":
            return True
        case ast.Expr():
            return True
    return False
