"""Recorded calls as a source of sizes, beside the source code.

An evidence file is joined to the project by the hash of each file and the position of each
constructor call. Where the code does not tell a size, the recorded expression is used; where both
do, the code's expression has to give every recorded size.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from nnx_migrate.abstract.expression import Expr
from nnx_migrate.evidence.evaluate import Surroundings, Unknown, evaluate
from nnx_migrate.evidence.observations import Instance, Place
from nnx_migrate.evidence.read import Evidence, RecordedClass, RecordedSize, Sighting
from nnx_migrate.evidence.values import kind_of, replace_numbers
from nnx_migrate.model import SizeArgument
from nnx_migrate.sizes.recorded_text import expression_of, recorded_text
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import defaults_of
from nnx_migrate.source.project import Module, Project
from nnx_migrate.source.walking import is_none_literal, walk

# The argument whose last axis a built-in layer's ``in_features`` is, as Linen names it.
_MAIN = ("inputs", "x", "inputs_q", "query")


_GIVEN = object()  # stands for an argument that is not None, in ``mask is not None``


@dataclass(frozen=True)
class RecordedAxis:
    """Which recorded axis a size argument is: of the site itself or of a submodule ``below`` it."""

    method: str
    argument: str | None  # None: the first array argument
    axis: int | None  # None: the whole shape
    below: str = ""


def recorded_axis(key: str, argument: SizeArgument | None) -> RecordedAxis:
    """What a size argument of a layer (``argument`` None) or of a project class stands for."""
    if argument is None:
        names = {
            "in_kv_features": "inputs_k",
            "in_v_features": "inputs_v",
            "carry_features": "carry",
        }
        return RecordedAxis("__call__", names.get(key), None if key == "in_shape" else -1)
    if argument.submodule is not None:
        below = argument.submodule.replace(".", "/")
        return RecordedAxis("__call__", argument.argument, argument.axis, below)
    return RecordedAxis(argument.method, argument.argument, argument.axis)


@dataclass(frozen=True)
class SizeEvidence:
    """A recorded size: its expression, and what else is to be said about it."""

    size: Expr
    instances: int
    traces: int
    alternatives: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """How sure it is, for the report."""
        text = f"{self.instances} recorded instances, {self.traces} traces"
        others = ", ".join(self.alternatives)
        return f"{text}; {others} always moved with it" if others else text


@dataclass(frozen=True, eq=False)
class ClassEvidence:
    """What was recorded of one class of the project, as the project spells it."""

    info: ClassInfo
    record: RecordedClass
    hashes: Mapping[str, str]  # module name -> hash of its file

    def place_of(self, call: ast.Call) -> Place | None:
        """The recorded form of a constructor call's position in the class."""
        owners = (one for one in self.info.mro if any(node is call for node in walk(one.node)))
        owner = next(owners, None)
        if owner is None:
            return None
        digest, end = self.hashes.get(owner.module.name), (call.end_lineno, call.end_col_offset)
        if digest is None or end[0] is None or end[1] is None:
            return None
        return Place(digest, call.lineno, call.col_offset, end[0], end[1])

    def size(self, call: ast.Call, want: RecordedAxis) -> SizeEvidence | None:
        """The recorded expression of a size; None when there is none that ``__init__`` can read."""
        place = self.place_of(call)
        if place is None:
            return None
        argument, rank = self._argument(place, want)
        if argument is None or rank is None:
            return None
        axes = range(-rank, 0) if want.axis is None else (want.axis % rank - rank,)
        parts = [self._axis(call, place, want, argument, axis) for axis in axes]
        found = [part for part in parts if part is not None]
        if len(found) != len(parts) or not found:
            return None
        if want.axis is not None:
            return found[0]
        nodes: list[ast.expr] = [one.size.node for one in found]
        instances, traces = min((one.instances, one.traces) for one in found)
        return SizeEvidence(Expr(ast.Tuple(nodes, ast.Load())), instances, traces)

    def _axis(
        self, call: ast.Call, place: Place, want: RecordedAxis, argument: str, axis: int
    ) -> SizeEvidence | None:
        key = (place, want.below, want.method, argument, axis)
        one: RecordedSize | None = self.record.sizes.get(key)
        if one is None or one.expression is None:
            return None
        size = expression_of(one.expression, self.info, call)
        return SizeEvidence(size, one.instances, one.traces, one.alternatives) if size else None

    def _argument(self, place: Place, want: RecordedAxis) -> tuple[str | None, int | None]:
        """Name and rank of the recorded argument; no rank when it was not always the same.

        Where the axis is counted from the end, any rank that has it will do.
        """
        shapes = [dict(one.shapes) for one in self._sightings(place, want)]
        names = list(dict.fromkeys(name for shape in shapes for name in shape))
        name = want.argument
        if name is None and not want.below:
            name = next((one for one in _MAIN if one in names), None)
        name = name or next(iter(names), None)
        ranks = {len(shape[name]) for shape in shapes if name in shape}
        if want.axis is not None and want.axis < 0 and all(one >= -want.axis for one in ranks):
            return name, -want.axis if ranks else None
        return name, ranks.pop() if len(ranks) == 1 and all(ranks) else None

    def _sightings(self, place: Place, want: RecordedAxis) -> Iterator[Sighting]:
        """The first call of each submodule in each trace: parameters take its shapes."""
        done: set[tuple[object, ...]] = set()
        for one in self.record.sightings:
            if (one.site, one.below, one.method) != (place, want.below, want.method):
                continue
            key = (one.instance, tuple(sorted(one.changes.items())), one.ordinal)
            if key not in done:
                done.add(key)
                yield one

    def always_has(self, call: ast.Call, want: RecordedAxis) -> bool:
        """Whether every recorded first call of what is built there has the argument."""
        place = self.place_of(call)
        sightings = list(self._sightings(place, want)) if place is not None else []
        return bool(sightings) and all(want.argument in dict(one.shapes) for one in sightings)

    def compare(self, call: ast.Call, want: RecordedAxis, size: Expr) -> tuple[int, str | None]:
        """How many recorded sizes an expression gives, and the first one that it does not.

        One over variables of ``__init__`` is not compared.
        """
        place = self.place_of(call)
        if place is None:
            return 0, None
        argument, rank = self._argument(place, want)
        if argument is None or rank is None:
            return 0, None
        text, compared = recorded_text(size), 0
        for one in self._sightings(place, want):
            shape = dict(one.shapes).get(argument)
            with suppress(Unknown):
                value = evaluate(text, self._surroundings(one))
                record = value if shape is None else _comparable(shape, want.axis, value)
                if value != record:
                    return compared, f"{text} is {value}, the recorded call has {record}"
                compared += shape is not None
        return compared, None

    def _surroundings(self, one: Sighting) -> Surroundings:
        """What an expression may read in one trace."""
        instance = self.record.instances[one.instance]
        inputs = {n: replace_numbers(value, n, one.changes) for n, value in instance.inputs.items()}
        names = {n: v if kind_of(v) == "plain" else _GIVEN for n, v in inputs.items()}
        fields = replace_numbers(instance.fields, "self", one.changes)
        return Surroundings(fields, inputs, {**_left_out(self.info, instance), **names})


def _left_out(info: ClassInfo, instance: Instance) -> dict[str, None]:
    """Arguments that a recorded call leaves out, and that are None then."""
    found = info.find(instance.method)
    defaults = defaults_of(found[1].args) if found else {}
    return {name: None for name, node in defaults.items() if is_none_literal(node)}


@dataclass(frozen=True, eq=False)
class ProjectEvidence:
    """An evidence file beside a project. ``hashes`` are those of the project's files by path."""

    evidence: Evidence
    project: Project
    hashes: Mapping[str, str]

    @cached_property
    def by_module(self) -> dict[str, str]:
        """Hash of the file of each module of the project."""
        modules = self.project.modules.values()
        return {m.name: self.hashes[m.path] for m in modules if m.path in self.hashes}

    def of(self, info: ClassInfo) -> ClassEvidence | None:
        """What is recorded of a class and still true of its files."""
        digest = self.by_module.get(info.module.name)
        for one in self.evidence.classes:
            same = one.key.hash == digest and _is_named(one.key.qualname, info)
            if same and self._stale_file(one) is None:
                return ClassEvidence(info, one, self.by_module)
        return None

    @property
    def stale(self) -> Iterator[tuple[ClassInfo, str]]:
        """Classes that were only recorded when their files, or those they use, read otherwise."""
        reasons: dict[str, tuple[ClassInfo, str]] = {}
        names = {module.name: module for module in self.project.modules.values()}
        for one in self.evidence.classes:
            module = self._home(one, names)
            found = [
                info
                for info in self.project.linen.values()
                if info.module is module and _is_named(one.key.qualname, info)
            ]
            changed = self._stale_file(one)
            if found and changed is not None and self.of(found[0]) is None:
                reasons.setdefault(found[0].name, (found[0], changed))
        yield from reasons.values()

    def _home(self, one: RecordedClass, names: Mapping[str, Module]) -> Module | None:
        """The project's module that a class was recorded in."""
        for name, digest in self.by_module.items():
            if digest == one.key.hash:
                return names[name]
        if one.key.module in names:
            return names[one.key.module]
        file = self.evidence.names.get(one.key.hash)
        alike = [module for module in names.values() if module.path.rpartition("/")[2] == file]
        return alike[0] if len(alike) == 1 else None

    def _stale_file(self, one: RecordedClass) -> str | None:
        """The file whose recorded text is not the project's any more."""
        current = set(self.by_module.values())
        for digest in (one.key.hash, *one.depends):
            module = self.evidence.modules.get(digest, "")
            is_own = digest == one.key.hash or module in self.by_module
            if digest not in current and is_own:
                return self.evidence.names.get(digest, module)
        return None


def _comparable(shape: tuple[int, ...], axis: int | None, record: object) -> object:
    """What was recorded of a shape, in the form of the size that it is compared with.

    The width of a DenseGeneral over several axes is a tuple: that of as many last axes.
    """
    if axis is None:
        return shape
    if isinstance(record, tuple) and axis == -1:
        return shape[-len(record) :] if record else ()
    return shape[axis]


def _is_named(qualname: str, info: ClassInfo) -> bool:
    return info.name == qualname or info.name.endswith(f".{qualname}")
