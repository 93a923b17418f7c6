"""Sizes that ``__init__`` needs above the loop that carries them: there its local is not bound yet.

::

    def setup(self):
        self.head = nn.Dense(3)  # the call runs it behind the layers
        self.layers = [nn.Dense(self.width) for _ in range(self.n)]

What the loop ends with is written in terms of fields: ``self.width if self.n > 0 else in_features``.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.values import Use
from nnx_migrate.sizes.inference.class_analysis import ClassAnalysis

_DEPTH = 8  # what one loop ends with may hang on another one below

_Place = tuple[int, int]
_Ends = Mapping[str, tuple[_Place, Expr]]


def spell_early_sizes(analysis: ClassAnalysis) -> None:
    """Write the sizes that stand above their loops in terms of fields, where those say them."""
    interpreter = analysis.interpreter
    if not interpreter.endings:
        return
    nodes = analysis.nodes_by_id
    ends = {
        name: (_place(nodes[key]), interpreter.endings[name])
        for key, entries in interpreter.carries.items()
        for name, _, _ in entries
        if key in nodes and name in interpreter.endings
    }
    for key, uses in interpreter.root.records.items():
        if key in nodes:
            uses[:] = [_of_use(use, _place(nodes[key]), ends) for use in uses]
    for key, entries in interpreter.carries.items():
        if key in nodes:
            at = _place(nodes[key])
            interpreter.carries[key] = [
                (
                    name,
                    first if name in interpreter.nested_carries else _spell(first, at, ends),
                    last,
                )
                for name, first, last in entries
            ]


def _of_use(use: Use, at: _Place, ends: _Ends) -> Use:
    """A call of a submodule that is built there; in a round its sizes are the round's."""
    behind = {name: end for name, end in ends.items() if name not in use.current}
    sizes = {name: size and _spell(size, at, behind) for name, size in use.sizes.items()}
    return replace(use, sizes=sizes)


def _spell(size: Expr, at: _Place, ends: _Ends) -> Expr:
    for _ in range(_DEPTH):
        early = {name: ends[name][1] for name in size.names & ends.keys() if ends[name][0] > at}
        if not early:
            break
        size = ex.substitute(size, early)
    return size


def _place(node: ast.AST) -> _Place:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
