"""Twins: the classes of built modules. A twin is its definition's class as a pytree of NNX's kind.

Its methods and properties run the definition's own on a bound copy.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable
from typing import Any

import jax
from flax.nnx import Variable as NnxVariable
from flax.nnx import graphlib
from flax.nnx import module as nnx_module

from nnx_migrate.linen.core.calls import run_built
from nnx_migrate.linen.core.graph import DEFINITION, collection_of, restore
from nnx_migrate.linen.core.module import Module
from nnx_migrate.linen.core.static import Static, is_fixed
from nnx_migrate.linen.core.wrapping import DescriptorWrapper

# What a built module keeps of its place in a graph until it changes.
_STATIC, _KEYS = "_kept_static", "_kept_keys"


class BuiltNode:
    """A module with variables: mixed into the twin of its class.

    ``_nnm_attributes``: what hangs on the module, attribute -> (collection, name); the collection is None
    for children. The name is Linen's, the attribute the same wherever it is free.
    """

    _nnm_is_built = True
    _nnm_is_part = False  # of another built module
    _nnm_attributes: dict[str, tuple[str | None, str]]
    _nnm_definition_type: Any
    _nnm_fields: tuple[str, ...]
    name: str | None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        # Not passed on: a twin is no class of the user's, whose hooks must not see it.
        pass

    @classmethod
    def _nnm_definition_class(cls) -> Any:
        return cls._nnm_definition_type

    def _nnm_static_part(self) -> Static:
        static: Static | None = vars(self).get(_STATIC)
        if static is None:
            static = self._nnm_made_static()
            self._nnm_keep(static)
        return static

    def _nnm_keep(self, static: Static) -> None:
        if all(map(is_fixed, static.value[0].values())):  # no list that may change in place
            object.__setattr__(self, _STATIC, static)

    def _nnm_made_static(self) -> Static:
        attributes = self._nnm_attributes
        fields = {
            field: vars(self)[field]
            for field in self._nnm_fields
            if field in vars(self) and field not in attributes
        }
        items = tuple(sorted(attributes.items()))
        return Static((fields, self.name, items, self._nnm_is_part, None))

    def _nnm_keys(self) -> dict[str, str]:
        """Keys of NNX's graph and state, in order, and their attributes.

        The key is Linen's name, also where the attribute could not have it. Of variables of one name
        in several collections the parameter has it, the others ``name_collection``.
        """
        cached_keys: dict[str, str] | None = vars(self).get(_KEYS)
        if cached_keys is not None:
            return cached_keys
        keys: dict[str, str] = {}
        first = sorted(
            self._nnm_attributes.items(), key=lambda one: one[1][0] not in (None, "params")
        )
        for attribute, (collection, name) in first:
            key = f"{name}_{collection}" if name in keys else name
            keys[key] = attribute
        keys = dict(sorted(keys.items()))
        object.__setattr__(self, _KEYS, keys)
        return keys

    def _nnm_hold(self, attribute: str, collection: str | None, name: str) -> None:
        """Note that an attribute holds a child, or a variable of a collection."""
        self._nnm_attributes[attribute] = (collection, name)
        self._nnm_forget()

    def _nnm_become_part(self) -> None:
        """Stand inside of another built module."""
        object.__setattr__(self, "_nnm_is_part", True)
        self._nnm_forget()

    def _nnm_forget(self) -> None:
        for cache_name in (_STATIC, _KEYS):
            vars(self).pop(cache_name, None)

    def _nnm_nodes(self) -> list[tuple[str, Any]]:
        return [(key, vars(self)[attribute]) for key, attribute in self._nnm_keys().items()]

    def _graph_node_flatten(self) -> Any:
        nodes = [(name, graphlib.DataElem(value)) for name, value in self._nnm_nodes()]
        static = (DEFINITION, graphlib.StaticElem(self._nnm_static_part()))
        return sorted([*nodes, static], key=lambda node: node[0]), type(self)

    def _graph_node_set_key(self, key: Any, value: Any) -> None:
        attribute = self._nnm_keys().get(str(key), str(key))
        found = vars(self).get(attribute)
        if isinstance(found, NnxVariable) and isinstance(value, NnxVariable):
            found.update_from_state(value)
        else:
            setattr(self, attribute, value)

    def _graph_node_pop_key(self, key: Any) -> Any:
        attribute = self._nnm_keys()[str(key)]
        value = vars(self)[attribute]
        delattr(self, attribute)
        return value

    def _pytree__flatten(self) -> Any:
        nodes = self._nnm_nodes()
        static = (type(self), tuple(name for name, _ in nodes), self._nnm_static_part())
        return [value for _, value in nodes], static

    def _pytree__flatten_with_paths(self) -> Any:
        nodes, static = self._pytree__flatten()
        keys = [jax.tree_util.GetAttrKey(name) for name in static[1]]
        return list(zip(keys, nodes, strict=True)), static

    @classmethod
    def _pytree__unflatten(cls, static: Any, values: Iterable[Any]) -> Any:
        made = object.__new__(cls)
        restore(made, static[2], dict(zip(static[1], values, strict=True)))
        return made

    def __setattr__(self, name: str, value: Any) -> None:
        self._nnm_check_is_read(name, value)
        is_node = isinstance(value, NnxVariable) or graphlib.is_graph_node(value)
        if is_node and name not in self._nnm_fields and not name.startswith("_"):
            collection = collection_of(value) if isinstance(value, NnxVariable) else None
            if name not in self._nnm_attributes:
                self._nnm_hold(name, collection, name)
        if name in self._nnm_fields or name == "name":
            self._nnm_forget()
        object.__setattr__(self, name, value)

    def _nnm_check_is_read(self, name: str, value: Any) -> None:
        """Refuse to set what calls of the module around this one would not see.

        They run that module's code, which makes its children anew on the variables found here.
        """
        kind, old_value = type(self).__name__, vars(self).get(name)
        if name in self._nnm_fields and self._nnm_is_part:
            raise AttributeError(
                f"{kind}.{name} cannot be set: the module around it sets it in every call, as its"
                f" code says. Hand it to the call, or set a field of the outermost module."
            )
        if isinstance(old_value, nnx_module.Module) and _kind(value) is not _kind(old_value):
            raise AttributeError(
                f"{kind}.{name} cannot be replaced by a {type(value).__name__}: calls of {kind} run"
                f" its code, which makes a {type(old_value).__name__}. Change that code."
            )

    def __delattr__(self, name: str) -> None:
        self._nnm_attributes.pop(name, None)
        self._nnm_forget()
        object.__delattr__(self, name)

    def __getattr__(self, name: str) -> Any:
        kind = type(self).__name__
        raise AttributeError(
            f'"{kind}" object has no attribute "{name}": it is built; its children'
            f" and variables are {sorted(vars(self).get('_nnm_attributes', ()))}."
        )

    def __dir__(self) -> list[str]:
        return list(object.__dir__(self))

    def __reduce__(self) -> Any:
        state = {name: one for name, one in vars(self).items() if name not in (_STATIC, _KEYS)}
        return _rebuilt, (self._nnm_definition_type, state)

    def __deepcopy__(self, memo: Any) -> Any:
        graph, state = graphlib.split(self, graph=True)
        return graphlib.merge(graph, copy.deepcopy(state, memo))


def _rebuilt(definition_type: Any, attributes: dict[str, Any]) -> Any:
    made = object.__new__(built_class(definition_type))
    vars(made).update(attributes)
    return made


def entries(cls: Any) -> dict[str, Any]:
    """Methods and properties of a twin: each runs the definition's own on a bound copy."""
    found: dict[str, Any] = {}
    for base in cls.__mro__:
        if base in Module.__mro__:
            continue
        for name, value in vars(base).items():
            if (
                name in found
                or name in cls._nnm_fields
                or (hasattr(Module, name) and name != "__call__")
            ):
                continue
            if isinstance(value, property | functools.cached_property | DescriptorWrapper):
                found[name] = _reader(name)
            elif _is_method(name, value):
                found[name] = _method(name, value)
    return found


def _is_method(name: str, value: Any) -> bool:
    if not callable(value) or isinstance(value, type | staticmethod | classmethod):
        return False
    if name.startswith("__") and name != "__call__":
        return False
    return not hasattr(value, "nowrap") or hasattr(value, "compact_name_scope")


def _reader(name: str) -> property:
    return property(lambda self: run_built(self, lambda module: getattr(module, name)))


def _method(name: str, value: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(value)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not self._nnm_is_built:  # taken off a built module and called with a bound copy
            return getattr(self, name)(*args, **kwargs)
        return run_built(self, lambda module: getattr(module, name)(*args, **kwargs))

    return method


def _beneath(cls: Any) -> Any:
    """The class on which instances got their ``__dict__``: ABC, Generic or the like may come first."""
    while cls.__base__.__dictoffset__:
        cls = cls.__base__
    return cls.__base__


@functools.cache
def _mixin(beneath: Any) -> Any:
    """`BuiltNode` for classes whose instances are laid out above ``beneath``.

    Python lets an object change its class only if both got their ``__dict__`` above the same class.
    """
    if beneath is object:
        return BuiltNode
    body = {
        name: value
        for name, value in vars(BuiltNode).items()
        if name not in ("__dict__", "__weakref__")
    }
    made = type(beneath)(BuiltNode.__name__, (beneath,), {**body, "__orig_bases__": ()})
    for name in {"__orig_bases__", "__parameters__"} & vars(made).keys():
        delattr(made, name)  # Generic's notes: those of the user's class are meant
    return made


@functools.cache
def built_class(cls: Any) -> Any:
    """The twin of a class whose instances are built; it has the same name."""
    body = {
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
        "__no_type_check__": True,  # NNX reads annotations; Linen leaves the user's alone
        "_nnm_definition_type": cls,
        **entries(cls),
    }
    twin = type(cls)(cls.__name__, (_mixin(_beneath(cls)), cls), body)
    nnx_module.Module.__init_subclass__.__func__(twin, pytree=True)  # type: ignore[attr-defined]
    return twin


def _kind(value: Any) -> Any:
    """The class of a module, of a built one that of its definition."""
    return getattr(value, "_nnm_definition_type", type(value))
