"""A module taken apart for a transformed call: its variables by position, copies, and what changed.

``jax`` transformations see arrays only, so a lifted call splits the module outside, merges a copy of
it inside (a copy belongs to the inner trace, so that its variables may change there), and brings
back the values of the variables that changed, no others: a scan that returned read-only parameters
would stack them anew.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import jax
from flax import nnx

from nnx_migrate.nn.variables.variables import collection_of

Path = tuple[Any, ...]
CAPTURES = "__captures__"  # attribute under which nnx.capture keeps sown values
Values = dict[int, Any]
Metadata = dict[str, Any]


@dataclass(frozen=True)
class Stream:
    """A random stream of a module: where its key and its count stand among the variables."""

    name: str  # of the Linen stream
    node: Any
    key: int
    count: int


@dataclass(frozen=True)
class NewVariable:
    """A variable that a call made in a copy of the module."""

    path: Path
    variable: nnx.Variable[Any]

    def put(self, module: Any, value: Any) -> None:
        """Give it to the module itself."""
        for name in self.path[:-1]:
            module = getattr(module, name) if isinstance(name, str) else module[name]
        made = type(self.variable).from_metadata(value, self.variable.get_metadata())
        setattr(module, self.path[-1], made)


@dataclass(frozen=True)
class Parts:
    """A module's structure, and its variables in Linen's order: by collection, then path."""

    graphdef: Any
    paths: tuple[Path, ...]
    variables: tuple[nnx.Variable[Any], ...]  # the module's own
    streams: tuple[Stream, ...]
    constants: Mapping[Path, Any]  # arrays of plain attributes: closed over, as Linen's are

    def values(self) -> Values:
        """The value of every variable that is no random state, by position."""
        return {
            index: one.get_value()
            for index, one in enumerate(self.variables)
            if not isinstance(one, nnx.RngState)
        }

    def random_state(self) -> Values:
        """The keys and counts of all streams, by position."""
        return {
            index: one.get_value()
            for index, one in enumerate(self.variables)
            if isinstance(one, nnx.RngState)
        }

    def assemble(
        self,
        values: Mapping[int, Any],
        metadata: Callable[[int, Metadata], Metadata] | None = None,
    ) -> Any:
        """A copy of the module with other values; every variable needs one.

        Args:
          metadata: what the metadata of the variable at a position becomes.
        """
        entries: list[tuple[Path, Any]] = [*self.constants.items()]
        for index, (path, one) in enumerate(zip(self.paths, self.variables, strict=True)):
            found = one.get_metadata()
            new_metadata = found if metadata is None else metadata(index, found)
            entries.append((path, type(one).from_metadata(_fresh(values[index]), new_metadata)))
        return nnx.merge(self.graphdef, nnx.from_flat_state(entries), copy=True)

    def new_variables(self, copy: Any) -> dict[str, NewVariable]:
        """The variables of a copy that the module does not have, sown ones aside: caches."""
        own_paths = {*self.paths, *self.constants}
        return {
            "/".join(map(str, path)): NewVariable(path, one)
            for path, one in nnx.to_flat_state(nnx.state(copy))
            if path not in own_paths and CAPTURES not in path and not isinstance(one, nnx.RngState)
        }

    def read(self, copy: Any, new_variables: Mapping[str, NewVariable] | None = None) -> Values:
        """What a copy holds now, by position; what it has lost is left out.

        Args:
          new_variables: those that the call may make.

        Raises:
          ValueError: the call made a variable that the module does not have.
        """
        after = dict(nnx.to_flat_state(nnx.state(copy)))
        new = {"/".join(map(str, path)) for path in after.keys() - {*self.paths, *self.constants}}
        new -= (new_variables or {}).keys()
        if new:
            raise ValueError(
                f"a lifted call made the variable {min(new)!r}: expected the module to have it "
                "before; make it in the constructor, or inside nnm.jit by nnm.lazy_init"
            )
        return {
            index: after[path].get_value() for index, path in enumerate(self.paths) if path in after
        }

    def changes(
        self,
        copy: Any,
        given: Mapping[int, Any],
        new_variables: Mapping[str, NewVariable] | None = None,
    ) -> Values:
        """The variables of ``copy`` that no longer hold their ``given``, by position.

        Raises:
          ValueError: the call made a variable that the module does not have, other than ``new_variables``.
        """
        found = self.read(copy, new_variables)
        return {i: one for i, one in found.items() if not _is_same(one, given[i])}

    def put_back(self, values: Mapping[int, Any]) -> None:
        """Store new values in the module itself."""
        for index, value in values.items():
            self.variables[index].set_value(value)


def take_apart(module: Any) -> Parts:
    """Structure and variables of ``module``, or of a tuple of modules and variables."""
    graphdef, state = nnx.split(module)
    leaves = list(nnx.to_flat_state(state))
    flat = sorted((one for one in leaves if _is_variable(one[1])), key=_linen_order)
    constants = {path: one for path, one in leaves if not _is_variable(one)}
    paths = tuple(path for path, _ in flat)
    # By identity: two streams may share a count, which has one path.
    places = {id(one): index for index, (_, one) in enumerate(flat)}
    streams = []
    for path, node in nnx.iter_graph(module):
        if isinstance(node, nnx.RngStream):
            key, count = places.get(id(node.key)), places.get(id(node.count))
            if key is not None and count is not None:
                streams.append(Stream(_stream_name(module, path, node), node, key, count))
    return Parts(graphdef, paths, tuple(one for _, one in flat), tuple(streams), constants)


def _is_variable(leaf: Any) -> bool:
    return isinstance(leaf, nnx.Variable)


class _HiddenCaptures(nnx.Variable[Any]):
    """Takes the place of sown values that a lifted call does not collect: no sow finds it."""


def hide_captures(module: nnx.Module, kinds: Collection[type[Any]]) -> None:
    """Let sowing into variables of these types do nothing, as into a collection Linen does not lift."""
    if not kinds:
        return
    for _, one in list(nnx.iter_graph(module)):
        found = getattr(one, CAPTURES, None) if isinstance(one, nnx.Module) else None
        if found is not None:
            values = tuple(_HiddenCaptures(v.get_value()) if type(v) in kinds else v for v in found)
            setattr(one, CAPTURES, nnx.data(values))


def _linen_order(entry: tuple[Path, Any]) -> tuple[Any, ...]:
    """By collection, then path, random state last: the order of operands in Linen's programs."""
    path, one = entry
    names = tuple(map(_order, path))
    if isinstance(one, nnx.RngState):
        return True, "", names
    return False, collection_of(type(one)), names


def _order(part: Any) -> tuple[bool, Any]:
    """Names sort as Linen's dicts of variables do; numbers (of list items) come first."""
    return (True, part) if isinstance(part, str) else (False, part)


def _stream_name(module: Any, path: Path, stream: nnx.RngStream) -> str:
    """The Linen stream: the one whose key it has, or that its layer names, whatever it was forked from."""
    if hasattr(stream, "source"):
        return str(stream.source)
    owner: Any = module
    for part in path[:-1]:
        owner = owner[part] if not isinstance(part, str) else getattr(owner, part)
    return str(getattr(owner, "rng_collection", stream.tag))


def _fresh(value: Any) -> Any:
    """Containers (values sown so far) as new objects: sowing changes them in place."""
    return jax.tree.map(lambda leaf: leaf, value)


def _is_same(one: Any, other: Any) -> bool:
    if len({jax.tree.structure(one), jax.tree.structure(other)}) > 1:
        return False
    return all(a is b for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True))
