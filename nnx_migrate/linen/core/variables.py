"""Variables and keys as a running module makes, reads and sets them. flax 0.12.8: linen/module.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import errors

from nnx_migrate.linen.core.context import context
from nnx_migrate.linen.core.variable import Variable

# A flag of calls of built modules: the collections of which somebody keeps what is sown.
SOWN = "nnx_migrate sown"


def tuple_init() -> tuple[Any, ...]:
    """What `sow` starts with."""
    return ()


def tuple_reduce(xs: tuple[Any, ...], x: Any) -> tuple[Any, ...]:
    """How `sow` collects."""
    return (*xs, x)


class VariableMethods:
    """`param`, `variable`, `sow`, `make_rng` and their relatives."""

    scope: Any
    _state: Any
    _initialization_allowed: Any
    _nnm_bound_here: Callable[[], Any]
    _name_taken: Callable[..., bool]

    def variable(
        self,
        col: str,
        name: str,
        init_fn: Callable[..., Any] | None = None,
        *init_args: Any,
        unbox: bool = True,
        **init_kwargs: Any,
    ) -> Variable:
        """The variable ``name`` of collection ``col``, made with ``init_fn(*init_args)`` at first.

        Raises:
            ValueError: outside of `setup` and compact methods.
            NameInUseError: the name is taken.
        """
        self._nnm_check_place("Variables")
        if self._name_taken(name, collection=col):
            raise errors.NameInUseError("variable", name, type(self).__name__)
        made: Variable = self.scope.variable(
            col, name, init_fn, *init_args, unbox=unbox, **init_kwargs
        )
        self._state.children[name] = col
        return made

    def param(
        self,
        name: str,
        init_fn: Callable[..., Any],
        *init_args: Any,
        unbox: bool = True,
        **init_kwargs: Any,
    ) -> Any:
        """The value of the parameter ``name``, made with ``init_fn(key, *init_args)`` at first.

        Raises:
            ValueError: outside of `setup` and compact methods.
            NameInUseError: the name is taken.
        """
        self._nnm_check_place("Parameters")
        if self._name_taken(name, collection="params"):
            raise errors.NameInUseError("param", name, type(self).__name__)
        value = self.scope.param(name, init_fn, *init_args, unbox=unbox, **init_kwargs)
        self._state.children[name] = "params"
        return value

    def _nnm_check_place(self, what: str) -> None:
        if not self._initialization_allowed or self.scope is None:
            raise ValueError(
                f"{what} must be initialized in `setup()` or in a method wrapped in `@compact`"
            )

    def _nnm_bound_scope(self, purpose: str) -> Any:
        if self.scope is not None:
            return self.scope
        bound = self._nnm_bound_here()
        if bound is None:
            raise ValueError(f"Can't {purpose} on unbound modules")
        return bound.scope

    @property
    def variables(self) -> Any:
        """The variables from this module down, by collection."""
        return self._nnm_bound_scope("access variables").variables()

    @property
    def path(self) -> tuple[str, ...]:
        """The names from the root to this module."""
        if self.scope is None:
            raise ValueError("Can't access module paths on unbound modules.")
        path: tuple[str, ...] = self.scope.path
        return path

    def has_variable(self, col: str, name: str) -> bool:
        """Whether the variable is there."""
        found: bool = self._nnm_bound_scope("access variables").has_variable(col, name)
        return found

    def get_variable(self, col: str, name: str, default: Any = None) -> Any:
        """The stored value of a variable, or ``default``."""
        return self._nnm_bound_scope("access variables").get_variable(col, name, default)

    def put_variable(self, col: str, name: str, value: Any) -> None:
        """Set a variable of a mutable collection."""
        self._nnm_bound_scope("access variables").put_variable(col, name, value)

    def is_mutable_collection(self, col: str) -> bool:
        """Whether the call may change ``col``."""
        mutable: bool = self._nnm_bound_scope("check mutability").is_mutable_collection(col)
        return mutable

    def has_rng(self, name: str) -> bool:
        """Whether the call has a stream ``name``."""
        found: bool = self._nnm_bound_scope("query for RNGs").has_rng(name)
        return found

    def make_rng(self, name: str = "params") -> jax.Array:
        """The next key of the stream ``name``, or of ``params`` where there is no such stream."""
        key: jax.Array = self._nnm_bound_scope("use RNGs").make_rng(name)
        return key

    def is_initializing(self) -> bool:
        """Whether this call makes the variables: under `init`."""
        scope = self._nnm_bound_scope("check if running under init()")
        initializing: bool = scope.get_flag("initializing", False)
        return initializing

    def sow(
        self,
        col: str,
        name: str,
        value: Any,
        reduce_fn: Callable[[Any, Any], Any] = tuple_reduce,
        init_fn: Callable[[], Any] = tuple_init,
    ) -> bool:
        """Add ``value`` to what is collected under ``name``, where the call asks for ``col``.

        Returns whether it does.
        """
        scope = self._nnm_bound_scope("store variables")
        sown_collections = scope.get_flag(SOWN, None)
        if not scope.is_mutable_collection(col) or (
            sown_collections is not None and col not in sown_collections
        ):
            return False
        if scope.has_variable(col, name):
            values = scope.get_variable(col, name)
        else:
            scope.reserve(name, col)
            self._state.children[name] = col
            values = init_fn()
        if context.recorder is not None:
            context.recorder.sown.add((col, *scope.path, name))
        scope.put_variable(col, name, reduce_fn(values, value))
        return True

    def perturb(self, name: str, value: Any, collection: str = "perturbations") -> Any:
        """``value`` plus a variable of zeros, whose gradient is that of ``value``.

        Raises:
            ValueError: the collection is there without this variable.
        """
        scope = self._nnm_bound_scope("store variables")
        if scope.is_mutable_collection(collection) and not scope.has_variable(collection, name):
            scope.reserve(name, collection)
            self._state.children[name] = collection
            scope.put_variable(collection, name, jax.tree.map(jnp.zeros_like, value))
        if collection not in scope.root._variables:
            return value
        if not scope.has_variable(collection, name):
            raise ValueError(
                f"Perturbation collection {collection} present, but missing perturbation variable"
                f" {name}"
            )
        return jax.tree.map(jnp.add, value, scope.get_variable(collection, name))
