"""Initial values from Linen's keys: the same seed gives a migrated module the same variables.

Linen derives the key of a parameter from its scope path (flax 0.12.8, core/scope.py), and so the key
of ``make_rng`` that another variable starts from; NNX draws keys in order of construction.
:func:`build` traces the constructor once to see which draw feeds which variable, then constructs with
Linen's key in place of each draw.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import jax
from flax import nnx
from flax.core.scope import LazyRng

from nnx_migrate.nn.seeding.draw_owners import PARAMS, BuiltVariable, DrawCounts, linen_places
from nnx_migrate.nn.seeding.stacks import Stacks, stacks_around
from nnx_migrate.nn.streams.linen_streams import typed_key
from nnx_migrate.nn.variables.errors import InvalidRngError
from nnx_migrate.nn.variables.sharing import linen_place
from nnx_migrate.nn.variables.variables import collection_of, variable_type
from nnx_migrate.numerics.known_values import known_values

M = TypeVar("M", bound=nnx.Module)


def build(
    make: Callable[..., M],
    *args: Any,
    rngs: Any,
    scope_path: Sequence[str] = (),
    draw_counts: DrawCounts | None = None,
    lacking: Collection[tuple[str, ...]] | None = None,
    **options: Any,
) -> M:
    """``make(*args, **options, rngs=...)`` with the parameters Linen's ``init(rngs, ...)`` gives.

    Args:
      make: a migrated class, or a partial of one.
      rngs: a key, or a dict of keys by stream, as Linen's ``init`` takes it.
      scope_path: where the module stands in a Linen model whose ``init`` has these keys.
      draw_counts: how many keys that ``init`` drew before, by path below the module and stream: the loop of a
        scan runs its body several times, and ``nn.fold_rngs`` draws one; updated.
      lacking: the variables that are made, by collection and path, where others are held already: Linen
        draws no keys for those. None for all.

    Variables whose draw is not theirs alone (modules stacked by ``nnx.vmap``) get values of the
    same distribution from other keys; those stacked by ``nnm.scan`` and ``nnm.vmap`` get Linen's,
    unless Linen's loop is traced more often than usual (a carry that changes its weak type), and so do
    those whose call ``nnm.jit`` compiles. Bits are
    Linen's when both sides run jitted, or both do not.

    Raises:
      ValueError: ``rngs`` has no key for ``params``.
    """
    keys_by_stream = dict(rngs) if isinstance(rngs, Mapping) else {"params": rngs}
    has_params = keys_by_stream.get("params") is not None
    if not has_params and lacking is None:
        raise _no_key(keys_by_stream)
    first = typed_key(keys_by_stream.pop("params")) if has_params else jax.random.key(0)
    keys_by_stream.pop(PARAMS, None)  # a stream of that name in Linen is no stand-in for params
    roots = {PARAMS: first, **{name: typed_key(key) for name, key in keys_by_stream.items()}}

    def construct(draws: _Draws) -> M:
        streams = nnx.Rngs(0)
        for name in roots:
            setattr(streams, name, InitStream(name, draws))
        return make(*args, **options, rngs=streams)

    requests = _draw_requests(construct, roots)
    counts = {(path, _nnx_stream(name)): n for (path, name), n in (draw_counts or {}).items()}
    made, module_draws = _built_variables(construct, requests, roots, lacking)
    names = [name for name, _ in requests]
    places = list(linen_places(made, names, counts, module_draws))
    draws = any(one.is_param and not one.is_given for one in made)
    draws |= any(requests[draw][0] == PARAMS for draw, _, _ in places)
    if draws and not has_params:
        raise _no_key(keys_by_stream)
    keys = _linen_keys(places, requests, roots, tuple(scope_path))
    if draw_counts is not None:
        draw_counts.update({(path, _linen_stream(name)): n for (path, name), n in counts.items()})
    return construct(_Draws(keys, roots))


def _no_key(streams: Mapping[str, Any]) -> InvalidRngError:
    return InvalidRngError(
        f"expected a key for the stream 'params' in rngs, found {sorted(streams)}"
    )


def _nnx_stream(name: str) -> str:
    return PARAMS if name == "params" else name


def _linen_stream(name: str) -> str:
    return "params" if name == PARAMS else name


Level = tuple[int, bool]  # of a stack around a draw: its length, and whether each layer has its key
DrawRequest = tuple[str, tuple[Level, ...]]  # of a draw: its stream, and the stacks around it


class _Draws:
    """Hands out keys in order; static, so that it is shared by everything that draws."""

    def __init__(
        self,
        keys: Sequence[jax.Array],
        roots: Mapping[str, jax.Array],
        *,
        only_structure: bool = False,
    ) -> None:
        self.keys, self.roots, self.only_structure = keys, roots, only_structure
        self.count = 0
        self.requests: list[DrawRequest] = []
        self.owners: dict[int, nnx.Module] = {}  # of draws that feed no variable

    def __call__(self, stream: str, levels: tuple[Level, ...], place: tuple[Any, ...]) -> jax.Array:
        """The next key: of the layer at ``place`` when it is drawn for a stack."""
        index, self.count = self.count, self.count + 1
        self.requests[index:] = [(stream, levels)]
        if index >= len(self.keys):
            return jax.random.fold_in(self.roots[stream], index)
        key = self.keys[index]
        if not self.only_structure:
            for (_, is_split), layer in zip(levels, place, strict=True):
                key = key[layer] if is_split else key
        return key


class InitStream(nnx.RngStream):
    """A stream that draws from ``_Draws``; streams forked from it are plain ones."""

    def __init__(
        self,
        name: str,
        source: _Draws,
        levels: tuple[Level, ...] = (),
        place: tuple[Any, ...] = (),
    ) -> None:
        super().__init__(source.roots[name], tag=name)
        self.name = name
        self.source = source
        self.levels = levels
        self.place = _Place(place)

    def __call__(self) -> jax.Array:
        """The next key."""
        # Split for a stack or inside a transform, the stream has another key: its own keys count.
        is_own = self.key.get_value() is self.source.roots[self.name]
        if not is_own:
            return super().__call__()
        return self.source(self.name, self.levels, self.place.indices)

    def count_draw(self, module: nnx.Module) -> None:
        """Draw a key of the module's that no variable starts from, where parameters count it."""
        index = self.source.count
        if self.name == PARAMS:
            self()
        if self.source.count > index:
            self.source.owners[index] = module

    def split(self, k: int | tuple[int, ...]) -> nnx.RngStream:
        """A plain stream of ``k`` keys."""
        return nnx.RngStream(jax.random.split(self(), k), tag=self.tag)

    def fork(self, *, split: int | tuple[int, ...] | None = None) -> nnx.RngStream:
        """A plain stream from the next key."""
        if split is not None:
            return self.split(split)
        return nnx.RngStream(self(), tag=self.tag)

    # What nnx_migrate.nn.loops.stacking asks of a stream that knows its layers.

    @property
    def only_structure(self) -> bool:
        """Whether nobody needs the values of all layers."""
        return self.source.only_structure

    def mark(self) -> int:
        """The position to which :meth:`rewind` returns."""
        return self.source.count

    def rewind(self, mark: int) -> None:
        """Draw the same keys again, for another layer."""
        self.source.count = mark

    def for_layer(self, index: Any, length: int, is_split: bool) -> InitStream:
        """The stream for one layer of a stack."""
        levels = (*self.levels, (length, is_split))
        return InitStream(self.name, self.source, levels, (*self.place.indices, index))


class _Place:
    """Indices of layers, maybe traced: hidden from NNX, which takes arrays for data."""

    def __init__(self, indices: tuple[Any, ...]) -> None:
        self.indices = indices


Construct = Callable[[_Draws], Any]


def _draw_requests(construct: Construct, roots: Mapping[str, jax.Array]) -> list[DrawRequest]:
    """For every draw, its stream and the stacks around it."""
    found: list[DrawRequest] = []

    def run(roots: Mapping[str, jax.Array]) -> Any:
        draws = _Draws((), roots, only_structure=True)
        module = construct(draws)
        found[:] = draws.requests[: draws.count]
        return nnx.to_pure_dict(nnx.state(module, nnx.Param))

    with known_values():  # all but what is drawn
        jax.eval_shape(run, roots)
    return found


def _built_variables(
    construct: Construct,
    requests: Sequence[DrawRequest],
    roots: Mapping[str, jax.Array],
    lacking: Collection[tuple[str, ...]] | None,
) -> tuple[list[BuiltVariable], Mapping[int, tuple[Any, ...]]]:
    """The variables, each with the draws that its value depends on; and paths of the modules of draws
    that feed none.
    """
    variables: list[_Variable] = []
    module_draws: dict[int, tuple[Any, ...]] = {}

    def run(keys: Sequence[jax.Array], roots: Mapping[str, jax.Array]) -> list[Any]:
        draws = _Draws(keys, roots, only_structure=True)
        module = construct(draws)
        variables[:] = _variables(module)
        module_draws.update(_paths(module, draws.owners))
        return [jax.tree.leaves(one.get_value()) for *_, one in variables]

    with known_values():
        jaxpr, shapes = jax.make_jaxpr(run, return_shape=True)(_spare(requests, roots), roots)
    draws_by_leaf = iter(_dependencies(jaxpr.jaxpr, len(requests)))
    made = []
    for (path, name, stacks, one), leaves in zip(variables, shapes, strict=True):
        draws = frozenset().union(*(next(draws_by_leaf) for _ in leaves))
        is_given = lacking is not None and (collection_of(type(one)), *name) not in lacking
        made.append(BuiltVariable(path, stacks, _is_param(one), draws, is_given))
    return made, module_draws


def _linen_keys(
    places: Iterable[tuple[int, Stacks, tuple[Any, ...]]],
    requests: Sequence[DrawRequest],
    roots: Mapping[str, jax.Array],
    above: tuple[str, ...],
) -> list[jax.Array]:
    """For each draw, the key Linen gives the one variable it feeds; else a spare key."""
    spare = _spare(requests, roots)
    keys = [_along(one, stack) for one, (_, stack) in zip(spare, requests, strict=True)]
    for draw, stacks, place in places:
        stream, stack = requests[draw]
        if stacks.axes == len(stack):
            keys[draw] = _fold_in(_along(roots[stream], stack), (*above, *place))
    return keys


def _spare(requests: Sequence[DrawRequest], roots: Mapping[str, jax.Array]) -> list[jax.Array]:
    return [jax.random.fold_in(roots[name], index) for index, (name, _) in enumerate(requests)]


def _is_param(variable: nnx.Variable[Any]) -> bool:
    return type(variable) is variable_type("params")


def _along(keys: jax.Array, levels: Sequence[Level]) -> jax.Array:
    """The keys of all layers of the stacks around a draw, outermost axis first."""
    for length, is_split in levels:
        keys = _split(keys, length) if is_split else keys
    return keys


def _split(keys: jax.Array, length: int) -> jax.Array:
    if keys.ndim:
        return jax.vmap(lambda one: _split(one, length))(keys)
    return jax.random.split(keys, length)


def _fold_in(keys: jax.Array, place: tuple[Any, ...]) -> jax.Array:
    if keys.ndim:
        return jax.vmap(lambda one: _fold_in(one, place))(keys)
    return LazyRng.create(keys, *place).as_jax_rng()


# The path of its module, its own, the stacks around it.
_Variable = tuple[tuple[Any, ...], tuple[str, ...], Stacks, nnx.Variable[Any]]


def _variables(module: nnx.Module) -> list[_Variable]:
    """The variables that modules hold, with Linen's paths, which are in their keys."""
    place = linen_place(module)
    owners = [
        (path, place(path), one)
        for path, one in nnx.iter_graph(module)
        if isinstance(one, nnx.Module)
    ]
    modules = {path: one for _, path, one in owners}
    return [
        (path, tuple(map(str, place((*held_at, name)))), stacks_around(path, modules), one)
        for held_at, path, owner in owners
        for name, one in vars(owner).items()
        if isinstance(one, nnx.Variable)
    ]


def _paths(module: nnx.Module, owners: Mapping[int, nnx.Module]) -> Mapping[int, tuple[Any, ...]]:
    """The path in the keys of each draw's owner, where it is part of the module."""
    if not owners:
        return {}
    place = linen_place(module)
    paths_by_id = {id(one): place(path) for path, one in nnx.iter_graph(module)}
    return {draw: paths_by_id[id(one)] for draw, one in owners.items() if id(one) in paths_by_id}


def _dependencies(jaxpr: Any, number: int) -> list[frozenset[int]]:
    """For each output of a jaxpr, the indices of the inputs it depends on, of the first ``number``."""
    inputs_by_variable: dict[int, frozenset[int]] = {
        id(one): frozenset({index}) for index, one in enumerate(jaxpr.invars[:number])
    }
    empty: frozenset[int] = frozenset()
    for equation in jaxpr.eqns:
        read = [inputs_by_variable.get(id(one), empty) for one in equation.invars]
        union = empty.union(*read)
        for one in equation.outvars:
            inputs_by_variable[id(one)] = union
    return [inputs_by_variable.get(id(one), empty) for one in jaxpr.outvars]
