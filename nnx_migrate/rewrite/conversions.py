"""Conversions of classes and scope functions, each made once for what it asks about the others.

A project is decided in rounds, and most of what a class asks has the answer of the round before. So
a conversion is kept with its questions, and made again only where an answer has changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from nnx_migrate.edit.rendering import Renderer
from nnx_migrate.rewrite.classes import (
    ClassRefusal,
    ConversionContext,
    ConvertedClass,
    ConvertedFunction,
    convert_class,
    convert_function,
)
from nnx_migrate.rewrite.workers import Team
from nnx_migrate.sizes import ClassSizes
from nnx_migrate.sizes.scope_functions import scope_functions
from nnx_migrate.source.project import Project

Class = ConvertedClass | ClassRefusal
Function = ConvertedFunction | ClassRefusal
T = TypeVar("T", bound=ConvertedClass | ConvertedFunction | ClassRefusal)

_Question = tuple[str, str]  # which attribute of the context, about which class or function


@dataclass(frozen=True)
class _Conversion:
    """A conversion, the sizes that it was made with, and what it asked."""

    result: ConvertedClass | ConvertedFunction | ClassRefusal
    sizes: ClassSizes
    answers: Mapping[_Question, object]


# Conversions of earlier rounds, by the name of the class or function.
Memory = dict[str, list[_Conversion]]


class Conversions:
    """The conversions of one round; a class may ask for those it builds."""

    def __init__(
        self,
        project: Project,
        sizes: Mapping[str, ClassSizes],
        context: ConversionContext,
        memory: Memory,
    ) -> None:
        self._project = project
        self._sizes = sizes
        self._context = context
        self._memory = memory
        self._classes: dict[str, Class | None] = {}
        self._functions: dict[str, Function] = {}

    def of_all(self, names: Iterable[str], team: Team) -> dict[str, Class | None]:
        """The conversions of classes; without their code where another process writes the file."""
        paths = {name: self._project.linen[name].module.path for name in names}
        return team.each(paths, self.of, _outline)

    def functions(self, team: Team) -> dict[str, ConvertedFunction]:
        """Scope functions that were asked for and can be converted."""
        if not scope_functions(self._project):
            return {}
        answers = team.together(dict.fromkeys(self._functions, True))
        every = ((name, self._scope_function(name)) for name in sorted(answers))
        return {name: one for name, one in every if isinstance(one, ConvertedFunction)}

    def of(self, name: str) -> Class | None:
        """The conversion of a class; None while it is being made."""
        if name not in self._classes:
            self._classes[name] = None

            def convert(context: ConversionContext) -> Class:
                return _convert(self._project, name, self._sizes[name], context)

            self._classes[name] = self._once(name, convert)
        return self._classes[name]

    def _once(self, name: str, convert: Callable[[ConversionContext], T]) -> T:
        sizes = self._sizes[name]
        known = self._memory.setdefault(name, [])
        for one in reversed(known):
            if one.sizes == sizes and all(self._answer(q) == a for q, a in one.answers.items()):
                return one.result  # type: ignore[return-value]
        answers: dict[_Question, object] = {}
        result = convert(self._noting(answers))
        known.append(_Conversion(result, sizes, answers))
        return result

    def _answer(self, question: _Question) -> Any:
        kind, name = question
        match kind:
            case "new_arguments":
                return self._context.new_arguments.get(name)
            case "per_call_fields":
                return self._per_call_fields(name)
            case "makes_call_variables" | "holds_lazy":
                return self._says(kind, name)
            case "sizes_of":
                return self._sizes.get(name)
            case "scope_function":
                return self._scope_function(name)
        members: AbstractSet[str] = getattr(self._context, kind)
        return name in members

    def _noting(self, answers: dict[_Question, object]) -> ConversionContext:
        """The context, which notes what it is asked and what it answers."""

        def asking(kind: str) -> Callable[[str], Any]:
            def ask(name: str) -> Any:
                answers[kind, name] = answer = self._answer((kind, name))
                return answer

            return ask

        return replace(
            self._context,
            explicit_classes=_Names(asking("explicit_classes")),
            factories=_Names(asking("factories")),
            lazy=_Names(asking("lazy")),
            lifted_classes=_Names(asking("lifted_classes")),
            new_arguments=_Arguments(asking("new_arguments")),
            per_call_fields=asking("per_call_fields"),
            makes_call_variables=asking("makes_call_variables"),
            holds_lazy=asking("holds_lazy"),
            sizes_of=asking("sizes_of"),
            scope_function=asking("scope_function"),
        )

    def _per_call_fields(self, name: str) -> frozenset[str]:
        found = self.of(name) if name in self._context.explicit_classes else None
        return found.per_call_fields if isinstance(found, ConvertedClass) else frozenset()

    def _says(self, kind: str, name: str) -> bool:
        found = self.of(name) if name in self._context.explicit_classes else None
        return isinstance(found, ConvertedClass) and bool(getattr(found, kind))

    def _scope_function(self, symbol: str) -> Function | None:
        found = scope_functions(self._project).values()
        function = next((one for one in found if one.symbol == symbol), None)
        if function is None or symbol not in self._sizes:
            return None
        if symbol not in self._functions:
            self._functions[symbol] = self._once(
                symbol,
                lambda context: convert_function(
                    self._project, function, self._sizes[symbol], context
                ),
            )
        return self._functions[symbol]


def _outline(conversion: Class | None) -> Class | None:
    """A conversion without the code, which is written where it is made."""
    if not isinstance(conversion, ConvertedClass):
        return conversion
    return replace(conversion, edits=dict.fromkeys(conversion.edits, _written_elsewhere))


def _written_elsewhere(renderer: Renderer) -> Any:
    raise AssertionError("the file of this class is another process's")


class _Asking:
    """A collection that notes each question; it must be about one class."""

    def __init__(self, ask: Callable[[str], Any]) -> None:
        self._ask = ask

    def __iter__(self) -> Iterator[str]:
        raise TypeError("expected a question about one class, found one about all")

    def __len__(self) -> int:
        raise TypeError("expected a question about one class, found one about all")


class _Names(_Asking, AbstractSet[str]):
    """A set of names."""

    def __contains__(self, name: object) -> bool:
        return bool(self._ask(str(name)))


class _Arguments(_Asking, Mapping[str, Any]):
    """The size arguments of classes."""

    def __getitem__(self, name: str) -> Any:
        found = self._ask(name)
        if found is None:
            raise KeyError(name)
        return found


def _convert(project: Project, name: str, sizes: ClassSizes, context: ConversionContext) -> Class:
    """The class converted or refused; a bug of ours refuses it and leaves the others alone."""
    cls = project.linen[name]
    try:
        return convert_class(project, cls, sizes, context)
    except Exception as bug:
        if os.environ.get("NNX_MIGRATE_DEBUG") == "1":
            raise
        recipe = "please report this with the class; NNX_MIGRATE_DEBUG=1 shows the traceback"
        return ClassRefusal(cls.node, f"the conversion failed: {bug!r}", recipe, "internal")
