"""The Python of explicit classes: what decides about layers is read, so it is written plainly.

Of 731 classes of 69 published packages that were explicit before this rule, two had one of these statements.
Each has its own way to run twice, never or later; a class that has one is lazy, and nothing else in the
analysis has to follow it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.source.changes import changed_by_call
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import each, walk

RULE = "class"
# What runs other code than it shows, or shows not how often.
_LATER: Mapping[type[ast.AST], str] = {
    ast.Global: "global",
    ast.Nonlocal: "nonlocal",
    ast.Yield: "yield",
    ast.YieldFrom: "yield from",
    ast.Await: "await",
}
_STATEMENTS = {**_LATER, ast.While: "while", ast.Try: "try", ast.NamedExpr: ":="}
_PLAIN_CHANGES = frozenset({"append", "extend", "pop", "update"})


def check_vocabulary(project: Project, cls: ClassInfo) -> None:
    """Refuse statements that published model code does without.

    A list may grow and lose its last item (``skips.append(x)``, ``skips.pop()``), a dict may get and lose entries
    (``found.update(head=y)``, ``options.pop("name")``); functions of the project may do what they like but keep
    something for their next call.

    Raises:
      Refused: a method has such a statement, or calls a function that has.
    """
    for scope, method in _methods(cls):
        for node in walk(method):
            text = _STATEMENTS.get(type(node)) or _change(project, scope, node)
            if text is not None:
                raise ClassRefused(node, f"its method {method.name} uses `{text}`", _RECIPE, RULE)
        for node in _bases_as_values(method):
            reason = f"its method {method.name} uses `super()` as a value"
            raise ClassRefused(node, reason, "write super().method(x), or the base's name", RULE)
        for call in each(method, ast.Call):
            function = project.function(project.resolve(call.func, scope))
            for text in _other_names(function):
                reason = f"it calls {ast.unparse(call.func)}, which uses `{text}`"
                raise ClassRefused(call, reason, _RECIPE, RULE)


def _bases_as_values(method: ast.FunctionDef) -> Iterator[ast.Name]:
    """``above = super()``: what is called of it is not followed; ``super().encode(x)`` is."""
    plain = {
        id(one.value.func) for one in each(method, ast.Attribute) if isinstance(one.value, ast.Call)
    }
    return (one for one in each(method, ast.Name) if one.id == "super" and id(one) not in plain)


def _methods(cls: ClassInfo) -> Iterator[tuple[Scope, ast.FunctionDef]]:
    """Its own methods and those of bases that are no modules; modules among them are checked by themselves."""
    for owner in cls.mro:
        if owner is cls or not owner.linen:
            yield from ((owner.scope.enter(one), one) for one in owner.methods.values())


_RECIPE = "decide with `if` and `for` alone, or outside of the class, and give it as a field"


def _other_names(function: ast.FunctionDef | None) -> Iterator[str]:
    for node in walk(function) if function is not None else ():
        if type(node) in _LATER:
            yield _LATER[type(node)]


def _change(project: Project, scope: Scope, node: ast.AST) -> str | None:
    """How a list or dict changes, where it is not by what is added to or taken from its end."""
    match node:
        case ast.Subscript(ctx=ast.Del()) | ast.Attribute(ctx=ast.Del()):
            return f"del {ast.unparse(node)}"
        case ast.Call(func=ast.Attribute(attr=attr), args=args) if attr in _PLAIN_CHANGES:
            return ast.unparse(node) if attr == "pop" and not _is_plain_pop(args) else None
        case ast.Call(func=ast.Attribute(value=ast.Subscript(value=ast.Attribute(attr="at")))):
            return None  # ``x.at[0].add(1)`` is another array
        case ast.Call(func=ast.Attribute(value=ast.Name(id="object"))):
            return None  # ``object.__setattr__(self, "width", 3)`` in ``__post_init__``
        case ast.Call(func=function) if any(changed_by_call(node)):
            return ast.unparse(function) if project.resolve(function, scope) is None else None
    return None


def _is_plain_pop(args: list[ast.expr]) -> bool:
    """Whether what is popped is the last item, or a dict's entry of a name that is written."""
    match args:
        case [ast.Constant(value=str()), *_] | []:
            return True
    return False
