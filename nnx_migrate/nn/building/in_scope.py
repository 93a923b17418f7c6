"""Submodules that add no level to the path of their variables: Linen's ``share_scope``.

Linen gives two modules one scope; both make their variables there (flax 0.12.8, linen/module.py,
``share_scope``, and ``parent=self.scope``). Here the module that builds the other holds the other's
variables and submodules as attributes of its own, too. NNX lists what is held twice once, at the first path
of a walk in alphabetical order: the other one stands under a name that comes last.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from flax import nnx

MARK = "~"  # after all letters and "_": sorted behind every name that can be an attribute


class InScope:
    """An attribute whose submodule has its variables at the path of the module that holds it.

    ``inner = InScope("a")`` in a class body, then ``self.inner = Layer(...)`` in ``__init__``: the
    variables and submodules of the layer become attributes of ``self``. ``after`` names the
    parameters of ``self`` that Linen makes before those of the layer; it counts both as one.
    ``moved`` names submodules that the layer had before it got this scope: Linen keeps folding its
    name into their keys.

    Raises:
      ValueError: ``self`` has an attribute of the name of one of them, or the layer owns a random
        stream; when it is read, if they are no longer the same.
    """

    def __init__(self, *after: str, moved: Collection[str] = ()) -> None:
        """Name what comes before, and what keeps its keys."""
        self.after, self.moved = after, frozenset(moved)

    def __set_name__(self, owner: type, name: str) -> None:
        """Take the attribute's name."""
        self.name = name

    def __get__(self, module: Any, owner: type | None = None) -> Any:
        """The submodule."""
        if module is None:
            return self
        child = vars(module).get(MARK + self.name)
        if child is None:
            raise AttributeError(f"{type(module).__name__} has no attribute '{self.name}'")
        for name, value in _shared(child):
            if vars(module).get(name) is not value:
                raise ValueError(
                    f"expected {type(module).__name__}.{name} to be that of its '{self.name}', which "
                    "shares its scope, found another: give one of them another name"
                )
        return child

    def __set__(self, module: Any, child: nnx.Module) -> None:
        """Hold the submodule, and what it holds."""
        drawn = [k for k, v in vars(child).items() if isinstance(v, (nnx.RngStream, nnx.Rngs))]
        if drawn:
            raise ValueError(
                f"{type(child).__name__} draws from '{drawn[0]}', and Linen counts its keys together "
                f"with those of {type(module).__name__}, whose scope it shares: draw in a submodule"
            )
        shared = dict(_shared(child))
        for name in shared:
            if name in vars(module) or hasattr(type(module), name) or not name < MARK:
                raise ValueError(
                    f"expected {type(module).__name__} to have no attribute '{name}', found one: "
                    f"its '{self.name}' shares its scope and has a variable or submodule of that name"
                )
        setattr(module, MARK + self.name, child)
        for name, value in shared.items():
            setattr(module, name, value)


class Scope(nnx.Module):
    """What ``self.scope.push(name)`` gives: holds submodules, and is a part of their path."""


def is_in_scope(path: tuple[Any, ...]) -> bool:
    """Whether a path leads through a submodule that shares its scope: not Linen's way."""
    return any(isinstance(part, str) and part.startswith(MARK) for part in path)


def keyed_path(path: tuple[Any, ...], modules: Mapping[tuple[Any, ...], Any]) -> tuple[Any, ...]:
    """The path that Linen folds into the keys of the module at ``path`` of ``modules``."""
    found: list[Any] = []
    for end, part in enumerate(path):
        for kind in type(modules.get(path[:end])).__mro__:
            shares = (one for one in vars(kind).values() if isinstance(one, InScope))
            found += [one.name for one in shares if part in one.moved]
        found.append(part)
    return tuple(found)


def own_variables(module: nnx.Module) -> list[nnx.Variable[Any]]:
    """The variables of the module's scope, in the order in which Linen makes them."""
    found = {k: one for k, one in vars(module).items() if isinstance(one, nnx.Variable)}
    for kind in type(module).__mro__:
        for shares in (one for one in vars(kind).values() if isinstance(one, InScope)):
            child = vars(module).get(MARK + shares.name)
            if child is not None:
                found = _moved(found, [name for name, _ in _shared(child)], shares.after)
    return list(found.values())


def _moved(
    found: dict[str, nnx.Variable[Any]], names: list[str], after: tuple[str, ...]
) -> dict[str, nnx.Variable[Any]]:
    """``names`` directly behind ``after``, which come first."""
    order = [name for name in after if name in found]
    order += [name for name in names if name in found]
    return {name: found[name] for name in (*order, *(k for k in found if k not in order))}


def _shared(child: nnx.Module) -> Iterator[tuple[str, Any]]:
    for name, value in vars(child).items():
        if isinstance(value, (nnx.Variable, nnx.Pytree)) and not name.startswith(MARK):
            yield name, value
