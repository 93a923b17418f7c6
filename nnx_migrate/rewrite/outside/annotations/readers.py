"""What a project reads annotations with, and whose it reads."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import lru_cache

from nnx_migrate.rewrite.outside.annotations.fields import field_readers
from nnx_migrate.rewrite.outside.annotations.packages import package_readers
from nnx_migrate.rewrite.outside.annotations.reader import Reader, reader
from nnx_migrate.rewrite.outside.annotations.referents import Referents
from nnx_migrate.rewrite.outside.annotations.uses import Anything
from nnx_migrate.source.names import last_name, parameter_names
from nnx_migrate.source.project import Module, Project
from nnx_migrate.source.walking import each, is_name, walk

_OWN = "__annotations__"
_HINTS = frozenset({"get_type_hints", "get_annotations"})
_OF_PARAMETERS = frozenset({"annotation", "return_annotation"})
_SIGNATURES = frozenset({"signature", "from_callable"})
_NAMES_ONLY = frozenset({"bool", "enumerate", "frozenset", "iter", "len", "list", "set", "sorted"})
_NAMES_ONLY |= {"tuple"}
_WRITES = frozenset({"clear", "keys", "update"})
_ASKS = frozenset({"delattr", "hasattr", "setattr"})
# What gives elements of its argument.
_PASSING = frozenset({"dict", "iter", "list", "next", "reversed", "sorted", "tuple"})


@lru_cache(maxsize=2)  # every attempt of a run asks
def readers(project: Project) -> tuple[Reader, ...]:
    """All of a project."""
    found = dict.fromkeys(_Search(project).readers())
    if not project.is_whole:  # files that nobody read may give them anything
        found = dict.fromkeys(replace(one, read=None) for one in found)
    return tuple(found)


class _Search:
    def __init__(self, project: Project) -> None:
        self.project = project
        self.referents = Referents(project)
        self.dispatches = any("singledispatch" in one.text for one in project.modules.values())

    def readers(self) -> Iterator[Reader]:
        for module in self.project.modules.values():
            yield from self._own(module)
        yield from field_readers(self.project, self.referents)
        yield from package_readers(self.project, self.referents)

    def _reader(self, module: Module, what: str, *subjects: ast.expr | None) -> Reader:
        return reader(self.referents, module, what, *subjects)

    def _own(self, module: Module) -> Iterator[Reader]:
        """What the code of a module reads itself."""
        hints = {*_HINTS, *_aliases(module, _HINTS)}
        words = module.by_word
        for word in hints:
            for node in words.get(word, ()):
                yield self._reader(module, word, _subject(module, node))
        for node in words.get(_OWN, ()):
            if isinstance(node, ast.Name):
                yield self._reader(module, _OWN, None)
            elif isinstance(node.ctx, ast.Load) and not takes_names(module, node):
                yield self._reader(module, _OWN, node.value)
        for word in _OF_PARAMETERS:
            for node in words.get(word, ()):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                    yield self._reader(module, word, *_made_by(module, node.value, _SIGNATURES))
        for node in words.get("getfullargspec", ()):
            if any("annotations" in one.by_word for one in self.project.modules.values()):
                yield self._reader(module, "getfullargspec", _subject(module, node))
        if _OWN in module.text or any(word in module.text for word in _OF_PARAMETERS):
            yield from self._of_strings(module)
        if self.dispatches:
            yield from self._of_register(module)

    def _of_strings(self, module: Module) -> Iterator[Reader]:
        """``getattr(x, "__annotations__")``, ``vars(x)["__annotations__"]``."""
        for node in each(module.tree, ast.Constant):
            if node.value == _OWN:
                yield from self._by_name(module, node)
            elif node.value in _OF_PARAMETERS and isinstance(module.parents.of(node), ast.Call):
                called = module.parents.of(node)
                assert isinstance(called, ast.Call)
                if last_name(called.func) in ("getattr", "attrgetter"):
                    yield self._reader(module, str(node.value), None)

    def _by_name(self, module: Module, node: ast.Constant) -> Iterator[Reader]:
        parent = module.parents.of(node)
        match parent:
            case ast.Call(func=ast.Name(id="getattr"), args=[owner, *_]):
                if not takes_names(module, parent):
                    yield self._reader(module, _OWN, owner)
            case ast.Call(func=ast.Name(id=name)) if name in _ASKS:
                return
            case ast.Compare(left=left) if left is node:
                return
            case ast.Dict(keys=keys) if node in keys:
                return
            case ast.Subscript(value=owner, slice=key) if key is node:
                if isinstance(parent.ctx, ast.Load) and not takes_names(module, parent):
                    yield self._reader(module, _OWN, _namespace_of(owner))
            case ast.Call(func=ast.Attribute(value=owner, attr="get")):
                if not takes_names(module, parent):
                    yield self._reader(module, _OWN, _namespace_of(owner))
            case _:
                yield self._reader(module, _OWN, None)

    def _of_register(self, module: Module) -> Iterator[Reader]:
        """``name.register(function)`` dispatches by the function's annotation."""
        for node in module.by_word.get("register", ()):
            match module.parents.of(node):
                case ast.Call(func=called, args=[ast.Name() as value]) if called is node:
                    reader = self._reader(module, "register", value)
                    if reader.read is not None:
                        yield reader
                case ast.Call(func=called) if called is node:
                    pass
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    pass  # in a decorator: asked of the place
                case _ if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                    yield self._reader(module, "register", None)


def _subject(module: Module, node: ast.expr) -> ast.expr | None:
    """What a function that reads is given; None where it is not called here."""
    match module.parents.of(node):
        case ast.Call(func=called, args=[first, *_]) if called is node:
            return first
        case ast.Call(func=called, keywords=keywords) if called is node:
            return next((one.value for one in keywords if one.arg in ("obj", "func")), None)
    return None


def _aliases(module: Module, words: Collection[str]) -> set[str]:
    """Other names under which a file imports a word."""
    return {
        one.asname
        for node in each(module.tree, ast.ImportFrom)
        for one in node.names
        if one.asname and one.name in words
    }


def _namespace_of(node: ast.expr) -> ast.expr | None:
    """The ``x`` of ``x.__dict__`` and ``vars(x)``."""
    match node:
        case ast.Attribute(value=owner, attr="__dict__"):
            return owner
        case ast.Call(func=ast.Name(id="vars"), args=[owner]):
            return owner
    return None


def takes_names(module: Module, node: ast.expr) -> bool:
    """Whether only the names in a dictionary of annotations are read, or it is written."""
    match module.parents.of(node):
        case ast.Compare(left=left, ops=ops):
            return left is not node and all(isinstance(one, ast.In | ast.NotIn) for one in ops)
        case ast.Subscript(value=owner, ctx=ast.Store() | ast.Del()) as item if owner is node:
            return not isinstance(module.parents.of(item), ast.AugAssign)
        case ast.Call(func=ast.Name(id=name), args=[first, *_]):
            return first is node and name in _NAMES_ONLY
        case ast.Attribute(attr=name) as method:
            called = module.parents.of(method)
            return name in _WRITES and isinstance(called, ast.Call) and called.func is method
        case ast.For(iter=over) | ast.comprehension(iter=over):
            return over is node
    return False


# ---- what a parameter or field is one of


def _made_by(module: Module, node: ast.expr, words: Collection[str]) -> tuple[ast.expr | None, ...]:
    """What ``signature`` or ``fields`` was given that made a value; None where that is not seen."""
    try:
        return tuple(_origins(module, node, words, set()))
    except Anything:
        return (None,)


def _origins(
    module: Module, node: ast.expr, words: Collection[str], visited: set[int]
) -> Iterator[ast.expr | None]:
    if id(node) in visited:
        return
    visited.add(id(node))
    match node:
        case ast.Call(func=called, args=[first, *_]) if last_name(called) in words:
            yield first
        case ast.Attribute(value=value, attr=name):
            if name in words:
                yield value
            else:
                yield from _origins(module, value, words, visited)
        case ast.Subscript(value=value) | ast.Call(func=ast.Attribute(value=value)):
            yield from _origins(module, value, words, visited)
        case ast.Call(func=ast.Name(id=name), args=[first, *_]) if name in _PASSING:
            yield from _origins(module, first, words, visited)
        case ast.ListComp(elt=value) | ast.GeneratorExp(elt=value) | ast.DictComp(value=value):
            yield from _origins(module, value, words, visited)
        case ast.Name(id=name):
            for one in _bound(module, node, name):
                yield from _origins(module, one, words, visited)
        case _:
            raise Anything


def _bound(module: Module, use: ast.Name, name: str) -> list[ast.expr]:
    """What a name is bound to, or is an element of."""
    for around in (*module.parents.functions(use), module.tree):
        if not isinstance(around, ast.Module) and name in parameter_names(around):
            break
        found: list[ast.expr] = []
        plain: set[int] = set()
        for node in walk(around):
            pairs: list[tuple[ast.expr, ast.expr]]
            match node:
                case ast.Assign(targets=[target], value=value):
                    pairs = [(target, value)]
                case ast.AnnAssign(target=target, value=ast.expr() as value):
                    pairs = [(target, value)]
                case ast.NamedExpr(target=target, value=value):
                    pairs = [(target, value)]
                case (
                    ast.For(target=target, iter=over) | ast.comprehension(target=target, iter=over)
                ):
                    pairs = [*_elements(target, over)]
                case _:
                    continue
            for target, value in pairs:
                if is_name(target, name):
                    plain.add(id(target))
                    found.append(value)
        stores = (one for one in each(around, ast.Name) if one.id == name)
        if any(id(one) not in plain and not isinstance(one.ctx, ast.Load) for one in stores):
            break
        if found:
            return found
    raise Anything


def _elements(target: ast.expr, over: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The names of a loop, each with what its values are taken from."""
    match target, over:
        case ast.Tuple(elts=parts), ast.Call(func=ast.Name(id="zip"), args=args):
            if len(parts) == len(args):
                for part, one in zip(parts, args, strict=True):
                    yield from _elements(part, one)
        case ast.Tuple(elts=[_, part]), ast.Call(func=ast.Name(id="enumerate"), args=[one, *_]):
            yield from _elements(part, one)
        case ast.Tuple(elts=[_, part]), ast.Call(func=ast.Attribute(attr="items")):
            yield from _elements(part, over)
        case ast.Name(), _:
            yield target, over
