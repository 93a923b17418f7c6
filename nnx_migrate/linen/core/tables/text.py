"""A table as text, drawn with rich."""

from __future__ import annotations

import dataclasses
import enum
import io
from collections.abc import Mapping
from typing import Any

import jax
import rich.console
import rich.table
import rich.text
import yaml

from nnx_migrate.linen.core.tables.rows import Row, Table
from nnx_migrate.linen.core.tables.values import is_representation, represent_tree

UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "KB"))
UNNAMED = ("__call__", "<lambda>")  # methods that the module column leaves out


def render_table(
    table: Table,
    console_extras: Mapping[str, Any] | None,
    table_kwargs: Mapping[str, Any],
    column_kwargs: Mapping[str, Any],
    non_params_cols: list[str],
) -> str:
    """The text of ``table``.

    Args:
      console_extras: further arguments for ``rich.console.Console``.
      table_kwargs: further arguments for ``rich.table.Table``.
      column_kwargs: further arguments for each ``add_column``.
      non_params_cols: the columns before those of the collections: path, module, and attributes of
        `Row`.
    """
    rich_table = rich.table.Table(
        show_header=True,
        show_lines=True,
        show_footer=True,
        title=f"{type(table.module).__name__} Summary",
        **table_kwargs,
    )
    for name in (*non_params_cols, *table.collections):
        rich_table.add_column(name, **column_kwargs)
    for row in table:
        rich_table.add_row(*_cells(row, table.collections, non_params_cols[2:]))
    _add_totals(rich_table, table, len(non_params_cols))
    file = io.StringIO()
    options = {"force_terminal": True, "force_jupyter": False, **(console_extras or {})}
    rich.console.Console(file=file, **options).print(rich_table)
    return f"\n{file.getvalue()}\n"


def _cells(row: Row, collections: Any, attributes: list[str]) -> list[str]:
    method = "" if row.method in UNNAMED else f" [dim]({row.method})[/dim]"
    return [
        "/".join(row.path),
        type(row.module_copy).__name__ + method,
        *(_as_text(getattr(row, name)) for name in attributes),
        *(
            _collection(row.module_variables.get(name), *size)
            for name, size in row.size_and_bytes(collections).items()
        ),
    ]


def _collection(variables: Any, size: int, num_bytes: int) -> str:
    """A row's variables of a collection, and their size."""
    tree_text = "" if variables is None else _as_text(represent_tree(variables))
    total = f"[bold]{size_text(size, num_bytes)}[/bold]"
    return f"{tree_text}\n\n{total}" if tree_text else total


def _add_totals(rich_table: rich.table.Table, table: Table, first: int) -> None:
    """Sums of the rows below each collection, the first of which is column ``first``, and in all."""
    sizes = [row.size_and_bytes(table.collections) for row in table]
    in_all = (0, 0)
    rich_table.columns[first - 1].footer = rich.text.Text.from_markup("Total", justify="right")
    for i, name in enumerate(table.collections):
        size, num_bytes = (sum(one[name][part] for one in sizes) for part in (0, 1))
        rich_table.columns[first + i].footer = size_text(size, num_bytes)
        in_all = (in_all[0] + size, in_all[1] + num_bytes)
    rich_table.caption_style = "bold"
    rich_table.caption = f"\nTotal Parameters: {size_text(*in_all)}"


def size_text(size: int, num_bytes: int) -> str:
    """Elements and bytes, ``40 (160 B)``; nothing where there are none."""
    return f"{size:,} [dim]({bytes_text(num_bytes)})[/dim]" if size else ""


def bytes_text(num_bytes: int) -> str:
    """Bytes in the largest unit of which there is more than one."""
    for unit, name in UNITS:
        if num_bytes > unit:
            return f"{num_bytes / unit:,.1f} {name}"
    return f"{num_bytes:,} B"


def normalize_structure(tree: Any) -> Any:
    """``tree`` in what YAML writes: dataclasses as dicts, lists as tuples, enums as their values."""
    if is_representation(tree):
        return tree
    if isinstance(tree, tuple | list):
        return tuple(map(normalize_structure, tree))
    if isinstance(tree, Mapping):
        return {normalize_structure(k): normalize_structure(v) for k, v in tree.items()}
    if dataclasses.is_dataclass(tree):
        names = [field.name for field in dataclasses.fields(tree)]
        return {name: normalize_structure(getattr(tree, name)) for name in names}
    return tree.value if isinstance(tree, enum.Enum) else tree


def _as_text(tree: Any) -> str:
    """``tree`` as YAML, its leaves rendered, without YAML's quotes and end marks."""
    plain_tree = jax.tree.map(_leaf, normalize_structure(tree), is_leaf=lambda x: x is None)
    if hasattr(plain_tree, "__len__") and not len(plain_tree):
        return ""
    yaml_text = yaml.safe_dump(plain_tree, default_flow_style=False, indent=2, sort_keys=False)
    return str(yaml_text).replace("\n...", "").replace("'", "").strip()


def _leaf(x: Any) -> str:
    return str(x.render()) if hasattr(x, "render") else repr(x)
