"""How a built-in layer is called, by position and by keyword, wherever the project calls it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from nnx_migrate.abstract.values import CallForm, Submodule
from nnx_migrate.sizes.inference.class_analysis import ClassAnalysis
from nnx_migrate.source.linen_modules import linen_modules
from nnx_migrate.source.other_values import is_no_module
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import has_starred, is_self, walk


def call_forms(analysis: ClassAnalysis, layer: Submodule) -> frozenset[CallForm]:
    """The forms of all calls of a layer; none where there may be others than those in sight."""
    uses = analysis.root.records.get(id(layer.call), [])
    forms = {use.form for use in uses}
    for name in _attributes(analysis, layer.call):
        forms.update(_outside(analysis, name))
    return frozenset(one for one in forms if one is not None) if None not in forms else frozenset()


def _attributes(analysis: ClassAnalysis, call: ast.Call) -> Iterator[str]:
    """The attributes that ``setup`` keeps it under: others than the class itself may call those."""
    for cls in analysis.root.info.mro:
        setup = cls.methods.get("setup")
        for node in walk(setup) if setup is not None else ():
            if isinstance(node, ast.Assign) and any(one is call for one in walk(node.value)):
                parts = [one for target in node.targets for one in walk(target)]
                yield from (one.attr for one in parts if isinstance(one, ast.Attribute))


def _outside(analysis: ClassAnalysis, name: str) -> Iterator[CallForm | None]:
    """The calls of attributes of that name by other code that may have the layer in hand."""
    own = set(map(id, analysis.nodes))
    for around, form in _loads(analysis.interpreter.project, name):
        if around is None or (id(around) not in own and _inherits(analysis, around)):
            yield form


@lru_cache(maxsize=1 << 10)  # many classes have layers of one name
def _loads(project: Project, name: str) -> tuple[tuple[ast.ClassDef | None, CallForm | None], ...]:
    """How attributes of that name are called, and in which class where they are ``self``'s.

    A file without a name of Linen or of a Linen class may be given a module to call, as a helper is;
    that it keeps one of its layers under another name is not expected.
    """
    found = []
    for module in project.modules.values():
        for node in module.by_word.get(name, ()):
            if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
                continue
            around = module.parents.class_of(node) if is_self(node.value) else None
            if around is None and is_no_module(project, module, node.value):
                continue
            parent = module.parents.of(node)
            if isinstance(parent, ast.Call) and parent.func is node:
                found.append((around, _form(parent)))
            elif module.name in linen_modules(project):
                found.append((around, None))
    return tuple(found)


def _inherits(analysis: ClassAnalysis, node: ast.ClassDef) -> bool:
    cls = analysis.interpreter.project.by_node.get(id(node))
    return cls is None or analysis.root.info in cls.mro


def _form(call: ast.Call) -> CallForm | None:
    words = [one.arg for one in call.keywords]
    if has_starred(call.args) or None in words:
        return None
    return CallForm(len(call.args), frozenset(word for word in words if word is not None))
