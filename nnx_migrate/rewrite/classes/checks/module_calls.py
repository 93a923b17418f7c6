"""Variables that are made and read of the module under another name than ``self``.

``self._normalize(self, x)`` with ``def _normalize(self, module, x): module.param(...)``, ``me = self``: what
becomes of ``self.param`` does so where ``self`` is written.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.sizes.outside_uses import MODULE_METHODS
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import FunctionNode, parameter_names
from nnx_migrate.source.walking import walk

RULE = "class"


def check_functions(cls: ClassInfo) -> None:
    """Refuse methods, and functions inside them, that use the module under another name.

    Raises:
      Refused: one makes or reads its variables, as functions that ``nn.cond`` or ``nn.scan`` run may.
    """
    for method in cls.methods.values():
        parameters = parameter_names(method)[0 if _is_static(method) else 1 :]
        names = {*parameters, *_held_selves(method)} - {"self"}
        _refuse_module_calls(method, names, f"{method.name} calls")
        for function in walk(method):
            if function is not method and isinstance(function, FunctionNode):
                names = {*parameter_names(function)} - {"self"}
                _refuse_module_calls(function, names, f"a function inside {method.name} calls")


def _is_static(method: ast.FunctionDef) -> bool:
    return "staticmethod" in {ast.unparse(one) for one in method.decorator_list}


def _held_selves(method: ast.FunctionDef) -> Iterator[str]:
    """Locals that are the module itself: ``me = self``."""
    for node in walk(method):
        match node:
            case ast.Assign(targets=targets, value=ast.Name(id="self")):
                yield from (one.id for one in targets if isinstance(one, ast.Name))


def _refuse_module_calls(function: ast.AST, names: Collection[str], reason: str) -> None:
    for node in walk(function):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)) if (
                name in names and attr in MODULE_METHODS
            ):
                raise ClassRefused(
                    node,
                    f"{reason} {name}.{attr}, of the module it is given",
                    "make the variable in the method itself and read it from self",
                    RULE,
                )
