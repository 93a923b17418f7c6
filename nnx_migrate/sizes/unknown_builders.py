"""Calls that may build submodules of a class nobody knows: ``TABLE[kind](4)``.

An explicit class builds its submodules in ``__init__``, so all of them have to be seen. Of what an unknown
callable returns, it is its use that counts: only modules are called (`check_maker`), or have their methods. In
``setup`` it is the call itself: what it returns may go anywhere, into a list that is filled in a loop,
through ``map``, to another class that reads it (`refuse_unknown_builders`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from nnx_migrate.abstract.questions import is_none
from nnx_migrate.abstract.values import (
    Argument,
    Array,
    Choice,
    Class,
    Factories,
    Library,
    Partial,
    Static,
    Unknown,
    Value,
)
from nnx_migrate.constructs import layer_of
from nnx_migrate.sizes.frames import Function
from nnx_migrate.sizes.return_values import is_module_class
from nnx_migrate.source.bindings import names_bound_below
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.overrides import methods_run
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import each, given_values, is_self

if TYPE_CHECKING:
    from nnx_migrate.sizes.frames import Frame
    from nnx_migrate.sizes.interpreter import Interpreter

_EITHER = "{} is a class or a function here"
_MAY_BUILD = "may build a submodule of a class that is not known"
# Methods of plain values, of which there are many in setup: they build no modules.
_PLAIN = frozenset(name for kind in (dict, list, set, str, tuple, int) for name in dir(kind)) | {
    *(
        "all",
        "any",
        "argsort",
        "astype",
        "clip",
        "copy",
        "cumsum",
        "flatten",
        "item",
        "max",
        "mean",
    ),
    *("min", "prod", "ravel", "repeat", "reshape", "round", "squeeze", "std", "sum", "swapaxes"),
    *("tolist", "transpose", "var"),
}
_REMATS = frozenset(
    f"{home}.{name}" for home in ("flax.linen", "jax") for name in ("remat", "checkpoint")
)
# What these are given is called for arrays.
_VARIABLES = frozenset({"param", "variable", "put_variable", "perturb", "sow"})


def is_plain(method: str) -> bool:
    """Whether a method is one of plain values."""
    return method in _PLAIN


def is_global(interpreter: Interpreter, call: ast.Call, frame: Frame) -> bool:
    """Whether a call is of a method of an object that a module of the project has: ``TABLE.build(4)``."""
    symbol = interpreter.project.resolve(call.func, frame.scope)
    return symbol is not None and interpreter.project.split(symbol)[0] is not None


def note_unknown(
    interpreter: Interpreter, callee: Value, call: ast.Call, args: tuple[Value, ...]
) -> None:
    """Note a call of what nobody knows; what takes arrays computes, it does not build.

    An item of an unknown list is a module by far most often, and what it takes an array.
    """
    is_item = isinstance(callee, Unknown) and callee.is_item
    arrays = (Array, Argument, Unknown) if is_item else (Array, Argument)
    if not any(isinstance(one, arrays) for one in args):
        interpreter.known_callees[id(call)] = False


def check_maker(
    interpreter: Interpreter, value: Value, method: str, node: ast.Call, frame: Frame
) -> None:
    """Refuse a call of what may be a submodule, built right here, or of its ``method`` ("": none)."""
    if frame.instance is not interpreter.root and frame.instance is not None:
        return  # it is another class's submodule
    if method and method not in _methods_of_modules(interpreter.project):
        return
    place = (
        node if frame.scope.module is interpreter.root.info.module else interpreter.root.info.node
    )
    maker = _maker(interpreter, value, method, node, frame)
    if maker:
        interpreter.refuse(place, f"{maker} {_MAY_BUILD}")
    elif isinstance(value, Unknown) and value.is_item:
        interpreter.item_calls.append(place)


def _maker(
    interpreter: Interpreter, value: Value, method: str, node: ast.Call, frame: Frame
) -> str:
    """What made a value that may be a module; "" where none did."""
    match value:
        case Unknown(made_by=maker, is_foreign=is_foreign):
            return "" if method and is_foreign else maker
        case Array():
            return ast.unparse(node.func)  # an array is never called, so it was no activation
        case Static(expr=expr):
            makers = (one.func for one in each(expr.node, ast.Call))
            for one in makers:
                is_plain_one = isinstance(one, ast.Attribute) and is_plain(one.attr)
                if not is_plain_one and _is_unknown(interpreter.project, one, frame.scope):
                    return ast.unparse(one)
    return ""


def check_over_rounds(interpreter: Interpreter, target: Value, node: ast.Call) -> None:
    """Refuse the same of the rounds of a loop, one after another: ``for make in (nn.Dense, lambda n: nn.Dense(n))``."""
    target = _target(target)
    takes_sizes = isinstance(target, Function) and target.node.args.kwarg is not None
    if takes_sizes or not (_is_maker(target) or isinstance(target, Function)):
        return
    kinds = interpreter.callee_kinds.setdefault(id(node), set())
    kinds.add(isinstance(target, Function))
    if len(kinds) > 1:
        interpreter.refuse(node, _EITHER.format(ast.unparse(node.func)))


def _is_maker(target: Value) -> bool:
    is_layer = isinstance(target, Library) and layer_of(target.symbol) is not None
    return is_layer or isinstance(target, Class | Factories)


def check_class_or_function(
    interpreter: Interpreter, options: Iterable[Value], node: ast.Call
) -> None:
    """Refuse a call of what is a class in one case and a function in another.

    NNX's classes get sizes and streams, which a function has to take as well; and what several
    classes build has no one name of Linen's beside what the function returns. Nor has what a class
    builds beside a field that may hold another one.
    """
    called = [_target(one) for one in options]
    functions = [one for one in called if isinstance(one, Function)]
    makers = [one for one in called if _is_maker(one)]
    takes_all = all(one.node.args.kwarg is not None for one in functions)
    if functions and makers and (len(makers) > 1 or not takes_all):
        interpreter.refuse(node, _EITHER.format(ast.unparse(node.func)))
    unknown = [one for one in called if isinstance(one, Static | Unknown | Argument)]
    if makers and not all(map(is_none, unknown)):
        interpreter.refuse(node, f"{ast.unparse(node.func)} {_MAY_BUILD}")


def _target(value: Value) -> Value:
    return _target(value.target) if isinstance(value, Partial) else value


def _is_unknown(project: Project, callee: ast.expr, scope: Scope) -> bool:
    """Whether nobody knows what a function of a known value returns: no builtin, of no library."""
    if isinstance(callee, ast.Name) and scope.lookup(callee.id) is None:
        return False
    symbol = (
        project.resolve(callee, scope) if isinstance(callee, ast.Name | ast.Attribute) else None
    )
    return symbol is None or project.split(symbol)[0] is not None


@lru_cache(maxsize=2)  # every analysis of a project asks
def _methods_of_modules(project: Project) -> frozenset[str]:
    """Names of methods that classes of modules have of their own, and no dict or list has."""
    found = (name for cls in project.linen.values() for name in cls.methods)
    return frozenset(name for name in found if not name.startswith("__")) - {*dir(dict), *dir(list)}


def refuse_unknown_builders(interpreter: Interpreter, info: ClassInfo) -> None:
    """Refuse calls in ``setup``, and the methods it runs, whose callee may be a class of modules.

    In other methods those that were not followed, as in a function that ``reduce`` calls, and those of a
    class that calls the items of an unknown list.
    """
    run = [(cls, method) for cls, method in _run_by_setup(info)]
    own = {id(method) for _, method in run}
    every = methods_run(interpreter.project, info)
    others = [(cls, one) for cls, one in every if cls.linen and id(one) not in own]
    for cls, method in run:
        _refuse(interpreter, cls, _unknown(interpreter, cls, method, names_bound_below(method)))
    for cls, method in others:
        found = list(_unknown(interpreter, cls, method, frozenset()))
        known = interpreter.known_callees
        _refuse(
            interpreter,
            cls,
            [one for one in found if interpreter.item_calls or id(one) not in known],
        )


def _refuse(interpreter: Interpreter, cls: ClassInfo, calls: Iterable[ast.Call]) -> None:
    info = interpreter.root.info
    for call in calls:
        place = call if cls.module is info.module else info.node
        interpreter.refuse(place, f"{ast.unparse(call.func)} {_MAY_BUILD}")


def _unknown(
    interpreter: Interpreter, cls: ClassInfo, method: ast.FunctionDef, bound: frozenset[str]
) -> Iterator[ast.Call]:
    """Calls of a method whose callee nobody knows; plain values' methods aside.

    What a function gives for ``nn.remat(Block, policy=policy_of(name))`` only says what is kept, and for
    ``nn.Dense(4, kernel_init=self.init(0.1))`` how a parameter starts.
    """
    options = {
        id(keyword.value)
        for call in each(method, ast.Call)
        for keyword in call.keywords
        if _builds_nothing(keyword.arg or "", interpreter.project.resolve(call.func, cls.scope))
    }
    for call in _calls(method):
        if id(call) in options:
            continue
        is_known = interpreter.known_callees.get(id(call))
        if is_known is None:
            is_computed = _is_computed(interpreter.project, cls, call.func, bound)
            is_known = not (is_computed or _is_class_field(interpreter, call.func))
        if not is_known and not (isinstance(call.func, ast.Attribute) and is_plain(call.func.attr)):
            yield call


def _builds_nothing(option: str, symbol: str | None) -> bool:
    """Whether what an option of a call is given is no module."""
    if symbol is None:
        return False
    is_initializer = option.endswith("_init") and layer_of(symbol) is not None
    return is_initializer or (option == "policy" and symbol in _REMATS)


def _run_by_setup(info: ClassInfo) -> Iterator[tuple[ClassInfo, ast.FunctionDef]]:
    """``setup`` and the methods of the class that it calls, at any remove."""
    visited, pending = set[str](), ["setup"]
    while pending:
        name = pending.pop()
        found = info.find(name) if name not in visited else None
        visited.add(name)
        if found is not None:
            yield found
            pending += [one.attr for one in each(found[1], ast.Attribute) if is_self(one.value)]


def _calls(method: ast.FunctionDef) -> Iterator[ast.Call]:
    """The calls of a method that may build for it.

    Those whose result is an argument of ``self.param`` or its kin compute, and nothing is left of what
    ``logger.warning("...")`` makes of a text.
    """
    todo: list[ast.AST] = [*method.body]
    while todo:
        node = todo.pop()
        match node:
            case ast.Expr(value=ast.Call(func=ast.Attribute() as callee) as call) if _takes_text(
                call
            ) and not is_self(callee.value):
                continue
            case ast.Call(func=ast.Attribute(attr=name) as own) if name in _VARIABLES and is_self(
                own.value
            ):
                continue
            case ast.Call():
                yield node
        todo += ast.iter_child_nodes(node)


def _takes_text(call: ast.Call) -> bool:
    """Whether a call is given constants and texts only: nothing that it could put a module into."""
    arguments = given_values(call)
    return bool(arguments) and all(
        isinstance(one, ast.Constant | ast.JoinedStr) for one in arguments
    )


def _is_computed(project: Project, cls: ClassInfo, callee: ast.expr, bound: frozenset[str]) -> bool:
    """Whether code that was not followed calls what only the running program knows.

    ``bound``: local names, where they count.
    """
    match callee:
        case ast.Name(id=name):
            return name in bound
        case ast.Attribute() | ast.Lambda():
            return False
        case ast.Call(func=ast.Name() | ast.Attribute() as maker):
            return _is_unknown(project, maker, cls.scope)
    return True


def _is_class_field(interpreter: Interpreter, callee: ast.expr) -> bool:
    """Whether it is a field that holds classes of modules: ``{n: self.layer(4) for n in names}``."""
    if not isinstance(callee, ast.Attribute) or not is_self(callee.value):
        return False
    return builds_modules(interpreter.project, interpreter.root.fields.get(callee.attr))


def builds_modules(project: Project, value: Value | None) -> bool:
    """Whether a call of a value builds a module."""
    match value:
        case Class():
            return True
        case Factories(options=options) | Choice(options=options):
            return any(builds_modules(project, one) for one in options)
        case Partial(target=target):
            return builds_modules(project, target)
        case Library(symbol=symbol):
            return is_module_class(project, symbol)
    return False
