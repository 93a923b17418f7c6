"""Methods of modules without variables: ``Model(width).generate(params, key)``.

Linen runs any method of an unbound module until it asks for a variable or a submodule. The lazy form of
an explicit class runs those that read nothing but fields; for all others it needs variables.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

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


def unbound_methods(cls: ClassInfo) -> set[str]:
    """Methods that Linen may run without variables, and a lazy form of the explicit class does not."""
    fields, every = _fields(cls), _every(cls)
    return {
        name
        for name, method in every.items()
        if name not in ("setup", "__post_init__", "__init__")
        and (name == "__call__" or not _reads_only(method, fields))
        and not _needs_variables(name, every, _stored(cls) - fields, frozenset())
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


def _needs_variables(
    name: str, every: dict[str, ast.FunctionDef], stored: set[str], above: frozenset[str]
) -> bool:
    """Whether a method reaches a variable or a submodule, itself or in methods that it calls."""
    method = every.get(name)
    if method is None or name in above:
        return False
    if any(_last(one) == "compact" for one in method.decorator_list):
        return True
    for node in walk(method):
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=word):
                pass
            case ast.Call(func=ast.Name(id="self")):
                word = "__call__"
            case _:
                continue
        if word in _BOUND or word in stored:
            return True
        if _needs_variables(word, every, stored, above | {name}):
            return True
    return False


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
