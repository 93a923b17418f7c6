"""One mechanism for every lift: a pure function of the variables and keys of some scopes.

A jax transform can only map a pure function. ``Pack`` takes what such a function may see out of a
set of scopes, as groups of collections and groups of keys; ``run`` is the pure function, which
opens fresh scopes over the values it is given; ``publish`` puts what came out of the transform
back into the scopes the values came from.

Same groups, same order and same counters as ``flax/core/lift.py`` (flax 0.12.8), so that a lift
sees the keys, and makes the program, that it does in Linen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
from flax import traceback_util
from flax.core.frozen_dict import freeze
from flax.core.scope import (
    group_collections,
    in_filter,
    intersect_filters,
    union_filters,
)

from nnx_migrate.linen.core.scope import Scope

traceback_util.register_exclusion(__file__)

# Of one group: for each root scope its collections (or its keys) by name.
Group = tuple[dict[str, Any], ...]
Groups = tuple[Group, ...]


class Pack:
    """The variables and keys that one call of a lift takes in, and the scopes they came from.

    Args:
      scopes: the scopes the lifted function is to see; ``None`` stands for an unbound module.
      reads: one filter of collections for each group that goes in.
      writes: one filter of collections for each group that comes out.
      rngs: one filter of key names for each group of keys.
      name: what the lift is called in the paths that errors print.

    Attributes:
      variables: per filter of ``reads``, per root scope, the collections that go in.
      rngs: per filter of ``rngs``, per root scope, the keys that go in.
    """

    def __init__(
        self,
        scopes: Sequence[Any],
        reads: Sequence[Any],
        writes: Sequence[Any],
        rngs: Sequence[Any],
        name: str,
    ) -> None:
        self.name = name
        self.writes = tuple(writes)
        self.roots, self.places = roots_of(scopes)
        self.variables = self._read(reads)
        self.rngs = _by_group([group_collections(s.rngs, rngs) for s in self.roots], len(rngs))
        # The counters are the outer scope's own: a key that is drawn while the function is traced
        # counts as drawn, also if the transform traces it more than once.
        self._counters = [scope.rng_counters for scope in self.roots]

    def _read(self, reads: Sequence[Any]) -> Groups:
        per_root = []
        for scope in self.roots:
            for collection in scope.root._variables:
                scope._collection(collection)
            groups: Sequence[Any] = group_collections(scope._variables, reads)
            for group in groups:
                for name in group:
                    if not any(in_filter(writes, name) for writes in self.writes):
                        group[name] = freeze(group[name])
            per_root.append(groups)
        return _by_group(per_root, len(reads))

    def open(
        self, variables: Sequence[Group], rngs: Sequence[Group], mutable: Any = True
    ) -> tuple[list[Any], list[Any]]:
        """Scopes over the values given: those the function is to see, and their roots."""
        writes: Any = False
        for one in self.writes:
            writes = union_filters(writes, one)
        roots = []
        for i, outer in enumerate(self.roots):
            values: dict[str, Any] = {}
            for group in variables:
                values.update(group[i])
            keys: dict[str, Any] = {}
            for group in rngs:
                keys.update(group[i])
            inner = Scope(
                jax.tree.map(lambda x: x, values),  # dicts of its own: a write stays inside
                name=outer.name,
                rngs=keys,
                mutable=intersect_filters(intersect_filters(outer.mutable, writes), mutable),
                parent=None,
                path=outer.path,
                debug_path=self._debug_path(outer),
                flags=outer.flags,
            )
            inner.rng_counters = self._counters[i]
            roots.append(inner)
        return [_descend(roots, place) for place in self.places], roots

    def _debug_path(self, scope: Any) -> tuple[str, ...]:
        *above, last = scope.debug_path or ("",)
        return (*above, f"{self.name}({last})")

    def close(self, roots: Sequence[Any]) -> Groups:
        """The collections that may be written, out of the roots of scopes that ``open`` made."""
        per_root = []
        for scope in roots:
            scope.invalidate()
            mutable = {k: v for k, v in scope._variables.items() if in_filter(scope.mutable, k)}
            *groups, rest = group_collections(mutable, (*self.writes, True))
            if rest:
                raise ValueError(f"unmapped output variables: {tuple(rest)}")
            per_root.append(groups)
        return _by_group(per_root, len(self.writes))

    def run(
        self,
        fn: Callable[..., Any],
        variables: Sequence[Group],
        rngs: Sequence[Group],
        /,
        *args: Any,
        **kwargs: Any,
    ) -> tuple[Any, Groups]:
        """The pure function: ``fn(scopes, *args, **kwargs)`` and the collections it leaves."""
        scopes, roots = self.open(variables, rngs)
        out = fn(scopes, *args, **kwargs)
        return out, self.close(roots)

    def publish(self, groups: Sequence[Group]) -> None:
        """Writes what came out of the transform into the scopes that the pack was made of."""
        for group in groups:
            for scope, collections in zip(self.roots, group, strict=True):
                for name, collection in collections.items():
                    # A transform may also hand back what it was only given to read.
                    if scope.is_mutable_collection(name):
                        for key, value in collection.items():
                            scope.put_variable(name, key, value)


def roots_of(scopes: Iterable[Any]) -> tuple[list[Any], list[tuple[int, tuple[str, ...]] | None]]:
    """The topmost of the scopes, and for each scope the number of its root and its path below it.

    A scope inside another one of them is no root of its own: both see the same variables.
    """
    scopes = list(scopes)
    known_scopes = {scope: scope for scope in scopes if scope is not None}
    tops: dict[Any, tuple[Any, tuple[str, ...]]] = {}
    for scope in known_scopes:
        top, below, steps, above = scope, (), [scope.name], scope.parent
        while above is not None:
            if above in known_scopes:
                top, below = known_scopes[above], tuple(reversed(steps))
            steps.append(above.name)
            above = above.parent
        tops[scope] = top, below
    roots = [scope for scope in known_scopes if tops[scope][0] is scope]
    number = {scope: i for i, scope in enumerate(roots)}
    places = [None if s is None else (number[tops[s][0]], tops[s][1]) for s in scopes]
    return roots, places


def _descend(roots: Sequence[Any], place: tuple[int, tuple[str, ...]] | None) -> Any:
    if place is None:
        return None
    root, path = place
    scope = roots[root]
    for name in path:
        scope = scope.push(name, reuse=True)
    return scope


def _by_group(per_root: Sequence[Sequence[Any]], count: int) -> Groups:
    return tuple(tuple(groups[i] for groups in per_root) for i in range(count))
