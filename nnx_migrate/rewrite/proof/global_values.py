"""What the globals of files are: objects that may keep what they are given, or nothing of the kind."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache

from nnx_migrate.rewrite.proof.fillers import names_of, rename
from nnx_migrate.rewrite.proof.pieces import DEFINITIONS, Key
from nnx_migrate.source.bindings import names_bound_at, plain_bindings_at, target_names
from nnx_migrate.source.names import last_name
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import given_values, walk

_LOGGER = "logging.getLogger"  # keeps texts
_PARTIAL = "functools.partial"


@dataclass
class _Bound:
    """What the code of a file binds outside of its top-level functions and classes, by name.

    Attributes:
      values: what assignments and loops bind.
      words: the words of these values.
      definitions: functions and classes that stand in blocks.
      imports: names that imports in blocks bind.
    """

    values: dict[str, list[ast.expr]] = field(default_factory=dict)
    words: dict[str, set[str]] = field(default_factory=dict)
    definitions: set[str] = field(default_factory=set)
    imports: set[str] = field(default_factory=set)


class Globals:
    """The globals of a project, by the node of a file's code that binds them."""

    def __init__(
        self,
        project: Project,
        statements: Mapping[Key, list[ast.stmt]],
        imports: Mapping[str, Mapping[str, str]],
    ) -> None:
        self._project = project
        self._statements = statements
        self._renamed = imports
        self._bound = cache(self._bound_by)

    def words(self, key: Key, word: str) -> Iterable[str]:
        """The words of what a global is bound to."""
        return self._bound(key).words.get(word, ())

    def is_defined(self, key: Key, word: str) -> bool:
        """Whether it is a function or class of a block: ``if FAST: def register(make): ...``."""
        return word in self._bound(key).definitions

    def may_keep(self, key: Key, word: str, *, is_called: bool = False) -> bool:
        """Whether it may be an object that keeps what its methods, or calls of it, are given."""
        bound = self._bound(key)
        if word in bound.values:
            return any(self._keeps(key[0], one, is_called) for one in bound.values[word])
        return word not in bound.imports | bound.definitions

    def _bound_by(self, key: Key) -> _Bound:
        found = _Bound()
        for node in (node for one in self._statements[key] for node in walk(one)):
            for target, value in plain_bindings_at(node):
                for name in target_names(target):
                    found.values.setdefault(name, []).append(value)
                    words = rename({*names_of(value)}, self._renamed[key[0]])
                    found.words.setdefault(name, set()).update(words)
            if isinstance(node, DEFINITIONS):
                found.definitions.add(node.name)
            if isinstance(node, ast.Import | ast.ImportFrom):
                found.imports.update(names_bound_at(node))
        return found

    def _keeps(self, module: str, value: ast.AST, is_called: bool, depth: int = 4) -> bool:
        match value:
            case ast.Constant() | ast.JoinedStr() | ast.Compare() | ast.UnaryOp() | ast.Lambda():
                return False
            case ast.Name() | ast.Attribute():
                symbols = self._symbols(module, value)
                return not symbols or any(self._means(one, is_called, depth) for one in symbols)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return False  # what it fills is linked with who hands it something
            case ast.IfExp(body=body, orelse=orelse):
                return any(self._keeps(module, one, is_called, depth) for one in (body, orelse))
            case ast.Call(func=function):
                symbols = self._symbols(module, function)
                if _LOGGER in symbols:
                    return False
                # What a function of a library makes of one keeps nothing: ``jit(f)``.
                is_function = is_called and not last_name(function)[:1].isupper()
                is_own = not symbols or any(map(self._is_own, symbols))
                if _PARTIAL in symbols or (is_function and not is_own):
                    parts = given_values(value)
                    return any(self._keeps(module, one, is_called, depth) for one in parts)
        return True

    def _means(self, symbol: str, is_called: bool, depth: int) -> bool:
        found = self._project.definition(symbol)
        if found is not None and depth:
            return self._keeps(found[0].name, found[1], is_called, depth - 1)
        return self._is_own(symbol)

    def _is_own(self, symbol: str) -> bool:
        return self._project.split(symbol)[0] is not None

    def _symbols(self, module: str, node: ast.expr) -> tuple[str, ...]:
        """What a name may refer to; nothing where that is not known."""
        scope = Scope(self._project.modules[module]).around(node)
        return self._project.meanings(node, scope)
