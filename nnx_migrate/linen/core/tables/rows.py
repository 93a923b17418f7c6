"""The calls of a module's init and their variables, a row each."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax
from flax.core import unfreeze

from nnx_migrate.linen.core.context import tabulate_context
from nnx_migrate.linen.core.tables.flops import call_flops

Path = tuple[str, ...]
Variables = dict[str, Any]


@dataclasses.dataclass
class Row:
    """One call of one method of a module.

    Attributes:
      path: where the module is.
      module_copy: the module, cut off from its parent.
      method: name of the method that was called.
      inputs: stand-ins of the arguments (`inputs_of`).
      outputs: stand-ins of what it returned.
      module_variables: its own variables by collection, without those of submodules.
      counted_variables: what its size counts: also those of submodules that have no row, because
        they lie below ``depth``.
      flops: cost of the call, or -1.
      vjp_flops: cost of the call's vector-Jacobian product, or -1.
    """

    path: Path
    module_copy: Any
    method: str
    inputs: Any
    outputs: Any
    module_variables: Variables
    counted_variables: Variables
    flops: int
    vjp_flops: int

    def size_and_bytes(self, collections: Iterable[str]) -> dict[str, tuple[int, int]]:
        """Numbers of elements and of bytes counted, per collection."""
        return {name: size_and_bytes(self.counted_variables.get(name)) for name in collections}


class Table(list[Row]):
    """All rows, in the order in which the calls began; with the module and its collections."""

    def __init__(self, module: Any, collections: Sequence[str], rows: Iterable[Row]) -> None:
        super().__init__(rows)
        self.module = module
        self.collections = collections


def size_and_bytes(tree: Any) -> tuple[int, int]:
    """Elements and bytes of the arrays in ``tree``."""
    arrays = [leaf for leaf in jax.tree.leaves(tree) if hasattr(leaf, "size")]
    return sum(x.size for x in arrays), sum(x.size * x.dtype.itemsize for x in arrays)


def inputs_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Arguments as the inputs column shows them: one alone, several as a tuple, keywords last."""
    if not args:
        return kwargs or ()
    if kwargs:
        return (*args, kwargs)
    return args[0] if len(args) == 1 else args


def module_table(
    module: Any,
    depth: int | None,
    show_repeated: bool,
    compute_flops: bool,
    compute_vjp_flops: bool,
) -> Callable[..., Table]:
    """A function with the arguments of ``module.init`` that gives the table of its calls."""

    def table(*args: Any, **kwargs: Any) -> Table:
        # Calls inside lifts are recorded with that lift's tracers, on purpose: only types are read.
        with tabulate_context() as records, jax.check_tracer_leaks(False):
            variables = jax.eval_shape(lambda: module.init(*args, **kwargs))
        calls = sorted(records.calls, key=lambda call: call.index)
        paths = {call.path for call in calls}
        rows, visited_paths = [], set[Path]()
        for call in calls:
            is_repeated = call.path in visited_paths or not hasattr(call.module, call.method)
            is_hidden = (
                not show_repeated if is_repeated else depth is not None and len(call.path) > depth
            )
            if is_hidden:
                continue
            visited_paths.add(call.path)
            found = ({}, {}) if is_repeated else _variables(call.path, variables, paths, depth)
            rows.append(_row(call, *found, call_flops(call, compute_flops, compute_vjp_flops)))
        return Table(module, tuple(variables), rows)

    return table


def _row(call: Any, own: Variables, new_variables: Variables, costs: tuple[int, int]) -> Row:
    inputs = inputs_of(call.args, call.kwargs)
    copy = call.module.copy(parent=None)
    return Row(call.path, copy, call.method, inputs, call.outputs, own, new_variables, *costs)


def _variables(
    path: Path, variables: Variables, paths: set[Path], depth: int | None
) -> tuple[Variables, Variables]:
    """A module's own variables, and those its row counts."""
    below = variables_at(path, variables)
    own, _ = split_variables(path, variables, paths)
    return own, below if len(path) == depth else own


def variables_at(path: Path, variables: Variables) -> Variables:
    """What lies at ``path`` in each collection that has it; a copy."""
    found = {}
    for collection, tree in variables.items():
        for name in path:
            tree = tree.get(name) if isinstance(tree, Mapping) else None
            if tree is None:
                break
        else:
            found[collection] = unfreeze(tree)
    return found


def split_variables(
    path: Path, variables: Variables, paths: set[Path]
) -> tuple[Variables, Variables]:
    """The variables at ``path``: of the module there, and of its submodules (their paths are in ``paths``)."""
    own: Variables = {}
    submodules: Variables = {}
    for collection, tree in variables_at(path, variables).items():
        own[collection], submodules[collection] = {}, {}
        for name, value in tree.items():
            into = submodules if (*path, name) in paths else own
            into[collection][name] = value
    return own, submodules
