"""Class decorators that were written for Linen modules, which are dataclasses.

Such a decorator reads ``dataclasses.fields(module)`` and wraps ``__init__``. A migrated class has an
``__init__`` of its own, with sizes and ``rngs`` beside the fields. :func:`class_decorator` shows the
decorator the class as Linen would: a constructor that takes the fields, and their descriptions.

flax 0.12.8: linen/module.py (``Module.__init_subclass__`` makes every subclass a dataclass).
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from flax import nnx

C = TypeVar("C", bound=type[nnx.Module])


def class_decorator(decorator: Callable[[Any], Any], sizes: Sequence[str] = ()) -> Callable[[C], C]:
    """``decorator`` for a migrated class.

    Args:
      decorator: takes a Linen class and returns it, changed.
      sizes: constructor parameters that Linen's class did not have; ``rngs`` is always one.

    The constructor that the decorator finds takes the fields alone, and the one it puts in its place
    is called with the fields alone: sizes and ``rngs`` pass it by.

    Raises:
      TypeError: the decorator returns another class.
    """
    own_names = frozenset({*sizes, "rngs"})

    def decorate(cls: C) -> C:
        real = cls.__init__
        size_stack: list[dict[str, Any]] = []

        @functools.wraps(real)
        def of_fields(self: Any, *args: Any, **kwargs: Any) -> None:
            real(self, *args, **kwargs, **size_stack[-1])

        _describe_fields(cls, own_names)
        _set(cls, "__init__", of_fields)
        made = decorator(cls)
        if made is not cls:
            raise TypeError(f"expected {decorator!r} to return {cls.__name__}, found {made!r}")
        field_init = cls.__init__

        @functools.wraps(real)
        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            beside = {name: kwargs.pop(name) for name in own_names & kwargs.keys()}
            size_stack.append(beside)
            try:
                field_init(self, *args, **kwargs)
            finally:
                size_stack.pop()

        _set(cls, "__init__", init)
        return cls

    return decorate


def _describe_fields(cls: type[Any], own_names: frozenset[str]) -> None:
    """Make ``dataclasses.fields`` and class-level defaults what they are for a Linen class."""
    parameters = [
        one
        for one in list(inspect.signature(cls.__init__).parameters.values())[1:]
        if one.name not in own_names
    ]
    specs = [(one.name, _annotation(one), _field(one)) for one in parameters]
    template = dataclasses.make_dataclass("Fields", specs)
    _set(cls, "__dataclass_fields__", vars(template)["__dataclass_fields__"])
    for one in parameters:
        if one.default is not one.empty and not hasattr(cls, one.name):
            _set(cls, one.name, one.default)


def _annotation(parameter: inspect.Parameter) -> Any:
    return Any if parameter.annotation is parameter.empty else parameter.annotation


def _field(parameter: inspect.Parameter) -> Any:
    keyword_only = parameter.kind is parameter.KEYWORD_ONLY
    default = parameter.default
    if default is parameter.empty:
        return dataclasses.field(kw_only=keyword_only)
    if type(default).__hash__ is None:
        return dataclasses.field(default_factory=lambda: default, kw_only=keyword_only)
    return dataclasses.field(default=default, kw_only=keyword_only)


def _set(cls: type[Any], name: str, value: Any) -> None:
    setattr(cls, name, value)
