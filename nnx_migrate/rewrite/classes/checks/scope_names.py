"""Sizes that ``__init__`` looks up by the name of the submodule that it is about to build."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from nnx_migrate.sizes.result import SCOPE_NAME
from nnx_migrate.source.other_values import is_name
from nnx_migrate.source.walking import each, walk

_OWN_NAMES = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)


def is_nameless(body: Iterable[ast.stmt], *, is_named: bool = False) -> bool:
    """Whether a size is looked up where no statement right before says the submodule's name.

    ::

        scope_name = names('Block')
        setattr(self, scope_name, Block(in_features_of[scope_name], 4, rngs=rngs))
        self.head = nnm.Sequential([Block(in_features_of[scope_name], w) for w in ws])

    The last statement has another's name, and no statement could say that of each item.
    """
    for one in body:
        if isinstance(one, ast.Assign) and is_name(one.targets[0], SCOPE_NAME):
            is_named = True
            continue
        blocks = [getattr(one, name, []) for name in ("body", "orelse", "finalbody")]
        if any(is_nameless(block, is_named=is_named) for block in blocks):
            return True
        inside = {id(node) for block in blocks for part in block for node in walk(part)}
        reads = [node for node in walk(one) if _reads(node) and id(node) not in inside]
        items = {id(node) for part in each(one, _OWN_NAMES) for node in walk(part)}
        if reads and (not is_named or any(id(node) in items for node in reads)):
            return True
        is_named = is_named and any(map(_reads, walk(one)))
    return False


def _reads(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == SCOPE_NAME and isinstance(node.ctx, ast.Load)
