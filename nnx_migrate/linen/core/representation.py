"""How a module prints itself: fields, then children. flax 0.12.8: linen/module.py."""

from __future__ import annotations

import dataclasses
import textwrap
from typing import Any

from nnx_migrate.linen.core.tree import is_module


def module_repr(module: Any, num_spaces: int = 4) -> str:
    """The class, its fields under ``# attributes``, its children under ``# children``."""
    cls = type(module)
    if not dataclasses.is_dataclass(cls):
        return object.__repr__(module)
    field_names = [
        f.name for f in dataclasses.fields(cls) if f.repr and f.name not in ("parent", "name")
    ]
    children = {k: v for k, v in module._state.children.items() if is_module(v)}
    lines = ["# attributes"] if field_names else []
    lines += [f"{name} = {_value_repr(vars(module).get(name))}" for name in field_names]
    lines += ["# children"] if children else []
    lines += [f"{name} = {_child_repr(child, num_spaces)}" for name, child in children.items()]
    if not lines:
        return f"{cls.__name__}()"
    body = textwrap.indent("\n".join(lines), " " * num_spaces, lambda line: True)
    return f"{cls.__name__}(\n{body}\n)"


def _child_repr(child: Any, num_spaces: int) -> str:
    own = hasattr(child, "_nnm_fields")
    return module_repr(child, num_spaces) if own else repr(child)


def _value_repr(value: Any) -> str:
    name = vars(value).get("__name__") if is_module(value) else getattr(value, "__name__", None)
    return str(name) if callable(value) and name else repr(value)
