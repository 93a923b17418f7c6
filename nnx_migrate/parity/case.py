"""What is compared: a Linen module and its NNX counterpart on the same inputs."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import jax
import numpy as np
from flax import linen, nnx
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec

from nnx_migrate.parity.case_settings import fault
from nnx_migrate.parity.modes import Mode
from nnx_migrate.parity.unit_axis_notes import note_unit_axes
from nnx_migrate.parity.values import is_array
from nnx_migrate.sharding.placing import AnyMesh


class BadCase(ValueError):
    """The case itself cannot be run: nothing is said about the migration."""


@dataclass(frozen=True)
class ParityCase:
    """A pair of models and what to run them on.

    ``linen`` is the Linen module, ``nnx`` a callable ``rngs -> module`` or the migrated class.
    ``inputs`` and ``kwargs`` are the call arguments: arrays in them are traced, everything else
    (``train=True``, strings, None) is passed as it is. ``rngs`` maps stream names to seeds,
    ``initial`` is ``(args, kwargs)`` where the model is initialised with another call. ``collections``
    names those that are mutable. ``loss(outputs, *inputs)`` defaults to a
    weighted sum over all float outputs. ``path_map`` maps a Linen scope path (or a prefix) to
    the NNX attribute path. ``tolerance`` is relative to the largest value of each array; without
    it only equal bits pass. ``method`` names the method to call instead of ``__call__``.
    ``optimizer``, ``steps`` and ``zero1`` serve the checks that take training steps; with ``zero1``
    the training state is sharded over the mesh axis ``data`` too, and only the model's calls have
    parameters as their logical names say. With ``gradient_accumulation_steps`` a step calls the model
    on so many parts of the batch, one after another: every array has a leading axis that they divide. Under ``shard_mode="explicit"`` all mesh axes are Explicit.
    A ``stateless`` model is one that made no variables where it was recorded: then only what it computes
    is compared, and a variable on one side alone still fails.
    Without ``compiled`` the model runs operation by operation, as one that reads values
    (``x.item()``) has to; a Linen module that cannot be traced sets that for both sides.
    ``modes`` are further runs of the call (``train=True`` where it is False); without them the Linen side
    finds out which there are.
    With ``keeps_state`` the training state after the last of the ``steps`` is kept, for a certificate.
    """

    linen: linen.Module | None = None
    nnx: Callable[..., Any] | type | None = None
    inputs: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    initial: tuple[tuple[Any, ...], Mapping[str, Any]] | None = None
    rngs: Mapping[str, Any] = field(default_factory=dict)
    collections: Sequence[str] = ()
    loss: Callable[..., Any] | None = None
    optimizer: Any = None
    steps: int = 0
    mesh: Mapping[str, int] | Mesh | None = None
    axis_rules: Sequence[tuple[str, Any]] | None = None
    shard_mode: Literal["auto", "explicit"] = "auto"
    zero1: bool = False
    gradient_accumulation_steps: int = 1
    path_map: Mapping[str, str] | None = None
    tolerance: float | None = None
    method: str | None = None
    seed: int = 0
    compiled: bool = True
    stateless: bool = False
    modes: tuple[Mode, ...] | None = None
    keeps_state: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be a case. Raises BadCase."""
        if not isinstance(self.inputs, tuple):
            raise BadCase(
                f"inputs: expected a tuple of call arguments, found "
                f"{type(self.inputs).__name__}: write inputs=(x,)"
            )
        if (line := fault(vars(self))) is not None:
            raise BadCase(line)
        if self.shard_mode not in ("auto", "explicit"):
            raise BadCase(f"shard_mode: expected 'auto' or 'explicit', found {self.shard_mode!r}")
        if self.tolerance is not None and not 0 <= self.tolerance < 1:
            raise BadCase(f"tolerance: expected 0 <= t < 1, found {self.tolerance!r}")

    @property
    def streams(self) -> tuple[str, ...]:
        """The random streams of the NNX module: it keeps them from construction for every mode."""
        mode_streams = (name for mode in self.modes or () for name in mode.streams)
        return tuple(dict.fromkeys(("params", *self.rngs, *mode_streams)))

    def key_of(self, stream: str) -> Any:
        """Return the key of a stream: its seed, made distinct from every other stream's."""
        value = self.rngs.get(stream, self.seed)
        key = jax.random.key(value) if isinstance(value, int | np.integer) else value
        return jax.random.fold_in(key, zlib.crc32(stream.encode()))


def initial_call(case: ParityCase) -> ParityCase:
    """The case with the inputs that its model is initialised with."""
    if case.initial is None:
        return case
    inputs, kwargs = case.initial
    return replace(case, inputs=inputs, kwargs=kwargs, initial=None)


def call_target(case: ParityCase, module: Any) -> Any:
    """What the case calls of an NNX module: the module, or the method that it names."""
    return module if case.method is None else getattr(module, case.method)


def in_mode(case: ParityCase, mode: Mode) -> ParityCase:
    """The case with its call in another mode."""
    inputs, kwargs = mode.arguments(case.inputs, case.kwargs)
    return replace(settings_in_mode(case, mode), inputs=inputs, kwargs=kwargs)


def settings_in_mode(case: ParityCase, mode: Mode) -> ParityCase:
    """What a comparison in another mode reads of the case, which need not have its call's inputs."""
    return replace(
        case,
        collections=(*case.collections, *mode.collections),
        rngs={**dict.fromkeys(mode.streams, case.seed), **case.rngs},
    )


@dataclass(frozen=True)
class Arguments:
    """Call arguments with the arrays taken out, so that they can be traced."""

    arrays: tuple[Any, ...]
    statics: tuple[Any, ...]
    is_traced: tuple[bool, ...]
    treedef: Any

    def rebuild(self, arrays: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return ``(args, kwargs)`` with other arrays in their places."""
        dynamic, static = iter(arrays), iter(self.statics)
        leaves = [next(dynamic) if is_dynamic else next(static) for is_dynamic in self.is_traced]
        args, kwargs = jax.tree.unflatten(self.treedef, leaves)
        return args, kwargs


def arguments_of(case: ParityCase) -> Arguments:
    """Split the inputs of a case into what is traced and what is not."""
    leaves, treedef = jax.tree.flatten((case.inputs, dict(case.kwargs)))
    is_traced = tuple(is_array(leaf) for leaf in leaves)
    return Arguments(
        tuple(leaf for leaf, yes in zip(leaves, is_traced, strict=True) if yes),
        tuple(leaf for leaf, yes in zip(leaves, is_traced, strict=True) if not yes),
        is_traced,
        treedef,
    )


def mesh_of(case: ParityCase) -> Mesh | None:
    """Return the mesh of a case, built on the first devices of this process."""
    if case.mesh is None or isinstance(case.mesh, Mesh):
        return case.mesh
    shape, names = tuple(case.mesh.values()), tuple(case.mesh)
    device_count, devices = math.prod(shape), jax.devices()
    if device_count > len(devices):
        raise BadCase(
            f"mesh {describe_mesh(case)} needs {device_count} devices, this process has "
            f"{len(devices)}: start it with "
            f"XLA_FLAGS=--xla_force_host_platform_device_count={device_count}"
        )
    kind = AxisType.Auto if case.shard_mode == "auto" else AxisType.Explicit
    return Mesh(
        np.array(devices[:device_count]).reshape(shape), names, axis_types=(kind,) * len(names)
    )


def describe_mesh(case: ParityCase) -> str | None:
    """Return ``data:8,model:2``, or None without a mesh."""
    if case.mesh is None:
        return None
    shape = case.mesh.shape if isinstance(case.mesh, Mesh) else case.mesh
    return ",".join(f"{axis}:{size}" for axis, size in shape.items())


@contextmanager
def surroundings(case: ParityCase, mesh: AnyMesh | None) -> Iterator[None]:
    """The contexts both sides run in: the mesh, the logical axis rules, no eager sharding.

    Specs are compared apart from values; here parameters are replicated on both sides.
    """
    with ExitStack() as stack:
        if mesh is not None:
            stack.enter_context(
                jax.sharding.use_abstract_mesh(mesh)
                if isinstance(mesh, AbstractMesh)
                else jax.set_mesh(mesh)
            )
        if case.axis_rules is not None:
            stack.enter_context(linen.logical_axis_rules(case.axis_rules))
        stack.enter_context(nnx.use_eager_sharding(False))
        stack.enter_context(note_unit_axes())
        yield


@contextmanager
def linen_init_context(case: ParityCase) -> Iterator[None]:
    """The context in which Linen initialises: over Explicit axes, without logical axis rules.

    There Linen asserts that a value fresh from its initialiser, which is whole on every device, is
    already sharded by its names (flax 0.12.8, linen/spmd.py). Values do not depend on the rules.
    """
    none = linen.logical_axis_rules(()) if case.shard_mode == "explicit" else nullcontext()
    with none:
        yield


def place(arrays: Sequence[Any], mesh: Mesh | None) -> list[Any]:
    """Put inputs on the mesh: the leading dimension over its first axis where that divides it."""
    if mesh is None:
        return [jax.numpy.asarray(value) for value in arrays]
    axis, size = mesh.axis_names[0], mesh.devices.shape[0]

    def spec(value: Any) -> PartitionSpec:
        divides = value.ndim > 0 and value.shape[0] > 0 and value.shape[0] % size == 0
        return _spec(axis) if divides else _spec()

    return [jax.device_put(value, NamedSharding(mesh, spec(value))) for value in arrays]


def replicate(arrays: Mapping[str, Any], mesh: Mesh | None) -> dict[str, Any]:
    """Put variables on the mesh, whole on every device."""
    if mesh is None:
        return {name: jax.numpy.asarray(value) for name, value in arrays.items()}
    sharding = NamedSharding(mesh, _spec())
    return {name: jax.device_put(value, sharding) for name, value in arrays.items()}


def _spec(*axes: str) -> PartitionSpec:
    return PartitionSpec(*axes)
