"""jraph 0.0.6 (``jraph/_src/models.py``): what the update functions of a graph network are fed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.joining import as_array
from nnx_migrate.abstract.questions import is_none
from nnx_migrate.abstract.values import Argument, Array, Native, Record, Unknown, Value

if TYPE_CHECKING:
    from nnx_migrate.sizes.library_call import LibraryCall

_FIELDS = ("nodes", "edges", "receivers", "senders", "globals", "n_node", "n_edge")


def _graph(value: Value) -> Record | None:
    """A ``GraphsTuple`` by its fields."""
    if isinstance(value, Argument):
        return Record({name: Argument(f"{value.path}.{name}") for name in _FIELDS})
    return value if isinstance(value, Record) else None


def _argument(call: LibraryCall, index: int, name: str) -> Value | None:
    value = call.get(index, name)
    return None if value is None or is_none(value) else value


def _apply(call: LibraryCall, function: Value | None, *inputs: Value) -> Value:
    if function is None:
        return inputs[0]
    return call.interpreter.call_value(function, inputs, {}, call.node)


def _map_features(call: LibraryCall) -> Value:
    """``GraphMapFeatures(embed_edge_fn, embed_node_fn, embed_global_fn)``."""
    edge, node, whole = (
        _argument(call, i, f"embed_{n}_fn") for i, n in enumerate(("edge", "node", "global"))
    )

    def embed(args: tuple[Value, ...], kwargs: dict[str, Value]) -> Value:
        graph = _graph(args[0]) if args else None
        if graph is None:
            return Unknown("not a graph")
        one = graph.entries
        return Record(
            {
                **one,
                "nodes": _apply(call, node, one["nodes"]),
                "edges": _apply(call, edge, one["edges"]),
                "globals": _apply(call, whole, one["globals"]),
            }
        )

    return Native(embed)


def _network(call: LibraryCall) -> Value:
    """``GraphNetwork(update_edge_fn, update_node_fn, update_global_fn)``: edges, nodes, globals."""
    edge = _argument(call, 0, "update_edge_fn")
    node = _argument(call, 1, "update_node_fn")
    whole = _argument(call, 2, "update_global_fn")

    def update(args: tuple[Value, ...], kwargs: dict[str, Value]) -> Value:
        graph = _graph(args[0]) if args else None
        if graph is None:
            return Unknown("not a graph")
        nodes, edges, state = (graph.entries[name] for name in ("nodes", "edges", "globals"))
        edges = _apply(call, edge, edges, nodes, nodes, state) if edge else edges
        nodes = _apply(call, node, nodes, edges, edges, state) if node else nodes
        state = _apply(call, whole, nodes, edges, state) if whole else state
        return Record({**graph.entries, "nodes": nodes, "edges": edges, "globals": state})

    return Native(update)


def _convolution(call: LibraryCall) -> Value:
    """``GraphConvolution(update_node_fn, ...)``: nodes only; aggregation keeps the last axis."""
    node = _argument(call, 0, "update_node_fn")

    def update(args: tuple[Value, ...], kwargs: dict[str, Value]) -> Value:
        graph = _graph(args[0]) if args else None
        if graph is None:
            return Unknown("not a graph")
        return Record({**graph.entries, "nodes": _apply(call, node, graph.entries["nodes"])})

    return Native(update)


def _concatenate(call: LibraryCall) -> Value:
    """``concatenated_args(update)``: all array arguments joined along the last axis."""
    function = _argument(call, 0, "update")

    def join(args: tuple[Value, ...], kwargs: dict[str, Value]) -> Value:
        arrays = [as_array(one) for one in (*args, *kwargs.values())]
        sizes = [array.axis(-1) for array in arrays if array]
        known = [size for size in sizes if size is not None]
        total = ex.total(known) if len(known) == len(arrays) else None
        return _apply(call, function, Array((total,), None))

    return Native(join)


SUMMARIES: dict[str, Callable[[LibraryCall], Value]] = {
    "jraph.GraphMapFeatures": _map_features,
    "jraph.GraphNetwork": _network,
    "jraph.GraphConvolution": _convolution,
    "jraph.concatenated_args": _concatenate,
}
