"""Names of an NNX module's variables as Linen spells them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import jax
from flax import nnx

from nnx_migrate.parity.evaluation.measure import Variables
from nnx_migrate.parity.values import named_leaves


class LinenNames:
    """Names of an NNX module's variables as Linen spells them: collection and scope path."""

    def __init__(self, path_map: Mapping[str, str]) -> None:
        """Take a map from Linen paths to NNX paths, as in ``ParityCase``."""
        self._prefixes = sorted(
            ((nnx_path, linen_path) for linen_path, nnx_path in path_map.items()),
            key=lambda pair: -len(pair[0]),
        )

    def linen_module_path(self, path: str) -> str:
        """Return the Linen path of an NNX attribute path; the longest mapped prefix decides."""
        for old, new in self._prefixes:
            if path == old:
                return new
            if path.startswith(old + "/"):
                return f"{new}/{path[len(old) + 1 :]}" if new else path[len(old) + 1 :]
        return path

    def path(self, path: tuple[Any, ...], variable: Any) -> str | None:
        """Return the Linen path of one entry of a flat state; None for what has none (RNG state)."""
        if not isinstance(variable, nnx.Variable) or isinstance(variable, nnx.RngState):
            return None
        return f"{collection_of(type(variable))}/{self.linen_module_path(path_of_attribute(path))}"

    def variables(self, state: nnx.State[Any, Any]) -> tuple[Variables, tuple[str, ...]]:
        """Return array values by Linen path, and the paths of what has no Linen counterpart."""
        values: Variables = {}
        nnx_only: list[str] = []
        for path, variable in nnx.to_flat_state(state):
            attribute = path_of_attribute(path)
            if not isinstance(variable, nnx.Variable):
                nnx_only.append(f"{attribute} (plain array)")
            elif isinstance(variable, nnx.RngState):
                nnx_only.append(attribute)
            else:
                values |= self._leaves(attribute, variable)
        return values, tuple(nnx_only)

    def _leaves(self, attribute: str, variable: Any) -> Variables:
        prefix = f"{collection_of(type(variable))}/{self.linen_module_path(attribute)}"
        leaves, _ = named_leaves(variable.get_value())
        return {f"{prefix}/{name}" if name else prefix: leaf for name, leaf in leaves.items()}

    def with_values(
        self, state: nnx.State[Any, Any], variables: Mapping[str, Any]
    ) -> nnx.State[Any, Any]:
        """Return the state with the values of ``variables``; what is excluded stays as it is."""
        entries = []
        for path, variable in nnx.to_flat_state(state):
            if isinstance(variable, nnx.Variable) and not isinstance(variable, nnx.RngState):
                old = self._leaves(path_of_attribute(path), variable)
                treedef = jax.tree.structure(variable.get_value())
                new = jax.tree.unflatten(treedef, [variables[name] for name in old])
                variable = variable.replace(new)
            entries.append((path, variable))
        return nnx.from_flat_state(entries)


_OF_FLAX = "_pytree__"  # attributes in which nnx.Pytree keeps what it knows of the others


def unused_entries(path_map: Mapping[str, str], attributes: Iterable[str]) -> dict[str, str]:
    """The entries of a map, Linen path to NNX path, that lead to none of the paths or what is above them."""
    paths = tuple(attributes)
    return {
        old: new
        for old, new in path_map.items()
        if not any(path == new or path.startswith(f"{new}/") for path in paths)
    }


def attributes_of(module: nnx.Module) -> tuple[str, ...]:
    """The paths of the submodules and variables of a module, each where it is first held."""
    paths = (path_of_attribute(path) for path, _ in nnx.iter_graph(module))
    return tuple(path for path in paths if path and not path.startswith(_OF_FLAX))


def path_of_attribute(path: tuple[Any, ...]) -> str:
    """Join an NNX attribute path with slashes."""
    return "/".join(map(str, path))


def collection_of(kind: type[nnx.Variable[Any]]) -> str:
    """Return the Linen collection of a Variable type; a subclass belongs to its base's."""
    for base in kind.__mro__:
        if base is nnx.Variable:
            break
        if issubclass(base, nnx.Variable):
            try:
                return nnx.variable_name_from_type(base)
            except ValueError:
                continue
    return kind.__name__


def bare(outputs: Any) -> Any:
    """Return the outputs of a call with Variables in them replaced by their values."""
    return jax.tree.map(_value, outputs, is_leaf=_is_variable)


def _is_variable(value: Any) -> bool:
    return isinstance(value, nnx.Variable)


def _value(value: Any) -> Any:
    return value.get_value() if _is_variable(value) else value
