"""Modes of a call: the other value of its switches (``train``), and more collections that may change.

A model in one mode says nothing of the other: batch norm in evaluation never moves its statistics,
dropout that is off draws no key. What parity can switch by itself is run both ways.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

# Boolean arguments that choose between training and evaluation.
SWITCHES = ("train", "training", "is_training", "deterministic", "use_running_average")


@dataclass(frozen=True)
class Mode:
    """What one more run of a case changes.

    ``switches`` are the other values of boolean arguments, ``places`` the positions of those that
    are passed by position. ``collections`` are mutable, and ``streams`` have a seed, beside those
    of the case.
    """

    switches: Mapping[str, bool] = field(default_factory=dict)
    places: Mapping[str, int] = field(default_factory=dict)
    collections: tuple[str, ...] = ()
    streams: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Return for example ``train=True``, or ``mutable=batch_stats`` without a switch."""
        words = [f"{name}={value}" for name, value in self.switches.items()]
        return ", ".join(words) or f"mutable={'+'.join(self.collections)}"

    def arguments(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of the call in this mode."""
        positional = list(args)
        for name, place in self.places.items():
            positional[place] = self.switches[name]
        named = {name: one for name, one in self.switches.items() if name not in self.places}
        return tuple(positional), {**kwargs, **named}


@dataclass(frozen=True)
class Switch:
    """A boolean argument of a call: its value, and its position if it is passed by position."""

    name: str
    value: bool
    place: int | None = None


def booleans(
    function: Callable[..., Any], module: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[Switch, ...]:
    """Return the boolean arguments of ``function(module, *args, **kwargs)``, defaults included."""
    try:
        bound = inspect.signature(function).bind(module, *args, **kwargs)
    except (TypeError, ValueError):  # no signature to read: nothing is known of the call
        return ()
    by_position = dict(zip(list(bound.signature.parameters)[1:], range(len(args)), strict=False))
    places = {name: place for name, place in by_position.items() if name not in kwargs}
    bound.apply_defaults()
    values = {**bound.arguments, **kwargs}
    return tuple(
        Switch(name, value, places.get(name))
        for name, value in values.items()
        if isinstance(value, bool)
    )


def fields(module: Any) -> dict[str, bool]:
    """The switches that a module was built with, ``config.deterministic`` of what it holds too."""
    values = vars(module)
    owners = [
        ("", values),
        *((f"{name}.", getattr(one, "__dict__", {})) for name, one in values.items()),
    ]
    return {
        f"{prefix}{name}": one[name]
        for prefix, one in owners
        for name in SWITCHES
        if isinstance(one.get(name), bool)
    }


def takes(function: Callable[..., Any], names: Mapping[str, Any]) -> bool:
    """Whether a function has parameters of these names, or takes any keyword."""
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:
        return True
    anything = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values())
    return anything or names.keys() <= parameters.keys()
