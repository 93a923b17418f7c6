"""The names that a program takes of a value: its attributes, followed through names and functions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import takewhile

from nnx_migrate.source.bindings import bound_values
from nnx_migrate.source.facts import Fact
from nnx_migrate.source.names import last_name, parameter_names, positional_names
from nnx_migrate.source.project import Module, Project, Scope
from nnx_migrate.source.walking import has_starred, is_name, walk

# What sets attributes of its first argument: ``setattr``, ``monkeypatch.setattr``, ``mock.patch.object``.
SETTERS = frozenset(
    {"__delattr__", "__setattr__", "delattr", "multiple", "object", "setattr", "spy"}
)
_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.comprehension)
# Calls that only look at what they are given.
_LOOKS = frozenset({"bool", "delattr", "dir", "hasattr", "id", "isinstance", "print"})
_LOOKS |= {"exec_module", "reload", "repr", "str"}
_METHODS = frozenset({"get", "items", "keys", "partition", "pop", "rpartition"})
_METHODS |= {"rsplit", "split", "strip", "values"}
_INSPECTS = frozenset(
    {"getdoc", "getfile", "getsource", "getsourcefile", "getsourcelines", "unwrap"}
)
# What lies below a property, a decorated function or a partial.
_UNDERLYING = frozenset({"__func__", "__wrapped__", "fget", "func"})
# What may be read of a value without using it.
_DESCRIBING = _UNDERLYING | {"__doc__", "__module__", "__name__", "__qualname__"}
# What gives any name of a value.
_OPENING = frozenset({"__dict__", "__getattr__", "__getattribute__"})

Asked = tuple[Module, ast.Call]


class AttributeUses:
    """Reads the files of a project, each when it is first needed."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._seen: set[int] = set()
        self.through: set[str] = set()  # names of modules that were taken on the way
        self.deeper: set[str | None] = set()  # names taken of what any name gave; None for any
        self.asked: list[Asked] = []  # calls that take computed names, where those are left out
        self._sets = False  # whether some of them are set
        self._leaves_out = False
        self._modules = {name.rpartition(".")[2] for name in project.modules}

    def of(self, module: Module, node: ast.expr) -> frozenset[str] | None:
        """The names that are taken of the value of ``node``; None where that may be any name."""
        self._seen, self.through, self.deeper = set(), set(), set()
        found: set[str] = set()
        for name in self._names(module, node):
            if name is None:
                return None
            found.add(name)
        return frozenset(found)

    def besides(self, module: Module, node: ast.expr) -> frozenset[str] | None:
        """As `of`, but for names that ``getattr`` computes: ``asked`` are these calls."""
        self.asked, self._leaves_out = [], True
        found = self.of(module, node)
        self._leaves_out = False
        return found

    def only_describes(self, module: Module, node: ast.expr) -> bool:
        """Whether nothing is done with the value of ``node`` but to read or set what describes it."""
        names = self.of(module, node)
        return names is not None and names <= _DESCRIBING

    def changes(self, module: Module, node: ast.expr) -> bool:
        """Whether code that is followed sets an attribute of the value of ``node``."""
        self._seen, self._sets = set(), False
        for _ in self._names(module, node):
            pass
        return self._sets

    def _names(self, module: Module, node: ast.AST) -> Iterator[str | None]:
        if id(node) in self._seen:
            return
        self._seen.add(id(node))
        parent = module.parents.of(node)
        match parent:
            case ast.Expr() | ast.Compare() | ast.Assert():
                return
            case ast.IfExp(test=test) | ast.If(test=test) | ast.While(test=test) if test is node:
                return
            case ast.Subscript(slice=key) if key is node:
                return
            case ast.Attribute(attr=name, ctx=context):
                self._sets |= not isinstance(context, ast.Load)
                yield None if name in _OPENING else name
                if name in self._modules:
                    self.through.add(name)
                if name in self._modules or name in _UNDERLYING:
                    yield from self._names(module, parent)
            case ast.Call(func=ast.Call(func=getter), args=[owner]) if (
                owner is node and last_name(getter) == "attrgetter"
            ):
                yield from () if self._is_described(module, parent) else [None]
            case ast.Call(func=ast.Name(id="getattr"), args=[owner, name, *_]) if owner is node:
                yield from self._getattr_names(module, parent, name)
            case ast.Call(func=ast.Name(id="setattr"), args=[owner, name, value]) if owner is node:
                self._sets = True
                if not _is_moved(owner, value):  # code behind it takes another value by the name
                    yield from self._strings(module, name, set())
            case ast.Call(func=ast.Name(id="setattr"), args=[owner, *_]) if owner is not node:
                if not self._is_hook(module, node) and not _is_moved(owner, node):
                    yield None
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in _LOOKS:
                return
            case ast.Call(func=function) if word := self._inspector(module, function):
                yield from self._names(module, parent) if word == "unwrap" else ()
            case ast.Assign(targets=targets, value=value) if value is node:
                for target in targets:
                    yield from self._names_by_local(module, target, value)
            case ast.AnnAssign(target=target, value=value) if value is node:
                yield from self._names_by_local(module, target, node)
            case ast.Tuple() | ast.List() | ast.Set() if loop := _variable(module, parent):
                yield from self._names_by_local(module, loop, parent)
            case ast.NamedExpr(target=target, value=value) if value is node:
                yield from self._names_by_local(module, target, value)
                yield from self._names(module, parent)
            case ast.Return():
                yield from self._names_by_result(module, node)
            case ast.Call(func=ast.Name() as function) if function is not node:
                yield from self._names_by_argument(module, function, parent, node)
            case ast.keyword():
                taker = module.parents.of(parent)
                if isinstance(taker, ast.Call):
                    yield from self._names_by_argument(module, taker.func, taker, parent)
                else:  # ``class Run(Base, net=Net)``
                    yield None
            case _:
                yield None

    def _inspector(self, module: Module, function: ast.expr) -> str | None:
        """The function of ``inspect`` that is called, maybe by a local name of it."""
        around, values = module.parents.function(function), list[ast.expr | None]()
        if isinstance(function, ast.Name) and around is not None:
            values = [*bound_values(around, function.id)]
        symbols = {
            one and self._project.resolve(one, Scope(module)) for one in values or [function]
        }
        found = symbols.pop() if len(symbols) == 1 else None
        package, _, name = (found or "").rpartition(".")
        return name if package == "inspect" and name in _INSPECTS else None

    def _getattr_names(
        self, module: Module, call: ast.Call, name: ast.expr
    ) -> Iterator[str | None]:
        """``getattr(module, name)``, but for ``getattr(module, name).__module__ = ...``."""
        words = [*self._strings(module, name, set())]
        if isinstance(name, ast.Constant) and name.value in self._modules:
            self.through.add(name.value)
            yield from self._names(module, call)
        elif self._is_described(module, call):
            return
        else:
            yield from self._modules_among(module, call, words)
            if self._leaves_out and _gives_a_value(module, call):
                self.asked.append((module, call))
                return
        yield from words

    def _modules_among(
        self, module: Module, call: ast.Call, words: list[str | None]
    ) -> Iterator[str | None]:
        """What is taken of the modules that a computed name may mean."""
        found = {one for one in words if one is not None and one in self._modules}
        self.through |= found
        if found:
            yield from self._names(module, call)
        if None not in words:
            return
        for use in self._aliases(module, call):
            match module.parents.of(use):
                case ast.Attribute(attr=name):
                    self.deeper.add(name)
                case ast.Call(func=ast.Name(id="getattr"), args=[owner, name, *_]):
                    if owner is use:
                        self.deeper.update(self._strings(module, name, set()))

    def _aliases(self, module: Module, node: ast.expr) -> Iterator[ast.expr]:
        """A value, and where its function reads it under a name."""
        yield node
        around = module.parents.function(node)
        match module.parents.of(node):
            case ast.Assign(targets=[ast.Name(id=name)]) if around is not None:
                for one in walk(around):
                    if is_name(one, name):
                        yield one

    def _is_described(self, module: Module, node: ast.expr) -> bool:
        """Whether nothing is done with a value but to read or set what describes it."""
        before, leaves_out = set(self._seen), self._leaves_out
        self._leaves_out = False
        is_described = set(self._names(module, node)) <= _DESCRIBING
        self._leaves_out = leaves_out
        if is_described:
            self._seen = before  # what else those places take is asked by who comes there
        return is_described

    def _names_by_argument(
        self, module: Module, function: ast.expr, call: ast.Call, argument: ast.AST
    ) -> Iterator[str | None]:
        """What a function of the project does with an argument."""
        symbol = self._project.resolve(function, Scope(module))
        match self._project.definition(symbol) if symbol is not None else None:
            case (home, ast.FunctionDef() as found):
                name = _parameter(found, call, argument)
            case _:
                name = None
        if name is None:
            yield None
            return
        for one in walk(found):
            if is_name(one, name) and isinstance(one.ctx, ast.Load):
                yield from self._names(home, one)

    def _names_by_local(
        self, module: Module, target: ast.expr, value: ast.expr
    ) -> Iterator[str | None]:
        """A value under a name: all that the function does with that name."""
        match target:
            case ast.Subscript(value=ast.Attribute(attr="modules")):
                return  # those who take it from there import it by its name
        around: ast.AST | None = module.parents.function(target)
        if around is None and isinstance(target, ast.Name) and self._is_own(module, target):
            around = module.tree
        if not isinstance(target, ast.Name) or around is None:
            yield None  # other files may read it
            return
        for one in walk(around):
            if isinstance(one, ast.Global | ast.Nonlocal) and target.id in one.names:
                yield None
            if not isinstance(one, ast.Name) or one.id != target.id:
                continue
            if isinstance(one.ctx, ast.Load) and not self._is_earlier(module, one, value):
                yield from self._names(module, one)

    def _is_own(self, module: Module, target: ast.Name) -> bool:
        """Whether a file reads one of its globals, and no other may."""
        word = target.id
        holder = module.parents.of(module.parents.of(target) or target)
        if isinstance(holder, ast.ClassDef) or not self._project.is_whole:
            return False
        if not any(isinstance(one.ctx, ast.Load) for one in module.by_word[word]):
            return False  # somebody does
        for other in self._project.modules.values():
            named = other.by_word.get(word, ())
            if other is not module and word not in other.text and module.name not in other.stars:
                continue
            if any(isinstance(one, ast.Attribute) for one in named):
                return False
            for node in other.nodes:
                match node:
                    case ast.ImportFrom(names=names):
                        if any(one.name in (word, "*") for one in names):
                            return False
                    case ast.Constant(value=value) if value == word:
                        return False
        return True

    def _names_by_result(self, module: Module, node: ast.AST) -> Iterator[str | None]:
        """A value that a function returns: what its callers anywhere take of it."""
        function = module.parents.function(node)
        if self._is_hook(module, node):
            return
        if not isinstance(function, ast.FunctionDef):
            yield None
            return
        for other in self._project.modules.values():
            for one in other.by_word.get(function.name, ()):
                call = other.parents.of(one)
                if isinstance(call, ast.Call) and call.func is one:
                    yield from self._names(other, call)
                else:
                    yield None

    def _is_hook(self, module: Module, node: ast.AST) -> bool:
        """Whether a module's ``__getattr__`` stands around: those who import write the name."""
        return getattr(module.parents.function(node), "name", None) == "__getattr__"

    # ---- names that are computed

    def _strings(
        self, module: Module, node: ast.expr | None, visited: set[int]
    ) -> Iterator[str | None]:
        """The words that an expression for a name may be; None where that is any."""
        match node:
            case ast.Constant(value=str() as text):
                yield from re.findall(r"\w+", text)
            case ast.Constant():
                return
            case ast.Tuple(elts=every) | ast.List(elts=every) | ast.Set(elts=every):
                for one in every:
                    yield from self._strings(module, one, visited)
            case ast.Dict(keys=keys, values=values):
                for key, value in zip(keys, values, strict=True):
                    if key is None:
                        yield None
                    yield from self._strings(module, key, visited)
                    yield from self._strings(module, value, visited)
            case ast.IfExp(body=body, orelse=orelse):
                yield from self._strings(module, body, visited)
                yield from self._strings(module, orelse, visited)
            case ast.Subscript(value=value):
                yield from self._strings(module, value, visited)
            case ast.Call(func=ast.Attribute(value=value, attr=name), args=args):
                yield from self._strings(module, value, visited) if name in _METHODS else [None]
                for one in args if name == "get" else ():
                    yield from self._strings(module, one, visited)
            case ast.Name():
                yield from self._bound(module, node, visited)
            case _:
                yield None

    def _bound(self, module: Module, name: ast.Name, visited: set[int]) -> Iterator[str | None]:
        """The words that a name may hold."""
        values: list[ast.expr | None] = []
        for function in module.parents.functions(name):
            if name.id in parameter_names(function):
                # Those who import write the name that a module's hook is asked for.
                is_hook = getattr(function, "name", "") == "__getattr__"
                yield from () if is_hook else [None]
                return
            values = [*bound_values(function, name.id)]
            if values:
                break
        values = values or [*bound_values(module.tree, name.id)]
        yield from () if values else [None]
        for value in values:
            if value is None:
                yield None
            elif id(value) not in visited and not self._is_earlier(module, name, value):
                visited.add(id(value))
                yield from self._strings(module, value, visited)

    # ---- where a node stands

    def _is_earlier(self, module: Module, use: ast.expr, value: ast.expr) -> bool:
        """Whether a name is read in what it is bound to then: ``name = getattr(lib, name)``."""
        function = module.parents.function(use)
        inside = [use, *takewhile(lambda one: one is not function, module.parents.above(use))]
        return value in inside and not any(isinstance(one, _LOOPS) for one in inside)


attribute_uses = Fact(AttributeUses)


def _gives_a_value(module: Module, call: ast.Call) -> bool:
    """Whether what a call gives is for code around it, and not put into a module under that name."""
    if any(getattr(one, "name", "") == "__getattr__" for one in module.parents.functions(call)):
        return False
    match module.parents.of(call):
        case ast.Call(func=ast.Name(id="setattr")):
            return False
        case ast.Assign(targets=targets):
            return all(isinstance(one, ast.Name) for one in targets)
        case ast.Attribute(ctx=context):
            return isinstance(context, ast.Load)
    return True


def _variable(module: Module, node: ast.AST) -> ast.Name | None:
    """The variable of a loop over a collection."""
    match module.parents.of(node):
        case (
            ast.For(target=ast.Name() as name, iter=over)
            | ast.comprehension(target=ast.Name() as name, iter=over)
        ) if over is node:
            return name
    return None


def _is_moved(owner: ast.expr, value: ast.AST) -> bool:
    """Whether a value stays where it is: ``setattr(module, new, getattr(module, old))``."""
    match value:
        case ast.Call(func=ast.Name(id="getattr"), args=[other, *_]):
            return ast.dump(other) == ast.dump(owner)
    return False


def _parameter(function: ast.FunctionDef, call: ast.Call, argument: ast.AST) -> str | None:
    """The parameter that an argument of a call is for; None where that is not plain."""
    spec = function.args
    names = positional_names(spec)
    if isinstance(argument, ast.keyword):
        return argument.arg if argument.arg in {*names, *(a.arg for a in spec.kwonlyargs)} else None
    before = call.args[: call.args.index(argument)] if argument in call.args else [argument]
    if has_starred((*before, argument)):
        return None
    return names[len(before)] if len(before) < len(names) and argument in call.args else None
