"""Parameters and variables with axis names (flax 0.12.8, linen/partitioning.py)."""

from collections.abc import Callable
from typing import Any

from flax import errors
from jax.sharding import PartitionSpec

from nnx_migrate.linen.module import Module, Variable, _context
from nnx_migrate.linen.named_axes.metadata import AxisMetadata, same_names
from nnx_migrate.linen.spmd import RulesFallback, with_logical_constraint


def innermost() -> Any:
    """The module whose method runs, or None."""
    return _context.module_stack[-1]


def _record(module: Module, collection: str, name: str, axes: Any) -> None:
    module.sow(f"{collection}_axes", f"{name}_axes", AxisMetadata(axes), reduce_fn=same_names)


def param_with_axes(
    name: str,
    init_fn: Any,
    *init_args: Any,
    axes: tuple[str, ...] | None = None,
    module: Module | None = None,
    **init_kwargs: Any,
) -> Any:
    """``module.param`` constrained by axis names, which are recorded in ``params_axes``.

    Args:
      name: of the parameter.
      init_fn: called with a key, ``*init_args`` and ``**init_kwargs`` where the parameter is made.
      axes: one logical name (or None) per axis; None: neither constraint nor record.
      module: None: the one whose method runs.

    Returns:
      the value of the parameter.

    Raises:
      AssertionError: no method of a module runs.
      ValueError: other names were recorded before.
    """
    module = innermost() if module is None else module
    assert module is not None, "param_with_axes must be called in a method of a module"
    value = module.param(name, init_fn, *init_args, **init_kwargs)
    if axes is not None:
        value = with_logical_constraint(value, PartitionSpec(*axes))
        _record(module, "params", name, axes)
    return value


class PartitionedVariable(Variable):
    """A variable whose value is constrained by axis names when it is read and when it is set.

    Args:
      scope: holds the variable.
      axes: None: no constraint.
      fallback: what becomes of a name that no rule applies to.
    """

    def __init__(
        self,
        scope: Any,
        collection: str,
        name: str,
        axes: tuple[str, ...] | None = None,
        fallback: RulesFallback = RulesFallback.AXIS_IS_UNSHARDED,
    ) -> None:
        super().__init__(scope, collection, name, unbox=False)
        self.axes = axes
        self.fallback = fallback

    @property
    def value(self) -> Any:
        """The value, constrained."""
        return _constrain(
            self.scope.get_variable(self.collection, self.name), self.axes, self.fallback
        )

    @value.setter
    def value(self, value: Any) -> None:
        value = _constrain(value, self.axes, self.fallback)
        self.scope.put_variable(self.collection, self.name, value)


def _constrain(value: Any, axes: Any, fallback: RulesFallback) -> Any:
    return value if axes is None else with_logical_constraint(value, axes, fallback=fallback)


def scope_variable_with_axes(
    scope: Any,
    col: str,
    name: str,
    init_fn: Callable[..., Any],
    *init_args: Any,
    axes: tuple[str, ...] | None = None,
    fallback: RulesFallback = RulesFallback.AXIS_IS_UNSHARDED,
    **init_kwargs: Any,
) -> PartitionedVariable:
    """The variable of a scope, made where it is not there.

    Raises:
      ScopeVariableNotFoundError: it is not there, and ``col`` may not change.
    """
    scope.reserve(name)
    if not scope.has_variable(col, name):
        if not scope.is_mutable_collection(col):
            raise errors.ScopeVariableNotFoundError(name, col, scope.path_text)
        value = _constrain(init_fn(*init_args, **init_kwargs), axes, fallback)
        scope.put_variable(col, name, value)
    return PartitionedVariable(scope, col, name, axes, fallback)


def variable_with_axes(
    collection: str,
    name: str,
    init_fn: Any,
    *init_args: Any,
    axes: tuple[str, ...] | None = None,
    module: Module | None = None,
    fallback: RulesFallback = RulesFallback.AXIS_IS_UNSHARDED,
    **init_kwargs: Any,
) -> PartitionedVariable:
    """A variable constrained by axis names, which are recorded in ``<collection>_axes``.

    Args:
      collection, name: of the variable.
      init_fn: called with ``*init_args`` and ``**init_kwargs`` where the variable is made.
      axes: one logical name (or None) per axis; None: neither constraint nor record.
      module: None: the one whose method runs.
      fallback: what becomes of a name that no rule applies to.

    Raises:
      AssertionError: no method of a module runs.
      ScopeVariableNotFoundError: the variable is not there, and its collection may not change.
      ValueError: other names were recorded before.
    """
    module = innermost() if module is None else module
    assert module is not None, "variable_with_axes must be called in a method of a module"
    variable = scope_variable_with_axes(
        module.scope,
        collection,
        name,
        init_fn,
        *init_args,
        axes=axes,
        fallback=fallback,
        **init_kwargs,
    )
    if axes is not None:
        _record(module, collection, name, axes)
    return variable
