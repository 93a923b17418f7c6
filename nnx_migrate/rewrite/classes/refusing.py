"""A conversion that gives its result, or says why there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from nnx_migrate.rewrite.classes.data import ClassRefusal, Refused
from nnx_migrate.rewrite.render import Unrenderable

T = TypeVar("T")


def or_refusal(convert: Callable[[], T], rule: str) -> T | ClassRefusal:
    """What ``convert`` returns, or the refusal it raised; ``rule`` is that of text not rendered."""
    try:
        return convert()
    except Refused as refused:
        return refused.refusal
    except Unrenderable as error:
        recipe = "write the expression outside of the f-string"
        return ClassRefusal(error.node, error.reason, recipe, rule)
