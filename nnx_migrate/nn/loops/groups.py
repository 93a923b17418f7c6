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
      stack_axes: those with an axis for the steps, and that axis.
      carry: those handed from step to step.
      constants: those with the same value in every step.
      hidden_types: types of sown values that are not collected.
      keys: keys that every step has its own of, before they are split.
      counts: counts of streams; every call of the module starts them anew below a key of its own.
      advanced_counts: those of ``counts`` that the body advanced.
      tally_streams: streams that draw Linen's keys (of :func:`nnx_migrate.nn.apply`), with the number of
        draws traced before: their counts go on inside, as Linen's do over every trace of a body.
    """

    stack_axes: dict[int, int] = field(default_factory=dict)
    carry: list[int] = field(default_factory=list)
    constants: Values = field(default_factory=dict)
    hidden_types: set[type[Any]] = field(default_factory=set)
    keys: Values = field(default_factory=dict)
    counts: list[int] = field(default_factory=list)
    advanced_counts: list[int] = field(default_factory=list)
    tally_streams: list[tuple[Stream, int]] = field(default_factory=list)

    def split_keys(self, length: int) -> Values:
        """The keys of all steps."""
        return {index: jax.random.split(key, length) for index, key in self.keys.items()}

    def note(self, parts: Parts, changes: Values) -> None:
        """Take note of what the body changed.

        Raises:
          ValueError: it changed what all steps share.
        """
        self.advanced_counts[:] = [index for index in self.counts if index in changes]
        for index in (self.constants.keys() & changes.keys()) - set(self.counts):
            path = "/".join(map(str, parts.paths[index]))
            raise ValueError(
                f"the body of the loop changed the variable '{path}', which all steps share: name "
                "its collection in variable_carry or variable_axes"
            )

    def advance(self, parts: Parts) -> None:
        """Let the next call draw other keys from the streams that the body drew from."""
        self.skip_draws(parts)
        tally_counts = {stream.count for stream, _ in self.tally_streams}
        for index in tally_counts:
            parts.variables[index].set_value(self.constants[index])
        for index in set(self.advanced_counts) - tally_counts:
            count = parts.variables[index]
            count.set_value(count[...] + 1)

    def skip_draws(self, parts: Parts) -> None:
        """Let streams of Linen's keys go on after all draws that were traced so far."""
        for stream, before in self.tally_streams:
            draw_count = stream.node.tally.draws - before
            self.constants[stream.count] = parts.variables[stream.count][...] + draw_count


def groups_of(parts: Parts, stacking: Stacking, broadcast: Any, carry: Any = False) -> Groups:
    """The groups of a module's variables.

    Args:
      broadcast, carry: collections (Linen's filters).

    Raises:
      ValueError: a variable is in none of the groups.
    """
    found = Groups()
    for index, one in enumerate(parts.variables):
        if isinstance(one, nnx.RngState):
            continue
        axis, collection = stacking.axis(one), collection_of(type(one))
        if axis is not None:
            found.stack_axes[index] = axis
        elif in_filter(carry, collection):
            found.carry.append(index)
        elif in_filter(broadcast, collection):
            found.constants[index] = one.get_value()
        elif CAPTURES in parts.paths[index]:
            found.constants[index] = one.get_value()
            found.hidden_types.add(type(one))
        else:
            path = "/".join(map(str, parts.paths[index]))
            raise ValueError(
                f"the variable '{path}' is of collection '{collection}', which the loop does not "
                "lift: name it in variable_axes (or variable_broadcast, variable_carry)"
            )
    for stream in parts.streams:
        key, count = parts.variables[stream.key], parts.variables[stream.count]
        has_tally = hasattr(stream.node, "tally")
        if has_tally:
            found.tally_streams.append((stream, stream.node.tally.draws))
        own = key[...] if has_tally else jax.random.fold_in(key[...], count[...])
        (found.keys if stacking.is_split(stream.name) else found.constants)[stream.key] = own
        found.constants[stream.count] = count[...] if has_tally else jnp.zeros_like(count[...])
        found.counts.append(stream.count)
    return found
