"""What the methods of a class read of the module, and the random streams that they draw from."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from nnx_migrate.rewrite.classes.uses.references import Edits

OF_FIELD = "self."  # a stream whose name a field gives


@dataclass
class Reads:
    """Edits of the reads in all methods of one class.

    Attributes:
      call: edits for the methods.
      static: what some of them are in ``__init__``, by id.
      value_edits: those of the values of variables, which ``__init__`` reads likewise.
      streams: names of random streams that calls draw from, by id of the call; ``self.x`` is the name
        that the field x gives.
    """

    call: Edits = field(default_factory=dict)
    static: dict[int, str] = field(default_factory=dict)
    value_edits: Edits = field(default_factory=dict)
    streams: dict[int, str] = field(default_factory=dict)
    handled_nodes: set[int] = field(default_factory=set)

    def without(self, draws: Collection[int]) -> Reads:
        """The same where calls draw no key at the calls ``draws``."""
        streams = {key: name for key, name in self.streams.items() if key not in draws}
        return replace(self, streams=streams)

    @property
    def own_streams(self) -> tuple[str, ...]:
        """The streams that the module owns, in the order of their first draw."""
        return tuple(dict.fromkeys(self.streams.values()))

    @property
    def named(self) -> tuple[str, ...]:
        """Those whose names the text tells."""
        return tuple(one for one in self.own_streams if not one.startswith(OF_FIELD))


def stream_name(name: str) -> str:
    """What gives the stream's name in ``__init__``."""
    return name if name.startswith(OF_FIELD) else repr(name)


def stream_attribute(name: str, used_names: frozenset[str]) -> str:
    """The attribute that owns the stream ``name``."""
    attribute = f"{name.removeprefix(OF_FIELD)}_rng"
    while attribute in used_names:
        attribute = f"_{attribute}"
    return attribute
