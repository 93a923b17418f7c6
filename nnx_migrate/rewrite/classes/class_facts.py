"""Everything that must hold of a class before it is converted, and what is found out on the way."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from nnx_migrate.rewrite.classes.checks.attribute_names import checked_attributes
from nnx_migrate.rewrite.classes.checks.class_body import check_class_body
from nnx_migrate.rewrite.classes.checks.class_defaults import (
    check_class_defaults,
    check_declared_anew,
)
from nnx_migrate.rewrite.classes.checks.compact_calls import check_compact_calls
from nnx_migrate.rewrite.classes.checks.every_call import check_every_call
from nnx_migrate.rewrite.classes.checks.forbidden import (
    check_field_parameters,
    check_generic,
    check_items,
    check_methods,
    check_text,
)
from nnx_migrate.rewrite.classes.checks.kinds import check_kinds
from nnx_migrate.rewrite.classes.checks.lazy_arguments import given_classes
from nnx_migrate.rewrite.classes.checks.lazy_forms import check_lazy_forms
from nnx_migrate.rewrite.classes.checks.lazy_submodules import check_lazy_submodules
from nnx_migrate.rewrite.classes.checks.list_pops import check_list_pops
from nnx_migrate.rewrite.classes.checks.method_decorators import check_method_decorators
from nnx_migrate.rewrite.classes.checks.module_calls import check_functions
from nnx_migrate.rewrite.classes.checks.nnx_names import check_nnx_names
from nnx_migrate.rewrite.classes.checks.stacking import check_call_variables
from nnx_migrate.rewrite.classes.checks.transformed_draws import check_transformed_draws
from nnx_migrate.rewrite.classes.checks.trees import check_dicts, check_trees
from nnx_migrate.rewrite.classes.class_parts import ClassParts
from nnx_migrate.rewrite.classes.compact.base_methods import counts_before
from nnx_migrate.rewrite.classes.compact.carry_helpers import counted_calls
from nnx_migrate.rewrite.classes.items import Item
from nnx_migrate.rewrite.classes.naming import Count
from nnx_migrate.rewrite.classes.uses.calls import Methods
from nnx_migrate.rewrite.classes.uses.makings import makings_of


@dataclass(frozen=True)
class ClassFacts:
    """What the writing of a class hangs on.

    Attributes:
      helper_items: what calls of other methods build, by id of the call: Linen counts it there.
      renames: attributes of what has a name in Linen that the class has for something else.
      counts: Linen's numbers, by class, where the compact method starts to build.
      makes_call_variables: whether each call makes a variable, in a submodule, that only it can make.
      class_arguments: the names of classes that lazy submodules are given as fields, and the classes, by id of the name.
      holds_lazy: whether it holds lazy submodules, itself or in its explicit ones.
    """

    helper_items: Mapping[int, Item]
    renames: Mapping[str, str]
    counts: Mapping[str, Count]
    makes_call_variables: bool
    class_arguments: Mapping[int, tuple[ast.expr, str]]
    holds_lazy: bool


def facts_of(parts: ClassParts) -> ClassFacts:
    """Check what a class consists of.

    Raises:
      Refused: something of it is not understood.
    """
    project, cls, items, context = parts.project, parts.cls, parts.items, parts.context
    check_methods(project, cls, items)
    counted = counted_calls(cls, parts.sizes, parts.compact)
    renames = _checked_names(parts, counted)
    methods = Methods(project, cls)
    makings = makings_of(project, methods, cls, items, context)
    check_compact_calls(cls, methods, makings)
    counts = counts_before(cls, parts.sizes, items, methods, makings)
    check_field_parameters(cls, items)
    check_kinds(project, cls, items)
    check_list_pops(cls, items)
    check_call_variables(project, items.values(), context.makes_call_variables)
    built = [one.site.symbol or "" for one in items.values() if one.site is not None]
    makes_late = any(map(context.makes_call_variables, built))
    class_arguments = given_classes(project, cls, parts.sizes, context)
    check_lazy_forms(project, parts.sizes, context, class_arguments.values())
    delegates = parts.base_parts.delegates
    holds_lazy = check_lazy_submodules(
        project, cls, items, parts.sizes, context, class_arguments, delegates
    )
    _check_class(parts)
    return ClassFacts(counted, renames, counts, makes_late, class_arguments, holds_lazy)


def _checked_names(parts: ClassParts, helper_items: Mapping[int, Item]) -> Mapping[str, str]:
    """The names and places of what it builds; returns what has an attribute of another name."""
    elsewhere = {id(one.site.call) for one in helper_items.values() if one.site is not None}
    own = {key: one for key, one in parts.items.items() if key not in elsewhere}
    every = {**own, **parts.helpers.parameters}
    renames = checked_attributes(parts.project, parts.cls, parts.compact, every)
    check_items(parts.cls, own, parts.helpers.parameters, parts.compact)
    return renames


def _check_class(parts: ClassParts) -> None:
    """The statement of the class and the text of its methods."""
    project, cls = parts.project, parts.cls
    check_functions(cls)
    check_class_defaults(project, cls)
    check_declared_anew(cls)
    check_nnx_names(cls)
    check_class_body(cls)
    check_method_decorators(project, cls)
    check_trees(project, cls, (*parts.items.values(), *parts.helpers.parameters.values()))
    check_dicts(cls, parts.items)
    check_text(cls)
    check_generic(project, cls)
    check_every_call(cls)
    check_transformed_draws(project, cls)
