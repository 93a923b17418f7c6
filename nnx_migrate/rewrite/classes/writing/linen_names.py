"""``@nnm.named_in_linen(...)``, ``@nnm.called_in_linen(...)``: Linen's names of attributes that are called otherwise."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from nnx_migrate.edit.calls import Argument, call, named
from nnx_migrate.edit.expressions import string
from nnx_migrate.edit.page import Page
from nnx_migrate.edit.statements import run
from nnx_migrate.edit.syntax import cst
from nnx_migrate.edit.words import snake_case
from nnx_migrate.edit.wrapping import wrap


def named_in_linen(
    cls: Any,
    page: Page,
    *,
    class_names: Collection[str] = (),
    kinds: Collection[str] = (),
    order: Sequence[str] = (),
) -> Any:
    """A class statement with the decorators, the innermost ones.

    Args:
      class_names: first parts of attributes that Linen numbers by their classes at run time.
      kinds: classes of Linen whose submodules have attributes in snake case.
      order: attributes in the order in which Linen builds them.
    """
    arguments = [Argument(string(one, '"')) for one in sorted(class_names)]
    arguments += [named(snake_case(one), string(one, '"')) for one in sorted(kinds)]
    calls = [call("nnm.named_in_linen", *arguments)]
    if order:
        calls.append(call("nnm.order_in_linen", *(Argument(string(one, '"')) for one in order)))
    return _with_decorators(cls, page, calls)


def called_in_linen(cls: Any, page: Page, names: Mapping[str, str]) -> Any:
    """A class statement with the decorator.

    Args:
      names: Linen's, by the attribute.
    """
    arguments = [named(one, string(name, '"')) for one, name in sorted(names.items())]
    return _with_decorators(cls, page, [call("nnm.called_in_linen", *arguments)])


def _with_decorators(cls: Any, page: Page, calls: Iterable[Any]) -> Any:
    """With these as the innermost decorators."""
    statements = (wrap(run(one), len("@"), page) for one in calls)
    made = [cst.Decorator(one.body[0].value) for one in statements]
    return cls.with_changes(decorators=[*cls.decorators, *made])
