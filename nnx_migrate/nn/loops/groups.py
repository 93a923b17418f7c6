"""How a lifted loop treats the variables and streams of a module: one group for each way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from flax.core.scope import in_filter

from nnx_migrate.nn.loops.stacking import Stacking
from nnx_migrate.nn.variables.parts import CAPTURES, Parts, Stream, Values
from nnx_migrate.nn.variables.variables import collection_of


@dataclass
class Groups:
    """The variables of a module by position.

    Attributes:
      stacked: those with an axis for the steps, and that axis.
      carried: those handed from step to step.
      constants: those with the same value in every step.
      hidden: types of sown values that are not collected.
      keys: keys that every step has its own of, before they are split.
      counts: counts of streams; every call of the module starts them anew below a key of its own.
      drawn: those of ``counts`` that the body advanced.
      tallied: streams that draw Linen's keys (of :func:`nnx_migrate.nn.apply`), with the number of
        draws traced before: their counts go on inside, as Linen's do over every trace of a body.
    """

    stacked: dict[int, int] = field(default_factory=dict)
    carried: list[int] = field(default_factory=list)
    constants: Values = field(default_factory=dict)
    hidden: set[type[Any]] = field(default_factory=set)
    keys: Values = field(default_factory=dict)
    counts: list[int] = field(default_factory=list)
    drawn: list[int] = field(default_factory=list)
    tallied: list[tuple[Stream, int]] = field(default_factory=list)

    def split_keys(self, length: int) -> Values:
        """The keys of all steps."""
        return {index: jax.random.split(key, length) for index, key in self.keys.items()}

    def note(self, parts: Parts, changed: Values) -> None:
        """Take note of what the body changed.

        Raises:
          ValueError: it changed what all steps share.
        """
        self.drawn[:] = [index for index in self.counts if index in changed]
        for index in (self.constants.keys() & changed.keys()) - set(self.counts):
            path = "/".join(map(str, parts.paths[index]))
            raise ValueError(
                f"the body of the loop changed the variable '{path}', which all steps share: name "
                "its collection in variable_carry or variable_axes"
            )

    def advance(self, parts: Parts) -> None:
        """Let the next call draw other keys from the streams that the body drew from."""
        self.skip_traced(parts)
        tallied = {stream.count for stream, _ in self.tallied}
        for index in tallied:
            parts.variables[index].set_value(self.constants[index])
        for index in set(self.drawn) - tallied:
            count = parts.variables[index]
            count.set_value(count[...] + 1)

    def skip_traced(self, parts: Parts) -> None:
        """Let streams of Linen's keys go on after all draws that were traced so far."""
        for stream, before in self.tallied:
            traced = stream.node.tally.draws - before
            self.constants[stream.count] = parts.variables[stream.count][...] + traced


def groups_of(parts: Parts, stacking: Stacking, shared: Any, carried: Any = False) -> Groups:
    """The groups of a module's variables.

    Args:
      shared, carried: collections (Linen's filters).

    Raises:
      ValueError: a variable is in none of the groups.
    """
    found = Groups()
    for index, one in enumerate(parts.variables):
        if isinstance(one, nnx.RngState):
            continue
        axis, collection = stacking.axis(one), collection_of(type(one))
        if axis is not None:
            found.stacked[index] = axis
        elif in_filter(carried, collection):
            found.carried.append(index)
        elif in_filter(shared, collection):
            found.constants[index] = one.get_value()
        elif CAPTURES in parts.paths[index]:
            found.constants[index] = one.get_value()
            found.hidden.add(type(one))
        else:
            path = "/".join(map(str, parts.paths[index]))
            raise ValueError(
                f"the variable '{path}' is of collection '{collection}', which the loop does not "
                "lift: name it in variable_axes (or variable_broadcast, variable_carry)"
            )
    for stream in parts.streams:
        key, count = parts.variables[stream.key], parts.variables[stream.count]
        is_tallied = hasattr(stream.node, "tally")
        if is_tallied:
            found.tallied.append((stream, stream.node.tally.draws))
        own = key[...] if is_tallied else jax.random.fold_in(key[...], count[...])
        (found.keys if stacking.is_split(stream.name) else found.constants)[stream.key] = own
        found.constants[stream.count] = count[...] if is_tallied else jnp.zeros_like(count[...])
        found.counts.append(stream.count)
    return found
