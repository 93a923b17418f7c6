"""The whole project as an index: modules, what their names mean, and the Linen classes.

Nothing is imported or run: everything comes from ``ast``.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import cached_property

from nnx_migrate.source.classes import (
    ClassInfo,
    ClassStatement,
    class_statements,
    index_classes,
)
from nnx_migrate.source.modules import Module, Scope, module_name, parse
from nnx_migrate.source.named_imports import Declared
from nnx_migrate.source.names import (
    Assignment,
    Binding,
    Definition,
    Import,
    Several,
    canonical,
    first_name,
    name_parts,
)
from nnx_migrate.source.stars import Stars
from nnx_migrate.source.walking import callee_of

__all__ = ["Module", "Project", "Scope", "module_name", "parse"]

_DEPTH = 20  # longest chain of aliases and re-exports that is followed


@dataclass(frozen=True, eq=False)
class Project:
    """Every module of the project by dotted name. Compared by identity, so facts can be cached."""

    modules: dict[str, Module] = field(default_factory=dict)
    imports: Declared = field(default_factory=dict)  # what code imports by names nobody can read
    is_whole: bool = True  # no file was left out, so that every caller is seen
    runs_examples: bool = False  # those in docstrings, as tests
    memo: dict[str, object] = field(default_factory=dict, repr=False)  # facts, by name

    def resolve(self, expression: ast.expr, scope: Scope) -> str | None:
        """Symbol that a name or dotted expression refers to; None when it is a local value."""
        parts = name_parts(expression)
        if parts is None:
            return None
        key = (parts, id(scope.module), *map(id, scope.tables))
        known = self._symbols.get(key)
        if known is None:
            known = scope, self._resolve(parts, scope, _DEPTH)
            self._symbols[key] = known  # so that none of these ids is given again
        symbol = known[1]
        is_local = symbol is not None and _is_bound_in_comprehension(expression, scope)
        return None if is_local else symbol

    @cached_property
    def _symbols(self) -> dict[tuple[object, ...], tuple[Scope, str | None]]:
        """What dotted names refer to, by the scope that they stand in."""
        return {}

    def _resolve(self, parts: tuple[str, ...], scope: Scope, depth: int) -> str | None:
        return self._symbol(parts, scope.lookup(parts[0]), scope, depth) if depth else None

    def _symbol(
        self, parts: tuple[str, ...], binding: Binding | None, scope: Scope, depth: int
    ) -> str | None:
        """What a dotted name refers to when its first part has that binding."""
        head = self._binding_symbol(parts[0], binding, scope, depth)
        if head is None:
            head = self._star_symbol(parts[0], scope, depth)
        return head and self.canonical(".".join([head, *parts[1:]]), depth)

    def is_alias(self, expression: ast.expr, scope: Scope) -> bool:
        """Whether an expression reaches what it means through an assignment: ``conv = nn.Conv``."""
        parts = name_parts(expression)
        if parts is None or _is_bound_in_comprehension(expression, scope):
            return False
        binding, rest = scope.lookup(parts[0]), list(parts[1:])
        for _ in range(_DEPTH):
            if isinstance(binding, Assignment):
                return True
            if not isinstance(binding, Import):
                return False
            module, inner = self.split(".".join([binding.target, *rest]))
            if module is None or not inner:
                return False
            binding, rest = module.table.get(inner[0]), list(inner[1:])
        return False

    def meanings(self, expression: ast.expr, scope: Scope) -> tuple[str, ...]:
        """Every symbol that a name or dotted expression may refer to, one per binding of the name."""
        parts = name_parts(expression)
        if parts is None or _is_bound_in_comprehension(expression, scope):
            return ()
        binding = scope.lookup(parts[0])
        several = binding.bindings if isinstance(binding, Several) else ()
        found = [self._symbol(parts, one, scope, _DEPTH) for one in several]
        return tuple(one for one in (*found, self.resolve(expression, scope)) if one)

    def _binding_symbol(
        self, name: str, binding: Binding | None, scope: Scope, depth: int
    ) -> str | None:
        match binding:
            case Import(target=target):
                return self.beside(target, scope.module)
            case Definition(node=node):
                if scope.module.table.get(name) == binding:
                    return f"{scope.module.name}.{name}"
                return self._class_names.get(id(node), f"<local>.{node.name}")
            case Assignment(value=value) if (parts := name_parts(value)) and parts != (name,):
                return self._resolve(parts, scope, depth - 1)
            case Assignment() if scope.module.table.get(name) == binding:
                return f"{scope.module.name}.{name}"
            case _:
                return None

    def beside(self, target: str, module: Module) -> str:
        """An absolute import of a script: the file beside it comes before one of that name elsewhere.

        Files of one name in several folders carry their folders in the module name, so ``models``
        in ``wmt/train.py`` must become ``wmt.models``.
        """
        head, dot, rest = target.partition(".")
        above, slash, _ = module.path.rpartition("/")
        folder = above + slash
        sibling = self._by_path.get(f"{folder}{head}.py")
        if sibling is None or sibling is module or f"{folder}__init__.py" in self._by_path:
            return target
        return f"{sibling.name}{dot}{rest}"

    def import_symbol(self, target: str, module: Module) -> str:
        """Symbol of what an import in a module names, through all re-exports."""
        return self.canonical(self.beside(target, module))

    @cached_property
    def _by_path(self) -> dict[str, Module]:
        return {module.path: module for module in self.modules.values()}

    def _star_symbol(self, name: str, scope: Scope, depth: int) -> str | None:
        """What a star import gives a name, also one of a file that takes it by a star itself."""
        if depth <= 0 or scope.lookup(name) is not None:
            return None
        home = self.stars.home(name, scope.module)
        return f"{home}.{name}" if home is not None else None

    @cached_property
    def stars(self) -> Stars:
        """Where the names come from that modules take by stars."""
        return Stars(self.modules)

    def star_target(self, name: str, module: Module) -> str | None:
        """The symbol of a name that a star of a module binds to what the project has; None of others."""
        home = self.modules.get(self.stars.homes(module)[0].get(name, ""))
        return home.symbol(name) if home is not None else None

    def canonical(self, symbol: str, depth: int = _DEPTH) -> str:
        """Follow re-exports through the project's own modules to where a symbol is defined."""
        module, rest = self.split(symbol)
        if module is None or not rest or depth == 0:
            hidden = self._over_module(symbol) if module is not None and depth else None
            return canonical(symbol) if hidden is None else self.canonical(hidden, depth - 1)
        binding = module.table.get(rest[0])
        tail = list(rest[1:])
        if isinstance(binding, Import):
            return self.canonical(".".join([binding.target, *tail]), depth - 1)
        parts = name_parts(binding.value) if isinstance(binding, Assignment) else None
        if parts is not None:
            target = self._resolve(parts, Scope(module), depth - 1)
            return self.canonical(".".join([target, *tail]), depth - 1) if target else symbol
        if binding is None:
            star = self._star_symbol(rest[0], Scope(module), depth - 1)
            return self.canonical(".".join([star, *tail]), depth - 1) if star else symbol
        return symbol

    def _over_module(self, symbol: str) -> str | None:
        """What a package imports by the name of its own module, also by a star, and so has in its place.

        ``from .plot import plot`` in ``pkg/__init__.py``: after it ``pkg.plot`` is the function.
        """
        home, _, word = symbol.rpartition(".")
        package = self.modules.get(home)
        if package is None:
            return None
        binding = package.table.get(word)
        if isinstance(binding, Import):
            return binding.target if binding.target != symbol else None
        source = self.stars.homes(package)[0].get(word) if binding is None else None
        return f"{source}.{word}" if source is not None else None

    def split(self, symbol: str) -> tuple[Module | None, tuple[str, ...]]:
        """The project module that a symbol lies in and the rest of its name."""
        parts = symbol.split(".")
        for cut in range(len(parts), 0, -1):
            module = self.modules.get(".".join(parts[:cut]))
            if module is not None:
                return module, tuple(parts[cut:])
        return None, tuple(parts)

    def definition(self, symbol: str) -> tuple[Module, ast.AST] | None:
        """Module and node (class, function, or assigned value) that defines a project symbol."""
        if symbol not in self._definitions:
            self._definitions[symbol] = self._definition(symbol)
        return self._definitions[symbol]

    @cached_property
    def _definitions(self) -> dict[str, tuple[Module, ast.AST] | None]:
        return {}

    def _definition(self, symbol: str) -> tuple[Module, ast.AST] | None:
        module, rest = self.split(self.canonical(symbol))
        if module is None or len(rest) != 1:
            return None
        match module.table.get(rest[0]):
            case Definition(node=node):
                return module, node
            case Assignment(value=value):
                return module, value
            case _:
                return None

    def function(self, symbol: str | None) -> ast.FunctionDef | None:
        """The function of the project that a symbol names."""
        found = self.definition(symbol) if symbol is not None else None
        return found[1] if found is not None and isinstance(found[1], ast.FunctionDef) else None

    @cached_property
    def class_statements(self) -> dict[str, ClassStatement]:
        """Every class statement of the project by qualified name."""
        return class_statements(self.modules.values())

    @cached_property
    def _class_names(self) -> dict[int, str]:
        """Qualified names by ``id`` of the class statement."""
        return {id(one.node): name for name, one in self.class_statements.items()}

    @cached_property
    def classes(self) -> dict[str, ClassInfo]:
        """Every class of the project by qualified name."""
        return index_classes(self.class_statements, self.resolve, self.meanings)

    @cached_property
    def by_node(self) -> dict[int, ClassInfo]:
        """The same by ``id`` of the class statement."""
        return {id(cls.node): cls for cls in self.classes.values()}

    @cached_property
    def linen(self) -> dict[str, ClassInfo]:
        """Every Linen module class of the project by qualified name."""
        return {name: cls for name, cls in self.classes.items() if cls.linen}

    def decorators(self, cls: ClassInfo, method: ast.FunctionDef) -> tuple[str, ...]:
        """Symbols of a method's decorators; of a decorator call, the called function's."""
        found = []
        for decorator in method.decorator_list:
            target = callee_of(decorator)
            found.append(self.resolve(target, cls.scope) or ast.unparse(target))
        return tuple(found)

    def is_compact(self, cls: ClassInfo, method: ast.FunctionDef) -> bool:
        """Whether ``method`` may build submodules inline (``@nn.compact``)."""
        return cls.function is not None or "flax.linen.compact" in self.decorators(cls, method)


def _is_bound_in_comprehension(expression: ast.expr, scope: Scope) -> bool:
    variables = scope.module.comprehension_variables
    return bool(variables) and id(first_name(expression)) in variables
