"""What one process saw, as plain data on its way into the evidence file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from nnx_migrate.evidence.values import EncodedValue, Shape

Number = int | float


@dataclass(frozen=True)
class SourceFile:
    """A file of the user's: hash of its bytes, import name, name without its folders."""

    hash: str
    module: str
    name: str


@dataclass(frozen=True)
class Place:
    """One expression: its file's hash, and lines from 1 and columns from 0 as ``ast`` counts."""

    hash: str
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True)
class ClassKey:
    """A class statement."""

    hash: str
    module: str
    qualname: str


@dataclass(frozen=True)
class Call:
    """One call of a submodule during the trace of a class.

    ``site`` built the submodule (``ordinal`` counts what it built before), at ``path`` below the
    class; ``below`` is the path from there to a submodule of that submodule, "" for itself.
    ``builds`` is the qualified class, ``line`` and ``column`` where it was called from.
    """

    site: Place
    ordinal: int
    builds: str
    path: str
    below: str
    method: str
    shapes: tuple[tuple[str, Shape], ...]
    line: int = 0
    column: int = 0


@dataclass(frozen=True)
class Trace:
    """One abstract initialisation, with the changed sources; ``failure`` says why it gave nothing."""

    changes: Mapping[str, Number]
    calls: tuple[Call, ...] = ()
    failure: str | None = None


@dataclass(frozen=True)
class Role:
    """What changing one source did: ``free``, ``tied``, ``structural`` or ``stuck``.

    A ``tied`` source can only be changed together with its ``partners``: the ``width`` of a layer
    together with ``x.shape[-1]``, where its output is added to ``x``.
    """

    name: str
    value: Number
    role: str
    partners: tuple[str, ...] = ()


@dataclass(frozen=True)
class Instance:
    """One set of fields and abstract inputs that a class was called with.

    ``mutable`` are the collections that such calls named as mutable.
    ``argument_kinds`` tells how each input was given: by ``position``, as the items of a ``star``, by ``keyword``
    or as several ``keywords``. ``arguments`` are those of the function that the class statement stands
    in; ``is_initialization`` says whether such a call was part of an initialisation.
    """

    cls: ClassKey
    method: str
    fields: EncodedValue
    inputs: Mapping[str, EncodedValue]
    rngs: tuple[str, ...] = ()
    collections: tuple[str, ...] = ()
    mutable: tuple[str, ...] = ()
    outermost: bool = False
    traces: tuple[Trace, ...] = ()
    roles: tuple[Role, ...] = ()
    depends: tuple[str, ...] = ()  # hashes of the files whose code ran
    argument_kinds: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, EncodedValue] = field(default_factory=dict)
    is_initialization: bool = True

    @property
    def digest(self) -> str:
        """The same for the same class, what it reads around it, fields and inputs, in every process."""
        cls = self.cls
        content = [cls.hash, cls.module, cls.qualname, self.method, self.fields, dict(self.inputs)]
        content += [dict(self.arguments)] if self.arguments else []
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
