"""Classes that one ``__init__`` serves: subclasses that inherit what builds their submodules.

``__init__`` is written once, in the class that defines the building method. What its sizes depend
on and a subclass may have otherwise (a property, a class constant, the default of a class-valued
field) must be read there as it is at run time, not as it is in that class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from nnx_migrate.source.classes import ClassInfo, own_fields
from nnx_migrate.source.project import Project


@dataclass(frozen=True)
class Family:
    """The classes that build by a method which one class builds by.

    Args:
      members: those classes, itself included.
      varying: attributes of the class body that the members do not all have from one class.
    """

    members: tuple[ClassInfo, ...]
    varying: frozenset[str]


def family_of(project: Project, cls: ClassInfo) -> Family:
    """The family of one Linen class."""
    by_method = _by_method(project)
    together = {one.name: one for key in _builders(project, cls) for one in by_method.get(key, ())}
    members = tuple(together.values()) or (cls,)
    return Family(members, _varying(members))


@lru_cache(maxsize=2)  # every analysis of a project asks
def _by_method(project: Project) -> Mapping[int, tuple[ClassInfo, ...]]:
    """The classes that build by a method, by its id."""
    found: dict[int, tuple[ClassInfo, ...]] = {}
    for cls in project.linen.values():
        for key in _builders(project, cls):
            found[key] = (*found.get(key, ()), cls)
    return found


def _builders(project: Project, cls: ClassInfo) -> Iterator[int]:
    """Ids of the methods that a class builds by, wherever it has them from."""
    names = {name for one in cls.mro if one.linen for name in one.methods}
    for name in sorted(names):
        found = cls.find(name)
        if found is not None and (name == "setup" or project.is_compact(*found)):
            yield id(found[1])


def _varying(members: tuple[ClassInfo, ...]) -> frozenset[str]:
    if len(members) == 1:
        return frozenset()
    names = {name for cls in members for one in cls.mro for name in _defined(one)}
    return frozenset(name for name in names if len({_owner(cls, name) for cls in members}) > 1)


def _owner(cls: ClassInfo, name: str) -> str | None:
    return next((one.name for one in cls.mro if name in _defined(one)), None)


def _defined(cls: ClassInfo) -> frozenset[str]:
    """What a class body gives a value that is no field: methods and constants."""
    return frozenset(cls.bound.keys() - {one.name for one in own_fields(cls) if cls.linen})
