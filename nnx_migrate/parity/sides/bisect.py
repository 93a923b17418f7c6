"""Where two models part: the outputs of every submodule call, in execution order.

Both sides tag each submodule by its path and send its output to the host when the program runs,
so calls inside ``scan``, ``vmap`` and ``remat`` are seen too.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import jax
import numpy as np
from flax import linen, nnx
from flax.nnx.tracers import current_jax_trace

from nnx_migrate.parity.case import Arguments, ParityCase, arguments_of, in_mode
from nnx_migrate.parity.evaluation.constant_key import constant_key
from nnx_migrate.parity.evaluation.results import ModeRun, SubmoduleOutput
from nnx_migrate.parity.evaluation.running import as_run
from nnx_migrate.parity.values import (
    Array,
    Arrays,
    is_array,
    is_inexact,
    is_key,
    named_leaves,
    same_bits,
    within,
)

_TAG = "nnx_migrate_path"


class Record:
    """Outputs by traced call, as the program sends them."""

    def __init__(self) -> None:
        """Start empty."""
        # Set to the outermost trace when calls inside lifts cannot be recorded.
        self.only_in: Any = None
        self.restart()

    def restart(self) -> None:
        """Forget everything."""
        self._traced = 0
        self._arrived: dict[_Place, list[tuple[int, Arrays]]] = {}
        self._moments = itertools.count()

    def add(self, path: str, outputs: Any) -> Any:
        """Send the output of one traced call to the host when it runs; return the output.

        The values come back from the host: an effect instead would upset Linen's ``scan``, which
        looks for what its body depends on.
        """
        named, treedef = named_leaves(outputs)
        leaves = {name: leaf for name, leaf in named.items() if is_array(leaf) and not is_key(leaf)}
        outside = self.only_in is not None and any(
            _trace(leaf) != self.only_in for leaf in leaves.values()
        )
        if not leaves or outside:
            return outputs
        place = _Place(self._traced, path, current_jax_trace())
        self._traced += 1

        def receive(*values: Any) -> tuple[Array, ...]:
            arrays = tuple(np.asarray(value) for value in values)
            came = dict(zip(leaves, arrays, strict=True))
            self._arrived.setdefault(place, []).append((next(self._moments), came))
            return arrays

        shapes = tuple(jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves.values())
        back = jax.pure_callback(receive, shapes, *leaves.values(), vmap_method="sequential")
        named |= dict(zip(leaves, back, strict=True))
        return jax.tree.unflatten(treedef, list(named.values()))

    def outputs(self) -> tuple[SubmoduleOutput, ...]:
        """Return what arrived, in the order of execution, numbered per path in that of tracing.

        The numbers pair the calls of both sides: calls that do not depend on one another (a shared
        module on two inputs) run in an order of their own on each side.
        """
        calls: collections.Counter[str] = collections.Counter()
        found = []
        for place in sorted(self._arrived, key=lambda place: place.number):
            for turn, (moment, arrays) in enumerate(self._arrived[place]):
                entry = SubmoduleOutput(place.path, calls[place.path], arrays)
                found.append(_Arrival(moment, place, turn, entry))
                calls[place.path] += 1
        return tuple(one.entry for one in _in_order(found))


@dataclasses.dataclass(frozen=True, eq=False)
class _Place:
    """One traced call; ``body`` is what was traced then: the program or, say, the body of a loop."""

    number: int
    path: str
    body: Any


@dataclasses.dataclass(frozen=True)
class _Arrival:
    moment: int
    place: _Place
    turn: int
    entry: SubmoduleOutput


def _in_order(arrivals: Iterable[_Arrival]) -> list[_Arrival]:
    """Sort by arrival, and what stands side by side and ran in the same turn of a body by tracing.

    The compiler runs what does not depend on one another in any order: a query after its value.
    """
    order: list[_Arrival] = []
    for one in sorted(arrivals, key=lambda one: one.moment):
        at = len(order)
        while at and _traced_after(order[at - 1], one):
            at -= 1
        order.insert(at, one)
    return order


def _traced_after(earlier: _Arrival, later: _Arrival) -> bool:
    """Whether the one that arrived earlier was traced after the later one, so that it cannot need it."""
    same = earlier.turn == later.turn and earlier.place.body == later.place.body
    return same and earlier.place.number > later.place.number


@contextmanager
def recorded_linen() -> Iterator[Record]:
    """Record every ``__call__`` of every Linen module."""
    record = Record()

    def intercept(function: Any, args: Any, kwargs: Any, context: Any) -> Any:
        outputs = function(*args, **kwargs)
        if context.method_name == "__call__" and context.module.scope is not None:
            return record.add("/".join(context.module.path), outputs)
        return outputs

    with linen.intercept_methods(intercept):
        yield record


@contextmanager
def recorded_lazy(module: nnx.Module, linen_path: Callable[[str], str]) -> Iterator[Record]:
    """Record every ``__call__`` of every lazy module; its paths are Linen's."""
    with recorded_linen() as record:
        yield record


@contextmanager
def recorded_nnx(module: nnx.Module, linen_path: Callable[[str], str]) -> Iterator[Record]:
    """Record every ``__call__`` of every submodule of ``module``, under its Linen path.

    The path travels as a static attribute, because transforms hand copies of a module to their
    bodies; a module that is shared has the first of its paths.
    """
    record = Record()
    nodes = [(path, node) for path, node in nnx.iter_graph(module) if isinstance(node, nnx.Module)]
    with ExitStack() as stack:
        for path, node in nodes:
            if _TAG not in vars(node):
                setattr(node, _TAG, linen_path("/".join(map(str, path))))
                stack.callback(delattr, node, _TAG)
        bases = {base for _, node in nodes for base in type(node).__mro__}
        for cls in sorted(bases, key=lambda base: base.__qualname__):
            if issubclass(cls, nnx.Module) and "__call__" in vars(cls):
                stack.enter_context(_wrap_calls(cls, record))
        yield record


@contextmanager
def _wrap_calls(cls: Any, record: Record) -> Iterator[None]:
    original = vars(cls)["__call__"]

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        outputs = original(self, *args, **kwargs)
        path = vars(self).get(_TAG)
        return outputs if path is None else record.add(path, outputs)

    cls.__call__ = call
    try:
        yield
    finally:
        cls.__call__ = original


def _trace(value: Any) -> Any:
    return getattr(value, "_trace", None)


def run(
    case: ParityCase,
    apply: Callable[..., Any],
    variables: Mapping[str, Any],
    arguments: Arguments,
    arrays: Sequence[Any],
    record: Record,
    errors: dict[str, str],
) -> tuple[SubmoduleOutput, ...]:
    """Run a side's forward pass and return what ``record`` received.

    Where a lift does not take a callback, calls inside lifts go unrecorded. What still raises is
    entered in ``errors`` under "submodules".
    """
    for lifts in (True, False):
        record.restart()
        try:
            return _run(case, apply, variables, arguments, arrays, record, lifts=lifts)
        except Exception as error:  # noqa: BLE001 (any error of the model is a finding)
            errors["submodules"] = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return ()


def in_modes(
    case: ParityCase,
    apply_of: Callable[[ParityCase], Callable[..., Any]],
    variables: Mapping[str, Any],
    arrays: Sequence[Any],
    record: Record,
    modes: tuple[ModeRun, ...],
) -> tuple[ModeRun, ...]:
    """The runs in other modes of a side, with their submodules' outputs."""

    def with_submodules(one: ModeRun) -> ModeRun:
        other, errors = in_mode(case, one.mode), dict(one.errors)
        apply, arguments = apply_of(other), arguments_of(other)
        outputs = run(other, apply, variables, arguments, arrays, record, errors)
        return dataclasses.replace(one, submodules=outputs, errors=errors)

    return tuple(one if one.missing else with_submodules(one) for one in modes)


def _run(
    case: ParityCase,
    apply: Callable[..., Any],
    variables: Mapping[str, Any],
    arguments: Arguments,
    arrays: Sequence[Any],
    record: Record,
    *,
    lifts: bool,
) -> tuple[SubmoduleOutput, ...]:
    def forward(variables: dict[str, Any], key: Any, arrays: Sequence[Any]) -> Any:
        if not lifts:
            record.only_in = _trace(key)
        with constant_key(key, case.rngs):
            outputs, _ = apply(variables, *arguments.rebuild(arrays))
        return [leaf for leaf in jax.tree.leaves(outputs) if is_array(leaf)]

    outputs = as_run(case, forward)(dict(variables), jax.random.key(11), list(arrays))
    jax.block_until_ready(outputs)
    return record.outputs()


# How much of its largest value an output may be off by rounding, by bytes of a real element: programs
# that are not the same are fused otherwise, and their sums are rounded in another order.
_ROUNDING = {2: 2.0**-6, 4: 2.0**-19, 8: 2.0**-48}


def first_difference(
    ours: Sequence[SubmoduleOutput],
    theirs: Sequence[SubmoduleOutput],
    tolerance: float | None,
    submodule_paths: Collection[str] = (),
) -> dict[str, Any] | None:
    """Return path and both outputs of the first submodule call, in Linen's order, that differs.

    By more than rounding, if there is such a one. Submodules that only one side has, or calls another
    number of times, are passed over: the ones around them show the difference. A stack may be called
    in each turn of its loop, or around it. But a module before it that NNX never calls although it has
    its variables (``submodule_paths`` are their paths) is the one that is named.
    """
    found = _first(ours, theirs, functools.partial(_is_close, tolerance=tolerance))
    if found is None:
        found = _first(ours, theirs, functools.partial(_is_equal, tolerance=tolerance))
    if found is None:
        return None
    place, other = found
    entry = ours[place]
    around = {entry.path, entry.path.rpartition("/")[0]}
    called_paths = {one.path for one in theirs}
    for one in ours[:place]:
        if (
            one.path not in called_paths
            and one.path in submodule_paths
            and one.path.rpartition("/")[0] in around
        ):
            return {"path": one.path, "linen": _summary(one.outputs), "nnx": "not called"}
    return {"path": entry.path, "linen": _summary(entry.outputs), "nnx": _summary(other)}


def _first(
    ours: Sequence[SubmoduleOutput],
    theirs: Sequence[SubmoduleOutput],
    agree: Callable[[Array, Array], bool],
) -> tuple[int, Arrays] | None:
    """The place in ``ours`` of the first call that does not agree, and the outputs of the other side."""
    others = {(entry.path, entry.call): entry.outputs for entry in theirs}
    times, again = (collections.Counter(one.path for one in side) for side in (ours, theirs))
    for place, entry in enumerate(ours):
        outputs = others.get((entry.path, entry.call))
        if times[entry.path] != again[entry.path] or outputs is None:
            continue
        if not _agree(entry.outputs, outputs, agree):
            return place, outputs
    return None


def _agree(ours: Arrays, theirs: Arrays, agree: Callable[[Array, Array], bool]) -> bool:
    """Whether the values agree, whatever the structure around them.

    Around a loop a call has an axis that it lacks inside (of size 1 after one turn), and a layer
    returns its output alone or beside what the loop collects.
    """
    if len(ours) != len(theirs):
        return False
    pairs = zip(map(np.squeeze, ours.values()), map(np.squeeze, theirs.values()), strict=True)
    return all(agree(one, other) for one, other in pairs)


def _is_equal(one: Array, other: Array, tolerance: float | None) -> bool:
    return same_bits(one, other) or (tolerance is not None and within(one, other, tolerance))


def _is_close(one: Array, other: Array, tolerance: float | None) -> bool:
    """Whether two outputs agree but for rounding."""
    if not is_inexact(one.dtype):
        return _is_equal(one, other, tolerance)
    rounding = _ROUNDING.get(np.real(one).dtype.itemsize, 0.0)
    return _is_equal(one, other, max(tolerance or 0.0, rounding))


def _summary(outputs: Arrays) -> str:
    return "; ".join(_describe(name, value) for name, value in outputs.items()) or "no arrays"


def _describe(name: str, value: Any) -> str:
    flat = value.reshape(-1)[:4]
    numbers = ", ".join(
        f"{entry:.6g}" if np.isrealobj(flat) else str(entry) for entry in flat.tolist()
    )
    shape = ",".join(map(str, value.shape))
    label = f"{name}: " if name else ""
    return f"{label}{value.dtype}[{shape}] {numbers}{', ...' if value.size > 4 else ''}"
