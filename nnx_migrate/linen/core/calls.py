"""Calls of a built module: its variables in, a call as `apply` makes it, what changed back.

Nothing of the call stays on the module: it runs on a bound copy of the definition, and only when it
has ended without an error are the values written back.
"""

from __future__ import annotations

import contextlib
import inspect
import operator
from collections.abc import Callable, Iterator
from typing import Any

import jax
from flax import nnx

from nnx_migrate.linen.core.boxes import contents_of, to_variable
from nnx_migrate.linen.core.context import Sown, context
from nnx_migrate.linen.core.filters import DenyList, union_filters
from nnx_migrate.linen.core.functional import is_valid_rngs
from nnx_migrate.linen.core.graph import NnxName, collection_of
from nnx_migrate.linen.core.scope import Scope
from nnx_migrate.linen.core.tree import is_module
from nnx_migrate.linen.core.variables import SOWN

# What Linen's layers may change when they are called: all but what an optimizer changes, and but
# intermediates, which only who asks for them gets.
CHANGING = DenyList(("params", "intermediates", "perturbations"))

STREAMS = "rngs"


def run_built(module: Any, fn: Callable[[Any], Any]) -> Any:
    """``fn`` of a bound copy of ``module``; its changes are written to ``module``."""
    entries: dict[tuple[str, ...], tuple[Any, Any]] = {}
    # Without their boxes, which would constrain each parameter where it is read: in NNX the names
    # are metadata, as they are in Linen after `nn.unbox`.
    variables = gather(module, entries, operator.methodcaller("get_value"))
    rngs = next_keys(module)
    sown_values = context.sown
    sown_collections = () if sown_values is None else sown_values.collections
    mutable = CHANGING if sown_values is None else union_filters(CHANGING, sown_values.collections)
    stack = context.capture_stack
    stack.append(False)
    try:
        with (
            context.recording() as recorder,
            Scope(
                variables, rngs=rngs, mutable=mutable, flags={SOWN: sown_collections}
            ).temporary() as root,
        ):
            # The class's own: `nnx.tabulate` replaces methods of the twin by jitted ones.
            result = fn(module._nnm_definition_type.clone(module, parent=root, _deep_clone=True))
    finally:
        stack.pop()
    write_back(module, variables, entries, recorder.sown)
    if sown_values is not None:
        _keep(sown_values, variables, recorder.sown)
    return result


def _keep(sown_values: Sown, variables: dict[str, Any], paths: set[tuple[str, ...]]) -> None:
    for path in paths:
        if path[0] not in sown_values.collections:
            continue
        source, target = variables, sown_values.values
        for step in path[:-1]:
            source, target = source[step], target.setdefault(step, {})
        target[path[-1]] = source[path[-1]]


@contextlib.contextmanager
def sown(*collections: str) -> Iterator[dict[str, Any]]:
    """What calls of built modules sow into ``collections``, by collection and Linen's path.

    >>> with nn.sown("losses") as values:
    ...     y = model(x)
    >>> values["losses"]["moe"]["balance"]
    """
    request = Sown(collections)
    with context.keeping(request):
        yield request.values


def next_keys(module: Any) -> dict[str, Any]:
    """A new key of every stream that the module was built with."""
    streams = vars(module).get(STREAMS) if STREAMS in module._nnm_attributes else None
    if streams is None:
        return {}
    # Not through its methods, which `nnx.tabulate` replaces by jitted ones.
    streams_by_name = {k: v for k, v in vars(streams).items() if isinstance(v, nnx.RngStream)}
    keys = {name: stream() for name, stream in streams_by_name.items()}
    if not is_valid_rngs(keys):
        raise ValueError(f"expected streams of keys in {STREAMS!r}, found {streams}")
    return keys


def nodes_of(node: Any) -> Iterator[tuple[str, str | None, str, Any]]:
    """Attribute, collection (None for a child), Linen's name and value of what hangs on a node."""
    if getattr(node, "_nnm_is_built", False):
        for attribute, (collection, name) in node._nnm_attributes.items():
            if attribute != STREAMS or collection is not None:
                yield attribute, collection, name, vars(node)[attribute]
        return
    for attribute, value in vars(node).items():
        if isinstance(value, nnx.RngState | nnx.Rngs | nnx.RngStream):
            continue
        if isinstance(value, nnx.Variable):
            yield attribute, collection_of(value), attribute, value
        elif isinstance(value, nnx.Module):
            yield attribute, None, attribute, value


def gather(
    node: Any,
    entries: dict[tuple[str, ...], tuple[Any, Any]],
    value_of: Callable[[Any], Any],
    path: tuple[str, ...] = (),
) -> dict[str, Any]:
    """The variables of a built tree as Linen has them: collection -> nested dicts.

    ``entries`` is filled: (collection, *path) -> (Variable, its value in the dicts). ``value_of`` a
    Variable: its value, or that in boxes of axis names.
    """
    found: dict[str, Any] = {}
    for _, collection, name, value in nodes_of(node):
        if collection is not None:
            contents = value_of(value)
            # The call may fill dicts, the variables of an explicit module, in place.
            is_tree = isinstance(contents, dict)
            fresh = jax.tree.map(lambda one: one, contents) if is_tree else contents
            found.setdefault(collection, {})[name] = fresh
            entries[(collection, *path, name)] = value, contents
        else:
            for below, part in gather(value, entries, value_of, (*path, name)).items():
                found.setdefault(below, {})[name] = part
    return found


def write_back(
    module: Any,
    variables: dict[str, Any],
    entries: dict[tuple[str, ...], tuple[Any, Any]],
    sown: set[tuple[str, ...]],
) -> None:
    """Set what a call changed; hang new variables on the module that made them."""
    changes = {
        path: value
        for collection, part in variables.items()
        if collection not in ("params", "intermediates")
        for path, value in _leaves(module, (collection,), part, entries)
        if path not in sown
    }
    for path, value in changes.items():
        if path not in entries:
            attach(node_at(module, path[1:-1]), path[0], path[-1], to_variable(path[0], value))
        elif _is_other(value, entries[path][1]):
            entries[path][0].set_value(contents_of(value))


def _is_other(value: Any, before: Any) -> bool:
    """Whether something was assigned; of a tree, anywhere in it."""
    if not isinstance(value, dict):
        return value is not before
    new, old = jax.tree.leaves(value), jax.tree.leaves(before)
    return len(new) != len(old) or any(map(operator.is_not, new, old))


def _leaves(
    node: Any, path: tuple[str, ...], part: Any, entries: Any
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Variables in a part of a collection: dicts are children where the tree has a child."""
    children = {} if node is None else {name: v for _, c, name, v in nodes_of(node) if c is None}
    for name, value in part.items():
        where = (*path, name)
        if where not in entries and isinstance(value, dict) and name in children:
            yield from _leaves(children[name], where, value, entries)
        else:
            yield where, value


def node_at(module: Any, path: tuple[str, ...]) -> Any:
    """The module below ``module`` at Linen's path."""
    for step in path:
        module = next(v for _, c, name, v in nodes_of(module) if c is None and name == step)
    return module


def attach(node: Any, collection: str | None, name: str, value: Any) -> None:
    """Hang a Variable or a child on a node, under Linen's name where that is free."""
    if not getattr(node, "_nnm_is_built", False):
        setattr(node, name, value)
        return
    attribute = name
    if not _is_free(node, attribute, collection is None):
        attribute = f"{name}_{collection or 'module'}"
        while not _is_free(node, attribute, False):
            attribute += "_"
    node._nnm_hold(attribute, collection, name)
    object.__setattr__(node, attribute, value)


def _is_free(node: Any, attribute: str, is_child: bool) -> bool:
    if attribute in node._nnm_attributes or attribute == STREAMS:
        return False
    if attribute in node._nnm_fields:
        return is_child and is_module(vars(node).get(attribute))
    on_class = inspect.getattr_static(type(node), attribute, None)
    return on_class is None or isinstance(on_class, NnxName)
