"""Scope names under which submodules are built."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import lru_cache

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.questions import class_name
from nnx_migrate.abstract.values import Instance, Submodule
from nnx_migrate.sizes.inference.class_analysis import INPUT, ClassAnalysis
from nnx_migrate.sizes.inference.in_scope import is_in_scope, numbered_at
from nnx_migrate.sizes.inference.initial_call import METHOD
from nnx_migrate.sizes.inference.nesting import given_name, has_name, submodule_path
from nnx_migrate.sizes.result import Site
from nnx_migrate.source.walking import walk


def place_of(analysis: ClassAnalysis, call: ast.Call, *, counts_rounds: bool = True) -> str | None:
    """Scope path under which a submodule is built; None inside a loop or without one path.

    With ``counts_rounds`` a name that Linen counts must be certain: no loop or condition before it may
    build submodules of the same class.
    """
    for node in analysis.nodes:
        parents = _parents(node)
        if call not in parents:
            continue
        above = list(_above(call, parents))
        method = next((one for one in above if isinstance(one, ast.FunctionDef)), None)
        inside = above[: above.index(method)] if method is not None else above
        if any(isinstance(one, _LOOPS) for one in inside):
            return None
        if has_name(call):
            return _named(call)
        if not _is_compact(analysis, method):
            return _attribute_path(analysis, call, parents)
        if counts_rounds and (
            _is_shifted(analysis, call, parents) or _may_be_shifted(analysis, call)
        ):
            return None
        return _auto_name(analysis, call)
    return None


def _attribute_path(
    analysis: ClassAnalysis, call: ast.Call, parents: Mapping[ast.AST, ast.AST]
) -> str | None:
    """Scope path of a submodule of ``setup``, where a statement assigns what holds it."""
    found = submodule_path(analysis, call, parents)
    if found is None:
        return None
    if has_name(found.outer):
        name = _named(found.outer) if isinstance(found.outer, ast.Call) else None
        return name and name + found.path
    statement = parents[found.outer]
    if isinstance(statement, ast.Tuple):  # unpacked
        statement = parents[statement]
    name = _target_name(statement, found.outer)
    return name and name + found.path


@lru_cache(maxsize=1024)
def _parents(node: ast.AST) -> dict[ast.AST, ast.AST]:
    return {child: parent for parent in walk(node) for child in ast.iter_child_nodes(parent)}


def _is_compact(analysis: ClassAnalysis, method: ast.AST | None) -> bool:
    """Whether Linen counts what a method builds; in ``setup`` attributes give the names."""
    return isinstance(method, ast.FunctionDef) and any(
        analysis.interpreter.project.is_compact(cls, method)
        for cls in analysis.root.info.mro
        if cls.methods.get(method.name) is method
    )


def _is_shifted(analysis: ClassAnalysis, call: ast.Call, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether a loop or condition before a constructor call decides the number in its name."""
    around = set(_above(call, parents))
    for other in _counted_with(analysis, call):
        if other is call:
            return False
        if any(isinstance(one, _REPEATS) and one not in around for one in _above(other, parents)):
            return True
    return False


def _may_be_shifted(analysis: ClassAnalysis, call: ast.Call) -> bool:
    """Whether a class that is only known at run time is built before: ``norm = A if self.wide else B``."""
    sides = sides_of(analysis, call)
    for module in analysis.interpreter.submodules.values():
        other = module.call
        if other is call:
            return False
        if other is None or class_name(module) or has_name(other) or is_in_scope(module):
            continue
        theirs = sides_of(analysis, other)
        if all(theirs.get(branch, side) == side for branch, side in sides.items()):
            return True
    return False


def _above(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> Iterator[ast.AST]:
    while node in parents:
        node = parents[node]
        yield node


_LOOPS = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp, ast.Lambda)
_REPEATS = (*_LOOPS, ast.If, ast.IfExp)


def _target_name(statement: ast.AST, content: ast.expr) -> str | None:
    """The attribute of ``self`` that gets ``content``; also in ``self.q, self.k = f(), f()``."""
    match statement:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            pairs = zip(targets, values, strict=True)
            target = next(one for one, value in pairs if value is content)
        case ast.Assign(targets=[target, *_]) | ast.AnnAssign(target=target):
            pass
        case _:
            return None
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
        return target.attr if target.value.id == "self" else None
    return None


def _named(call: ast.Call) -> str | None:
    value = given_name(call)
    if value is None:
        return None
    parts = value.values if isinstance(value, ast.JoinedStr) else [value]
    texts = [str(one.value) for one in parts if isinstance(one, ast.Constant)]
    text = "".join(texts)
    return text if len(texts) == len(parts) and text.isidentifier() else None


def _auto_name(analysis: ClassAnalysis, call: ast.Call) -> str | None:
    """Linen's automatic name, counted over the constructor calls of the class in order."""
    calls = _counted_with(analysis, call)
    kind = class_name(analysis.interpreter.submodules[id(call)]) if calls else ""
    if call not in calls:
        return None
    number = calls.index(call)
    if any(is_in_scope(analysis.interpreter.submodules[id(one)]) for one in calls[:number]):
        return None  # how many a function has numbered before is not counted here
    if any(has_name(one) for one in calls[:number]):
        return None  # a name of a field or local may be None
    return f"{kind}_{number}"


def _counted_with(analysis: ClassAnalysis, call: ast.Call) -> list[ast.Call]:
    """Constructor calls that Linen counts under the same class name, in order.

    Those on the other side of an ``if`` are left out: where ``call`` runs, they do not.
    """
    module = analysis.interpreter.submodules.get(id(call))
    if module is None:
        return []
    kind = class_name(module)
    if not kind:  # a class that is only known at run time
        return []
    calls = [
        one.call
        for one in analysis.interpreter.submodules.values()
        if one.call is not None and _is_counted(analysis, one, kind)
    ]
    sides = sides_of(analysis, call)
    return [
        one
        for one in calls
        if all(sides_of(analysis, one).get(branch, side) == side for branch, side in sides.items())
    ]


def _is_counted(analysis: ClassAnalysis, module: Submodule | Instance, kind: str) -> bool:
    """Whether Linen counts something that a call builds under the class name ``kind``.

    What ``setup`` builds has the name of its attribute, also where another method is compact.
    """
    assert module.call is not None
    if _is_in_setup(analysis, module.call):
        return False
    if is_in_scope(module):
        return bool({kind, ""} & numbered_at(analysis, module))
    if isinstance(given_name(module.call), ast.JoinedStr):
        return False
    return class_name(module) == kind and _named(module.call) is None


def _is_in_setup(analysis: ClassAnalysis, call: ast.Call) -> bool:
    return any(
        isinstance(above, ast.FunctionDef) and above.name == "setup"
        for node in analysis.nodes
        for above in _above(call, _parents(node))
    )


def sides_of(analysis: ClassAnalysis, call: ast.Call) -> dict[ast.AST, str]:
    """On which side of every ``if`` around it a call stands."""
    found: dict[ast.AST, str] = {}
    for node in analysis.nodes:
        parents = _parents(node)
        below: ast.AST = call
        for above in _above(call, parents):
            match above:
                case ast.If() if below is not above.test:
                    found[above] = "body" if below in above.body else "orelse"
                case ast.IfExp() if below is not above.test:
                    found[above] = "body" if below is above.body else "orelse"
            below = above
    return found


def entered_at(
    analysis: ClassAnalysis,
    sites: dict[int, Site],
    carries: dict[int, tuple[tuple[str, str, str], ...]],
) -> dict[str, str | None]:
    """Scope name of the first submodule that meets, as its first input, a size nobody knows at a loop's start.

    Where conditions over fields keep every submodule that meets it from being built, it is optional.
    """
    found: dict[str, str | None] = {}
    met, always = set[str](), set[str]()
    for site in sites.values():
        before = _before(analysis, site.call, carries)
        for key, text in site.sizes.items():
            opaque = text
            while opaque in before:
                opaque = before.pop(opaque)
            if INPUT.fullmatch(opaque) and ex.opaque_local(ex.input_of(opaque)[0]) is not None:
                met.add(opaque)
                always |= {opaque} if site.condition is None else set()
                if key in _of_first_input(analysis, site):
                    found.setdefault(opaque, _first_name(analysis, site.call))
    analysis.optional.update(met - always)
    return found


def _before(
    analysis: ClassAnalysis,
    call: ast.Call,
    carries: Mapping[int, tuple[tuple[str, str, str], ...]],
) -> dict[str, str]:
    """What the sizes that loops around ``call`` carry are in their first rounds.

    Behind its loop a size has the same name, and is that of the last round.
    """
    around = {
        id(above) for node in analysis.nodes for above in (call, *_above(call, _parents(node)))
    }
    entries = [entry for key in carries.keys() & around for entry in carries[key]]
    firsts = {
        name: {first for other, first, _ in entries if other == name} for name, _, _ in entries
    }
    return {name: found.pop() for name, found in firsts.items() if len(found) == 1}


def _of_first_input(analysis: ClassAnalysis, site: Site) -> frozenset[str]:
    """Size arguments for the last axis of what a submodule is given first: that is what is measured there."""
    cls = analysis.interpreter.project.linen.get(site.symbol or "")
    found = cls.find(METHOD) if cls is not None else None
    first = [one.arg for one in found[1].args.args[1:2]] if found is not None else []
    return frozenset({"in_features", *(f"{name}_features" for name in first)})


def _first_name(analysis: ClassAnalysis, call: ast.Call) -> str | None:
    """Scope name of what ``call`` builds first; its loop counts from 0."""
    name = given_name(call)
    if name is not None:
        return _named(call) or _counted_name(analysis, call, name)
    for node in analysis.nodes:
        parents = _parents(node)
        methods = [one for one in _above(call, parents) if isinstance(one, ast.FunctionDef)]
        if methods and not _is_compact(analysis, methods[0]):
            return _first_item(analysis, call, parents)
    shifted = any(_is_shifted(analysis, call, _parents(node)) for node in analysis.nodes)
    return None if shifted else _auto_name(analysis, call)


def _first_item(
    analysis: ClassAnalysis, call: ast.Call, parents: Mapping[ast.AST, ast.AST]
) -> str | None:
    """Scope name of the first item of a list that ``setup`` assigns to an attribute."""
    found = submodule_path(analysis, call, parents)
    holder = parents[found.outer] if found is not None else None
    if found is None or not isinstance(holder, ast.ListComp) or has_name(found.outer):
        return None
    name = _target_name(parents[holder], holder)
    return name and f"{name}_0{found.path}"


def _counted_name(analysis: ClassAnalysis, call: ast.Call, name: ast.expr) -> str | None:
    """``f"hidden_{i}"`` in the loop ``for i in range(n)`` or ``for i, x in enumerate(xs)``."""
    parts = name.values if isinstance(name, ast.JoinedStr) else []
    read = {ast.unparse(one.value) for one in parts if isinstance(one, ast.FormattedValue)}
    for node in analysis.nodes:
        for loop in walk(node):
            if isinstance(loop, ast.For) and any(one is call for one in walk(loop)):
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
