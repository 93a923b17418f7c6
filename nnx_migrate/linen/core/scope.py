"""The place of a module in its tree: variables, keys, names that are taken.

A `Scope` speaks the protocol of ``flax.core.scope.Scope`` (flax 0.12.8), so lazy modules also live on
a scope of flax and Linen modules on a parent of ours: mixed trees need no translation.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import jax
import numpy as np
from flax import config, errors
from flax.core import FrozenDict, freeze, meta

from nnx_migrate.linen.core.filters import CollectionFilter, LazyRng, in_filter
from nnx_migrate.linen.core.variable import Variable

_NO_DEFAULT = object()


class Scope:
    """A cursor into a tree of variables and of keys.

    Only the root holds the collections; scopes below hold references to their part of them, so what
    one scope writes is seen by all. Keys are folded lazily: a stream is a root key and the path, and
    the n-th key of a scope folds ``(*path, n)`` into it.
    """

    def __init__(
        self,
        variables: dict[str, Any],
        rngs: Mapping[str, Any] | None = None,
        name: str | None = None,
        mutable: CollectionFilter = False,
        parent: Any = None,
        path: Iterable[str] = (),
        debug_path: Iterable[str] = (),
        flags: Mapping[str, Any] | None = None,
    ) -> None:
        self._variables = variables
        self.rngs = {key: LazyRng.create(rng) for key, rng in rngs.items()} if rngs else {}
        self.name = name
        self.mutable = mutable
        self.parent = parent
        self.path = tuple(path)
        self.debug_path = tuple(debug_path) or self.path
        self.flags = flags if isinstance(flags, FrozenDict) else freeze(dict(flags or {}))
        self._root = parent.root if parent else None
        # Beside the counters of its own streams a scope keeps those of its children: a child made
        # anew under the same name counts on (Linen does so when `scan` traces its body again).
        self.rng_counters: dict[Any, Any] = dict.fromkeys(self.rngs, 0)
        self.reservations: dict[str, set[str | None]] = collections.defaultdict(set)
        self._invalid = False
        # Modules passed in from outside, by the identity of the definition (the root's count).
        self.adopted: Any = weakref.WeakValueDictionary()

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Scope):
            return False
        return (
            self.root._variables is other.root._variables
            and self.path == other.path
            and self.rng_counters is other.rng_counters
        )

    def __hash__(self) -> int:
        return hash((id(self.root._variables), self.path, id(self.rng_counters)))

    @property
    def root(self) -> Any:
        """The scope without a parent, which holds the collections."""
        return self._root or self

    @property
    def path_text(self) -> str:
        """The path as errors show it, with the transformations on the way."""
        return "/" + "/".join(self.debug_path)

    # --- life

    @property
    def invalid(self) -> bool:
        """Whether the call that this scope belonged to is over."""
        return self._invalid

    def _check_valid(self) -> None:
        if self._invalid:
            raise errors.InvalidScopeError(self.name)

    def invalidate(self) -> None:
        """Forbid further use."""
        self._invalid = True

    @contextlib.contextmanager
    def temporary(self) -> Iterator[Scope]:
        """This scope, invalid afterwards."""
        try:
            yield self
        finally:
            self.invalidate()

    def rewound(self, rewind_rngs: bool = False) -> Scope:
        """The same place with no name taken, and its keys from the start if asked."""
        self._check_valid()
        scope = Scope(
            self._variables,
            self.rngs,
            self.name,
            self.mutable,
            self.parent,
            self.path,
            self.debug_path,
            self.flags,
        )
        if not rewind_rngs:
            scope.rng_counters = self.rng_counters
        if self.parent is None:
            scope.adopted = self.adopted
        return scope

    # --- names and children

    def name_reserved(self, name: str, col: str | None = None) -> bool:
        """Whether ``name`` is taken: by a child, or by a variable of ``col`` (any, if None)."""
        if name not in self.reservations:
            return False
        collections = self.reservations[name]
        return col is None or None in collections or col in collections

    def reserve(self, name: str, col: str | None = None) -> None:
        """Take ``name`` for a child, or for a variable of ``col``.

        Raises:
            TypeError: the name is no string.
            ValueError: it is taken.
        """
        if not isinstance(name, str):
            raise TypeError(f"a name in a scope should be a string, found {name!r}: {type(name)}")
        if self.name_reserved(name, col):
            raise ValueError(f'Duplicate use of scope name: "{name}"')
        self.reservations[name].add(col)

    def default_name(self, prefix: str) -> str:
        """The first of ``prefix0``, ``prefix1``, ... that is free."""
        number = 0
        while f"{prefix}{number}" in self.reservations:
            number += 1
        return f"{prefix}{number}"

    def push(self, name: str | None = None, prefix: str = "", reuse: bool = False) -> Scope:
        """The child scope ``name``; with ``reuse`` also one that is there already."""
        self._check_valid()
        if name is None:
            name = self.default_name(prefix)
        if not reuse or name not in self.reservations:
            self.reserve(name)
        rngs = {key: LazyRng.create(rng, name) for key, rng in self.rngs.items()}
        child = Scope(
            {},
            rngs,
            name,
            self.mutable,
            self,
            (*self.path, name),
            (*self.debug_path, name),
            self.flags,
        )
        child.rng_counters = self.rng_counters.setdefault(("child", name), child.rng_counters)
        return child

    def child(
        self,
        fn: Callable[..., Any],
        name: str | None = None,
        prefix: str | None = None,
        named_call: bool = True,
        **partial_kwargs: Any,
    ) -> Callable[..., Any]:
        """``fn`` of a child scope: each call of it begins with all names free."""
        if name is None:
            name = self.default_name(f"{fn.__name__}_" if prefix is None else prefix)
        scope = self.push(name)

        @functools.wraps(fn)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            label = jax.named_scope(name) if named_call else contextlib.nullcontext()
            with label:
                return fn(scope.rewound(), *args, **{**partial_kwargs, **kwargs})

        return wrapper

    # --- collections

    def is_mutable_collection(self, col: str) -> bool:
        """Whether variables of ``col`` may be made and set."""
        return in_filter(self.mutable, col)

    def is_collection_empty(self, col: str) -> bool:
        """Whether the whole tree has no variable of ``col``."""
        return not self.root._variables.get(col)

    def _mutable_collection(self, col: str) -> dict[str, Any]:
        """This scope's part of ``col``, made on the way if need be."""
        if col not in self._variables:
            if self.parent is None:
                self._variables[col] = {}
            else:
                around = self.parent._mutable_collection(col)
                self._variables[col] = around.setdefault(self.name, {})
        part: dict[str, Any] = self._variables[col]
        return part

    def _collection(self, col: str) -> Mapping[str, Any]:
        """This scope's part of ``col`` to read; empty if there is none."""
        if col not in self._variables:
            around = self.parent._collection(col) if self.parent is not None else {}
            if self.name not in around:
                return FrozenDict()
            self._variables[col] = around[self.name]
        part: Mapping[str, Any] = self._variables[col]
        return part

    def _populate_collections(self) -> None:
        for col in self.root._variables:
            self._collection(col)

    def variables(self) -> Any:
        """The variables from here down, by collection."""
        self._populate_collections()
        return freeze(self._variables) if config.flax_return_frozendict else self._variables

    def mutable_variables(self) -> Any:
        """The same of the collections that may change."""
        self._populate_collections()
        found = {k: v for k, v in self._variables.items() if self.is_mutable_collection(k)}
        return freeze(found) if config.flax_return_frozendict else found

    # --- keys

    def has_rng(self, name: str) -> bool:
        """Whether there is a stream ``name``."""
        return name in self.rngs

    def make_rng(self, name: str = "params") -> jax.Array:
        """The next key of the stream ``name`` (of ``params`` if there is no such stream).

        Raises:
            InvalidRngError: neither is there.
        """
        if name not in self.rngs:
            if "params" not in self.rngs:
                raise errors.InvalidRngError(f'{self.name} needs PRNG for "{name}"')
            name = "params"
        self._check_valid()
        self.rng_counters[name] += 1
        return LazyRng.create(self.rngs[name], self.rng_counters[name]).as_jax_rng()

    # --- variables

    def get_variable(self, col: str, name: str, default: Any = None) -> Any:
        """The value of a variable, boxed as it is stored; ``default`` if there is none."""
        return self._collection(col).get(name, default)

    def has_variable(self, col: str, name: str) -> bool:
        """Whether the variable is there."""
        return name in self._collection(col)

    def put_variable(self, col: str, name: str, value: Any) -> None:
        """Set a variable, or make it.

        Raises:
            ModifyScopeVariableError: the collection may not change.
        """
        self._check_valid()
        if not self.is_mutable_collection(col):
            raise errors.ModifyScopeVariableError(col, name, self.path_text)
        _put(self._mutable_collection(col), name, value)

    def variable(
        self,
        col: str,
        name: str,
        init_fn: Callable[..., Any] | None = None,
        *init_args: Any,
        unbox: bool = True,
        **init_kwargs: Any,
    ) -> Variable:
        """A variable, made with ``init_fn(*init_args, **init_kwargs)`` if it is not there.

        Raises:
            ScopeCollectionNotFound: it cannot be made, and its whole collection is missing.
            ScopeVariableNotFoundError: it cannot be made.
        """
        self.reserve(name, col)
        if not self.has_variable(col, name):
            if init_fn is None or not self.is_mutable_collection(col):
                if self.is_collection_empty(col):
                    raise errors.ScopeCollectionNotFound(col, name, self.path_text)
                raise errors.ScopeVariableNotFoundError(name, col, self.path_text)
            self.put_variable(col, name, init_fn(*init_args, **init_kwargs))
        return Variable(self, col, name, unbox=unbox)

    def param(
        self,
        name: str,
        init_fn: Callable[..., Any],
        *init_args: Any,
        unbox: bool = True,
        **init_kwargs: Any,
    ) -> Any:
        """A parameter, made with ``init_fn(key, *init_args, **init_kwargs)`` if it is not there.

        Raises:
            ScopeCollectionNotFound: it cannot be made, and there are no parameters at all.
            ScopeParamNotFoundError: it cannot be made.
            ScopeParamShapeError: it is there, with another shape than ``init_fn`` gives.
        """
        self.reserve(name, "params")
        if self.has_variable("params", name):
            value = self.get_variable("params", name)
            value = meta.unbox(value) if unbox else value
            self._check_shapes(name, value, init_fn, init_args, init_kwargs)
            return value
        if not self.is_mutable_collection("params"):
            if self.is_collection_empty("params"):
                raise errors.ScopeCollectionNotFound("params", name, self.path_text)
            raise errors.ScopeParamNotFoundError(name, self.path_text)
        value = init_fn(self.make_rng("params"), *init_args, **init_kwargs)
        self.put_variable("params", name, value)
        return meta.unbox(value) if unbox else value

    def _check_shapes(
        self, name: str, value: Any, init_fn: Callable[..., Any], args: Any, kwargs: Any
    ) -> None:
        # A checkpoint of another configuration would otherwise go wrong far from its cause.
        try:
            is_plain = isinstance(init_fn, types.FunctionType)
            shapes = _known_shapes if is_plain else _shapes
            expected_shapes = shapes(init_fn, *args, **kwargs)
        except TypeError:  # arguments that do not hash, or its own error once more
            expected_shapes = _shapes(init_fn, *args, **kwargs)
        for found, expected in zip(jax.tree.leaves(value), expected_shapes, strict=False):
            if np.shape(found) != expected:
                raise errors.ScopeParamShapeError(name, self.path_text, np.shape(found), expected)

    # --- flags

    def has_flag(self, key: str) -> bool:
        """Whether the call was made with the flag ``key``."""
        return key in self.flags

    def get_flag(self, key: str, default: Any = _NO_DEFAULT) -> Any:
        """The value of a flag of the call."""
        if key not in self.flags and default is _NO_DEFAULT:
            return ValueError(f"Flag {key} not present on scope.")
        return self.flags.get(key, default)


class TestScope(Scope):
    """A scope whose keys are all the same: for evaluations of which only shapes are wanted.

    Programs tell it from others by this name, as they do in Linen.
    """

    __test__ = False  # pytest: not a class of tests

    def make_rng(self, name: str = "params") -> jax.Array:
        """A key."""
        return jax.random.key(0)


def _shapes(init_fn: Callable[..., Any], *args: Any, **kwargs: Any) -> list[tuple[int, ...]]:
    """The shapes that an initialiser gives, leaf by leaf."""
    made = jax.eval_shape(lambda: init_fn(jax.random.key(0), *args, **kwargs))
    return [np.shape(leaf) for leaf in jax.tree.leaves(made)]


_known_shapes = functools.lru_cache(maxsize=4096)(_shapes)  # most of an eager call's time without


def _put(target: dict[str, Any], key: str, value: Any) -> None:
    # Dicts are filled and not replaced: scopes below may hold references to them (flax #2022).
    if isinstance(target.get(key), dict) and isinstance(value, Mapping):
        for k, v in value.items():
            _put(target[key], k, v)
    else:
        target[key] = value


def adopted_modules(scope: Any) -> Any:
    """Definition's identity -> bound module, of a whole tree: who shares a definition shares it."""
    root = scope.root
    if not hasattr(root, "adopted"):  # a scope of flax
        root.adopted = weakref.WeakValueDictionary()
    return root.adopted


def is_scope(value: Any) -> bool:
    """Whether ``value`` is a scope, ours or flax's."""
    return hasattr(type(value), "rewound") and hasattr(type(value), "reserve")
