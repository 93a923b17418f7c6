"""What a function that builds one submodule is to those who call it, and which mentions are such calls."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import positional_names
from nnx_migrate.source.project import Module
from nnx_migrate.source.walking import has_starred


@dataclass(frozen=True)
class FactoryFunction:
    """A function whose every ``return`` builds a submodule.

    ``calls`` are those constructor calls with the symbol each builds; ``users`` the Linen classes
    that call the function, ``uses`` the ids of their calls. ``is_named``: it takes the name of what it
    builds, by keyword. ``is_fixed``: it cannot take sizes and streams, or other code calls it, too.
    ``method_of``: the class whose method it is, or in one of whose methods it stands (``is_local``).
    """

    symbol: str
    module: Module
    node: ast.FunctionDef | ast.Lambda
    calls: tuple[tuple[ast.Call, str], ...]
    users: frozenset[str]
    uses: frozenset[int]
    is_named: bool = False
    is_fixed: bool = False
    method_of: ClassInfo | None = None
    is_local: bool = False


def before_name(node: ast.FunctionDef | ast.Lambda) -> int:
    """How many arguments stand in front of the name."""
    names = positional_names(node.args)
    return names.index("name") if "name" in names else len(names)


def is_use(call: ast.Call | None, most: int | None) -> bool:
    """Whether a mention is a call whose caller names the submodule, if anybody.

    Args:
      most: how many arguments a call may give by position where the rest goes by keyword.
    """
    if call is None:
        return False
    return most is None or not (len(call.args) > most or _is_spread(call))


def _is_spread(call: ast.Call) -> bool:
    """Whether a call unpacks arguments: one of them may be any."""
    return has_starred(call.args) or any(one.arg is None for one in call.keywords)
