"""Scope names under which submodules are built."""

from __future__ import annotations

import ast

from nnx_migrate.sizes import expression as ex
from nnx_migrate.sizes.result import Site
from nnx_migrate.sizes.study.study import INPUT, Study
from nnx_migrate.sizes.values import Instance, Submodule


def place_of(study: Study, call: ast.Call) -> str | None:
    """Scope name under which a submodule is built; None inside a loop or without one name."""
    for node in study.nodes:
        parents = {
            child: parent for parent in ast.walk(node) for child in ast.iter_child_nodes(parent)
        }
        if call not in parents:
            continue
        current: ast.AST = call
        found: str | None = None
        while current in parents:
            current = parents[current]
            if isinstance(current, _LOOPS):
                return None
            if isinstance(current, ast.Assign) and found is None:
                found = _target_name(current, call)
            if isinstance(current, ast.FunctionDef):
                break
        return _named(call) or found or _auto_name(study, call)
    return None


_LOOPS = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp, ast.Lambda)


def _target_name(statement: ast.Assign, call: ast.Call) -> str | None:
    """The attribute of ``self`` that gets ``call``; also in ``self.q, self.k = f(), f()``."""
    target: ast.expr = statement.targets[0]
    match target, statement.value:
        case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
            found = [one for one, value in zip(targets, values, strict=True) if value is call]
            target = found[0] if found else target
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
        return target.attr if target.value.id == "self" else None
    return None


def _named(call: ast.Call) -> str | None:
    for keyword in call.keywords:
        if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
            text = str(keyword.value.value)
            return text if text.isidentifier() else None
    return None


def _auto_name(study: Study, call: ast.Call) -> str | None:
    """Linen's automatic name, counted over the constructor calls of the class in order."""
    module = study.interpreter.built.get(id(call))
    if module is None:
        return None
    kind = class_name(module)
    before = [one for one in study.interpreter.built.values() if class_name(one) == kind]
    calls = [one.call for one in before if one.call is not None and _named(one.call) is None]
    return f"{kind}_{calls.index(call)}" if call in calls else None


def class_name(module: Submodule | Instance) -> str:
    """Class name under which Linen counts a submodule."""
    if isinstance(module, Instance):
        return f"{module.lifted}{module.info.node.name}"
    return module.symbol.rpartition(".")[2]


def entered_at(
    study: Study, sites: dict[int, Site], carried: dict[int, tuple[tuple[str, str, str], ...]]
) -> dict[str, str | None]:
    """Scope name of the first submodule that meets a size nobody knows at a loop's start."""
    before = {name: first for entries in carried.values() for name, first, _ in entries}
    found: dict[str, str | None] = {}
    for site in sites.values():
        for text in site.sizes.values():
            opaque = before.get(text, text)
            if INPUT.fullmatch(opaque) and ex.opaque_local(ex.input_of(opaque)[0]) is not None:
                found.setdefault(opaque, _first_name(study, site.call))
    return found


def _first_name(study: Study, call: ast.Call) -> str | None:
    """Scope name of what ``call`` builds first; its loop counts from 0."""
    for keyword in call.keywords:
        if keyword.arg == "name":
            return _named(call) or _counted_name(study, call, keyword.value)
    return _auto_name(study, call)


def _counted_name(study: Study, call: ast.Call, name: ast.expr) -> str | None:
    """``f"hidden_{i}"`` in the loop ``for i in range(n)`` or ``for i, x in enumerate(xs)``."""
    parts = name.values if isinstance(name, ast.JoinedStr) else []
    read = {ast.unparse(one.value) for one in parts if isinstance(one, ast.FormattedValue)}
    for node in study.nodes:
        for loop in ast.walk(node):
            if isinstance(loop, ast.For) and any(one is call for one in ast.walk(loop)):
                match loop.iter, loop.target:
                    case ast.Call(func=ast.Name("range"), args=[_]), ast.Name(id=index):
                        pass
                    case ast.Call(func=ast.Name("enumerate"), args=[_]), ast.Tuple(
                        elts=[ast.Name(id=index), _]
                    ):
                        pass
                    case _:
                        continue
                if read == {index}:
                    return "".join(
                        str(getattr(one, "value", "")) if isinstance(one, ast.Constant) else "0"
                        for one in parts
                    )
    return None
