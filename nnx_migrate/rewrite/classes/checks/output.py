"""Checks of what a conversion has written."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Sequence

from nnx_migrate.constructs import is_linen
from nnx_migrate.constructs.common.base import IMPORTS
from nnx_migrate.rewrite.classes.checks.conflicts import read_too_early
from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.sizes.out_variables import OUT_VARIABLE
from nnx_migrate.sizes.scope_functions import COUNTER
from nnx_migrate.source.bindings import bound_names, names_bound_below
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each, names_in, names_read, walk

RULE = "class"
_BUILTINS = frozenset(dir(builtins))


def check_init(cls: ClassInfo, tree: ast.Module, builders: frozenset[str] = frozenset()) -> None:
    """Every name that ``__init__`` reads is a parameter, a local, a global or a builtin.

    Args:
      tree: ``__init__``, what stands before it and the properties.
      builders: names of functions that are written elsewhere in this run.

    Raises:
      Refused: one is none of these, or is read before it is bound.
    """
    functions = each(tree, ast.FunctionDef)
    function = functions[0]
    early = read_too_early(function)
    if early is not None:
        raise ClassRefused(
            cls.node,
            f"a size in the converted __init__ needs {early!r} before it is known",
            "build the submodule where its input is known, or give the size as a field",
            "sizes",
        )
    _check_own(cls, function)
    _check_builtins(cls, functions)
    imported = {name.partition(".")[0] for name in IMPORTS}
    known = {*_BUILTINS} | imported | {"__class__"} | _class_names(cls) | builders
    inside = set(walk(function))
    for one in functions:
        own = names_bound_below(function if one in inside else one) - {one.name}
        _check_names(cls, one, known | own)


def _check_own(cls: ClassInfo, function: ast.FunctionDef) -> None:
    """Refuse locals of the class's code that are called as locals of ``__init__`` are."""
    nodes = list(walk(function))
    bound = {
        one.id for one in nodes if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    }
    called = {
        one.func.id for one in nodes if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)
    }
    own = {name for name in bound if name.startswith(OUT_VARIABLE)}
    conflicts = (own | (called & {COUNTER})) & cls.local_names
    conflicts |= {"rngs"} & (bound | (cls.module.table.keys() & cls.local_names))
    if conflicts:
        name = min(conflicts)
        raise ClassRefused(cls.node, f"its code uses the name {name!r}", "rename it", "names")


def _check_builtins(cls: ClassInfo, functions: Sequence[ast.FunctionDef]) -> None:
    """Refuse builtins that are written here and mean something else: in the file, the function or the class."""
    own = {
        one.id
        for method in cls.methods.values()
        for one in each(method, ast.Name)
        if isinstance(one.ctx, ast.Load)
    }
    methods = _class_names(cls)
    for function in functions:
        bound = names_bound_below(function)
        written = (one.annotation for one in each(function, ast.arg))
        annotations = {id(one) for part in written if part is not None for one in walk(part)}
        for one in each(function, ast.Name):
            if one.id in own or one.id not in _BUILTINS or not isinstance(one.ctx, ast.Load):
                continue
            hidden = one.id in bound or cls.scope.lookup(one.id) is not None
            if hidden or (id(one) in annotations and one.id in methods):
                raise ClassRefused(
                    cls.node,
                    f"__init__ or a property needs the builtin {one.id!r}, which means something else here",
                    "rename it",
                    "names",
                )


def _check_names(cls: ClassInfo, function: ast.FunctionDef, names: set[str]) -> None:
    starred = names_in(cls.node) if cls.module.stars else set()
    for node in walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found = node.id in names or cls.scope.lookup(node.id) is not None
            if not found and node.id not in starred:  # what a star imports, the class read before
                raise ClassRefused(
                    cls.node,
                    f"the converted __init__ reads {node.id!r}, which is not known there",
                    "report this: the rewriter missed a name",
                    RULE,
                )


def _class_names(cls: ClassInfo) -> set[str]:
    return {name for one in cls.node.body for name in bound_names(one)}


def check_class(
    project: Project, cls: ClassInfo, tree: ast.Module, staying: Iterable[ast.AST] = ()
) -> None:
    """The new class names no Linen symbol but those in the nodes that stay, and has what its methods read.

    Raises:
      Refused: it names one, or a method reads a local name that it no longer binds.
    """
    _check_bound(cls, tree)
    known = {project.resolve(one, cls.scope) for one in staying if isinstance(one, ast.expr)}
    for one, scope in cls.scope.reads(tree):
        symbol = project.resolve(one, scope)
        if is_linen(symbol) and symbol not in known:
            raise ClassRefused(
                cls.node,
                f"{symbol} would remain in the converted class",
                "report this: the rewriter missed a use",
                RULE,
            )


def _check_bound(cls: ClassInfo, tree: ast.Module) -> None:
    made = {one.name: one for one in each(tree, ast.FunctionDef)}
    for name in cls.methods.keys() & made.keys():
        missing_names = names_bound_below(cls.methods[name]) - names_bound_below(made[name])
        read = names_read(made[name])
        if missing_names & read:
            raise ClassRefused(
                cls.methods[name],
                f"the converted {name} reads {min(missing_names & read)!r}, which is not known there",
                "report this: the rewriter missed a name",
                RULE,
            )
