"""A context in which NNX resolves logical names as Linen does.

NNX shards a variable with ``out_sharding`` when it is constructed under a mesh, and gives specs of
variables, by a resolution of its own: the last rule of a name wins, two names on one mesh axis
crash, a name without a rule is taken for a mesh axis (flax 0.12.8 and 0.12.12: ``shard_value`` in
core/spmd.py, ``get_var_pspec`` in nnx/spmd.py). In the context both go through
:func:`nnx_migrate.sharding.resolve_spec`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import flax.core.spmd
import flax.nnx.spmd
import jax
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

from nnx_migrate.sharding.annotations import Annotation, annotation
from nnx_migrate.sharding.fitting import MISFITS, Misfit, refuse_other_words
from nnx_migrate.sharding.leaves import shardings_of_value
from nnx_migrate.sharding.placing import AnyMesh, ambient_mesh, apply_spec
from nnx_migrate.sharding.resolve import Rules, resolve_spec


@contextmanager
def linen_sharding(
    rules: Rules | None = None, mesh: AnyMesh | None = None, *, misfit: Misfit = "raise"
) -> Iterator[None]:
    """A context in which NNX variables are created sharded by Linen's resolution.

    ``nnx.Param(value, out_sharding=("embed", "mlp"))`` and every NNX constructor that passes such
    metadata on, under ``jax.set_mesh`` (or, in ``nnx.eval_shape``, ``use_abstract_mesh``), give
    arrays sharded as :func:`construct_named_sharding` says, and ``nnx.get_partition_spec`` and its
    like give those specs. Without a mesh nothing is sharded and nothing raised, as in Linen.
    Contexts nest, other threads are not affected, and everything is put back on exit.

    Args:
      rules: set as the logical axis rules of the context; without, those in force when a variable
        is created.
      mesh: set as the mesh of the context.
      misfit: see :func:`construct_named_sharding`.

    Raises:
      ValueError: ``misfit`` is none of its words.
    """
    refuse_other_words("misfit", misfit, MISFITS)
    with ExitStack() as stack:
        if mesh is not None:
            stack.enter_context(mesh_context(mesh))
        if rules is not None:
            stack.enter_context(flax.core.spmd.logical_axis_rules(rules))
        stack.enter_context(_active(misfit))
        yield


def mesh_context(mesh: AnyMesh) -> Any:
    """``jax.set_mesh``, or ``use_abstract_mesh`` for a mesh without devices."""
    if isinstance(mesh, AbstractMesh):
        return jax.sharding.use_abstract_mesh(mesh)
    return jax.set_mesh(mesh)


@contextmanager
def unsharded_creation(rules: Rules | None, mesh: AnyMesh) -> Iterator[None]:
    """A context of ``mesh`` and ``rules`` in which variables keep the sharding of their value."""
    with ExitStack() as stack:
        stack.enter_context(mesh_context(mesh))
        if rules is not None:
            stack.enter_context(flax.core.spmd.logical_axis_rules(rules))
        stack.enter_context(_active(None))
        yield


def _shard_value(misfit: Misfit | None, value: Any, names: Any, own_rules: Any, mesh: Any) -> Any:
    """``flax.core.spmd.shard_value``: the value of a new variable, sharded."""
    if misfit is None:
        return value
    notes = annotation({"out_sharding": names, "sharding_rules": own_rules})
    mesh = _mesh_of(notes, mesh)
    if notes.names is None or mesh is None:
        return value
    shardings = shardings_of_value(value, notes, mesh, misfit)
    return jax.tree.map(lambda x, s: apply_spec(x, s.mesh, s.spec, s.memory_kind), value, shardings)


def _get_var_pspec(misfit: Misfit | None, variable: Any) -> PartitionSpec | None:
    """``flax.nnx.spmd.get_var_pspec``: the spec of a variable, None for one without a shape."""
    metadata = variable.get_metadata()
    notes = annotation(metadata)
    value = variable.get_raw_value()
    if not hasattr(value, "shape"):
        return None
    mesh = _mesh_of(notes, metadata.get("mesh"))
    if mesh is not None:
        spec: PartitionSpec = shardings_of_value(value, notes, mesh, misfit or "raise").spec
        return spec
    names = notes.names_of(len(value.shape))
    assert not isinstance(names, NamedSharding)  # it would have brought its mesh
    rules = (*notes.rules, *flax.core.spmd.get_logical_axis_rules())
    if isinstance(names, PartitionSpec):
        return names
    return resolve_spec(names, rules) if names and rules else PartitionSpec(*(names or ()))


def _mesh_of(notes: Annotation, mesh: AnyMesh | None) -> AnyMesh | None:
    """The mesh a variable brings along, else that of the context."""
    if isinstance(notes.names, NamedSharding):
        own: AnyMesh = notes.names.mesh
        return own
    return ambient_mesh() if mesh is None else mesh


class _Settings(threading.local):
    """The ``misfit`` of each context that this thread is in, the innermost last.

    None stands for a context in which nothing is sharded.
    """

    misfits: tuple[Misfit | None, ...] = ()


class _Patch:
    """A function of flax that is replaced while any thread is in a context.

    A thread that is in none gets flax's own. flax looks the function up in its module at each
    call; tests hold it to that.
    """

    def __init__(self, module: Any, name: str, ours: Callable[..., Any]) -> None:
        self.module, self.name, self.ours = module, name, ours
        self.original: Callable[..., Any] = getattr(module, name)

    def install(self) -> None:
        self.original = getattr(self.module, self.name)
        setattr(self.module, self.name, self)

    def restore(self) -> None:
        setattr(self.module, self.name, self.original)

    def __call__(self, *args: Any) -> Any:
        misfits = _SETTINGS.misfits
        return self.ours(misfits[-1], *args) if misfits else self.original(*args)


_SETTINGS = _Settings()
_LOCK = threading.Lock()
_USERS: list[object] = []  # one entry per context that is open in any thread
_PATCHES = (
    _Patch(flax.core.spmd, "shard_value", _shard_value),
    _Patch(flax.nnx.spmd, "get_var_pspec", _get_var_pspec),
)


@contextmanager
def _active(misfit: Misfit | None) -> Iterator[None]:
    """Resolve as Linen in this thread until the context ends."""
    before = _SETTINGS.misfits
    user = object()
    with _LOCK:
        if not _USERS:
            for one in _PATCHES:
                one.install()
        _USERS.append(user)
    _SETTINGS.misfits = (*before, misfit)
    try:
        yield
    finally:
        _SETTINGS.misfits = before
        with _LOCK:
            _USERS.remove(user)
            if not _USERS:
                for one in _PATCHES:
                    one.restore()
