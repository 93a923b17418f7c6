"""A module as its caller uses it: `init`, `apply`, `bind` and the tables of its calls.

flax 0.12.8: linen/module.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Self

from flax import errors, traceback_util
from flax.core import partial_eval

from nnx_migrate.linen.core import functional
from nnx_migrate.linen.core.filters import CollectionFilter
from nnx_migrate.linen.core.functional import NOT_INTERMEDIATES, is_valid_rng
from nnx_migrate.linen.core.tree import is_module
from nnx_migrate.linen.core.wrapping import get_unbound_fn


class EntryPoints:
    """Calls from outside: each runs on a copy of the definition, bound for its time."""

    scope: Any
    variables: Any
    clone: Callable[..., Any]
    __post_init__: Callable[[], None]

    def _module_checks(self) -> None:
        if not is_module(self):
            raise errors.InvalidInstanceModuleError()
        if not hasattr(self, "_id"):
            raise errors.IncorrectPostInitOverrideError()

    def _nnm_rngs(self, rngs: Any) -> Any:
        if isinstance(rngs, dict):
            return rngs
        if not is_valid_rng(rngs):
            raise errors.InvalidRngError(
                "RNGs should be of shape (2,) or PRNGKey in Module"
                f" {type(self).__name__}, but rngs are: {rngs}"
            )
        return {"params": rngs}

    def _nnm_method(self, method: Any, submodules: bool) -> Callable[..., Any]:
        """The function behind ``method=``: a function, a method, or the name of one."""
        if isinstance(method, str):
            name = method
            method = getattr(self, name)
            if not callable(method):
                kind = type(self).__name__
                raise TypeError(f"'{kind}.{name}' must be a callable, got {type(method)}.")
            if submodules and is_module(method):
                return lambda module, *args, **kwargs: getattr(module, name)(*args, **kwargs)
        elif method is None:
            method = self.__call__  # type: ignore[operator]
        return get_unbound_fn(method)

    @traceback_util.api_boundary
    def bind(
        self,
        variables: Any,
        *args: Any,
        rngs: Any = None,
        mutable: CollectionFilter = False,
    ) -> Self:
        """A copy that holds ``variables`` and can be called at once, for looking around."""
        EntryPoints._module_checks(self)
        scope = functional.bind_scope(variables, rngs=rngs, mutable=mutable)
        bound: Self = self.clone(parent=scope, _deep_clone=True)
        return bound

    def unbind(self) -> tuple[Self, Any]:
        """A definition and the variables of a bound module.

        Raises:
            CallUnbindOnUnboundModuleError: it is not bound.
        """
        EntryPoints._module_checks(self)
        if self.scope is None:
            raise errors.CallUnbindOnUnboundModuleError()
        variables = self.variables
        return self.clone(_deep_clone=True, _reset_names=True, name=None), variables

    @traceback_util.api_boundary
    def apply(
        self,
        variables: Any,
        *args: Any,
        rngs: Any = None,
        method: Any = None,
        mutable: CollectionFilter = False,
        capture_intermediates: Any = False,
        **kwargs: Any,
    ) -> Any:
        """The output of a method on ``variables``; with ``mutable`` also what may have changed.

        ``rngs``: a key for the stream ``params``, or streams by name. ``method``: `__call__` if
        None, a function of the module, or a method's name.
        """
        EntryPoints._module_checks(self)
        rngs = None if rngs is None else self._nnm_rngs(rngs)
        run = functional.apply(
            self._nnm_method(method, submodules=True), self, mutable, capture_intermediates
        )
        return run(variables, *args, **kwargs, rngs=rngs)

    @traceback_util.api_boundary
    def init_with_output(
        self,
        rngs: Any,
        *args: Any,
        method: Any = None,
        mutable: CollectionFilter = NOT_INTERMEDIATES,
        capture_intermediates: Any = False,
        **kwargs: Any,
    ) -> Any:
        """The output of a method, and the variables that it made."""
        EntryPoints._module_checks(self)
        rngs = self._nnm_rngs(rngs)
        run = functional.init_with_output(
            self._nnm_method(method, submodules=False), self, mutable, capture_intermediates
        )
        return run(rngs, *args, **kwargs)

    @traceback_util.api_boundary
    def init(
        self,
        rngs: Any,
        *args: Any,
        method: Any = None,
        mutable: CollectionFilter = NOT_INTERMEDIATES,
        capture_intermediates: Any = False,
        **kwargs: Any,
    ) -> Any:
        """The variables that a method makes from ``rngs``: a key, or streams by name."""
        EntryPoints._module_checks(self)
        return self.init_with_output(
            rngs,
            *args,
            method=method,
            mutable=mutable,
            capture_intermediates=capture_intermediates,
            **kwargs,
        )[1]

    @traceback_util.api_boundary
    def lazy_init(
        self,
        rngs: Any,
        *args: Any,
        method: Any = None,
        mutable: CollectionFilter = NOT_INTERMEDIATES,
        **kwargs: Any,
    ) -> Any:
        """`init` with shapes (`jax.ShapeDtypeStruct`) for inputs whose values do not matter."""
        EntryPoints._module_checks(self)

        def run(rngs: Any, *args: Any, **kwargs: Any) -> Any:
            return self.init(rngs, *args, method=method, mutable=mutable, **kwargs)

        return partial_eval.lazy_init(run)(rngs, *args, **kwargs)

    def tabulate(
        self,
        rngs: Any,
        *args: Any,
        depth: int | None = None,
        show_repeated: bool = False,
        mutable: CollectionFilter = NOT_INTERMEDIATES,
        console_kwargs: Mapping[str, Any] | None = None,
        table_kwargs: Mapping[str, Any] = MappingProxyType({}),
        column_kwargs: Mapping[str, Any] = MappingProxyType({}),
        compute_flops: bool = False,
        compute_vjp_flops: bool = False,
        **kwargs: Any,
    ) -> str:
        """A table of the module's calls: path, class, inputs, outputs, variables and their sizes."""
        from nnx_migrate.linen.core.tables.tabulate import tabulate

        table: str = tabulate(
            self,
            rngs,
            depth=depth,
            show_repeated=show_repeated,
            mutable=mutable,
            console_kwargs=console_kwargs,
            table_kwargs=table_kwargs,
            column_kwargs=column_kwargs,
            compute_flops=compute_flops,
            compute_vjp_flops=compute_vjp_flops,
        )(*args, **kwargs)
        return table

    def module_paths(
        self,
        rngs: Any,
        *args: Any,
        show_repeated: bool = False,
        mutable: CollectionFilter = NOT_INTERMEDIATES,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Definitions of all submodules that `init` runs, by path ("a/b")."""
        from nnx_migrate.linen.core.tables.rows import module_table

        rows = module_table(
            module=self,
            depth=None,
            show_repeated=show_repeated,
            compute_flops=False,
            compute_vjp_flops=False,
        )(rngs, *args, **kwargs, mutable=mutable)
        return {"/".join(row.path): row.module_copy for row in rows}
