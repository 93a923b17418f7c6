"""Fields of built-in layers that code around the class reads: ``model.bind(variables).head.features``.

NNX's layer keeps some of them under another name or not at all; the class that holds it knows what its own methods
read, and not what others do.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from nnx_migrate.constructs import layer_of
from nnx_migrate.constructs.common.rules import Layer
from nnx_migrate.rewrite.proof.doubt import Doubt
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import Assignment
from nnx_migrate.source.project import Module, Project, Scope
from nnx_migrate.source.walking import each, is_self

# By attribute: the classes that have it, each with the layer that it holds.
Held = Mapping[str, list[tuple[str, Layer]]]


def held_layers(project: Project, classes: Iterable[ClassInfo]) -> Held:
    """The built-in layers that ``setup`` gives to attributes, itself or in lists."""
    found: dict[str, list[tuple[str, Layer]]] = {}
    for cls in classes:
        setup = cls.methods.get("setup")
        if setup is None:
            continue
        scope = cls.scope.enter(setup)
        for node in each(setup, ast.Assign):
            names = [one.attr for one in node.targets if isinstance(one, ast.Attribute)]
            for call in each(node.value, ast.Call) if names else ():
                layer = layer_of(project.resolve(call.func, scope))
                if layer is not None:
                    for name in names:
                        found.setdefault(name, []).append((cls.name, layer))
    return found


def layer_field_reads(finder: Held, module: Module) -> Iterator[tuple[str, Doubt]]:
    """Classes of whose layers a field is read that the layer of NNX does not keep under that name."""
    if not any(f".{name}" in module.text for name in finder):
        return
    for node in module.nodes:
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
            continue
        for name, layer in finder.get(_read_of(module, node.value) or "", ()):
            has_same_name = layer.attributes is None or layer.attributes.get(node.attr) == node.attr
            if node.attr in layer.fields and not has_same_name:
                reason = f"{node.attr} of nn.{layer.name} is read here, which NNX's may not keep"
                yield name, Doubt(module.path, node.lineno, reason)


def _read_of(module: Module, value: ast.expr) -> str | None:
    """The attribute of another object that an expression reads, or that its name was assigned."""
    if isinstance(value, ast.Name):
        binding = Scope(module).around(value).lookup(value.id)
        if not isinstance(binding, Assignment):
            return None
        value = binding.value
    while isinstance(value, ast.Subscript):
        value = value.value
    is_other = isinstance(value, ast.Attribute) and not is_self(value.value)
    return value.attr if is_other and isinstance(value, ast.Attribute) else None
