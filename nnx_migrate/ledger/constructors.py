"""Constructor calls of NNX classes that give no random streams where the class needs them."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from nnx_migrate.ledger.infer import Inference
from nnx_migrate.ledger.scope_data import Scope

_NAME = "rngs"


def lacks_rngs(call: ast.Call, classes: Iterable[Scope], inference: Inference) -> bool:
    """Whether every class that is called asks for ``rngs`` that the call does not give."""
    if any(one.arg in (_NAME, None) for one in call.keywords):
        return False
    return all(_asks(call, one, inference) for one in classes)


def _asks(call: ast.Call, scope: Scope, inference: Inference) -> bool:
    for one in inference.chain(scope):
        for binding in one.bindings.get("__init__", ()):
            node = binding.inner.node if binding.inner is not None else None
            return isinstance(node, ast.FunctionDef) and _is_missing(call, node.args)
        if isinstance(one.node, ast.ClassDef) and one.node.decorator_list:
            return False  # a decorator may write the constructor
    return False


def _is_missing(call: ast.Call, spec: ast.arguments) -> bool:
    """Whether a required parameter ``rngs`` gets nothing."""
    for one, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
        if one.arg == _NAME:
            return default is None
    names = [one.arg for one in (*spec.posonlyargs, *spec.args)][1:]
    if _NAME not in names[: len(names) - len(spec.defaults)]:
        return False
    is_open = any(isinstance(one, ast.Starred) for one in call.args)
    return not is_open and len(call.args) <= names.index(_NAME)
