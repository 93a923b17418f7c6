"""What has other names in attributes than Linen gives it: ``dense_0`` for ``Dense_0``, ``scale_`` for ``scale``.

Variables keep Linen's paths wherever Linen's trees are read or made: `apply`, `variables_of`, seeds,
random streams, parity.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from flax import nnx

from nnx_migrate.nn.building.naming import linen_name
from nnx_migrate.nn.variables.sharing import NAMES, given_name

C = TypeVar("C", bound=type[nnx.Module])
_KINDS, _ORDER, _WHOLE = "_kinds_in_linen", "_order_in_linen", "_whole_names_in_linen"
_NUMBERS = re.compile(r"\d+(_\d+)*")


def named_in_linen(*prefixes: str, **names: str) -> Callable[[C], C]:
    """A class decorator: what Linen calls the submodules whose attributes end with numbers.

    >>> @named_in_linen("conv", dense="Dense")
    ... class Block(nnx.Module): ...

    ``dense_0`` is Linen's ``Dense_0``. ``conv_0`` and ``conv_1``, or ``conv_0_1`` in a loop, are whatever
    their classes are called, with the number that Linen gives: it counts those of one class in the
    order in which they are built.
    """

    def decorate(cls: C) -> C:
        setattr(cls, _KINDS, {**getattr(cls, _KINDS, {}), **dict.fromkeys(prefixes), **names})
        return _noting(cls)

    return decorate


def called_in_linen(**names: str) -> Callable[[C], C]:
    """A class decorator: what Linen calls attributes that stand beside a field of that name.

    >>> @called_in_linen(scale_="scale")
    ... class Norm(nnx.Module): ...

    ``scale`` is the field, and the parameter ``scale_`` is Linen's ``scale``.
    """

    def decorate(cls: C) -> C:
        setattr(cls, _WHOLE, {**getattr(cls, _WHOLE, {}), **names})
        return _noting(cls)

    return decorate


def _noting(cls: C) -> C:
    """The class, whose objects note their names in Linen when they are built."""
    construct = cls.__init__

    @functools.wraps(construct)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        construct(self, *args, **kwargs)
        setattr(self, NAMES, tuple(_named(self)))

    cls.__init__ = __init__  # type: ignore[method-assign]
    return cls


def order_in_linen(*attributes: str) -> Callable[[C], C]:
    """A class decorator: in which order Linen builds what :func:`named_in_linen` counts.

    For ``nn.Dense(1)(self.body()(x))``: Linen builds the outer layer first, ``__init__`` last, since it asks the
    inner one for its size.
    """

    def decorate(cls: C) -> C:
        setattr(cls, _ORDER, (*getattr(cls, _ORDER, ()), *attributes))
        return cls

    return decorate


def _named(module: nnx.Module) -> Iterator[tuple[str, str]]:
    """The attributes and their names in Linen, numbered ones in the order in which Linen builds them."""
    yield from getattr(type(module), _WHOLE, {}).items()
    kinds: Mapping[str, str | None] = getattr(type(module), _KINDS, {})
    used: Counter[str] = Counter()
    attributes = vars(module)
    first = [one for one in getattr(type(module), _ORDER, ()) if one in attributes]
    for attribute in dict.fromkeys((*first, *attributes)):
        value = attributes[attribute]
        kind = _kind(attribute, kinds) if isinstance(value, nnx.Module) else None
        if kind is None:
            continue
        name = kinds[kind]
        if name is not None:
            yield attribute, name + attribute.removeprefix(kind)
            continue
        if (own := given_name(value)) is not None:
            yield attribute, own  # by who made it: ``partial(Block, name="block")``
            continue
        name = linen_name(value)
        yield attribute, f"{name}_{used[name]}"
        used[name] += 1


def _kind(attribute: str, kinds: Iterable[str]) -> str | None:
    fits = (
        one
        for one in kinds
        if attribute.startswith(f"{one}_") and _NUMBERS.fullmatch(attribute[len(one) + 1 :])
    )
    return max(fits, key=len, default=None)
