"""What NNX's graph sees of a module: children and Variables as attributes, all else as one static.

A definition is a node without children, and no pytree: Linen's programs map over containers of
modules and expect the modules back. A built module is of a twin of its class that is a pytree.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from flax.ids import uuid
from flax.nnx import graphlib
from flax.nnx import module as nnx_module
from flax.nnx.pytreelib import PytreeState

from nnx_migrate.linen.core.state import CallState
from nnx_migrate.linen.core.static import Static

DEFINITION = "_definition"


_NONE = object()


class NnxName:
    """A method of NNX's Module that Linen's has not: only modules that were built have it.

    On all others code asks for what Linen's class would have there: `setup` may make it, or a class
    that stands behind the module class among the bases (``class Net(nn.Module, Mode)``).
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __set_name__(self, owner: Any, name: str) -> None:
        self.home = owner

    def behind(self, owner: Any) -> Any:
        """What stands under the name in a class's bases behind the module class; `_NONE` if nothing does."""
        bases = owner.__mro__[owner.__mro__.index(self.home) + 1 :]
        others = (one for one in bases if one not in nnx_module.Module.__mro__)
        return next((vars(one)[self.name] for one in others if self.name in vars(one)), _NONE)

    def __get__(self, obj: Any, owner: Any) -> Any:
        found = self.behind(owner)
        if found is _NONE and owner._nnm_is_built:
            found = vars(nnx_module.Module)[self.name]
        if found is _NONE:  # Linen's error where there is no such attribute
            raise AttributeError(f"type object '{owner.__name__}' has no attribute '{self.name}'")
        bind = getattr(type(found), "__get__", None)
        return found if bind is None else bind(found, obj, owner)


class GraphNode:
    """A definition as a node of NNX's graph."""

    train = NnxName("train")
    eval = NnxName("eval")
    set_attributes = NnxName("set_attributes")
    iter_children = NnxName("iter_children")
    iter_modules = NnxName("iter_modules")

    _nnm_fields: tuple[str, ...]
    name: str | None

    @property
    def _pytree__state(self) -> PytreeState:
        """Where NNX notes the trace that a module was made in; a definition is of none."""
        state: PytreeState = vars(self).get("_trace") or PytreeState()
        return state

    def _nnm_static_part(self) -> Any:
        fields = {field: vars(self)[field] for field in self._nnm_fields if field in vars(self)}
        return Static((fields, self.name, None, False, self._nnm_home()))

    def _nnm_home(self) -> Any:
        """The scope of the module that made it, also of a copy; None for one that nobody owns."""
        return vars(self).get("_home") or vars(self).get("scope")

    def _graph_node_flatten(self) -> Any:
        return [(DEFINITION, graphlib.StaticElem(self._nnm_static_part()))], type(self)

    def _graph_node_init(self, attributes: Iterable[tuple[Any, Any]]) -> None:
        values = dict(attributes)
        restore(self, values.pop(DEFINITION), values)

    def __deepcopy__(self, memo: Any) -> Any:
        # NNX's own copies through the graph, where equal definitions would become one.
        made = object.__new__(type(self))
        memo[id(self)] = made
        for name, value in vars(self).items():
            object.__setattr__(made, name, copy.deepcopy(value, memo))
        return made


def restore(module: Any, static: Static, nodes: Mapping[Any, Any]) -> None:
    """Give an empty module its fields, and what hangs on it by the graph's keys."""
    fields, name, attributes, is_part, home = static.value
    for field, value in fields.items():
        object.__setattr__(module, field, value)
    object.__setattr__(module, "parent", None)
    object.__setattr__(module, "name", name)
    object.__setattr__(module, "_id", uuid())
    object.__setattr__(module, "_state", CallState())
    if home is not None:
        object.__setattr__(module, "_home", home)
    if attributes is not None:
        begin_built(module, dict(attributes))
        object.__setattr__(module, "_nnm_is_part", is_part)
        module._nnm_keep(static)
        for key, attribute in module._nnm_keys().items():
            object.__setattr__(module, attribute, nodes[key])


def begin_built(module: Any, attributes: dict[str, tuple[str | None, str]]) -> None:
    """Note what hangs on a built module, and that it belongs to the trace that runs."""
    object.__setattr__(module, "_nnm_attributes", attributes)
    object.__setattr__(module, "_trace", PytreeState())


def collection_of(variable: Any) -> str:
    """The collection of an NNX Variable's type: ``params`` of Param, and so on."""
    from flax.nnx import variablelib

    name: str = variablelib.variable_name_from_type(type(variable), allow_register=True)
    return name
