"""One file's scopes, bindings, loads and calls, from one walk over its syntax tree.

The walk is iterative, so that deeply nested expressions cannot exhaust Python's stack, and keeps
two things apart that differ for decorators, bases, defaults and annotations: the scope a name is
*looked up* in, and the qualified name of the class or function whose *text* it belongs to.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from nnx_migrate.ledger.scope_data import Binding, Scope, Unit
from nnx_migrate.ledger.trees import children

# Methods that run or open a Linen module from outside (flax.linen.Module, flax 0.12.8).
METHODS = frozenset(
    {"init", "init_with_output", "apply", "bind", "unbind", "tabulate", "lazy_init"}
)
# Methods that too many other types have: counted only where the receiver is surely a module.
KNOWN_RECEIVER_METHODS = frozenset({"clone", "copy", "module_paths"})
ALL_METHODS = METHODS | KNOWN_RECEIVER_METHODS


Work = tuple[ast.AST, Scope, str]
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def analyse(tree: ast.Module, path: str, module: str, text: str) -> Unit:
    """The scopes of one file."""
    unit = Unit(path, module, package_of(path, module), text, tree)
    unit.scope = Scope("module", module, None, tree, unit)
    walker = _Walker(unit)
    stack: list[Work] = [(node, unit.scope, module) for node in reversed(tree.body)]
    while stack:
        node, scope, place = stack.pop()
        stack.extend(reversed(walker.step(node, scope, place)))
    return unit


def package_of(path: str, module: str) -> str:
    """What relative imports of a file start from."""
    is_package = path.replace("\\", "/").rsplit("/", 1)[-1] == "__init__.py"
    return module if is_package else module.rpartition(".")[0]


def is_dotted(node: ast.expr) -> bool:
    """Whether the expression is a name or a chain of attributes on a name."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def absolute_module(package: str, node: ast.ImportFrom) -> str:
    """The absolute dotted module an ``import from`` names; empty when it leaves the project."""
    if not node.level:
        return node.module or ""
    parts = package.split(".") if package else []
    if node.level - 1 > len(parts):
        return ""
    base = parts[: len(parts) - (node.level - 1)]
    return ".".join([*base, node.module] if node.module else base)


class _Walker:
    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.bound: set[int] = set()
        self.called: set[int] = set()

    def step(self, node: ast.AST, scope: Scope, place: str) -> list[Work]:
        """Record one node and return what to visit next, in order."""
        handler = _HANDLERS[node.__class__]
        if handler is None:
            return [(child, scope, place) for child in children(node)]
        return handler(self, node, scope, place)

    def bind(self, scope: Scope, name: str, binding: Binding) -> None:
        """Add a binding where ``global`` and ``nonlocal`` send it."""
        declared = scope.outer.get(name)
        target: Scope | None = scope
        if declared == "global":
            target = self.unit.scope
        elif declared == "nonlocal":
            target = scope.parent
            while target is not None and (target.kind == "class" or name not in target.bindings):
                target = target.parent
        (target or scope).bindings.setdefault(name, []).append(binding)
        self.unit.bindings.append((name, binding))

    def at_Name(self, node: ast.Name, scope: Scope, place: str) -> list[Work]:
        if isinstance(node.ctx, ast.Load):
            self.unit.loads.append((node, scope, place))
        elif isinstance(node.ctx, ast.Store) and id(node) not in self.bound:
            self.bind(scope, node.id, Binding("other", scope, node.id, node, end=_end(node)))
        return []

    def at_Attribute(self, node: ast.Attribute, scope: Scope, place: str) -> list[Work]:
        loaded = isinstance(node.ctx, ast.Load)
        if loaded and node.attr in ALL_METHODS and id(node) not in self.called:
            self.unit.handles.append((node, scope, place))
        if loaded and is_dotted(node):
            self.unit.loads.append((node, scope, place))
            return []
        return [(node.value, scope, place)]

    def at_Call(self, node: ast.Call, scope: Scope, place: str) -> list[Work]:
        self.called.add(id(node.func))
        if isinstance(node.func, ast.Attribute) and node.func.attr in ALL_METHODS:
            self.unit.calls.append((node, scope, place))
        elif is_dotted(node.func):
            self.unit.named.append((node, scope, place))
        return [(child, scope, place) for child in (node.func, *node.args, *node.keywords)]

    def at_Import(self, node: ast.Import, scope: Scope, place: str) -> list[Work]:
        for alias in node.names:
            name = alias.asname or alias.name.split(".")[0]
            target = alias.name if alias.asname else name
            binding = Binding(
                "import", scope, name, node, target, end=_end(node), always=_always(node, scope)
            )
            self.bind(scope, name, binding)
        self.unit.imports.append(node)
        return []

    def at_ImportFrom(self, node: ast.ImportFrom, scope: Scope, place: str) -> list[Work]:
        module = absolute_module(self.unit.package, node)
        for alias in node.names:
            kind = "star" if alias.name == "*" else "from"
            binding = Binding(
                kind, scope, alias.name, node, module, end=_end(node), always=_always(node, scope)
            )
            if kind == "star":
                self.unit.stars.append(binding)
            else:
                self.bind(scope, alias.asname or alias.name, binding)
        self.unit.imports.append(node)
        return []

    def at_Global(self, node: ast.Global, scope: Scope, place: str) -> list[Work]:
        scope.outer.update(dict.fromkeys(node.names, "global"))
        return []

    def at_Nonlocal(self, node: ast.Nonlocal, scope: Scope, place: str) -> list[Work]:
        scope.outer.update(dict.fromkeys(node.names, "nonlocal"))
        return []

    def at_Assign(self, node: ast.Assign, scope: Scope, place: str) -> list[Work]:
        for target in node.targets:
            self.assign(target, node.value, node, scope)
        return [(child, scope, place) for child in (node.value, *node.targets)]

    def assign(self, target: ast.expr, value: ast.expr, stmt: ast.stmt, scope: Scope) -> None:
        """Bind plain targets to their value, pair by pair through displays of equal length."""
        if isinstance(target, ast.Name):
            self.bound.add(id(target))
            binding = Binding(
                "alias", scope, target.id, value, end=_end(stmt), always=_always(stmt, scope)
            )
            self.bind(scope, target.id, binding)
        elif isinstance(target, ast.Attribute):
            self.attribute(target, "value", value, scope)
        elif isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
            pairs = [*target.elts, *value.elts]
            if len(target.elts) == len(value.elts) and not any(
                isinstance(item, ast.Starred) for item in pairs
            ):
                for one, of in zip(target.elts, value.elts, strict=True):
                    self.assign(one, of, stmt, scope)

    def attribute(self, target: ast.Attribute, kind: str, value: ast.expr, scope: Scope) -> None:
        """Record ``self.name = value`` on the class."""
        method = enclosing_method(scope)
        if method is None or not isinstance(target.value, ast.Name):
            return
        if target.value.id == first_parameter(method) and method.parent is not None:
            entry = (kind, value, scope)
            method.parent.attributes.setdefault(target.attr, []).append(entry)

    def at_AnnAssign(self, node: ast.AnnAssign, scope: Scope, place: str) -> list[Work]:
        if isinstance(node.target, ast.Name):
            self.bound.add(id(node.target))
            name = node.target.id
            binding = Binding(
                "annotated", scope, name, node, end=_end(node), always=_always(node, scope)
            )
            self.bind(scope, name, binding)
        elif isinstance(node.target, ast.Attribute):
            self.attribute(node.target, "annotation", node.annotation, scope)
        children = (node.annotation, *([node.value] if node.value else []), node.target)
        return [(child, scope, place) for child in children]

    def at_NamedExpr(self, node: ast.NamedExpr, scope: Scope, place: str) -> list[Work]:
        holder = scope
        while holder.kind == "comprehension" and holder.parent is not None:
            holder = holder.parent
        name = node.target.id
        self.bind(holder, name, Binding("alias", scope, name, node.value, end=_end(node)))
        return [(node.value, scope, place)]

    def at_TypeAlias(self, node: ast.AST, scope: Scope, place: str) -> list[Work]:
        name, value = getattr(node, "name"), getattr(node, "value")  # noqa: B009 (Python 3.12)
        self.bind(scope, name.id, Binding("alias", scope, name.id, value, end=_end(node)))
        return [(value, scope, place)]

    def at_ExceptHandler(self, node: ast.ExceptHandler, scope: Scope, place: str) -> list[Work]:
        self.capture(node.name, node, scope)
        return [(child, scope, place) for child in children(node)]

    def at_MatchAs(self, node: ast.MatchAs, scope: Scope, place: str) -> list[Work]:
        self.capture(node.name, node, scope)
        return [(child, scope, place) for child in children(node)]

    def at_MatchStar(self, node: ast.MatchStar, scope: Scope, place: str) -> list[Work]:
        self.capture(node.name, node, scope)
        return []

    def at_MatchMapping(self, node: ast.MatchMapping, scope: Scope, place: str) -> list[Work]:
        self.capture(node.rest, node, scope)
        return [(child, scope, place) for child in children(node)]

    def capture(self, name: str | None, node: ast.AST, scope: Scope) -> None:
        """Bind a name that is not a ``Name`` node."""
        if name is not None:
            self.bind(scope, name, Binding("other", scope, name, node, end=_end(node)))

    def at_Return(self, node: ast.Return, scope: Scope, place: str) -> list[Work]:
        if node.value is None:
            return []
        scope.returns.append(node.value)
        return [(node.value, scope, place)]

    def at_Yield(self, node: ast.Yield, scope: Scope, place: str) -> list[Work]:
        scope.generator = True
        return [(node.value, scope, place)] if node.value else []

    def at_FunctionDef(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope, place: str
    ) -> list[Work]:
        inner = Scope("function", f"{place}.{node.name}", scope, node, self.unit)
        binding = Binding(
            "function",
            scope,
            node.name,
            node,
            inner=inner,
            end=_end(node),
            always=_always(node, scope),
        )
        self.bind(scope, node.name, binding)
        self.type_parameters(node, inner)
        outside = [*node.decorator_list, *self.parameters(node, inner, scope)]
        work: list[Work] = [(child, scope, inner.name) for child in outside]
        if node.returns is not None:
            work.append((node.returns, scope, inner.name))
        return work + [(child, inner, inner.name) for child in node.body]

    at_AsyncFunctionDef = at_FunctionDef

    def at_Lambda(self, node: ast.Lambda, scope: Scope, place: str) -> list[Work]:
        inner = Scope("function", place, scope, node, self.unit)
        inner.returns.append(node.body)
        work: list[Work] = [(child, scope, place) for child in self.parameters(node, inner, scope)]
        return [*work, (node.body, inner, place)]

    def parameters(self, node: Function, inner: Scope, scope: Scope) -> list[ast.expr]:
        """Bind the parameters and return their annotations and defaults, in source order."""
        spec = node.args
        outside: list[ast.expr] = []
        for arg in _arguments(spec):
            binding = Binding("parameter", scope, arg.arg, arg)
            inner.bindings.setdefault(arg.arg, []).append(binding)
            if arg.annotation is not None:
                outside.append(arg.annotation)
        return [*outside, *spec.defaults, *(value for value in spec.kw_defaults if value)]

    def type_parameters(self, node: ast.AST, inner: Scope) -> None:
        """Bind the names of PEP 695 type parameters (Python 3.12)."""
        for parameter in getattr(node, "type_params", ()):
            self.capture(parameter.name, parameter, inner)

    def at_ClassDef(self, node: ast.ClassDef, scope: Scope, place: str) -> list[Work]:
        inner = Scope("class", f"{place}.{node.name}", scope, node, self.unit)
        self.unit.classes.append(inner)
        binding = Binding(
            "class",
            scope,
            node.name,
            node,
            inner=inner,
            end=_end(node),
            always=_always(node, scope),
        )
        self.bind(scope, node.name, binding)
        self.type_parameters(node, inner)
        outside = (*node.decorator_list, *node.bases, *node.keywords)
        work: list[Work] = [(child, scope, inner.name) for child in outside]
        return work + [(child, inner, inner.name) for child in node.body]

    def at_ListComp(
        self,
        node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
        scope: Scope,
        place: str,
    ) -> list[Work]:
        inner = Scope("comprehension", place, scope, node, self.unit)
        work: list[Work] = []
        for index, generator in enumerate(node.generators):
            work.append((generator.iter, inner if index else scope, place))
            work.append((generator.target, inner, place))
            work.extend((condition, inner, place) for condition in generator.ifs)
        results = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
        return [*work, *((result, inner, place) for result in results)]

    at_SetComp = at_GeneratorExp = at_DictComp = at_ListComp


class _Handlers(dict[type, Callable[[_Walker, Any, Scope, str], list[Work]] | None]):
    def __missing__(self, kind: type) -> Callable[[_Walker, Any, Scope, str], list[Work]] | None:
        self[kind] = getattr(_Walker, "at_" + kind.__name__, None)
        return self[kind]


_HANDLERS = _Handlers()


def enclosing_method(scope: Scope) -> Scope | None:
    """The method whose body (or nested function) ``scope`` is, if any."""
    current: Scope | None = scope
    while current is not None and current.kind != "class":
        parent = current.parent
        if parent is not None and parent.kind == "class" and current.kind == "function":
            return current
        current = parent
    return None


def first_parameter(method: Scope) -> str | None:
    """The name of the parameter that holds the instance (or the class)."""
    node = method.node
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return None
    positional = [*node.args.posonlyargs, *node.args.args]
    return positional[0].arg if positional else None


def _arguments(spec: ast.arguments) -> list[ast.arg]:
    extra = [arg for arg in (spec.vararg, spec.kwarg) if arg is not None]
    return [*spec.posonlyargs, *spec.args, *spec.kwonlyargs, *extra]


def _end(node: ast.AST) -> tuple[int, int]:
    return (getattr(node, "end_lineno", 0) or 0, getattr(node, "end_col_offset", 0) or 0)


def _always(stmt: ast.stmt, scope: Scope) -> bool:
    if scope.own is None:
        body = getattr(scope.node, "body", ())
        scope.own = frozenset(map(id, body)) if isinstance(body, list) else frozenset()
    return id(stmt) in scope.own
