"""Methods of modules without variables: ``Model(width).generate(params, key)``.

Linen runs any method of an unbound module until it asks for a variable or a submodule. The lazy form of
an explicit class runs those that read nothing but fields; for all others it needs variables.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import walk

# What Linen does not do without a scope (flax 0.12.8, linen/module.py).
_BOUND = frozenset(
    {
        *("param", "variable", "make_rng", "sow", "perturb", "variables", "put_variable"),
        *("get_variable", "has_variable", "is_mutable_collection", "is_initializing", "has_rng"),
        *("unbind", "share_scope", "path"),
    }
)


def methods_of(cls: ClassInfo) -> set[str]:
    """Public methods that need more of their module than its fields."""
    found = set()
    for name, method in _every(cls).items():
        if not name.startswith("_") and name != "setup" and not _reads_only(method, _fields(cls)):
            found.add(name)
    return found


def unbound_methods(project: Project, cls: ClassInfo) -> set[str]:
    """Methods that Linen may run without variables, and a lazy form of the explicit class does not."""
    fields = _fields(cls)
    reach = _Reach(project, cls, _every(cls), frozenset(_stored(cls) - fields))
    return {
        name
        for name, method in reach.methods.items()
        if name not in ("setup", "__post_init__", "__init__")
        and not _reads_only(method, fields)
        and not reach.needs_variables(name)
    }


def words_read(project: Project) -> frozenset[str]:
    """Attributes that are read of anything but ``self``, and names that strings say."""
    return frozenset(
        word
        for module in project.modules.values()
        for node in module.nodes
        for word in _words(node)
    )


def _words(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Attribute(value=ast.Name(id="self")):
            return
        case ast.Attribute(attr=word):
            yield word
        case ast.Constant(value=str() as word) if word.isidentifier():
            yield word


@dataclass(frozen=True)
class _Reach:
    """What the methods of a class reach; ``stored`` are the attributes that they set."""

    project: Project
    cls: ClassInfo
    methods: dict[str, ast.FunctionDef]
    stored: frozenset[str]

    def needs_variables(self, name: str, above: frozenset[str] = frozenset()) -> bool:
        """Whether a method reaches a variable or a submodule, itself or in methods that it calls."""
        method = self.methods.get(name)
        if method is None or name in above:
            return False
        if any(_last(one) == "compact" for one in method.decorator_list):
            return True
        words = {word for node in walk(method) for word in self._words(node)}
        if words & (_BOUND | self.stored):
            return True
        return any(self.needs_variables(word, above | {name}) for word in sorted(words))

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


def _reads_only(method: ast.FunctionDef, fields: frozenset[str]) -> bool:
    nodes = walk(method)
    read = [
        one.attr
        for one in nodes
        if isinstance(one, ast.Attribute) and getattr(one.value, "id", None) == "self"
    ]
    named = [one for one in nodes if isinstance(one, ast.Name) and one.id in ("self", "super")]
    return len(read) == len(named) and fields.issuperset(read)


def _fields(cls: ClassInfo) -> frozenset[str]:
    return frozenset(one.name for one in cls.fields)


def _every(cls: ClassInfo) -> dict[str, ast.FunctionDef]:
    """The methods that instances have, by name."""
    found: dict[str, ast.FunctionDef] = {}
    for owner in cls.mro:
        for name, method in owner.methods.items():
            found.setdefault(name, method)
    return found


def _stored(cls: ClassInfo) -> set[str]:
    """Attributes that methods set: submodules, variables, what `setup` makes of fields."""
    return {
        node.attr
        for owner in cls.mro
        for node in walk(owner.node)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and getattr(node.value, "id", None) == "self"
    }


def _last(node: ast.expr) -> str:
    """``compact`` of ``nn.compact``."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
