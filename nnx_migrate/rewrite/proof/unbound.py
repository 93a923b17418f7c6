"""Methods of modules without variables: ``Model(width).generate(params, key)``.

Linen runs any method of an unbound module until it asks for a variable or a submodule. The lazy form of
an explicit class runs those that read nothing but fields; for all others it needs variables.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each, walk

# What Linen does not do without a scope (flax 0.12.8, linen/module.py).
_BOUND = frozenset(
    {
        *("param", "variable", "make_rng", "sow", "perturb", "variables", "put_variable"),
        *("get_variable", "has_variable", "is_mutable_collection", "is_initializing", "has_rng"),
        *("unbind", "share_scope", "path"),
    }
)
_MAKING = frozenset({"setup", "__init__", "__post_init__"})


def methods_of(project: Project, cls: ClassInfo) -> set[str]:
    """Public methods that need more of their module than its fields, or build something in it."""
    public = (one for one in _names(cls) if not one.startswith("_"))
    return {one for one in public if not _reads_only(cls, one) or _builds(project, cls, one)}


def unbound_methods(project: Project, cls: ClassInfo) -> set[str]:
    """Methods that Linen may run without variables, and a lazy form of the explicit class does not."""
    reach = _Reach(project, cls, frozenset(method_attributes(cls)))
    names = {one for one in _names(cls) if not reach.needs_variables(one)}
    return {
        one
        for one in names
        if not (_reads_only(cls, one) if is_special(one) else _runs_alone(cls, one, frozenset()))
    }


def special_methods(cls: ClassInfo) -> dict[str, ast.FunctionDef]:
    """Methods that Python itself calls, modules without variables included: ``__eq__``, ``__len__``."""
    found = {name: cls.find(name) for name in sorted(_names(cls)) if is_special(name)}
    return {name: one[1] for name, one in found.items() if one is not None}


def is_special(name: str) -> bool:
    """Whether a method says what an instance is to Python, its call aside."""
    return name.startswith("__") and name.endswith("__") and name != "__call__"


def method_attributes(cls: ClassInfo) -> set[str]:
    """Attributes beside fields that methods set: submodules, variables, what is computed of them."""
    found = {
        node.attr
        for owner in cls.mro
        for node in each(owner.node, ast.Attribute)
        if isinstance(node.ctx, ast.Store) and getattr(node.value, "id", None) == "self"
    }
    return found - _fields(cls)


@lru_cache(maxsize=1)  # every attempt of a run asks
def words_read(project: Project) -> frozenset[str]:
    """Attributes that are read of anything but ``self`` and ``super()``, and names that strings say."""
    return frozenset(
        word
        for module in project.modules.values()
        for node in module.nodes
        for word in _words(node)
    )


def _words(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Attribute(value=ast.Name(id="self") | ast.Call(func=ast.Name(id="super"))):
            return
        case ast.Attribute(attr=word):
            yield word
        case ast.Constant(value=str() as word) if word.isidentifier():
            yield word


Method: TypeAlias = tuple[ClassInfo, ast.FunctionDef]


@dataclass(frozen=True)
class _Reach:
    """What the methods of a class reach; ``attributes`` are those that they set."""

    project: Project
    cls: ClassInfo
    attributes: frozenset[str]

    def needs_variables(self, name: str) -> bool:
        """Whether a method reaches a variable or a submodule, itself or in methods that it calls."""
        return self._reaches(self.cls.find(name), frozenset())

    def _reaches(self, method: Method | None, above: frozenset[int]) -> bool:
        if method is None or id(method[1]) in above:
            return False
        if self.project.is_compact(*method):
            return True
        words = {word for node in walk(method[1]) for word in self._words(node)}
        if words & (_BOUND | self.attributes):
            return True
        methods = [*map(self.cls.find, sorted(words)), *self._of_bases(method)]
        return any(self._reaches(one, above | {id(method[1])}) for one in methods)

    def _of_bases(self, caller: Method) -> Iterator[Method]:
        """Methods that a method calls as ``super().name(...)`` or ``Base.name(self, ...)``."""
        owner, method = caller
        bases = self.cls.mro[self.cls.mro.index(owner) + 1 :]
        for one in each(method, ast.Attribute):
            match one.value:
                case ast.Call(func=ast.Name(id="super")):
                    yield from [
                        (base, base.methods[one.attr]) for base in bases if one.attr in base.methods
                    ][:1]
                case ast.Name() | ast.Attribute():
                    symbol = self.project.resolve(one.value, owner.scope)
                    named = next((base for base in bases if base.name == symbol), None)
                    inherited = named and named.find(one.attr)
                    yield from [inherited] if inherited else []

    def _words(self, node: ast.AST) -> Iterator[str]:
        """Attributes of ``self`` that a node reads, of calls too: ``self(x)``, ``jax.vmap(self)``."""
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=word):
                yield word
            case ast.Call(func=ast.Name(id="self")):
                yield "__call__"
            case ast.Call(func=func, args=[ast.Name(id="self"), *_]):
                if (self.project.resolve(func, self.cls.scope) or "").startswith("jax."):
                    yield "__call__"


def _names(cls: ClassInfo) -> frozenset[str]:
    """The methods that instances have, but those that make them."""
    return cls.method_names - _MAKING


def _reads_only(cls: ClassInfo, name: str) -> bool:
    """Whether a method reads nothing of its module but fields."""
    return _fields(cls).issuperset(_read(cls, name))


def _builds(project: Project, cls: ClassInfo, name: str) -> bool:
    found = cls.find(name)
    return found is not None and project.is_compact(*found)


def _runs_alone(cls: ClassInfo, name: str, above: frozenset[str]) -> bool:
    """Whether a method reads fields alone, itself and in the plain methods of its own that it calls."""
    methods = _read(cls, name) - _fields(cls)
    return all(
        one in above or (_is_plain(cls, one) and _runs_alone(cls, one, above | {name}))
        for one in methods
    )


def _is_plain(cls: ClassInfo, name: str) -> bool:
    found = cls.find(name)
    return found is not None and name not in _MAKING and not found[1].decorator_list


def _read(cls: ClassInfo, name: str) -> frozenset[str]:
    """What a method reads of its module; "" where it does more with it."""
    found = cls.find(name)
    assert found is not None
    nodes = walk(found[1])
    read = [
        one.attr
        for one in nodes
        if isinstance(one, ast.Attribute) and getattr(one.value, "id", None) == "self"
    ]
    named = [one for one in nodes if isinstance(one, ast.Name) and one.id in ("self", "super")]
    return frozenset(read) | ({""} if len(read) != len(named) else frozenset())


def _fields(cls: ClassInfo) -> frozenset[str]:
    return frozenset(one.name for one in cls.fields)
