"""Classes that stand inside functions, found without running the functions.

``module.f.<locals>.Layer`` exists only while ``f`` runs. What the class needs of ``f`` is its class
statement and, as far as it reads their names, the statements that bind them (:mod:`slicing`): those alone
are run, from the source of the module that this process imports. Both sides of a comparison so take
the same statements, each from its own tree. What comes from the arguments of ``f`` or from a loop
is not known and is refused, unless the arguments were recorded; ``self`` of a ``unittest.TestCase``
is a new instance. Of several classes of one name, ``Layer:1`` is the first; no statement below it runs.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import unittest
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from nnx_migrate.evidence.statements import statement_name
from nnx_migrate.parity.case import BadCase
from nnx_migrate.parity.instantiation.slicing import (
    Function,
    bound_names,
    loop_names,
    parameters,
    slice_of,
)

LOCALS = "<locals>"

_Path = Sequence[ast.ClassDef | Function]


class NotAlone(BadCase):
    """The class cannot be made without running its function; the message is one line."""


def is_local(qualname: str) -> bool:
    """Whether a qualified name passes through a function."""
    return LOCALS in qualname.split(".")


def find_local(module: str, qualname: str) -> Any:
    """Return what ``qualname`` names below ``module``; the same object every time.

    Raises:
        NotAlone: what it reads of its function is not to be had without running that.
        ImportError: there is no such module.
    """
    owner, _, inside = qualname.rpartition(f".{LOCALS}.")
    first, *rest = inside.split(".")
    if any(":" in part for part in rest):
        raise NotAlone(f"{first} has several classes {rest[-1].partition(':')[0]}")
    made = _locals_of(module, owner, first, _calls.get((module, owner)))
    value = made[first.partition(":")[0]]
    for part in rest:
        value = getattr(value, part)
    if isinstance(value, type):
        _found[value] = module, qualname
    return value


_found: dict[type, tuple[str, str]] = {}


def place_of(cls: type) -> tuple[str, str]:
    """Module and qualified name of a class; where it was found, for one that a lift made of it."""
    return _found.get(cls) or (cls.__module__, statement_name(cls))


def stated_class(value: Any, qualname: str) -> Any:
    """The class that the statement of a name made, where ``nn.remat`` or so made ``value`` of it."""
    classes = value.__mro__ if isinstance(value, type) else ()
    return next((one for one in classes if one.__qualname__ == qualname), value)


_CallText = tuple[str, Callable[[str], Mapping[str, Any]]]
_calls: dict[tuple[str, str], _CallText] = {}


def recorded_arguments(
    module: str, function: str, text: str, read: Callable[[str], Mapping[str, Any]]
) -> None:
    """From now on, ``function`` is known to have been called with ``read(text)``, as far as that goes.

    The same text stands for the same arguments.
    """
    _calls[module, function] = text, read


def _locals_of(module: str, function: str, name: str, call: _CallText | None) -> Mapping[str, Any]:
    """The locals of a function after the statements that ``name`` hangs on; made once."""
    key = (module, function, name, call[0] if call else "")
    if key not in _locals_cache:
        _locals_cache[key] = _new_locals(module, function, name, call)
    return _locals_cache[key]


_locals_cache: dict[tuple[str, str, str, str], Mapping[str, Any]] = {}


def _new_locals(module: str, function: str, name: str, call: _CallText | None) -> Mapping[str, Any]:
    home = importlib.import_module(module)
    if is_local(function):
        raise NotAlone(f"{module}.{function} is itself local to a function")
    path = _path_to(home, function)
    node = path[-1]
    if not isinstance(node, Function):
        raise NotAlone(f"{module}.{function} is no function")
    plain, colon, number = name.partition(":")
    last = _statement(node, plain, number) if colon else None
    body, names = slice_of(node, plain, last)
    if not body:
        raise NotAlone(f"{module}.{function} does not bind {name}")
    unbound = names - bound_names(body) - {*parameters(node)}
    if unbound:
        raise NotAlone(f"{name} reads {min(unbound)}, which {function} binds below it")
    loop_variables = loop_names(body) & names
    if loop_variables:
        raise NotAlone(f"{name} reads {min(loop_variables)}, which a loop of {function} binds")
    values = call[1](call[0]) if call and names & {*parameters(node)} else {}
    rebound = names & values.keys() & bound_names(node.body)
    if rebound:
        raise NotAlone(f"{name} reads {min(rebound)}, an argument that {function} binds again")
    arguments = _arguments(home, path, names, values)
    made = _returning_locals(home, path, body)
    try:
        found: Mapping[str, Any] = made(**arguments)
    except Exception as error:
        raise NotAlone(f"{name} alone: {function} raises {error!r}") from error
    return found


def _statement(function: Function, name: str, number: str) -> ast.stmt:
    """The class statement of that number, from 1, among those of one name in a function."""
    nodes = (one for one in ast.walk(function) if isinstance(one, ast.ClassDef))
    classes = [one for one in nodes if one.name == name]  # those of the body itself come first
    has_number = number.isdecimal() and 0 < int(number) <= len(classes)
    if not has_number or any(one not in function.body for one in classes):
        raise NotAlone(f"which class {name} of {function.name} it is is not known")
    return classes[int(number) - 1]


def _path_to(home: ModuleType, function: str) -> _Path:
    """The statements from the module down to a function."""
    body = ast.parse(inspect.getsource(home)).body
    path: list[ast.ClassDef | Function] = []
    for part in function.split("."):
        found = [one for one in body if isinstance(one, ast.ClassDef | Function)]
        found = [one for one in found if one.name == part]
        if len(found) != 1:
            raise NotAlone(f"{home.__name__} has {len(found)} statements that define {function}")
        path.append(found[0])
        body = found[0].body
    return path


def _returning_locals(home: ModuleType, path: _Path, body: Sequence[ast.stmt]) -> Any:
    """The function with another body, which returns its locals; nested as it was, for the names."""
    node = path[-1]
    assert isinstance(node, Function)
    names = parameters(node)
    plain = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
    ending = ast.parse("return locals()").body
    inner: ast.stmt = ast.FunctionDef(node.name, plain, [*body, *ending], [])
    for outer in reversed(path[:-1]):
        inner = ast.ClassDef(outer.name, [], [], [inner], [])
    tree = ast.fix_missing_locations(ast.Module([inner], []))
    namespace = dict(vars(home))
    exec(compile(tree, str(home.__file__), "exec"), namespace)  # noqa: S102 - the user's own source
    found = namespace[path[0].name]
    for one in path[1:]:
        found = vars(found)[one.name]
    return found


def _arguments(
    home: ModuleType, path: _Path, parameters_read: frozenset[str], values: Mapping[str, Any]
) -> dict[str, Any]:
    """Every parameter of a function: what the slice does not read is None."""
    found: Any = home
    for one in path[:-1]:
        found = getattr(found, one.name)
    node = path[-1]
    assert isinstance(node, Function)
    names = parameters(node)
    arguments: dict[str, Any] = dict.fromkeys(names)
    for name in parameters_read & arguments.keys():
        if name in values:
            arguments[name] = values[name]
            continue
        if name != names[0] or not _is_test_case(found):
            raise NotAlone(f"it reads {name}, an argument of {node.name}, which was not recorded")
        arguments[name] = found(node.name) if hasattr(found, node.name) else found()
    return arguments


def _is_test_case(owner: Any) -> bool:
    return isinstance(owner, type) and issubclass(owner, unittest.TestCase)
