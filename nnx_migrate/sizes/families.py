"""Classes that one ``__init__`` serves: subclasses that inherit what builds their submodules.

``__init__`` is written once, in the class that defines the building method. What its sizes depend
on and a subclass may have otherwise (a property, a class constant, the default of a class-valued
field) must be read there as it is at run time, not as it is in that class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project


def members_of(project: Project, cls: ClassInfo) -> tuple[ClassInfo, ...]:
    """The family of a Linen class, itself included: what builds by a method that it builds by."""
    by_method = _by_method(project)
    together = {one.name: one for key in _builders(project, cls) for one in by_method.get(key, ())}
    return tuple(together.values()) or (cls,)


def varying_in(members: tuple[ClassInfo, ...]) -> frozenset[str]:
    """Attributes of the class body that the members do not all have from one class."""
    if len(members) == 1:
        return frozenset()
    defined = {one: _class_constants(one) for cls in members for one in cls.mro}

    def owner(cls: ClassInfo, name: str) -> ClassInfo | None:
        return next((one for one in cls.mro if name in defined[one]), None)

    names = {name for found in defined.values() for name in found}
    return frozenset(name for name in names if len({owner(cls, name) for cls in members}) > 1)


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


def _class_constants(cls: ClassInfo) -> frozenset[str]:
    """What a class body gives a value that is no field: methods and constants."""
    return frozenset(cls.bound.keys() - {one.name for one in cls.own_fields if cls.linen})
