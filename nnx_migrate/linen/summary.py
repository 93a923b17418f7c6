"""Tables of a module's submodules, inputs, outputs, variables and costs (flax.linen.summary, 0.12.8)."""

from __future__ import annotations

from nnx_migrate.linen.core.tables import text, values
from nnx_migrate.linen.core.tables.flops import call_flops, get_flops
from nnx_migrate.linen.core.tables.rows import (
    Row,
    Table,
    inputs_of,
    module_table,
    size_and_bytes,
    split_variables,
    variables_at,
)
from nnx_migrate.linen.core.tables.tabulate import tabulate

__all__ = ["Row", "Table", "tabulate"]

# Linen's names for the parts, which programs and its tests use.
_ValueRepresentation = values.ValueRepresentation
_ArrayRepresentation = values.ArrayRepresentation
_PartitionedArrayRepresentation = values.PartitionedArrayRepresentation
_ObjectRepresentation = values.ObjectRepresentation
_get_value_representation = values.represent
_from_value_representation = values.abstract
_represent_tree = values.represent_tree
_get_flops = get_flops
_get_call_flops = call_flops
_get_module_table = module_table
_get_module_variables = split_variables
_get_path_variables = variables_at
_process_inputs = inputs_of
_size_and_bytes = size_and_bytes
_render_table = text.render_table
_normalize_structure = text.normalize_structure
_size_and_bytes_repr = text.size_text
_bytes_repr = text.bytes_text
