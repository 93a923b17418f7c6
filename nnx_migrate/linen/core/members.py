"""What a lazy class takes over from its explicit one: methods, properties and plain values."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import textwrap
from typing import Any, Generic, Protocol

from flax import nnx

from nnx_migrate import nn as nnm
from nnx_migrate.linen.core import submodule_views
from nnx_migrate.linen.core.wrapping import compact, nowrap

_SPECIAL = re.compile(r"__\w+__")
# Special methods that make, copy and look into instances: lazy classes have their own.
_OWN = frozenset(
    "__init__ __new__ __post_init__ __init_subclass__ __getattr__ __getattribute__ __setattr__ "  # noqa: SIM905
    "__delattr__ __reduce__ __reduce_ex__ __getstate__ __setstate__ __copy__ __deepcopy__".split()
)


def members_of(cls: Any) -> dict[str, Any]:
    """What the class and its bases define, private names aside; special methods are public."""
    found: dict[str, Any] = {}
    for base in cls.__mro__:
        if base is nnx.Module:
            break
        for name, value in vars(base).items():
            if not name.startswith("_") or _is_special(name, value):
                found.setdefault(name, value)
    return found


class _NoHooks:
    """Stands before plain bases of a lazy class: their hooks have seen the explicit one."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        pass


def plain_bases(cls: Any) -> tuple[Any, ...]:
    """Bases of a class that are no modules, so that ``isinstance(lazy(Net)(), Mixin)`` holds, too.

    Those of typing say nothing, and a dataclass would add its fields to those of the constructor.
    """
    modules = [
        one for one in cls.__mro__ if issubclass(one, nnx.Module) and one not in nnx.Module.__mro__
    ]
    named = {base for one in modules for base in one.__bases__ if not issubclass(base, nnx.Module)}
    found = [one for one in cls.__mro__ if one in named and _is_plain(one)]
    return (_NoHooks, *found) if found else ()


def _is_plain(base: Any) -> bool:
    return base not in (*nnx.Module.__mro__, Generic, Protocol) and not hasattr(
        base, "__dataclass_fields__"
    )


def _is_special(name: str, value: Any) -> bool:
    """Whether it says what instances are to Python: ``__len__``, ``__hash__`` or that it has none."""
    is_method = inspect.isfunction(value) or (name == "__hash__" and value is None)
    return is_method and name not in _OWN and _SPECIAL.fullmatch(name) is not None


def _calls_something(cls: Any) -> bool:
    """Whether the constructor calls or raises something; True where that does not show."""
    if cls.__init__ is nnx.Module.__init__:
        return False
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls.__init__)))
    except (OSError, SyntaxError, ValueError):
        return True
    return any(isinstance(one, ast.Raise | ast.Assert | ast.Call) for one in ast.walk(tree))


def lazy_member(cls: Any, name: str, value: Any, fields: frozenset[str]) -> Any:
    """A member for the lazy class: methods run on the explicit module, unless fields are enough.

    So do properties of a bound module: what they read may be the explicit module's alone. The
    constructor runs before a call, as Linen's ``setup`` does, where it may raise or make variables.
    """
    if isinstance(value, property) and not _reads_only(value.fget, fields):
        return property(
            lambda self: (
                value.__get__(self)
                if self.scope is None
                else submodule_views.read(self._nnm_calls(), (), name)
            ),
            doc=value.__doc__,
        )
    if not inspect.isfunction(value):
        return value
    if not _reads_only(value, fields):
        return _forward(name, value)
    if name != "__call__":
        return nowrap(value)  # a call is recorded
    return _check_call(value, _forward(name, value)) if _calls_something(cls) else value


def _check_call(call: Any, initial: Any) -> Any:
    """A call that reads fields alone; the ``initial`` one makes what the constructor does all the same."""

    @functools.wraps(call)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.scope is not None:
            if self.is_initializing():
                return initial(self, *args, **kwargs)
            if not type(self)._nnm_sizes:
                self._nnm_calls().abstract()
        return call(self, *args, **kwargs)

    return method


def _reads_only(function: Any, fields: frozenset[str]) -> bool:
    """Whether a method reads nothing of its module but fields; False where that does not show.

    What it asks `nnx_migrate.nn` (``nnm.is_initializing()``) is answered in calls of the explicit module.
    """
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    except (OSError, SyntaxError, ValueError):
        return False
    if not isinstance(tree, ast.FunctionDef):
        return False
    spec = tree.args
    first = next((one.arg for one in (*spec.posonlyargs, *spec.args)), None)
    nodes = list(ast.walk(tree))
    read = [one for one in nodes if isinstance(one, ast.Attribute) and _is(one.value, first)]
    asks = any(
        isinstance(one, ast.Name) and function.__globals__.get(one.id) is nnm for one in nodes
    )
    named = [one for one in nodes if _is(one, first) or _is(one, "super") or _is(one, "__class__")]
    return not asks and len(named) == len(read) and all(one.attr in fields for one in read)


def _is(node: ast.AST, name: str | None) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _forward(name: str, value: Any) -> Any:
    @functools.wraps(value)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self._nnm_calls().call(name, args, kwargs)

    return compact(method)
