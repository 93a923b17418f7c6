"""One ``@nn.compact`` method, and what is known about it before it is split."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from nnx_migrate.rewrite.classes.compact.call_variables import parameters_of
from nnx_migrate.rewrite.classes.data import ConversionContext
from nnx_migrate.rewrite.classes.items import Item, receiver_of
from nnx_migrate.rewrite.classes.naming import Count
from nnx_migrate.rewrite.classes.uses.references import Edits, Remarks
from nnx_migrate.rewrite.classes.writing.layout import Layout
from nnx_migrate.sizes.result import ClassSizes
from nnx_migrate.source.changes import changed_names
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import each, is_name, walk


@dataclass(frozen=True)
class CompactMethod:
    """What the conversion of a compact method starts from.

    Args:
      common: edits valid in ``__init__`` and in the call (Linen names, parameter reads).
      static: calls with another text in ``__init__`` (``self.is_initializing()``), by id.
      parameters: names of the constructor's arguments that mean what the fields mean.
      base_counts: by class, what the base class has numbered where this method starts to build.
      known_parameters: parameters of the method that ``__init__`` knows as well.
      value_edits: edits of the values of variables, valid in both.
      streams: names of the streams that keys are drawn from, by id of the call.
      helper_items: what calls of other methods build, by id of the call: Linen counts it there.
      renames: attributes of what has a name in Linen that the class has for something else, by that name.
    """

    project: Project
    cls: ClassInfo
    method: ast.FunctionDef
    items: Mapping[int, Item]
    sizes: ClassSizes
    context: ConversionContext
    layout: Layout
    remarks: Remarks
    common: Edits
    static: Mapping[int, str]
    parameters: frozenset[str] = frozenset()
    base_counts: Mapping[str, Count] = field(default_factory=dict)
    known_parameters: frozenset[str] = frozenset()
    value_edits: Edits = field(default_factory=dict)
    streams: Mapping[int, str] = field(default_factory=dict)
    helper_items: Mapping[int, Item] = field(default_factory=dict)
    renames: Mapping[str, str] = field(default_factory=dict)

    @property
    def scope(self) -> Scope:
        """Where its names are looked up."""
        return self.cls.scope.enter(self.method)

    @property
    def receiver(self) -> str:
        """What it calls the module, as a rule ``self``."""
        return receiver_of(self.method)

    @property
    def is_function(self) -> bool:
        """Whether the method is the body of a function that builds for its callers."""
        return self.cls.function is not None

    @property
    def unknown(self) -> list[str]:
        """The parameters that only the call knows."""
        return [one for one in parameters_of(self.method) if one not in self.known_parameters]

    @property
    def askable(self) -> frozenset[str]:
        """The parameters that the constructor may be told about."""
        return frozenset(parameters_of(self.method) if self.method.name == "__call__" else ())

    def static_texts(self) -> dict[int, str]:
        """Nodes with another text in ``__init__``, by id."""
        inside = {id(node) for node in walk(self.method)} - _changing(self.method, self.sizes.dims)
        texts = {key: text for key, text in self.sizes.dims.items() if key in inside}
        lengths = self.sizes.lengths
        texts |= {
            id(one): lengths[id(one)]
            for one in each(self.method, ast.Call)
            if id(one) in lengths and is_name(one.func, "len")
        }
        return texts | {key: text for key, text in self.static.items() if key in inside}


def _changing(method: ast.FunctionDef, texts: Mapping[int, str]) -> set[int]:
    """Ids of expressions that change a local, whatever they give: ``shape.append(x.shape[axis])`` gives None.

    And of those that give a list: written down again it is another one, which no change reaches.
    """
    if not any(changed_names(one) or isinstance(one, ast.AugAssign) for one in method.body):
        return set()
    return {
        id(one)
        for one in walk(method)
        if isinstance(one, ast.expr)
        and (changed_names(one) or _is_list_again(one, texts.get(id(one), "")))
    }


def _is_list_again(node: ast.expr, text: str) -> bool:
    return text.startswith("[") and not isinstance(node, ast.List | ast.ListComp)
