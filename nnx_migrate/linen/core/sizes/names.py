"""Names that say which size a constructor argument is.

``in_features`` is the last axis of the first input (of a cell, beside its carry), ``NAME_features``
that of another one, ``NAME_shape`` its shape, with ``input_`` in front where the plain name is taken. NAME may have numbers (``carry_1_features``: of
``carry[1]``) or be a field of an input (``nodes_features``: of ``graphs.nodes``, ``lstm_1_features``: of ``carry.lstm[1]``). A submodule's scope path before such a name is
that of the submodule: ``encoder_mlp_in_features``. ``with_NAME``
is whether an input is given, ``init_NAME`` its truth.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Collection, Mapping
from typing import Any

import jax

from nnx_migrate.linen.core.sizes.declaration import Path, Size, UnknownSize, part_at, properties_of

_ENDINGS: dict[str, int | None] = {"_features": -1, "_shape": None}
_TAKEN = "input_"  # in front where the constructor has another use for the plain name
_FACTS = (("with_", "given"), ("init_", "truth"))
_NAME = re.compile(r"\w+_(features|shape)")
_INDEX = re.compile(r"(\d+)(?:_|$)")
_ARRAYS = jax.Array | jax.ShapeDtypeStruct


def size_by_name(parameter: inspect.Parameter, inputs: Collection[str]) -> Size | None:
    """Which size or fact a keyword argument is by its name; None where the name says nothing.

    Args:
      inputs: the parameters of ``__call__``. An argument with a default is a field unless it names
        one of them, or its default is None.
    """
    name, default = parameter.name, parameter.default
    if parameter.kind is not parameter.KEYWORD_ONLY:
        return None
    is_required = default is parameter.empty
    if is_required or isinstance(default, bool):
        for start, fact in _FACTS:
            if name.startswith(start) and name.removeprefix(start) in inputs:
                return Size(name.removeprefix(start), None, fact=fact)
    if not is_required and default is not None:
        return None
    if name == "in_features":
        return Size()
    for text in (name, name.removeprefix(_TAKEN)):
        for end, axis in _ENDINGS.items():
            if text.endswith(end) and text.removesuffix(end) in inputs:
                return Size(text.removesuffix(end), axis=axis)
    return NamedSize.of_name(name)


@dataclasses.dataclass(frozen=True)
class NamedSize(Size):
    """A size whose place shows when the module is built and called; ``key`` is its name."""

    key: str = ""

    @classmethod
    def of_name(cls, name: str) -> NamedSize | None:
        """The size of a name; None where it is none's."""
        found = _NAME.fullmatch(name)
        return cls(axis=_ENDINGS[f"_{found[1]}"], key=name) if found is not None else None

    @property
    def path(self) -> Path:
        """An unknown one."""
        return ("?",)

    def fits(self, path: Path) -> bool:
        """Whether the name may be that of an input of the submodule at a scope path."""
        return self.key.startswith(_start(path))

    def read_at(self, path: Path, inputs: Mapping[str, Any]) -> Any:
        """The size in the inputs of the module at a scope path; None where none has this name."""
        if not self.fits(path):
            return None
        key = self.key.removeprefix(_start(path))
        if key == "in_features":  # of a cell, what it is given beside its carry
            return self.read({at: one for at, one in inputs.items() if at != "carry"})
        name = key.rpartition("_")[0]
        arguments = [
            one for one in (_part_text(shapes, at, name) for at, shapes in inputs.items()) if one
        ]
        return Size(arguments[0], self.axis).read(inputs) if len(arguments) == 1 else None

    def require_one(self, paths: Collection[Path]) -> None:
        """Raise where submodules at several paths have a size of this name.

        Raises:
          UnknownSize: they do.
        """
        if len(paths) > 1:
            found = ", ".join("/".join(path) or "the module itself" for path in sorted(paths))
            raise UnknownSize(
                f"{self.key} may be a size of each of {found}: say which with"
                f' lazy(Class, {self.key}=Size(of="..."))'
            )


def _start(path: Path) -> str:
    return "".join(f"{step}_" for step in path)


def _part_text(value: Any, argument: str, name: str) -> str | None:
    """The text of the part of an input that a name stands for: ``carry[1]``, ``graphs.nodes``, ``carry.lstm[1]``."""
    if name == argument:
        return argument
    rest = name.removeprefix(f"{argument}_")
    steps = _steps(value, rest)
    is_field = steps is not None and steps.startswith(".")
    return f"{argument}{steps}" if steps is not None and (rest != name or is_field) else None


def _steps(value: Any, words: str) -> str | None:
    """The way into a value that words say: ``.lstm[1]`` for ``lstm_1``; None where it has no such field."""
    number = _INDEX.match(words)
    if number is not None:
        rest, step = words[number.end() :], f"[{number[1]}]"
        inner = value[int(number[1])] if _is_list(value, int(number[1])) else None
        below = "" if not rest else _steps(inner, rest)
        return None if below is None else step + below
    for name in () if isinstance(value, _ARRAYS) else _fields(value):
        if words == name:
            return f".{name}"
        if words.startswith(f"{name}_"):
            below = _steps(part_at(value, name), words.removeprefix(f"{name}_"))
            if below is not None:
                return f".{name}{below}"
    return None


def _fields(value: Any) -> tuple[str, ...]:
    own = (*getattr(value, "_fields", ()), *getattr(value, "__dict__", ()))
    return (*own, *properties_of(value))


def _is_list(value: Any, index: int) -> bool:
    return isinstance(value, list | tuple) and index < len(value)
