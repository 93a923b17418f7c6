"""Linen decorators of methods, whole: ``@nn.compact``, ``@nn.remat``, ``@partial(nn.scan, ...)``.

``@nn.compact`` and ``@nn.nowrap`` go away. ``@nn.remat`` and ``@nn.jit`` become ``@nnm.remat`` and
``@nnm.jit`` (all count ``self`` in ``static_argnums``). ``@partial(nn.scan, variable_broadcast="params", in_axes=1, ...)`` becomes
``@partial(nnm.scan_method, ...)``: the same loop over the same axes, the same program as text.

Refused: a scan with ``variable_axes`` (variables stacked per step need other constructors) or with
options the text does not show, and every other lifted decorator.

flax 0.12.8 and 0.12.12: linen/transforms.py.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from nnx_migrate.rewrite.rules.base import Code, Refusal, Rule, is_literal
from nnx_migrate.rewrite.rules.lifts import not_all_lifted

Render = Callable[[ast.AST], str]
RULES: tuple[Rule, ...] = ()  # the names are claimed where they are functions

_REMAT = {"flax.linen.remat", "flax.linen.checkpoint"}
_REMAT_DEFAULTS = {"variables": True, "rngs": True, "concrete": False, "methods": None}
_REMAT_KEPT = ("prevent_cse", "static_argnums", "policy")
_JIT_KEPT = ("static_argnums", "static_argnames", "donate_argnums", "device", "backend")
_SCAN_LITERALS = ("variable_broadcast", "variable_carry", "split_rngs", "in_axes", "out_axes")
_SCAN_KEPT = (*_SCAN_LITERALS, "length", "reverse", "unroll")


def partial_decorator(decorator: ast.Call, symbol: str, render: Render) -> Code | Refusal | None:
    """``functools.partial(<Linen transformation>, ...)`` used as a decorator; None: not known."""
    if any(keyword.arg is None for keyword in decorator.keywords) or len(decorator.args) != 1:
        return Refusal(
            f"{symbol} with arguments that the decorator does not name",
            "pass them as keywords",
            decorator,
        )
    given = {str(keyword.arg): keyword.value for keyword in decorator.keywords}
    if symbol in _REMAT:
        return _remat(decorator, given, render)
    if symbol == "flax.linen.jit":
        return _jit(decorator, given, render)
    if symbol == "flax.linen.scan":
        return _scan(decorator, given, render)
    return None


def _jit(decorator: ast.Call, given: Mapping[str, ast.expr], render: Render) -> Code | Refusal:
    refusal = not_all_lifted("jit", given, "leave it out")
    if refusal is not None:
        return refusal
    kept = {name: value for name, value in given.items() if name in _JIT_KEPT}
    unknown = sorted(given.keys() - kept.keys() - {"variables", "rngs"})
    if unknown:
        return Refusal(f"a method compiled with {unknown[0]}=", "leave it out", given[unknown[0]])
    return Code(_partial(decorator, "nnm.jit", kept, render), frozenset({"nnm"}))


def _remat(decorator: ast.Call, given: Mapping[str, ast.expr], render: Render) -> Code | Refusal:
    for name, value in given.items():
        if name in _REMAT_KEPT:
            continue
        if name not in _REMAT_DEFAULTS or not is_literal(value, _REMAT_DEFAULTS[name]):
            return Refusal(f"remat with {name}=", "wrap the method in nnm.remat by hand", value)
    kept = {name: value for name, value in given.items() if name in _REMAT_KEPT}
    return Code(_partial(decorator, "nnm.remat", kept, render), frozenset({"nnm"}))


def _scan(decorator: ast.Call, given: Mapping[str, ast.expr], render: Render) -> Code | Refusal:
    for name, value in given.items():
        if name == "variable_axes" and isinstance(value, ast.Dict) and not value.keys:
            continue
        if name not in _SCAN_KEPT:
            return Refusal(
                f"a method scanned with {name}=",
                "build the stack with nnx.vmap over split rngs, then nnx.scan a function "
                "(module, carry)",
                value,
            )
        if name in _SCAN_LITERALS and not _is_plain(name, value):
            return Refusal(
                f"a method scanned with {name}= that the text does not show",
                "write it as a literal",
                value,
            )
    kept = {name: value for name, value in given.items() if name in _SCAN_KEPT}
    return Code(_partial(decorator, "nnm.scan_method", kept, render), frozenset({"nnm"}))


def _is_plain(name: str, value: ast.expr) -> bool:
    """Whether a scan option is a literal of a form ``nnm.scan_method`` takes."""
    try:
        found = ast.literal_eval(value)
    except ValueError:
        return False
    if name == "split_rngs":
        return isinstance(found, dict) and all(
            isinstance(k, str) and isinstance(v, bool) for k, v in found.items()
        )
    if name == "out_axes":
        return type(found) is int
    if name == "in_axes":
        axes = found if isinstance(found, tuple | list) else (found,)
        return all(axis is None or type(axis) is int for axis in axes)
    names = found if isinstance(found, tuple | list) else (found,)
    return isinstance(found, bool) or all(isinstance(one, str) for one in names)


def _partial(decorator: ast.Call, target: str, kept: Mapping[str, ast.expr], render: Render) -> str:
    arguments = [target, *(f"{name}={render(value)}" for name, value in kept.items())]
    return f"{render(decorator.func)}({', '.join(arguments)})"
