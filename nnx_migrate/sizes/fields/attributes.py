"""What code gives attributes of any object: ``config.act`` after ``Config(act=nn.relu)``."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence

from nnx_migrate.sizes.fields.constructor_arguments import COPYING
from nnx_migrate.source.bindings import target_names
from nnx_migrate.source.facts import Fact
from nnx_migrate.source.modules import Module, Scope
from nnx_migrate.source.names import last_name
from nnx_migrate.source.project import Project

_OF_ARRAYS = frozenset({"T", "dtype", "ndim", "shape", "size"})
_OPTIONS = ("add_argument", "option", "DEFINE_")  # argparse, click, absl
_COPYING = COPYING | {"dict", "update"}
_Given = tuple[ast.expr, Module, ast.Call | None]  # with the call whose keyword it is


def given_attributes(
    project: Project, name: str, classes: Collection[str] = ()
) -> Iterator[tuple[ast.expr, Module]]:
    """What attributes of that name are given, but those of arrays, and the file it stands in.

    By constructors and functions of the project, by assignments and class bodies, by dicts, which
    configurations are made from, and by options of the command line. Where ``classes`` are named, those of theirs.
    """
    for value, module, call in () if name in _OF_ARRAYS else _attributes(project).get(name, ()):
        if classes and not _is_of(classes, value, module, call):
            continue
        if call is None or _may_keep(project, module, call):
            yield value, module


def _is_of(
    classes: Collection[str], value: ast.expr, module: Module, call: ast.Call | None
) -> bool:
    """Whether a value may be one for objects of these classes: in their text, or for one that is made or copied."""
    if call is not None:
        word = last_name(call.func)
        return word in classes or word in _COPYING or word.startswith(_OPTIONS)
    around = module.parents.class_of(value)
    return around is None or around.name in classes


def _may_keep(project: Project, module: Module, call: ast.Call) -> bool:
    """Whether a call may give an object its keywords: not those of libraries, and not methods of arrays."""
    word = last_name(call.func)
    if word.startswith(_OPTIONS) or word in _COPYING:
        return True
    symbol = project.resolve(call.func, Scope(module).around(call))
    if symbol is None:
        return isinstance(call.func, ast.Name) or word[:1].isupper()
    return project.split(symbol)[0] is not None


@Fact
def _attributes(project: Project) -> Mapping[str, Sequence[_Given]]:
    found: dict[str, list[_Given]] = {}
    for module in project.modules.values():
        for node in module.nodes:
            call = node if isinstance(node, ast.Call) else None
            for word, value in _keywords(node):
                found.setdefault(word, []).append((value, module, call))
    return found


def _keywords(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The words that a node gives values."""
    match node:
        case ast.Call(
            func=function, args=[ast.Constant(value=str() as flag), *others], keywords=named
        ) if (
            last_name(function).startswith(_OPTIONS)
        ):  # ``add_argument("--hidden-size", default=1)``, ``DEFINE_integer("hidden_size", 1, ...)``
            defaults = (one.value for one in named if one.arg == "default")
            for value in (*others, *defaults):
                yield flag.lstrip("-").replace("-", "_"), value
        case ast.Call(keywords=keywords):
            yield from ((one.arg, one.value) for one in keywords if one.arg is not None)
        case ast.Assign(targets=[ast.Attribute(attr=word)], value=value):
            yield word, value
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key.value, value
        case ast.ClassDef(body=body):
            for one in body:
                match one:
                    case (
                        ast.AnnAssign(target=target, value=ast.expr() as value)
                        | ast.Assign(targets=[target], value=value)
                    ):
                        yield from ((word, value) for word in target_names(target))
