"""Decorators of methods whose code is the project's own, or not in sight."""

from __future__ import annotations

import ast
import builtins

from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import FunctionNode
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each

RULE = "class"


def check_method_decorators(project: Project, cls: ClassInfo) -> None:
    """Refuse methods with a decorator that may change what they are given, or use their module.

    ``def flat(f): return lambda self, x: f(self, x.reshape(len(x), -1))`` hides from callers which size
    the method's input has, ``self.sow`` in it is Linen's, and a decorator that a function around the
    class is given may be ``nn.jit``.

    Raises:
      Refused: a method has one.
    """
    for method in cls.methods.values():
        for decorator in method.decorator_list:
            target = _function_of(project, cls, decorator)
            if _is_known(project, cls, target):
                continue
            reason = f"what the decorator {ast.unparse(target)} of {method.name} does is not known"
            raise ClassRefused(decorator, reason, f"call it in {method.name}", RULE)


def _function_of(project: Project, cls: ClassInfo, decorator: ast.expr) -> ast.expr:
    """``f`` of ``@f``, ``@f(1)`` and ``@partial(f, 1)``."""
    if not isinstance(decorator, ast.Call):
        return decorator
    is_partial = project.resolve(decorator.func, cls.scope) == "functools.partial"
    return decorator.args[0] if is_partial and decorator.args else decorator.func


def _is_known(project: Project, cls: ClassInfo, target: ast.expr) -> bool:
    """Whether it is a library's, Python's own, or that of a property of the class.

    So is a function of the project that makes no function itself: ``return jaxtyped(f)``.
    """
    symbol = project.resolve(target, cls.scope)
    function = project.function(symbol)
    if function is not None:
        return not any(one is not function for one in each(function, FunctionNode))
    if symbol is not None:
        return project.split(symbol)[0] is None
    match target:
        case ast.Name(id=name):
            return cls.scope.lookup(name) is None and hasattr(builtins, name)
        case ast.Attribute(value=ast.Name(id=name), attr="setter" | "getter" | "deleter"):
            return name in cls.methods
    return False
