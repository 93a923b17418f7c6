"""A conversion that gives its result, or says why there is none."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TypeVar

from nnx_migrate.edit.data import EditError
from nnx_migrate.edit.fitting import Unrenderable
from nnx_migrate.rewrite.classes.data import ClassRefusal, Refused

T = TypeVar("T")


def or_refusal(convert: Callable[[], T], rule: str, node: ast.AST) -> T | ClassRefusal:
    """What ``convert`` returns, or the refusal it raised; ``rule`` is that of a failed edit."""
    try:
        return convert()
    except Refused as refused:
        return refused.refusal
    except Unrenderable as error:
        recipe = "write the expression outside of the f-string"
        return ClassRefusal(error.node, error.reason, recipe, rule)
    except EditError as error:
        return ClassRefusal(node, f"its file cannot be edited: {error}", "rewrite the file", rule)
