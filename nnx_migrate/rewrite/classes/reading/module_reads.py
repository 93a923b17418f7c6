"""Functions that read the module around them: ``lambda x: self.dense(x)``, ``self.encode``.

Linen runs ``setup`` and compact methods anew in each call, with the module that is called. An NNX module
is copied by ``nnx.jit``, ``nnx.split`` and ``nnx.clone``, and what it stores is not: a function in an
attribute would go on reading the parameters of the module that was built.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from dataclasses import dataclass

from nnx_migrate.rewrite.classes.items import receiver_of
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.facts import Fact
from nnx_migrate.source.names import FunctionNode, parameter_names
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each, is_name


@dataclass(frozen=True)
class ModuleReads:
    """Tells such functions of one class from those that only read data.

    Attributes:
      plain: fields and attributes that hold data.
    """

    cls: ClassInfo
    plain: frozenset[str]

    def by_method(self, name: str, visited: frozenset[str] = frozenset()) -> bool:
        """Whether ``self.<name>`` is a method that reads more than data."""
        found = self.cls.find(name)
        if found is None or found[1].decorator_list or name in visited:
            return False
        return self.by_function(found[1], receiver_of(found[1]), visited=visited | {name})

    def by_function(
        self,
        function: FunctionNode,
        receiver: str,
        local: Collection[str] = (),
        visited: frozenset[str] = frozenset(),
    ) -> bool:
        """Whether a function reads more of the module than data, or one of the ``local`` names."""
        read = {
            id(one.value): one.attr
            for one in each(function, ast.Attribute)
            if is_name(one.value, receiver)
        }
        around = {*local} - {*parameter_names(function)}
        names = [one for one in each(function, ast.Name) if isinstance(one.ctx, ast.Load)]
        return (
            any(one.id == receiver and id(one) not in read for one in names)
            or any(one.id in around for one in names)
            or any(self._is_more(one, visited) for one in read.values())
        )

    def _is_more(self, attribute: str, visited: frozenset[str]) -> bool:
        found = self.cls.find(attribute)
        if found is not None:
            return bool(found[1].decorator_list) or self.by_method(attribute, visited)
        return attribute not in self.plain


def plain_fields(project: Project, cls: ClassInfo) -> frozenset[str]:
    """Fields of which no annotation says that they hold modules."""
    modules = _module_names(project)
    return frozenset(
        one.name
        for one in cls.fields
        if modules.isdisjoint(re.findall(r"\w+", ast.unparse(one.annotation)))
    )


@Fact  # every class asks
def _module_names(project: Project) -> frozenset[str]:
    return frozenset(name.rpartition(".")[2] for name in project.linen) | {"Module"}
