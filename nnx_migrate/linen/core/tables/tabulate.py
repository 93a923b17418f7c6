"""The summary of a module as text (flax.linen.summary, 0.12.8)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from flax.core import DenyList

from nnx_migrate.linen.core.tables import text
from nnx_migrate.linen.core.tables.rows import module_table

NOT_INTERMEDIATES = DenyList("intermediates")


def tabulate(
    module: Any,
    rngs: Any,
    depth: int | None = None,
    show_repeated: bool = False,
    mutable: Any = NOT_INTERMEDIATES,
    console_kwargs: Mapping[str, Any] | None = None,
    table_kwargs: Mapping[str, Any] = MappingProxyType({}),
    column_kwargs: Mapping[str, Any] = MappingProxyType({}),
    compute_flops: bool = False,
    compute_vjp_flops: bool = False,
    **kwargs: Any,
) -> Callable[..., str]:
    """A function of a module's inputs that gives its summary as text.

    The module's ``init`` is traced abstractly: nothing is computed or allocated. There is a row for
    each module that is called, in the order of the calls.

    Args:
      module: the module, unbound.
      rngs: a key, or keys by stream, for ``init``.
      depth: how deep rows go; a module at that depth counts the variables below it. None: all.
      show_repeated: also show the calls of a module after its first.
      mutable: which collections ``init`` makes.
      console_kwargs: for ``rich.console.Console``.
      table_kwargs: for ``rich.table.Table``.
      column_kwargs: for its ``add_column``.
      compute_flops: add a column with XLA's estimate of what a call costs.
      compute_vjp_flops: the same for a call with its gradient; 0 where it has none.
      **kwargs: further arguments for ``init``.
    """
    if mutable != NOT_INTERMEDIATES:
        kwargs["mutable"] = (
            mutable  # a module may define an init of its own that knows no such argument
        )
    columns = ["path", "module", "inputs", "outputs"]
    columns += ["flops"] * compute_flops + ["vjp_flops"] * compute_vjp_flops

    def summary(*args: Any, **call: Any) -> str:
        table = module_table(module, depth, show_repeated, compute_flops, compute_vjp_flops)
        rows = table(rngs, *args, **call, **kwargs)
        return text.render_table(rows, console_kwargs, table_kwargs, column_kwargs, columns)

    return summary
